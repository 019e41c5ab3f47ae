//go:build !linux

package box

import (
	"context"

	"raddle.dev/internal/base/proc"
)

// These are not needed on this system.
type (
	control   struct{}
	way       interface{}
	treeState struct{}
	copies    struct{}
)

// waysToHold returns none: raddle has no box for this system.
func waysToHold() []way { return nil }

// tryBox returns ErrNone.
func (b *Box) tryBox([]way) error { return ErrNone }

// EnterBox returns ErrNone.
func (b *Box) EnterBox(context.Context, proc.Command) (*Stay, error) { return nil, ErrNone }

// DescribeFailure returns ErrNone.
func (s *Stay) DescribeFailure() error { return ErrNone }

// LeaveBox does nothing.
func (s *Stay) LeaveBox(func(PathChange)) (Remains, error) { return Remains{}, nil }

// DescribeBox returns nothing: there is no box.
func (b *Box) DescribeBox() Description { return Description{} }
