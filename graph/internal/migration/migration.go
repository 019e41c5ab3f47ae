// Package migration continues what a run holds with a graph that has changed since it started: it applies the steps that the author of
// the graph has written for that, and says what they do not cover.
package migration

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph/internal/record"
)

// An Op is what a step does.
type Op string

// The operations, in the words that messages use.
const (
	RenameNode Op = "rename node"
	RenameKey  Op = "rename key"
	ConvertKey Op = "convert key"
	DefaultKey Op = "default key"
	DropKey    Op = "drop key"
	MoveTask   Op = "move"
)

// A Lookup returns what is stored of a key: the tag of its type, if the graph that has stored it declared the key, and its parts; nil: it is absent.
type Lookup func(key string) (tag string, parts []record.Patch)

// A Step is one operation. To is the name afterwards, and that of the key for operations that have only one name.
type Step struct {
	Op       Op
	From, To string
	Tag      string                              // of the key afterwards, for conversions and defaults
	Reads    []string                            // further keys that a conversion reads: one of them is enough to make it
	Make     func(stored Lookup) ([]byte, error) // the stored form of the value afterwards; nil: there is none
}

// An Entry has the steps from one version of a graph to the next entry, and from the last one to the graph as it is.
type Entry struct {
	From  string
	Steps []Step
}

// shortestHash is the number of characters of a version that name it at least.
const shortestHash = 8

// findSteps returns the steps from a version with one of the names to the graph as it is.
func findSteps(entries []Entry, names ...string) (steps []Step, found bool) {
	at := slices.IndexFunc(entries, func(e Entry) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return name != "" && (e.From == name || len(e.From) >= shortestHash && strings.HasPrefix(name, e.From))
		})
	})
	if at < 0 {
		return nil, false
	}
	for _, e := range entries[at:] {
		steps = append(steps, e.Steps...)
	}
	return steps, true
}

// A mover applies steps to one frame of a run. Nothing is undone after an error.
type mover struct {
	state *record.ThreadState
	path  string
	frame *record.Frame
	was   map[string]string // the names that nodes had when the run started, by those that they have now
	wrote map[string]bool   // keys of which the steps have changed something
}

// applyStep applies a step. done says in words what it has changed; "": it did not concern the run.
func (m *mover) applyStep(s Step) (done string, err error) {
	switch s.Op {
	case RenameNode:
		return m.renameNode(s.From, s.To)
	case MoveTask:
		return m.moveTask(s.From, s.To)
	case RenameKey:
		return m.renameKey(s.From, s.To)
	case DropKey:
		if m.dropKey(s.From) {
			return fmt.Sprintf("key %s is gone", s.From), nil
		}
		return "", nil
	case DefaultKey:
		if len(m.frame.Keys[s.To]) > 0 {
			return "", nil
		}
		return fmt.Sprintf("key %s has its default", s.To), m.setKey(s, m.newLookup(nil))
	}
	return m.convertKey(s)
}

func taskID(step int, t *record.Task) string { return fmt.Sprintf("%d.%s.%d", step, t.Node, t.Index) }

func (m *mover) renameNode(from, to string) (done string, err error) {
	f := m.frame
	m.was[to] = m.originalName(from)
	if _, visited := f.Visits[from]; visited {
		f.Visits[to] += f.Visits[from]
		delete(f.Visits, from)
	}
	for i := range f.Failures {
		renameText(&f.Failures[i].Handler, from, to)
		if f.Failures[i].Path == "" {
			renameText(&f.Failures[i].Node, from, to)
		}
	}
	for i := range f.Arrived {
		a := &f.Arrived[i]
		if renameText(&a.Source, from, to) {
			done = fmt.Sprintf("node %s is now %s", from, to)
		}
		a.Join = renameInJoin(a.Join, from, to)
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		was := taskID(f.Step, t)
		if !renameText(&t.Node, from, to) {
			continue
		}
		if slices.ContainsFunc(f.Tasks[:i], func(o record.Task) bool { return o.Node == to && o.Index == t.Index }) {
			return "", fmt.Errorf("the run works on node %s already, so that %s cannot become it", to, from)
		}
		m.renameTask(was, taskID(f.Step, t))
		done = fmt.Sprintf("node %s is now %s", from, to)
	}
	for _, q := range f.Asks {
		renameText(&q.Question.Node, from, to)
	}
	return done, nil
}

