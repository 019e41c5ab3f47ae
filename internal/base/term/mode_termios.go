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

// readRawKeys is like disableEcho, and no key sends a signal or is changed: Enter and Ctrl-J differ.
func readRawKeys(tty *os.File) {
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), getMode)
	if err != nil {
		return
	}
	mode.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	mode.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR | unix.IXON
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(int(tty.Fd()), setMode, mode)
}

// hideInput turns echo off. Lines and signals are as before.
func hideInput(tty *os.File) {
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), getMode)
	if err != nil {
		return
	}
	mode.Lflag &^= unix.ECHO
	_ = unix.IoctlSetTermios(int(tty.Fd()), setMode, mode)
}
