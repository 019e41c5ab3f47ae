//go:build !linux

package proc

// block waits for the end of the child and reaps it. Until its group is killed, the child's id is free; the systems assign ids
// in sequence, so that no other process can have got it by then.
func (ch *child) block() error { return ch.cmd.Wait() }

// reap does nothing: block has reaped the child.
func (ch *child) reap() error { return nil }
