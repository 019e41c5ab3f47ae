package graph

import (
	"slices"
)

// The heads of snapshots, forks and edits hold everything that listings need. Each read
// follows its put. Older records lack the parts that did not exist when they were
// written.

// encodeSnapshotHead returns the head of a snapshot or fork: what it repeats of the start record,
// the status of the run, where the thread came from, and what runs next.
func (s *replay) encodeSnapshotHead() []byte {
	b := putString(putString(putString(nil, s.run.id), s.run.label), s.run.graph)
	b = s.appendRunStatus(appendVarint(b, s.run.started))
	b = appendVarint(putString(b, s.origin.Thread), s.origin.Seq)
	return s.appendPosition(b, "")
}

func (h *reader) readSnapshotHead(i *RunInfo) {
	i.Run, i.Label, i.Graph = h.string(), h.string(), h.string()
	i.Started = timeOf(h.varint())
	if len(h.b) == 0 {
		return
	}
	h.readRunStatus(i)
	i.From = Point{Thread: h.string(), Seq: h.varint()}
}

// editHead returns the head of an edit. retyped are keys that got another type.
func (s *replay) editHead(path string, keys []string, retyped []*keyDef) []byte {
	b := putString(putString(putString(nil, path), s.branch), s.run.id)
	b = s.appendPosition(s.appendRunStatus(b), path)
	return putTags(s.run.appendSummary(putStrings(b, keys)), retyped)
}

// readRetypedKeys reads the tags of keys to which an edit gave another type, after path and
// branch.
func (h *reader) readRetypedKeys() map[string]string {
	rest := *h
	_ = rest.string() // the run
	rest.readRunStatus(&RunInfo{})
	rest.readPosition(&Entry{})
	if len(rest.b) == 0 {
		return nil
	}
	rest.strings()
	rest.readSummary(&RunInfo{})
	if len(rest.b) == 0 { // older records end here
		return nil
	}
	tags := readTags(&rest)
	h.err = firstError(h.err, rest.err)
	return tags
}

// appendSummary appends the last part of the heads of ends and edits: what a listing also shows
// of the run.
func (r *runHead) appendSummary(b []byte) []byte {
	return appendVarint(putString(putString(b, r.label), r.graph), r.started)
}

func (h *reader) readSummary(i *RunInfo) {
	if len(h.b) > 0 { // older records end here
		i.Label, i.Graph, i.Started = h.string(), h.string(), timeOf(h.varint())
	}
}

// readEditHead reads the head of an edit up to the place.
func (h *reader) readEditHead(i *RunInfo) (path string) {
	path = h.string()
	_ = h.string() // the branch
	i.Run = h.string()
	h.readRunStatus(i)
	return path
}

// appendRunStatus appends the status of the run.
func (s *replay) appendRunStatus(b []byte) []byte {
	b = putString(append(b, byte(s.run.status)), s.run.reason)
	open := s.openQuestions()
	b = putInt(b, len(open))
	for _, o := range open {
		b = putString(putString(b, o.q.q.ID), o.q.q.Prompt)
	}
	return b
}

func (h *reader) readRunStatus(i *RunInfo) {
	i.Status, i.Reason, i.Questions = Status(h.byte()), h.string(), nil
	if i.Status == Running {
		i.Status = Crashed
	}
	for range h.count() {
		i.Questions = append(i.Questions, Question{ID: h.string(), Prompt: h.string()})
	}
}

// appendPosition appends how many steps a frame has done, and the nodes that run next.
func (s *replay) appendPosition(b []byte, path string) []byte {
	f := s.ensureFrame(path)
	return putStrings(putInt(b, f.step), f.nextNames())
}

func (h *reader) readPosition(e *Entry) {
	if len(h.b) > 0 {
		e.Step, e.Next = h.int(), h.strings()
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
