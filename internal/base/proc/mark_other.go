//go:build !linux

package proc

import "time"

// endMarked does nothing: the environment of other processes cannot be read here.
func endMarked(string) {}

// endMarkedSince does nothing, like endMarked.
func endMarkedSince(string, int, time.Duration) {}
