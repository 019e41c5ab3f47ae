//go:build !unix

package cli

import "os"

// notifyQuit does nothing: there is no such signal.
func notifyQuit(chan<- os.Signal) {}
