package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
)

// Checkpoint is a place in a run's history that can be shown, compared and forked.
// It is named RUN@AT.
type Checkpoint struct {
	At   int64     `json:"at"` // number of its record
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`           // start, step, call, edit, fork or snapshot
	Path string    `json:"path,omitempty"` // path of the child graph; "": the run's own graph
	What string    `json:"what,omitempty"` // for an edit, the keys that it wrote
	Next []string  `json:"next"`           // nodes that run next
}

// SplitPoint splits RUN@AT. Without @, at is 0, which means the current state of the run.
func SplitPoint(text string) (run string, at int64, err error) {
	run, number, ok := strings.Cut(text, "@")
	if !ok {
		return run, 0, nil
	}
	if run == "" {
		return "", 0, failure.NewUsage("name the run too: RUN"+text, "%q names no run", text)
	}
	at, err = strconv.ParseInt(number, 10, 64)
	if err != nil || at < 1 {
		return "", 0, failure.NewUsage("checkpoints are numbers: RUN@7; see: raddle runs show "+run, "%q names no checkpoint", text)
	}
	return run, at, nil
}

// resolvePoint finds the run that RUN or RUN@AT names.
func (a *Archive) resolvePoint(ctx context.Context, text string) (*Store, journal.Point, error) {
	id, at, err := SplitPoint(text)
	if err != nil {
		return nil, journal.Point{}, err
	}
	st, found, err := a.locateRun(ctx, id)
	at = cmp.Or(at, found.last)
	return st, journal.Point{Thread: found.thread, Seq: at}, err
}

// inspectPoint finds the run that RUN or RUN@AT names, and reads its state there. The error for a checkpoint that does
// not exist names those that do.
func inspectPoint(ctx context.Context, a *Archive, text string) (*Store, journal.Point, *history.Snapshot, error) {
	st, at, err := a.resolvePoint(ctx, text)
	if err != nil {
		return nil, at, nil, err
	}
	snap, err := history.Inspect(ctx, st.Store, at.Thread, at.Seq)
	if err != nil {
		return nil, at, nil, st.pointError(ctx, at, err)
	}
	return st, at, snap, nil
}

// ListCheckpoints returns the checkpoints of a run, newest first.
func (a *Archive) ListCheckpoints(ctx context.Context, id string) ([]Checkpoint, error) {
	st, at, err := a.resolvePoint(ctx, id)
	if err != nil {
		return nil, err
	}
	return st.listCheckpoints(ctx, at.Thread)
}

func (s *Store) listCheckpoints(ctx context.Context, id string) ([]Checkpoint, error) {
	list := []Checkpoint{}
	for c, err := range history.Checkpoints(ctx, s, id) {
		if err != nil {
			return nil, err
		}
		list = append(list, newCheckpoint(&c.Entry))
	}
	return list, nil
}

// newCheckpoint returns the checkpoint that a record is.
func newCheckpoint(e *history.Entry) Checkpoint {
	c := Checkpoint{At: e.Seq, Time: e.Time, Kind: e.Kind.String(), Path: e.Path, Next: append([]string{}, e.Next...)}
	if e.Kind == journal.KindEdit {
		c.What = e.What
	}
	return c
}

// maxListed is the largest number of checkpoints that an error lists.
const maxListed = 12

// pointError returns the error for a checkpoint that does not exist; it names those that do.
func (s *Store) pointError(ctx context.Context, at journal.Point, err error) error {
	if !errors.Is(err, journal.ErrNoPoint) {
		return err
	}
	return failure.NewStale(s.DescribeCheckpoints(ctx, at.Thread), "run %s has no checkpoint @%d", at.Thread, at.Seq)
}

// DescribeCheckpoints returns the checkpoints of a run as part of a sentence.
func (s *Store) DescribeCheckpoints(ctx context.Context, id string) string {
	list, err := s.listCheckpoints(ctx, id)
	if err != nil || len(list) == 0 {
		return "see: raddle runs show " + id
	}
	var names []string
	for _, c := range list[:min(len(list), maxListed)] {
		names = append(names, fmt.Sprintf("@%d", c.At))
	}
	slices.Reverse(names)
	if len(list) > maxListed {
		names = append([]string{"..."}, names...)
	}
	return "its checkpoints are " + strings.Join(names, ", ") + "; see: raddle runs show " + id
}
