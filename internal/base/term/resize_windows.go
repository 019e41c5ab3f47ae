package term

import (
	"os"
	"os/signal"
)

// NotifyResize returns a channel that never receives: a console sends no signal when it has another size.
func NotifyResize() (resized <-chan os.Signal, stop func()) { return nil, func() {} }

// IgnoreInterrupts makes Ctrl-C in the terminal reach only the program that has it, until restore is called.
func IgnoreInterrupts() (restore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	return func() { signal.Stop(c) }
}
