package term

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)

func discardInput(tty *os.File) {
	_ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
