//go:build unix

package term

import (
	"os"
	"os/signal"
	"syscall"
)

// NotifyResize returns a channel that receives when the terminal has another size, until stop is called.
func NotifyResize() (resized <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// IgnoreInterrupts makes Ctrl-C in the terminal reach only the program that has it, until restore is called.
func IgnoreInterrupts() (restore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGQUIT)
	return func() { signal.Stop(c) }
}
