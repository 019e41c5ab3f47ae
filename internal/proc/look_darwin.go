package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// look asks the kernel for the start of a process, which it records in wall time, and whether it is a zombie.
func look(pid int) (sighting, bool) {
	const zombie = 5 // SZOMB in sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return sighting{}, false
	}
	t := info.Proc.P_starttime
	return sighting{start: fmt.Sprintf("%d.%06d", t.Sec, t.Usec), dead: info.Proc.P_stat == zombie}, true
}
