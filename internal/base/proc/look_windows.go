package proc

import (
	"strconv"

	"golang.org/x/sys/windows"
)

// inspectProcess returns when a process started, in units of 100 ns of the system's clock, and whether it has ended. A
// process that has ended stays visible as long as another process has a handle of it.
func inspectProcess(pid int) (processInfo, bool) {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return processInfo{}, false
	}
	defer windows.CloseHandle(p)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(p, &created, &exited, &kernel, &user); err != nil {
		return processInfo{}, false
	}
	state, err := windows.WaitForSingleObject(p, 0)
	start := uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime)
	return processInfo{start: strconv.FormatUint(start, 10), dead: err == nil && state == windows.WAIT_OBJECT_0}, true
}
