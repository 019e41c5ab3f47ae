//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyQuit sends SIGQUIT to a channel.
func notifyQuit(c chan<- os.Signal) { signal.Notify(c, syscall.SIGQUIT) }