// originalName returns the name that a node had when the run started.
func (m *mover) originalName(name string) string {
	if was, ok := m.was[name]; ok {
		return was
	}
	return name
}

func renameText(p *string, from, to string) bool {
	if *p != from {
		return false
	}
	*p = to
	return true
}

// renameInJoin renames a node in the id of a join: its sources with a + between them, a > and its target.
func renameInJoin(id, from, to string) string {
	sources, target, _ := strings.Cut(id, ">")
	names := strings.Split(sources, "+")
	for i := range names {
		renameText(&names[i], from, to)
	}
	renameText(&target, from, to)
	return strings.Join(names, "+") + ">" + target
}

// renameTask gives what a task has done, and the graphs below it, the id of the task.
func (m *mover) renameTask(was, is string) {
	f := m.frame
	if update, ok := f.Done[was]; ok {
		delete(f.Done, was)
		f.Done[is] = update
	}
	renameIDs(f.Effects, was, is)
	renameIDs(f.Notes, was, is)
	renameIDs(f.Asks, was, is)
	for i, key := range f.Order {
		if rest, ok := strings.CutPrefix(key, was+"\x00"); ok {
			f.Order[i] = is + "\x00" + rest
		}
	}
	for path, below := range m.state.Frames {
		if rest, ok := m.cutBelow(path, was); ok {
			delete(m.state.Frames, path)
			m.state.Frames[m.path+is+rest] = below
		}
	}
	for path, step := range m.state.Run.Broken {
		if rest, ok := m.cutBelow(path, was); ok {
			delete(m.state.Run.Broken, path)
			m.state.Run.Broken[m.path+is+rest] = step
		}
	}
}

// cutBelow returns what follows a task in the path of a frame below it.
func (m *mover) cutBelow(path, task string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, m.path+task)
	return rest, ok && rest != "" && (rest[0] == '/' || rest[0] == '#')
}

func renameIDs[V any](by map[string]V, was, is string) {
	for key, v := range by {
		if rest, ok := strings.CutPrefix(key, was+"\x00"); ok {
			delete(by, key)
			by[is+"\x00"+rest] = v
		}
	}
}

// moveTask lets a node run in place of another one that the run is about to execute, from its beginning: what that one has done
// in this step counts no more.
func (m *mover) moveTask(from, to string) (done string, err error) {
	f := m.frame
	kept := f.Tasks[:0:0]
	for i := range f.Tasks {
		t := f.Tasks[i]
		if t.Node == from {
			m.forgetTask(taskID(f.Step, &t))
			t.Node = to
			done = fmt.Sprintf("%s runs in place of %s", to, from)
		}
		if !slices.ContainsFunc(kept, func(o record.Task) bool { return o.Node == t.Node && o.Index == t.Index }) {
			kept = append(kept, t)
		}
	}
	if done == "" {
		return "", nil
	}
	f.Tasks = kept
	f.Visits[from] = max(0, f.Visits[from]-1)
	f.Visits[to]++
	for i := range f.Failures {
		renameText(&f.Failures[i].Handler, from, to)
	}
	return done, nil
}

// forgetTask removes what a task has done.
func (m *mover) forgetTask(id string) {
	f := m.frame
	delete(f.Done, id)
	forgetIDs(f.Effects, id)
	forgetIDs(f.Notes, id)
	for _, key := range f.Order {
		if strings.HasPrefix(key, id+"\x00") {
			m.forgetQuestion(f.Asks[key])
		}
	}
	forgetIDs(f.Asks, id)
	f.Order = slices.DeleteFunc(slices.Clone(f.Order), func(key string) bool { return strings.HasPrefix(key, id+"\x00") })
	for path, below := range m.state.Frames {
		if _, ok := m.cutBelow(path, id); ok {
			for _, key := range below.Order {
				m.forgetQuestion(below.Asks[key])
			}
			delete(m.state.Frames, path)
		}
	}
}

// forgetQuestion makes the number of a question free again.
func (m *mover) forgetQuestion(q *record.AskedQuestion) {
	if n := m.state.Asked[q.Base]; n > 1 {
		m.state.Asked[q.Base] = n - 1
	} else {
		delete(m.state.Asked, q.Base)
	}
}

func forgetIDs[V any](by map[string]V, task string) {
	for key := range by {
		if strings.HasPrefix(key, task+"\x00") {
			delete(by, key)
		}
	}
}

