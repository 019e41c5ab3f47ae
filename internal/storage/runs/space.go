package runs

import "path/filepath"

// Space is how much room there is for files in a directory.
type Space struct {
	Dir  string
	Free uint64 // bytes
}

// ReadFreeSpace returns the room in the directory of the store, if it is a file, or in that of raddle's state,
// whichever has less. ok is false if the system does not say it.
func ReadFreeSpace(a *Archive) (least Space, ok bool) {
	dirs := []string{a.dirs.State}
	if locks := a.LockDir(); locks != "" { // they are next to the file of the store
		dirs = append(dirs, filepath.Dir(locks))
	}
	for _, dir := range dirs {
		free, known := readFreeSpace(dir)
		if known && (!ok || free < least.Free) {
			least = Space{dir, free}
			ok = true
		}
	}
	return least, ok
}
