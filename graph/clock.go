package graph

import (
	"context"
	"errors"
	"time"

	"raddle.dev/graph/internal/panics"
)

// checkedClock wraps a Clock of the caller: a panic in it fails the drive, on any
// goroutine.
type checkedClock struct {
	Clock
	drive *drive
}

func (c *checkedClock) Now() (now time.Time) {
	defer func() {
		if p := recover(); p != nil {
			c.drive.setFault(panics.NewError("Runner.Clock", p))
			now = time.Now()
		}
	}()
	return c.Clock.Now()
}

func (c *checkedClock) Wait(ctx context.Context, d time.Duration) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Runner.Clock", p)
			c.drive.setFault(err)
		}
	}()
	return c.Clock.Wait(ctx, d)
}

// setFault fails the drive for an error that no task has caused.
func (x *drive) setFault(err error) {
	if x.fault.CompareAndSwap(nil, &err) && x.cancel != nil {
		x.cancel()
	}
}

// fatalError returns the error of the clock or the store that ends the drive, or nil.
func (x *drive) fatalError() error {
	if err := x.fault.Load(); err != nil {
		return *err
	}
	return x.j.storeError()
}

// newID makes the id of a run or a branch; a panic in Runner.IDs becomes an error.
func (x *drive) newID() (id string, err error) {
	defer func() {
		if p := recover(); p != nil {
			id, err = "", panics.NewError("Runner.IDs", p)
		}
	}()
	now := x.now()
	if err := x.fatalError(); err != nil {
		return "", err
	}
	if x.r.IDs == nil {
		return NewID(now), nil
	}
	if id = x.r.IDs(); id == "" {
		return "", errors.New("graph: Runner.IDs has returned an empty id")
	}
	return id, nil
}
