package history

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// Change is a key whose stored value differs between two points.
type Change struct {
	// Path is that of the frame; "" is the root.
	Path string

	// Key is the name of the key.
	Key string

	// Tag is that of the type or codec, at the second point if the key is present there.
	Tag string

	// Was and Is are the parts of the value at the first and at the second point, as in
	// StoredValue; nil: absent.
	Was [][]byte
	Is  [][]byte
}

// Diff lists the keys whose stored values differ between two points, of one thread or
// of two: by frame, then by key, including child graphs that have not ended at one of
// the points. It compares what is stored and needs no graph: a list that was written in
// other portions differs.
func Diff(ctx context.Context, st journal.Store, a, b journal.Point) ([]Change, error) {
	was, err := fold.LoadPoint(ctx, st, a)
	if err != nil {
		return nil, err
	}
	is, err := fold.LoadPoint(ctx, st, b)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, path := range unionKeys(was.Frames, is.Frames) {
		changes = append(changes, diffFrames(path, was.EnsureFrame(path), is.EnsureFrame(path))...)
	}
	return changes, nil
}

func diffFrames(path string, was, is *record.Frame) (changes []Change) {
	for _, key := range unionKeys(was.Keys, is.Keys) {
		c := Change{Path: path, Key: key, Tag: is.Tags[key], Was: storedParts(was, key), Is: storedParts(is, key)}
		if (c.Was == nil) == (c.Is == nil) && slices.EqualFunc(c.Was, c.Is, bytes.Equal) {
			continue
		}
		if c.Tag == "" {
			c.Tag = was.Tags[key]
		}
		changes = append(changes, c)
	}
	return changes
}

// storedParts returns the stored form of a key; nil: absent.
func storedParts(f *record.Frame, key string) (parts [][]byte) {
	for _, p := range f.Keys[key] {
		parts = append(parts, p.Value)
	}
	return parts
}

// unionKeys lists the names that at least one of the maps has, sorted.
func unionKeys[V any](a, b map[string]V) []string {
	names := append(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))...)
	slices.Sort(names)
	return slices.Compact(names)
}

// BlameEntry is one record that wrote a key.
type BlameEntry struct {
	// Seq and Time are those of the record.
	Seq  int64
	Time time.Time

	// Kind says what wrote: KindStep: nodes; KindStart, KindCall, KindClaim: input;
	// KindEdit; KindFork, KindSnapshot: the write is older than the thread's first
	// record.
	Kind journal.Kind

	// Path is that of the frame; "" is the root.
	Path string

	// Step is, for a KindStep, the step that wrote, else the one that runs next.
	Step int

	// Tasks are, for a KindStep, the tasks that wrote, in the order in which their writes
	// were folded.
	Tasks []Writer

	// From is, for a KindFork, where to continue the search.
	From journal.Point
}

// Writer is a task that wrote a key.
type Writer struct {
	// Node is the name of its node.
	Node string

	// Index is its place among the tasks of a Send; 0 for the others.
	Index int
}

// Blame lists the records that wrote a key, in the root and in child graphs, newest
// first. It reads the whole thread, and needs no graph. A key that was never written
// has none; an unknown thread is journal.ErrNoThread.
func Blame(ctx context.Context, st journal.Store, thread, key string) ([]BlameEntry, error) {
	found, err := blameKeys(ctx, st, thread, func(k string) bool { return k == key })
	return found[key], err
}

// BlameAll is Blame for all keys that a thread has written, by key.
func BlameAll(ctx context.Context, st journal.Store, thread string) (map[string][]BlameEntry, error) {
	return blameKeys(ctx, st, thread, func(string) bool { return true })
}

// blameKeys lists the records that wrote the wanted keys.
func blameKeys(ctx context.Context, st journal.Store, thread string, want func(key string) bool) (map[string][]BlameEntry, error) {
	s := &fold.Thread{}
	found := map[string][]BlameEntry{}
	for r, err := range journal.Records(ctx, st, thread, journal.Range{}) {
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", thread, err)
		}
		first := s.Head == 0
		written, err := findWrites(s, r, want)
		if err == nil {
			err = s.ApplyRecord(&r)
		}
		if err != nil {
			return nil, fmt.Errorf("thread %s, record %d (%s): %w", thread, r.Seq, r.Kind, err)
		}
		for key, w := range written {
			if w.Kind != journal.KindStep {
				w.Step = s.EnsureFrame(w.Path).Step
			}
			found[key] = append(found[key], w)
		}
		if first && r.Kind.IsBase() {
			addInherited(s, r, want, found)
		}
	}
	if s.Head == 0 {
		return nil, fmt.Errorf("%w: %s", journal.ErrNoThread, thread)
	}
	for _, list := range found {
		slices.Reverse(list)
	}
	return found, nil
}

// findWrites returns what a record that is about to be folded writes to the wanted keys.
func findWrites(s *fold.Thread, r journal.Record, want func(key string) bool) (map[string]BlameEntry, error) {
	w := BlameEntry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind}
	switch r.Kind {
	case journal.KindStart, journal.KindClaim, journal.KindCall, journal.KindStep, journal.KindEdit:
	default:
		return nil, nil
	}
	b := record.Parts{}
	if err := b.Read(uint8(r.Kind), r.Head, r.Data); err != nil {
		return nil, err
	}
	w.Path = b.Path
	patches := map[string][]record.Patch{}
	for _, p := range b.Patches {
		if want(p.Key) {
			patches[p.Key] = append(patches[p.Key], p)
		}
	}
	if r.Kind == journal.KindStep {
		w.Step = s.EnsureFrame(w.Path).Step
	}
	written := make(map[string]BlameEntry, len(patches))
	for key, ps := range patches {
		if r.Kind == journal.KindStep {
			w.Tasks = findWriters(s.EnsureFrame(w.Path), key, ps)
		}
		written[key] = w
	}
	return written, nil
}

// findWriters returns the tasks of a step that wrote a key. The updates of parallel tasks
// are recorded before the step is; for a lone task the step's own record is enough.
func findWriters(f *record.Frame, key string, ps []record.Patch) (ws []Writer) {
	for i, t := range f.Tasks {
		wrote := slices.ContainsFunc(ps, func(p record.Patch) bool { return p.By == i })
		if up, ok := f.Done[strconv.Itoa(f.Step)+"."+t.Node+"."+strconv.Itoa(t.Index)]; ok && !wrote {
			u := record.TaskUpdate{}
			_ = u.Decode(up) // what can be read of it says who wrote
			wrote = slices.ContainsFunc(u.Writes, func(p record.Patch) bool { return p.Key == key })
		}
		if wrote {
			ws = append(ws, Writer{t.Node, t.Index})
		}
	}
	return ws
}

// addInherited adds what the first record of a thread, a snapshot or a fork, holds of the
// wanted keys.
func addInherited(s *fold.Thread, r journal.Record, want func(key string) bool, found map[string][]BlameEntry) {
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(s.Frames))) {
		f := s.Frames[path]
		for key := range f.Keys {
			if !want(key) {
				continue
			}
			w := BlameEntry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind, Path: path, Step: f.Step}
			if r.Kind == journal.KindFork {
				w.From = journal.Point(s.Origin)
			}
			found[key] = append(found[key], w)
		}
	}
}
