package fold

import (
	"maps"
	"slices"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
)

// PauseForEdit applies an edit to a run: what its current steps have done belongs to the
// branch before it.
func (s *Thread) PauseForEdit(branch string) {
	s.Branch = branch
	s.ForgetSteps()
	if !s.Run.Status.Final() {
		s.Run.Status = record.Paused
		s.Run.Reason = ""
	}
}

// applyEdit folds the record of an edit. One that has migrated the thread has all that it leads to: the current steps continue.
func (s *Thread) applyEdit(b *record.Parts) {
	if b.State != nil {
		s.ThreadState = *b.State
		s.Shape = structure.Resolve(s.Shape, nil)
		return
	}
	s.PauseForEdit(b.Branch)
	f := s.EnsureFrame(b.Path)
	setTags(f, b.Tags)
	applyPatches(f, b.Patches)
	if b.Chosen {
		s.SetNextNodes(b.Tasks, b.Arrived)
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
				a.Value = q.Answer
				a.Refused = q.Refused
				a.Used = false
			}
		}
		forgetStep(f)
	}
}

// SetNextNodes sets what the root runs next: the nodes that were to run do not count as visited.
func (s *Thread) SetNextNodes(tasks []record.Task, arrived []record.Arrival) {
	f := s.EnsureFrame("")
	for i, t := range f.Tasks {
		if i == 0 || f.Tasks[i-1].Node != t.Node {
			SetEntry(&f.Visits, t.Node, max(f.Visits[t.Node]-1, 0))
		}
	}
	f.Tasks = tasks
	f.Arrived = arrived
	countVisits(f)
	f.Halted = false
	f.Value = nil
	f.Above = false
	s.Frames = map[string]*record.Frame{"": f}
}
