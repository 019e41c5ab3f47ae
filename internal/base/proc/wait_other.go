//go:build !linux && !windows

package proc

// waitProcess waits for the end of the child and reaps it. Until its group is killed, the child's id is free; the
// systems assign ids in sequence, so that no other process can have got it by then.
func (ch *child) waitProcess() error { return ch.cmd.Wait() }

// reapProcess does nothing: waitProcess has reaped the child.
func (ch *child) reapProcess() error { return nil }
