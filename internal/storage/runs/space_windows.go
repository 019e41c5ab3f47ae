package runs

import "golang.org/x/sys/windows"

// readFreeSpace returns how many bytes a user may still write on the disk of a directory.
func readFreeSpace(dir string) (bytes uint64, ok bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	err = windows.GetDiskFreeSpaceEx(name, &bytes, nil, nil)
	return bytes, err == nil
}
