//go:build !linux

package box

import "raddle.dev/internal/base/proc"

// A control is not needed on this system.
type control struct{}

// tryBox returns ErrNone: raddle has no box for this system.
func (b *Box) tryBox() error { return ErrNone }

// EnterBox returns ErrNone.
func (b *Box) EnterBox(proc.Command) (*Stay, error) { return nil, ErrNone }

// DescribeFailure returns ErrNone.
func (s *Stay) DescribeFailure() error { return ErrNone }

// LeaveBox does nothing.
func (s *Stay) LeaveBox(func(PathChange)) (Remains, error) { return Remains{}, nil }
