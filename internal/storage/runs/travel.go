package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/foreign"
)

// Point is a place in a history, as JSON.
type Point struct {
	Run string `json:"run"`
	At  int64  `json:"at"` // number of the record
}

// String returns the place in the form that commands take.
func (p Point) String() string {
	if p.At == 0 {
		return p.Run
	}
	return p.Run + "@" + strconv.FormatInt(p.At, 10)
}

// ListForks returns the runs of an archive that were forked from a run, the newest first, and the records at which they
// were forked. It reads the index, or what the store lists of all its threads, and no journal. It leaves out damaged
// threads.
func ListForks(ctx context.Context, a *Archive, run string) ([]Point, error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return nil, err
	}
	forks := []Point{}
	if index, ok := st.inside().(journal.Index); ok {
		count, err := index.CountLines(ctx)
		if err != nil {
			return nil, explainStoreError(ctx, err)
		}
		if count[""] == 0 {
			return listIndexedForks(ctx, index, run)
		}
	}
	for t, err := range st.Threads(ctx, "") {
		if err != nil {
			return nil, err
		}
		// a snapshot is first where older records were pruned
		if t.First.Kind != journal.KindFork && t.First.Kind != journal.KindSnapshot {
			continue
		}
		d, err := history.Describe(t)
		if IsDamage(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d.From.Thread == run {
			forks = append(forks, Point{RunOf(t.Name, d.Run), d.From.Seq})
		}
	}
	return forks, nil
}

// listIndexedForks is ListForks for an index in which every line says what there is.
func listIndexedForks(ctx context.Context, index journal.Index, run string) ([]Point, error) {
	lines, err := index.ListForks(ctx, []string{run})
	if err != nil {
		return nil, explainStoreError(ctx, err)
	}
	forks := []Point{}
	for i := range slices.Backward(lines) {
		if l, known := decodeLine(&lines[i]); known {
			forks = append(forks, Point{lines[i].Order, l.From.Seq})
		}
	}
	return forks, nil
}

// Change is a key whose value differs between two points.
type Change struct {
	Path string          `json:"path,omitempty"` // of the child graph; "": the run's own graph
	Key  string          `json:"key"`
	Was  json.RawMessage `json:"was,omitempty"` // absent if the key did not exist
	Is   json.RawMessage `json:"is,omitempty"`  // absent if the key no longer exists
}

// DiffPoints returns the differences between the states of two points, RUN or RUN@AT, of one
// run or of two.
func (a *Archive) DiffPoints(ctx context.Context, from, to string) (was, is Point, changes []Change, err error) {
	var st *Store
	var points [2]journal.Point
	for i, text := range []string{from, to} {
		var snap *history.Snapshot
		if st, points[i], snap, err = inspectPoint(ctx, a, text); err != nil {
			return was, is, nil, err
		}
		points[i].Seq = snap.Head
	}
	first := points[0]
	second := points[1]
	list, err := history.Diff(ctx, st, first, second)
	if err != nil {
		return was, is, nil, err
	}
	changes = []Change{}
	for _, c := range list {
		change := Change{Path: c.Path, Key: c.Key, Was: flow.StoredValue(c.Tag, c.Was), Is: flow.StoredValue(c.Tag, c.Is)}
		if c.Was == nil || c.Is == nil || !bytes.Equal(change.Was, change.Is) {
			changes = append(changes, change)
		}
	}
	return Point{first.Thread, first.Seq}, Point{second.Thread, second.Seq}, changes, nil
}

// ForkChanges are the changes of the start record of a copy. The zero value changes nothing.
type ForkChanges struct {
	Model     string            // replaces every model; "": as in the original
	Templates map[string]string // replace templates of prompts, by node
	ID        string            // of the copy; "": a new one
}

// ForkRun starts a new run as a copy of another at RUN@AT and returns its id, and
// what was copied. A run that has ended can be copied from an earlier point.
func (a *Archive) ForkRun(ctx context.Context, from string, changes ForkChanges) (id string, origin Point, err error) {
	st, at, snap, err := inspectPoint(ctx, a, from)
	if err != nil {
		return "", origin, err
	}
	if snap.Status.Final() {
		return "", origin, failure.NewStale("fork it at an earlier checkpoint: "+st.DescribeCheckpoints(ctx, at.Thread), "run %s is over (%s): a copy of its end could not continue", at.Thread, snap.Status)
	}
	id = cmp.Or(changes.ID, graph.NewID(time.Now()))
	if err := foreign.Copy(ctx, st, at.Thread, snap.Head, id); err != nil {
		return "", origin, err
	}
	if changes.Model == "" && len(changes.Templates) == 0 {
		err = history.Fork(ctx, st, at.Thread, snap.Head, id)
	} else {
		err = st.forkWithChanges(ctx, snap, id, changes)
	}
	if err != nil {
		return "", origin, err
	}
	return id, Point{at.Thread, snap.Head}, nil
}

