//go:build !unix && !windows

package proc

import (
	"errors"
	"os"
	"syscall"
)

// A group is the child alone.
type group struct{}

func (group) kill(p *os.Process) { p.Kill() }

func (ch *child) startProcess() error { return ch.cmd.Start() }

func childAttributes() *syscall.SysProcAttr { return nil }

// terminateChild kills the child: there is no request to end that every program understands.
func (ch *child) terminateChild() { ch.killChild() }

func (ch *child) killChild() { ch.group.kill(ch.cmd.Process) }

// lendTerminal gives the child the terminal. There is no foreground group.
func (ch *child) lendTerminal(t *Terminal) {
	ch.cmd.Stdin, ch.cmd.Stdout, ch.cmd.Stderr = t.In, t.Out, t.Out
}

func (ch *child) takeTerminal() {}

func killGroup(int) error { return errors.ErrUnsupported }

func signalName(*os.ProcessState) string { return "" }
