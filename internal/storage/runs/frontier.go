package runs

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A frontier is what a run would do next, in each of its graphs: it is fed the records of the run, oldest first. When a
// drive has failed, what is left of it are the tasks that have failed, because the others of their step end before the
// drive does.
type frontier map[string]*openStep // by the path of the graph in the journal

// An openStep is a step that has not ended.
type openStep struct {
	number int
	nodes  []string
	tasks  int
	done   map[string]bool // tasks that have ended, and children that have
}

// addEntry adds a record.
func (f frontier) addEntry(e history.Entry) {
	switch e.Kind {
	case journal.KindStart:
		clear(f)
		f.beginStep(e)
	case journal.KindCall, journal.KindStep, journal.KindEdit, journal.KindFork, journal.KindSnapshot:
		f.endBelow(e.Path)
		f.beginStep(e)
	case journal.KindTask:
		if s := f[e.Path]; s != nil {
			s.done[e.What] = true
		}
		f.endBelow(e.Path + e.What + "/")
	case journal.KindReturn:
		f.endBelow(e.Path)
		delete(f, e.Path)
	}
}

func (f frontier) beginStep(e history.Entry) {
	f[e.Path] = &openStep{number: e.Step, nodes: e.Next, tasks: max(e.Tasks, len(e.Next)), done: map[string]bool{}}
}

// endBelow removes the graphs below a path, which end with it.
func (f frontier) endBelow(path string) {
	for p := range f {
		if p != path && strings.HasPrefix(p, path) {
			delete(f, p)
		}
	}
}

// listOpen returns the tasks that have not ended, by their paths in the journal: of those inside of each other only the
// innermost.
func (f frontier) listOpen() (open []string) {
	for path, s := range f {
		for _, task := range s.listTasks() {
			if !s.done[task] && !f.hasBelow(path+task) {
				open = append(open, path+task)
			}
		}
	}
	slices.Sort(open)
	return open
}

// listTasks returns the tasks of the step. Of several nodes of which one has several tasks, only the nodes are known.
func (s *openStep) listTasks() (tasks []string) {
	for _, node := range s.nodes {
		if s.tasks == len(s.nodes) {
			tasks = append(tasks, fmt.Sprintf("%d.%s.0", s.number, node))
		}
	}
	if len(s.nodes) == 1 && s.tasks > 1 {
		for i := range s.tasks {
			tasks = append(tasks, fmt.Sprintf("%d.%s.%d", s.number, s.nodes[0], i+1))
		}
	}
	return tasks
}

// hasBelow reports whether a graph below a task has not ended: one that it calls, or a named child.
func (f frontier) hasBelow(task string) bool {
	for p, s := range f {
		if rest, below := strings.CutPrefix(p, task); below && (rest[0] == '/' || rest[0] == '#') && len(s.nodes) > 0 {
			return true
		}
	}
	return false
}
