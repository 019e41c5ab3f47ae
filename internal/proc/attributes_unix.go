//go:build unix && !linux

package proc

import "syscall"

// attributes requests a process group for the child.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
