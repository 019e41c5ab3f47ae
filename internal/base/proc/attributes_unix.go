//go:build unix && !linux

package proc

import "syscall"

// childAttributes requests a process group for the child.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
