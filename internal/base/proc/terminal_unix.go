//go:build unix

package proc

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// lendTerminal makes the child's group the foreground group of the terminal when the child starts. A terminal that does
// not control this process has no foreground group that this process could set: the child only reads and writes it.
func (ch *child) lendTerminal(t *Terminal) {
	ch.cmd.Stdin = t.In
	ch.cmd.Stdout = t.Out
	ch.cmd.Stderr = t.Out
	fd := int(t.In.Fd())
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
		return
	}
	ch.terminal = t
	ch.cmd.SysProcAttr.Foreground = true
	ch.cmd.SysProcAttr.Ctty = fd
}

// takeTerminal makes the group of this process the foreground group again. From the background that raises SIGTTOU,
// which would stop this process.
func (ch *child) takeTerminal() {
	if own, err := unix.Getpgid(0); err == nil {
		ch.setForeground(own)
	}
}

func (ch *child) setForeground(group int) {
	if ch.terminal == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(ch.terminal.In.Fd()), unix.TIOCSPGRP, group) // fails if the terminal is gone
}

// waitSuspended handles a child that was stopped.
func (ch *child) waitSuspended() {
	ch.takeTerminal()
	if ch.terminal.Suspended != nil {
		ch.terminal.Suspended()
	}
	ch.setForeground(ch.cmd.Process.Pid)
	_ = unix.Kill(-ch.cmd.Process.Pid, unix.SIGCONT)
}
