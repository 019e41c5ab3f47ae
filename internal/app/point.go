package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph"
)

// Checkpoint is a place in a run's history that one can look at, compare and fork.
// It is named RUN@AT.
type Checkpoint struct {
	At   int64     `json:"at"` // number of its record
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`           // start, step, call, edit, fork or snapshot
	Path string    `json:"path,omitempty"` // of the child graph; "": the run's own
	What string    `json:"what,omitempty"` // of an edit the keys it wrote
	Next []string  `json:"next"`           // nodes that run from there
}

// SplitPoint splits RUN@AT. Without @ at is 0, which means as the run stands now.
func SplitPoint(text string) (run string, at int64, err error) {
	run, number, ok := strings.Cut(text, "@")
	if !ok {
		return run, 0, nil
	}
	if run == "" {
		return "", 0, usage("name the run too: RUN"+text, "%q names no run", text)
	}
	at, err = strconv.ParseInt(number, 10, 64)
	if err != nil || at < 1 {
		return "", 0, usage("checkpoints are numbers: RUN@7; see: raddle runs show "+run, "%q names no checkpoint", text)
	}
	return run, at, nil
}

// point finds the run that RUN or RUN@AT names.
func (p *Process) point(ctx context.Context, text string) (*journals, graph.Point, error) {
	id, at, err := SplitPoint(text)
	if err != nil {
		return nil, graph.Point{}, err
	}
	st, found, err := p.locate(ctx, id)
	if at == 0 {
		at = found.last
	}
	return st, graph.Point{Thread: found.thread, Seq: at}, err
}

// Checkpoints lists the checkpoints of a run, newest first.
func (p *Process) Checkpoints(ctx context.Context, id string) ([]Checkpoint, error) {
	st, at, err := p.point(ctx, id)
	if err != nil {
		return nil, err
	}
	return st.checkpoints(ctx, at.Thread)
}

func (j *journals) checkpoints(ctx context.Context, id string) ([]Checkpoint, error) {
	list := []Checkpoint{}
	for c, err := range graph.Checkpoints(ctx, j, id) {
		if err != nil {
			return nil, err
		}
		point := Checkpoint{At: c.Seq, Time: c.Time, Kind: c.Kind.String(), Path: c.Path, Next: append([]string{}, c.Next...)}
		if c.Kind == graph.KindEdit {
			point.What = c.What
		}
		list = append(list, point)
	}
	return list, nil
}

// mostListed is how many checkpoints an error lists.
const mostListed = 12

// pointError says of a checkpoint that does not exist which ones do.
func (j *journals) pointError(ctx context.Context, at graph.Point, err error) error {
	if !errors.Is(err, graph.ErrNoPoint) {
		return err
	}
	return stale(j.choices(ctx, at.Thread), "run %s has no checkpoint @%d", at.Thread, at.Seq)
}

// choices lists the checkpoints of a run in a sentence.
func (j *journals) choices(ctx context.Context, id string) string {
	list, err := j.checkpoints(ctx, id)
	if err != nil || len(list) == 0 {
		return "see: raddle runs show " + id
	}
	var names []string
	for _, c := range list[:min(len(list), mostListed)] {
		names = append(names, fmt.Sprintf("@%d", c.At))
	}
	slices.Reverse(names)
	if len(list) > mostListed {
		names = append([]string{"..."}, names...)
	}
	return "its checkpoints are " + strings.Join(names, ", ") + "; see: raddle runs show " + id
}
