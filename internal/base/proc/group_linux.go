package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes requests a process group for the child, and that the child dies together with the thread that starts
// it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitProcess waits for the end of the child without reaping it, so that its id cannot be given to another process
// before the group is killed.
//
// A child that has the terminal may be stopped from the keyboard: then this process has the terminal until the child
// may continue.
func (ch *child) waitProcess() error {
	events := unix.WEXITED | unix.WNOWAIT
	if ch.terminal != nil {
		events |= unix.WSTOPPED
	}
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, ch.cmd.Process.Pid, &info, events, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && info.Code == cldStopped:
			// This removes the report, which WNOWAIT has left.
			_ = unix.Waitid(unix.P_PID, ch.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOHANG, nil)
			ch.waitSuspended()
		default:
			return err
		}
	}
}

// cldStopped is the code by which the system reports a child that was stopped (CLD_STOPPED of siginfo).
const cldStopped = 5

// reapProcess frees the child's id.
func (ch *child) reapProcess() error { return ch.cmd.Wait() }
