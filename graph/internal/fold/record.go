package fold

import (
	"hash/fnv"
	"slices"
	"strings"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// NewRecord returns a record of a kind. Its Time is 0.
func NewRecord(k journal.Kind, b *record.Parts) journal.Record {
	head, data := b.Append(uint8(k), make([]byte, 0, 24+len(b.Path)+len(b.ID)+len(b.Base)), nil)
	return journal.Record{Kind: k, Head: head, Data: data}
}

// NewSnapshot returns the record of a snapshot or fork of the thread, with a time in Unix microseconds. by is who asks
// for it; "": no name is known.
func (s *Thread) NewSnapshot(k journal.Kind, at int64, by string) journal.Record {
	b := &record.Parts{State: &s.ThreadState, Origin: s.Origin, By: by}
	s.describeRun(b, "")
	rec := NewRecord(k, b)
	rec.Time = at
	return rec
}

// NewEdit returns the record of an edit of the thread, whose path and writes b has.
func (s *Thread) NewEdit(b *record.Parts) journal.Record {
	b.Branch = s.Branch
	s.describeRun(b, b.Path)
	return NewRecord(journal.KindEdit, b)
}

// Migrate replaces what the thread holds, and returns the record of an edit that does the same. wrote are the keys of the root that
// change by it, and by is who migrates.
func (s *Thread) Migrate(state *record.ThreadState, wrote []string, by string) journal.Record {
	s.ThreadState = *state
	s.Driving = false
	root := s.EnsureFrame("")
	b := &record.Parts{State: &s.ThreadState, By: by, Keys: wrote, Chosen: true, Tasks: root.Tasks, Arrived: root.Arrived}
	for _, key := range wrote {
		b.Patches = append(b.Patches, root.Keys[key]...)
	}
	return s.NewEdit(b)
}

// describeRun sets what listings need: which run it is, how it stands, and what runs next in a frame.
func (s *Thread) describeRun(b *record.Parts, path string) {
	b.Run = s.Run.ID
	b.Label = s.Run.Label
	b.Graph = s.Run.Graph
	b.Started = s.Run.Started
	b.Status = s.Run.Status
	b.Reason = s.Run.Reason
	for _, o := range s.OpenQuestions() {
		b.Open = append(b.Open, o.Asked.Question)
	}
	b.Due = s.DueTime()
	f := s.EnsureFrame(path)
	b.Step = f.Step
	b.Next = record.NextNames(f.Tasks)
}

// hashOf returns the hash by which a thread remembers a run that it has seen, so that a run
// that is started again is not treated as a new one.
func hashOf(run string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(run)) // a hash never fails
	return h.Sum64()
}

// HasPastRun reports whether the run came before the thread's last run.
func (s *Thread) HasPastRun(run string) bool {
	return s != nil && s.Run.ID != run && slices.Contains(s.Runs, hashOf(run))
}

// StripTaskIndexes returns the path of a node without the indexes of tasks of a Send.
func StripTaskIndexes(path string) string {
	for {
		before, rest, ok := strings.Cut(path, "[")
		if !ok {
			return path
		}
		_, after, _ := strings.Cut(rest, "]")
		path = before + after
	}
}
