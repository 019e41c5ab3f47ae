package term

import (
	"os"

	"golang.org/x/sys/windows"
)

func isForeground(*os.File) bool { return true }

// handleSignals does nothing: a console does not stop processes.
func (k *Keyboard) handleSignals() (stop func()) { return func() {} }

// disableEcho turns echo and line buffering off. Ctrl-C still interrupts.
func disableEcho(console *os.File) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(console.Fd()), &mode) != nil {
		return
	}
	mode &^= windows.ENABLE_ECHO_INPUT | windows.ENABLE_LINE_INPUT
	_ = windows.SetConsoleMode(windows.Handle(console.Fd()), mode|windows.ENABLE_PROCESSED_INPUT)
}

// readRawKeys turns echo and line buffering off. Ctrl-C is a key.
func readRawKeys(console *os.File) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(console.Fd()), &mode) != nil {
		return
	}
	mode &^= windows.ENABLE_ECHO_INPUT | windows.ENABLE_LINE_INPUT | windows.ENABLE_PROCESSED_INPUT
	_ = windows.SetConsoleMode(windows.Handle(console.Fd()), mode|windows.ENABLE_VIRTUAL_TERMINAL_INPUT)
}

// hideInput turns echo off. Lines and signals are as before.
func hideInput(console *os.File) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(console.Fd()), &mode) != nil {
		return
	}
	_ = windows.SetConsoleMode(windows.Handle(console.Fd()), mode&^windows.ENABLE_ECHO_INPUT)
}

func discardInput(console *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(console.Fd()))
}

// CanSuspend returns false: a console has no keys that stop a process.
func CanSuspend() bool { return false }

// Suspend does nothing: there is no job control.
func (k *Keyboard) Suspend() {}

// NotifyQuit does nothing: there is no such signal.
func NotifyQuit(chan<- os.Signal) {}
