package graph

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/migration"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/journal"
)

// A Migration says how runs that were started with another version of the graph continue with this one: see Def.Migrations.
type Migration struct {
	// From names that version: its Def.Version, its Digest, or at least the first eight characters of either.
	From string

	// Steps are done in their order, by RenameNode, MoveTask, RenameKey, ConvertKey, DefaultKey and DropKey. Without any, the runs continue as they are.
	Steps []MigrationStep
}

// A MigrationStep is one step of a Migration.
type MigrationStep struct{ step migration.Step }

// RenameNode lets a node continue the work of one that had another name: its effects, answers and open questions stay, and the questions keep
// their ids. An effect in doubt is repeated with another EffectKey.
func RenameNode(from, to string) MigrationStep {
	return MigrationStep{migration.Step{Op: migration.RenameNode, From: from, To: to}}
}

// MoveTask lets runs that are about to execute a node, or are waiting in it, execute another one in its place, from its beginning.
func MoveTask(from, to string) MigrationStep {
	return MigrationStep{migration.Step{Op: migration.MoveTask, From: from, To: to}}
}

// RenameKey gives the value of a key to the key with another name. Tasks of the current step that have written it run again; their
// effects are recorded.
func RenameKey(from, to string) MigrationStep {
	return MigrationStep{migration.Step{Op: migration.RenameKey, From: from, To: to}}
}

// DropKey removes the value of a key.
func DropKey(name string) MigrationStep {
	return MigrationStep{migration.Step{Op: migration.DropKey, From: name, To: name}}
}

// DefaultKey gives a key, which the write is of, a value in runs that have none.
func DefaultKey(w Write) MigrationStep {
	s := migration.Step{Op: migration.DefaultKey, To: w.Key()}
	s.Make = func(migration.Lookup) ([]byte, error) {
		if w.key == nil {
			return nil, errNoKey
		}
		return w.key.encodeStored(nil, w.val)
	}
	if w.key != nil {
		s.Tag = w.key.tag
	}
	return MigrationStep{s}
}

// ConvertKey replaces the value of a key by what convert makes of it. was is the key as it was declared, also with its reducer. The function must be pure.
func ConvertKey[A, B any](was Key[A], is Key[B], convert func(A) (B, error)) MigrationStep {
	return ConvertStored(was.Name(), is, func(stored func(string) (string, [][]byte, bool)) (w Write, err error) {
		tag, parts, whole := stored(was.Name())
		if tag != "" && tag != was.d.tag {
			return w, fmt.Errorf("it was stored with type %s, and the key to convert has type %s", tag, was.d.tag)
		}
		old, err := was.d.foldParts(parts, whole)
		if err != nil {
			return w, err
		}
		a, _ := old.(A)
		b, err := convert(a)
		return is.Reset(b), err
	})
}

// ConvertStored is ConvertKey for a program that does not know the type with which a value was stored: convert gets a function that returns the type or codec and the stored
// parts of a key, as in StoredValue of package history, and whether the first part is a whole value. It returns the write of the key. Runs that have neither the key nor
// one of reads have nothing to convert.
func ConvertStored(was string, is AnyKey, convert func(stored func(key string) (tag string, parts [][]byte, whole bool)) (Write, error), reads ...string) MigrationStep {
	s := migration.Step{Op: migration.ConvertKey, From: was, To: is.Name(), Tag: is.def().tag, Reads: reads}
	s.Make = func(look migration.Lookup) (b []byte, err error) {
		defer func() {
			if p := recover(); p != nil {
				b, err = nil, panics.NewError("the conversion of key "+strconv.Quote(was), p)
			}
		}()
		w, err := convert(func(key string) (tag string, parts [][]byte, whole bool) {
			tag, stored := look(key)
			for i, p := range stored {
				parts = append(parts, p.Value)
				whole = whole || i == 0 && p.Fold == record.Set
			}
			return tag, parts, whole
		})
		if err != nil || w.key == nil {
			return nil, err
		}
		return w.key.encodeStored(nil, w.val)
	}
	return MigrationStep{s}
}

// foldParts returns the value of the stored parts of a key. whole reports whether the first one replaces the value.
func (k *keyDef) foldParts(parts [][]byte, whole bool) (any, error) {
	var ws []Write
	for i, p := range parts {
		v, err := k.decodeStored(p)
		if err != nil {
			return nil, err
		}
		ws = append(ws, Write{k, boxNil(v), i == 0 && whole})
	}
	t := &table{index: map[string]int{}}
	t.addKey(k)
	st, _, err := applyWrites(State{t: t, v: make([]any, 1)}, [][]Write{ws}, nil, nil, false)
	return unboxNil(st.v[0]), err
}

