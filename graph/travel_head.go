package graph

import (
	"slices"

	"raddle.dev/graph/internal/wire"
)

// The heads of snapshots, forks and edits hold everything that listings need. Each read
// follows its put. Older records lack the parts that did not exist when they were
// written.

// encodeSnapshotHead returns the head of a snapshot or fork: what it repeats of the start record,
// the status of the run, where the thread came from, and what runs next.
func (s *replay) encodeSnapshotHead() []byte {
	b := wire.PutTexts(nil, s.run.id, s.run.label, s.run.graph)
	b = s.appendRunStatus(wire.PutVarint(b, s.run.started))
	b = wire.PutVarint(wire.PutString(b, s.origin.Thread), s.origin.Seq)
	return s.appendPosition(b, "")
}

func readSnapshotHead(h *wire.Reader, i *RunInfo) {
	i.Run, i.Label, i.Graph = h.Text(), h.Text(), h.Text()
	i.Started = timeOf(h.Varint())
	if len(h.Rest) == 0 {
		return
	}
	readRunStatus(h, i)
	i.From = Point{Thread: h.Text(), Seq: h.Varint()}
}

// editHead returns the head of an edit. retyped are keys that got another type.
func (s *replay) editHead(path string, keys []string, retyped []*keyDef) []byte {
	b := wire.PutTexts(nil, path, s.branch, s.run.id)
	b = s.appendPosition(s.appendRunStatus(b), path)
	return putTags(s.run.appendSummary(wire.PutStrings(b, keys)), retyped)
}

// readRetypedKeys reads the tags of keys to which an edit gave another type, after path and
// branch.
func readRetypedKeys(h *wire.Reader) map[string]string {
	rest := &wire.Reader{Rest: h.Rest, Err: h.Err}
	_ = rest.Text() // the run
	readRunStatus(rest, &RunInfo{})
	readPosition(rest, &Entry{})
	if len(rest.Rest) == 0 {
		return nil
	}
	rest.Texts()
	readSummary(rest, &RunInfo{})
	if len(rest.Rest) == 0 { // older records end here
		return nil
	}
	tags := readTags(rest)
	h.Err = firstError(h.Err, rest.Err)
	return tags
}

// appendSummary appends the last part of the heads of ends and edits: what a listing also shows
// of the run.
func (r *runHead) appendSummary(b []byte) []byte {
	return wire.PutVarint(wire.PutTexts(b, r.label, r.graph), r.started)
}

func readSummary(h *wire.Reader, i *RunInfo) {
	if len(h.Rest) > 0 { // older records end here
		i.Label, i.Graph, i.Started = h.Text(), h.Text(), timeOf(h.Varint())
	}
}

// readEditHead reads the head of an edit up to the place.
func readEditHead(h *wire.Reader, i *RunInfo) (path string) {
	path = h.Text()
	_ = h.Text() // the branch
	i.Run = h.Text()
	readRunStatus(h, i)
	return path
}

// appendRunStatus appends the status of the run.
func (s *replay) appendRunStatus(b []byte) []byte {
	b = wire.PutString(append(b, byte(s.run.status)), s.run.reason)
	open := s.openQuestions()
	b = wire.PutInt(b, len(open))
	for _, o := range open {
		b = wire.PutTexts(b, o.q.q.ID, o.q.q.Prompt)
	}
	return b
}

func readRunStatus(h *wire.Reader, i *RunInfo) {
	i.Status, i.Reason, i.Questions = Status(h.Byte()), h.Text(), nil
	if i.Status == Running {
		i.Status = Crashed
	}
	for range h.Count() {
		i.Questions = append(i.Questions, Question{ID: h.Text(), Prompt: h.Text()})
	}
}

// appendPosition appends how many steps a frame has done, and the nodes that run next.
func (s *replay) appendPosition(b []byte, path string) []byte {
	f := s.ensureFrame(path)
	return wire.PutStrings(wire.PutInt(b, f.step), f.nextNames())
}

func readPosition(h *wire.Reader, e *Entry) {
	if len(h.Rest) > 0 {
		e.Step, e.Next = h.Int(), h.Texts()
	}
}

// nextNames lists the nodes of a frame that run next, each once, in task order.
func (f *rawFrame) nextNames() []string {
	var names []string
	for i, t := range f.tasks {
		if i > 0 && f.tasks[i-1].node == t.node || slices.Contains(names, t.node) {
			continue
		}
		names = append(names, t.node)
	}
	return names
}
