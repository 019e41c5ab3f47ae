//go:build !unix

package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

// terminate ends the child at once: there is no request to end that every program understands.
func (ch *child) terminate() { ch.kill() }

func (ch *child) kill() { ch.cmd.Process.Kill() }

func killGroup(int) error { return errors.ErrUnsupported }

func signalName(*os.ProcessState) string { return "" }

// lookPath finds a program as the system does; its rules about suffixes are not ours to repeat.
func lookPath(name string, _ []string) (string, error) { return exec.LookPath(name) }
