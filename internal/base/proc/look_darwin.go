package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// inspectProcess asks the kernel for the start of a process, which it records in wall time, and whether it is a zombie.
func inspectProcess(pid int) (processInfo, bool) {
	const zombie = 5 // SZOMB in sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return processInfo{}, false
	}
	t := info.Proc.P_starttime
	return processInfo{start: fmt.Sprintf("%d.%06d", t.Sec, t.Usec), dead: info.Proc.P_stat == zombie}, true
}