// A Change is one difference between the graph that a run was started with and another one.
type Change struct {
	// Graph is the path of the child graph that differs: the nodes above it, each with a '/', and a '#' and the kind for named children; "": the graph itself.
	Graph string `json:"graph,omitempty"`
	// Kind is key, node, edge, start, finally or version, or a word of whoever compares more than graphs.
	Kind string `json:"kind"`
	// Name is that of the key or node, or the edge.
	Name string `json:"name,omitempty"`
	// Was and Is describe it; empty: it was not there, or is gone.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}

// String says what has changed in words.
func (c Change) String() string { return structure.Change(c).String() }

// A Need is something that a run holds and that the graph cannot continue with, unless a migration says how.
type Need struct {
	// Graph is the path of the child graph that it is about, as in Change.
	Graph string `json:"graph,omitempty"`
	// From is what a migration for the run begins with.
	From string `json:"from"`
	// Kind is node, key or join, and Name the name.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Why says what is in the way.
	Why string `json:"why"`
	// As is what it has probably become; empty: that is not known.
	As string `json:"as,omitempty"`
}

// Lines returns what to add to Def.Migrations, in Go; a name that is not known is NEW. For a join it is empty: consent drops the arrival at it.
func (n Need) Lines() string { return (*migration.Need)(&n).Lines() }

// A MigrationPlan says how a run would be continued with the graph of a Runner.
type MigrationPlan struct {
	ChangedError

	// Same reports that the run is driven with this graph already, or is over: nothing else is set.
	Same bool

	// Done says in words what the migrations change.
	Done []string

	// Covered reports that the migrations say all that is to be done: a resume needs no AcceptChanges.
	Covered bool
}

// A movePlan is a plan with what it leads to.
type movePlan struct {
	MigrationPlan
	state record.ThreadState
	wrote []string
}

// planMigration returns how a thread is continued with the graph; nil: it has not changed.
func (g *Graph) planMigration(s *fold.Thread, thread string) *movePlan {
	if root := s.Frames[""]; root == nil || g.hasDigest(root.Digest, s.Shape) {
		return nil
	}
	made := migration.NewPlan(&s.ThreadState, g.migrationTarget(s.Shape), g.outline())
	if made == nil {
		return nil
	}
	p := &movePlan{state: made.State, wrote: slices.Sorted(maps.Keys(made.Wrote))}
	p.ChangedError = ChangedError{Thread: thread, Was: made.Was, Is: g.digest, Missing: made.Missing}
	for _, c := range made.Changes {
		p.Changes = append(p.Changes, Change(c))
	}
	for _, n := range made.Needs {
		p.Needs = append(p.Needs, Need(n))
	}
	p.Done = made.Done
	p.Covered = made.Covered
	return p
}

// takeOver makes the thread what the plan leads to, and returns the record.
func (p *movePlan) takeOver(s *fold.Thread, by string) journal.Record {
	return s.Migrate(&p.state, p.wrote, by)
}

// migrationTarget describes the graph for package migration. shape is the structure of the run.
func (g *Graph) migrationTarget(shape []byte) *migration.Graph {
	t := &migration.Graph{Name: g.def.Name, Digest: g.digest, Before: g.before, Tags: listTags(g.table.keys)}
	t.IsRecorded = func(digest string) bool { return g.hasDigest(digest, shape) }
	for i := range g.nodes {
		t.Nodes = append(t.Nodes, g.nodes[i].Name)
	}
	for _, m := range g.def.Migrations {
		e := migration.Entry{From: m.From}
		for _, s := range m.Steps {
			e.Steps = append(e.Steps, s.step)
		}
		t.Entries = append(t.Entries, e)
	}
	t.HasJoin = func(a record.Arrival) bool { _, ok := g.findArrival(a); return ok }
	t.CheckKey = func(name, tag string, parts []record.Patch) (known bool, err error) {
		f := newFrame(nil, g, "", "")
		f.reshaped = structure.ListReshaped(shape, g.outline())
		if f.st.findKey(name) == nil {
			return false, nil
		}
		return true, f.restoreKeys(&record.Frame{Keys: map[string][]record.Patch{name: parts}, Tags: map[string]string{name: tag}}, []string{name}, nil)
	}
	node := func(name string) *compiledNode { return cmp.Or(g.nodeNamed(name), &compiledNode{}) }
	t.Child = func(name string) *migration.Graph { return node(name).Graph.childTarget(shape) }
	t.Named = func(name, kind string) *migration.Graph { return node(name).Children[kind].Graph.childTarget(shape) }
	t.Kinds = func(name string) []string { return slices.Sorted(maps.Keys(node(name).Children)) }
	return t
}

// childTarget is migrationTarget for the graph of a child; nil: there is none.
func (g *Graph) childTarget(shape []byte) *migration.Graph {
	if g == nil {
		return nil
	}
	t := g.migrationTarget(shape)
	t.IsRecorded = func(digest string) bool { return digest == g.digest || digest == g.before }
	return t
}

// PlanMigration returns how a resume would continue a thread whose run was started with another graph. Nothing is written.
func (r *Runner) PlanMigration(ctx context.Context, thread string) (MigrationPlan, error) {
	s, err := r.loadPoint(ctx, journal.Point{Thread: thread})
	if err != nil {
		return MigrationPlan{}, err
	}
	p := r.Graph.planMigration(s, thread)
	if p == nil || s.Run.Status.Final() {
		return MigrationPlan{Same: true}, nil
	}
	return p.MigrationPlan, nil
}

// Migrate does what a resume would do first with a thread whose run was started with another graph: one record, the edit, has all that Def.Migrations change. If they do not
// cover everything, the error is a *ChangedError and nothing is written. meta replaces Input.Meta, unless it is nil.
// A run that a drive works on is a *BusyError.
func (r *Runner) Migrate(ctx context.Context, thread string, meta []byte) (plan MigrationPlan, err error) {
	if err := r.checkStore(); err != nil {
		return plan, err
	}
	if l, ok := r.Store.(journal.Leaser); ok {
		if by, err := l.ReadLease(ctx, thread); err == nil && by.IsLive() {
			return plan, &BusyError{Thread: thread, Status: Running, Lease: by}
		}
	}
	_, err = r.appendEdit(ctx, thread, func(s *fold.Thread) ([]journal.Record, error) {
		plan = MigrationPlan{Same: true}
		p := r.Graph.planMigration(s, thread)
		if p == nil || s.Run.Status.Final() {
			return nil, nil
		}
		if plan = p.MigrationPlan; !plan.Covered {
			return nil, &plan.ChangedError
		}
		if meta != nil {
			p.state.Meta = meta
		}
		rec := p.takeOver(s, journal.AuthorOf(ctx))
		rec.Time = r.newDrive(0).now().UnixMicro()
		return []journal.Record{rec}, nil
	})
	return plan, err
}

// ChangedError says that the graph that is to continue a run is not the one that
// started it.
type ChangedError struct {
	// Thread is the thread.
	Thread string

	// Was and Is are the digests of the graph then and now.
	Was, Is string

	// Changes are the differences; nil: the journal does not have the graph of then.
	Changes []Change

	// Missing are the nodes that the run is about to execute and that the graph no longer
	// has. With one, AcceptChanges does not help.
	Missing []string

	// Needs are what a migration must say before the run can continue, Missing included.
	Needs []Need

	// Child is the path of the named child whose graph has changed; empty: the run's own
	// graph has.
	Child string
}

// Error implements error.
func (e *ChangedError) Error() string {
	if e.Child != "" {
		return fmt.Sprintf("thread %s: its child %s was started with graph %s, which no longer exists; set AcceptChanges to continue with what there is now", e.Thread, e.Child, e.Was)
	}
	var needs []migration.Need
	for _, n := range e.Needs {
		needs = append(needs, migration.Need(n))
	}
	return fmt.Sprintf("thread %s was started with graph %s, which is now %s%s", e.Thread, e.Was, e.Is, migration.DescribePlan(e.Changes, e.Missing, needs))
}

// checkMigrations adds what is wrong with the migrations of a graph.
func (c *compiler) checkMigrations() {
	for _, err := range c.g.migrationTarget(nil).CheckEntries(c.g.def.Version, func(name string) bool {
		_, ok := c.g.table.index[name]
		return ok || c.g.table.open != nil
	}) {
		c.addFault("%w", err)
	}
}
