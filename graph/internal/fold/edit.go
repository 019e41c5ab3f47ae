package fold

import (
	"errors"
	"maps"
	"slices"

	"raddle.dev/graph/internal/wire"
)

// PauseForEdit applies an edit to a run: what its current steps have done belongs to the
// branch before it.
func (s *Thread) PauseForEdit(branch string) {
	s.Branch = branch
	s.ForgetSteps()
	if !s.Run.Status.Final() {
		s.Run.Status, s.Run.Reason = Paused, ""
	}
}

// applyEdit folds the record of an edit.
func (s *Thread) applyEdit(h, d *wire.Reader) {
	path := h.Text()
	s.PauseForEdit(h.Text())
	f := s.EnsureFrame(path)
	rest := *h // the oldest records end here
	new(Line).ReadEditHead(&rest)
	if len(rest.Rest) > 0 {
		for k, tag := range ReadMap(&rest, rest.Text) {
			SetEntry(&f.Tags, k, tag)
		}
		h.Err = rest.Err
	}
	f.applyPatches(ReadPatches(d))
	if len(d.Rest) > 0 && d.Err == nil {
		d.Err = s.ApplyNextNodes(d)
	}
}

// ForgetSteps removes what the current steps have done. The numbers of their questions,
// and the answers given ahead that these used, are free again.
func (s *Thread) ForgetSteps() {
	for _, path := range slices.Sorted(maps.Keys(s.Frames)) {
		f := s.Frames[path]
		for _, key := range f.Order {
			q := f.Asks[key]
			if n := s.Asked[q.Base]; n > 1 {
				s.Asked[q.Base] = n - 1
			} else {
				delete(s.Asked, q.Base)
			}
			if q.Ahead > 0 && q.Ahead <= len(s.Ahead) {
				a := &s.Ahead[q.Ahead-1]
				a.Value, a.Refused, a.Used = q.Answer, q.Refused, false
			}
		}
		f.forgetStep()
	}
}

// ApplyNextNodes reads what putNext wrote: the nodes that were to run do not count as visited.
func (s *Thread) ApplyNextNodes(d *wire.Reader) error {
	f := s.EnsureFrame("")
	h, own := &wire.Reader{Rest: d.Bytes()}, &wire.Reader{Rest: d.Bytes()}
	for i, t := range f.Tasks {
		if i == 0 || f.Tasks[i-1].Node != t.Node {
			SetEntry(&f.Visits, t.Node, max(f.Visits[t.Node]-1, 0))
		}
	}
	f.Tasks, f.Arrived = readFrontier(h, own)
	f.countVisits()
	f.Halted, f.Value, f.above = false, nil, false
	s.Frames = map[string]*Frame{"": f}
	return errors.Join(h.Err, own.Err)
}
