package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/proc"
)

// A boxedChild is the box of a child process, and the child's time in it. A nil one is a child that runs in none.
type boxedChild struct {
	stay   *box.Stay
	remove func()
}

// errNoBox says that the surroundings have no box at all.
var errNoBox = errors.New("there is none")

// enterBox prepares a box for the child of a server. Where none holds, the server must not run: its entry asks for a
// box.
func (s *server) enterBox(ctx context.Context, c proc.Command) (*boxedChild, error) {
	if s.options.Box == nil {
		return nil, describeMissing(errNoBox)
	}
	b, remove, err := s.options.Box()
	if err != nil {
		return nil, describeMissing(err)
	}
	stay, err := b.EnterBox(ctx, c)
	if err != nil {
		remove()
		return nil, describeMissing(err)
	}
	return &boxedChild{stay, remove}, nil
}

// describeMissing says why a server does not run that must run in a box, and what to do.
func describeMissing(err error) error {
	return fmt.Errorf(`its entry has "sandbox": true, and no box holds it: %w. raddle doctor says what works here; without "sandbox" it runs with all your rights`, err)
}

// leaveBox removes the box after the child has ended.
func (b *boxedChild) leaveBox() {
	if b == nil {
		return
	}
	_, _ = b.stay.LeaveBox(nil) // a server changes nothing in the workspace
	b.remove()
}

// describeFailure returns why the box of a child that has ended could not be prepared; nil: it could, or the child runs
// in none.
func (b *boxedChild) describeFailure() error {
	if b == nil {
		return nil
	}
	if err := b.stay.DescribeFailure(); err != nil {
		return describeMissing(err)
	}
	return nil
}

// listVariables returns the variables of a child but for those of its entry: without secrets if it runs in a box.
func (o *Options) listVariables(boxed bool) []string {
	env := slices.Clone(o.Env)
	if !boxed || o.Secret == nil {
		return env
	}
	return slices.DeleteFunc(env, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return o.Secret(name, value)
	})
}
