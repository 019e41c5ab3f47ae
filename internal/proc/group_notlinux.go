//go:build !linux

package proc

// block waits for the end of the child and reaps it. Between that and the killing of its group the child's id is free; the systems
// give ids out in turn, so that nobody can have got it by then.
func (ch *child) block() error { return ch.cmd.Wait() }

// reap has nothing left to do.
func (ch *child) reap() error { return nil }
