//go:build unix

package proc

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A group is a process group. Its id is that of the child.
type group struct{}

// kill ends the whole group of a child. An empty group is not an error.
func (group) kill(pid int) { killGroup(pid) }

// startProcess starts the child as the leader of its group.
func (ch *child) startProcess() error { return ch.cmd.Start() }

// terminateChild asks the whole group to end. A stopped process must be continued to receive the signal.
func (ch *child) terminateChild() {
	unix.Kill(-ch.cmd.Process.Pid, unix.SIGTERM)
	unix.Kill(-ch.cmd.Process.Pid, unix.SIGCONT)
}

// killChild ends the whole group.
func (ch *child) killChild() { ch.group.kill(ch.cmd.Process.Pid) }

func killGroup(pgid int) error { return unix.Kill(-pgid, unix.SIGKILL) }

// signalName returns the name of the signal that ended a process, if one did.
func signalName(st *os.ProcessState) string {
	ws, ok := st.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return ""
	}
	if name := unix.SignalName(ws.Signal()); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", ws.Signal())
}