func (m *mover) renameKey(from, to string) (done string, err error) {
	f := m.frame
	m.repeatWriters(from)
	for i := range f.Tasks {
		for k := range f.Tasks[i].Over {
			renameText(&f.Tasks[i].Over[k].Key, from, to)
		}
	}
	parts, held := f.Keys[from]
	if !held {
		return "", nil
	}
	if _, taken := f.Keys[to]; taken {
		return "", fmt.Errorf("the run has values of both %s and %s: drop one of them", from, to)
	}
	renamed := slices.Clone(parts)
	for i := range renamed {
		renamed[i].Key = to
	}
	f.Keys[to] = renamed
	if tag, ok := f.Tags[from]; ok {
		f.Tags[to] = tag
	}
	delete(f.Keys, from)
	delete(f.Tags, from)
	m.wrote[from] = true
	m.wrote[to] = true
	return fmt.Sprintf("key %s is now %s", from, to), nil
}

func (m *mover) dropKey(key string) (held bool) {
	f := m.frame
	m.repeatWriters(key)
	for i := range f.Tasks {
		t := &f.Tasks[i]
		t.Over = slices.DeleteFunc(slices.Clone(t.Over), func(p record.Patch) bool { return p.Key == key })
	}
	if _, held = f.Keys[key]; held {
		m.wrote[key] = true
	}
	delete(f.Keys, key)
	delete(f.Tags, key)
	return held
}

// convertKey replaces the value of a key, and those that tasks alone see.
func (m *mover) convertKey(s Step) (done string, err error) {
	f := m.frame
	for i := range f.Tasks {
		t := &f.Tasks[i]
		var own []record.Patch
		for _, p := range t.Over {
			if p.Key == s.From {
				own = append(own, p)
			}
		}
		if own == nil {
			continue
		}
		value, err := s.Make(m.newLookup(t.Over))
		if err != nil {
			return "", err
		}
		t.Over = slices.DeleteFunc(slices.Clone(t.Over), func(p record.Patch) bool { return p.Key == s.From })
		if value != nil {
			t.Over = append(t.Over, record.Patch{Key: s.To, Value: value})
		}
	}
	if !slices.ContainsFunc(slices.Concat(s.Reads, []string{s.From}), func(key string) bool { return len(f.Keys[key]) > 0 }) {
		return "", nil
	}
	m.repeatWriters(s.From)
	done = fmt.Sprintf("key %s was converted", s.To)
	if s.From != s.To {
		done = fmt.Sprintf("key %s was converted from %s", s.To, s.From)
	}
	look := m.newLookup(nil)
	value, err := s.Make(look)
	if err != nil {
		return "", err
	}
	delete(f.Keys, s.From) // overlays have what it was converted to
	delete(f.Tags, s.From)
	m.wrote[s.From] = true
	s.Make = func(Lookup) ([]byte, error) { return value, nil }
	return done, m.setKey(s, look)
}

// setKey sets the key of a step to the value that it makes.
func (m *mover) setKey(s Step, look Lookup) error {
	value, err := s.Make(look)
	if err != nil || value == nil {
		return err
	}
	f := m.frame
	if f.Keys == nil {
		f.Keys = map[string][]record.Patch{}
	}
	f.Keys[s.To] = []record.Patch{{Key: s.To, Value: value}}
	if f.Tags == nil {
		f.Tags = map[string]string{}
	}
	if s.Tag != "" {
		f.Tags[s.To] = s.Tag
	}
	m.wrote[s.To] = true
	return nil
}

// newLookup looks a key up in what one task sees, and then in what all see.
func (m *mover) newLookup(over []record.Patch) Lookup {
	return func(key string) (tag string, parts []record.Patch) {
		for _, p := range over {
			if p.Key == key {
				parts = append(parts, p)
			}
		}
		if parts == nil {
			parts = m.frame.Keys[key]
		}
		return m.frame.Tags[key], parts
	}
}

// repeatWriters lets the tasks that have written a key in this step run again: their writes are those of nodes as they were. Their effects are recorded and
// are not repeated.
func (m *mover) repeatWriters(key string) {
	for id, stored := range m.frame.Done {
		var update record.TaskUpdate
		if update.Decode(stored) != nil {
			continue
		}
		writes := slices.Clone(update.Writes)
		for _, s := range update.Send {
			writes = append(writes, s.Over...)
		}
		if slices.ContainsFunc(writes, func(p record.Patch) bool { return p.Key == key }) {
			delete(m.frame.Done, id)
		}
	}
}
