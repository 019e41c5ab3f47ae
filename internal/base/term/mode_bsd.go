//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
)

func discardInput(tty *os.File) {
	const read = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, read)
}
