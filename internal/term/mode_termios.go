//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// disableEcho turns echo and line buffering off. Keys still send signals, and output is as before.
func disableEcho(tty *os.File) {
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), getMode)
	if err != nil {
		return
	}
	mode.Lflag &^= unix.ICANON | unix.ECHO
	mode.Lflag |= unix.ISIG
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(int(tty.Fd()), setMode, mode)
}
