//go:build unix

package plainfile

import "syscall"

// withoutWaiting lets an open return at once, whatever is at the path.
const withoutWaiting = syscall.O_NONBLOCK | syscall.O_NOCTTY
