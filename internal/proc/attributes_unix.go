//go:build unix && !linux

package proc

import "syscall"

// attributes asks for a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
