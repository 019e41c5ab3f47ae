package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes requests a process group for the child, and that the child dies together with the thread that starts it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// block waits for the end of the child without reaping it, so that its id cannot be given to another process before the group
// is killed.
func (ch *child) block() error {
	for {
		err := unix.Waitid(unix.P_PID, ch.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// reap frees the child's id.
func (ch *child) reap() error { return ch.cmd.Wait() }