// forkWithChanges creates a run as a copy of a snapshot, with another start record.
func (s *Store) forkWithChanges(ctx context.Context, snap *history.Snapshot, id string, changes ForkChanges) error {
	rec, err := DecodeRecord(snap.Meta)
	if err != nil {
		return failure.NewStale("leave the model out, and the templates", "the model of run %s cannot be replaced, nor can its templates: %v", snap.Thread, err)
	}
	rec.Override = cmp.Or(changes.Model, rec.Override)
	if len(changes.Templates) > 0 {
		templates := map[string]string{}
		maps.Copy(templates, rec.Templates)
		maps.Copy(templates, changes.Templates)
		rec.Templates = templates
	}
	meta, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return history.ForkWithMeta(ctx, s, snap.Thread, snap.Head, id, meta)
}

// Author is a record that wrote a key.
type Author struct {
	Point
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind"`
	Path  string    `json:"path,omitempty"`  // of the child graph; "": the run's own graph
	Nodes []string  `json:"nodes,omitempty"` // for a step: the nodes that wrote
	From  *Point    `json:"from,omitempty"`  // for a fork: what was copied
}

// BlameKey returns the records that wrote a key of a run, newest first. It continues in the
// runs that this one was forked from, as long as they exist.
func (a *Archive) BlameKey(ctx context.Context, id, key string) ([]Author, error) {
	st, at, snap, err := inspectPoint(ctx, a, id)
	if err != nil {
		return nil, err
	}
	list := []Author{}
	for at.Seq = snap.Head; at.Thread != ""; {
		written, err := history.Blame(ctx, st, at.Thread, key)
		if errors.Is(err, journal.ErrNoThread) && len(list) > 0 {
			break // the original was removed
		}
		if err != nil {
			return nil, err
		}
		var next journal.Point
		for _, w := range written {
			if w.Seq <= at.Seq {
				list = append(list, newAuthor(at.Thread, &w))
				next = w.From
			}
		}
		at = next
	}
	if len(list) == 0 {
		return nil, noKey(snap, key)
	}
	return list, nil
}

// KeyAuthor is a key of a state, and what wrote it last.
type KeyAuthor struct {
	Key string `json:"key"`
	Author
}

// BlameKeys returns the last writer of each key that the state of a run has at RUN or RUN@AT, sorted by
// key. A key that a fork has copied names the run that it was copied from, as long as that exists.
func (a *Archive) BlameKeys(ctx context.Context, id string) ([]KeyAuthor, error) {
	st, at, snap, err := inspectPoint(ctx, a, id)
	if err != nil {
		return nil, err
	}
	last := map[string]Author{}
	for at.Seq = snap.Head; at.Thread != ""; {
		written, err := history.BlameAll(ctx, st, at.Thread)
		if errors.Is(err, journal.ErrNoThread) && len(last) > 0 {
			break // the original was removed
		}
		if err != nil {
			return nil, err
		}
		var origin journal.Point
		for key, list := range written {
			w := slices.IndexFunc(list, func(w history.BlameEntry) bool { return w.Seq <= at.Seq && w.Path == "" })
			if w < 0 {
				continue
			}
			if known, ok := last[key]; !ok || known.From != nil && *known.From == (Point{at.Thread, at.Seq}) {
				last[key] = newAuthor(at.Thread, &list[w])
			}
			if list[w].From.Thread != "" {
				origin = list[w].From
			}
		}
		at = origin
	}
	list := []KeyAuthor{}
	for _, v := range snap.Values {
		if author, ok := last[v.Key]; ok {
			list = append(list, KeyAuthor{v.Key, author})
		}
	}
	return list, nil
}

func newAuthor(run string, w *history.BlameEntry) Author {
	a := Author{Point: Point{run, w.Seq}, Time: w.Time, Kind: w.Kind.String(), Path: w.Path}
	for _, t := range w.Tasks {
		name := t.Node
		if t.Index > 0 {
			name += "[" + strconv.Itoa(t.Index) + "]"
		}
		a.Nodes = append(a.Nodes, name)
	}
	if w.From.Thread != "" {
		a.From = &Point{w.From.Thread, w.From.Seq}
	}
	return a
}

// noKey returns the error for a key that was never written; it names the existing keys.
func noKey(snap *history.Snapshot, key string) error {
	var keys []string
	for _, v := range snap.Values {
		keys = append(keys, v.Key)
	}
	next := cmp.Or(wording.SuggestNearest(key, keys, ""), "its keys are "+strings.Join(keys, ", "))
	return failure.NewUsage(next, "nothing has written the key %q in run %s", key, snap.Thread)
}
