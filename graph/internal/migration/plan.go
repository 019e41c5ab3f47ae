package migration

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/graph/internal/nearest"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
)

// A Graph is what a plan needs to know of a graph that continues a run.
type Graph struct {
	Name    string
	Digest  string
	Before  string // the digest that earlier versions have recorded
	Tags    []record.Tag
	Entries []Entry
	Nodes   []string

	// IsRecorded reports whether a digest that was recorded is that of this graph.
	IsRecorded func(digest string) bool
	// HasJoin reports whether a recorded arrival is that at one of its joins.
	HasJoin func(record.Arrival) bool
	// CheckKey returns why the stored parts of a key cannot be read as what it is now, or nil. known reports whether the graph has the key.
	CheckKey func(name, tag string, parts []record.Patch) (known bool, err error)
	// Child returns the child graph of a node, and Named that of a kind of named children; nil: there is none. Kinds lists these, sorted.
	Child func(node string) *Graph
	Named func(node, kind string) *Graph
	Kinds func(node string) []string
}

// A Need is something of a run that the graph does not have any more, or cannot read, and that no migration covers.
type Need struct {
	Graph string // the path of the child graph; "": the graph itself
	From  string // what names the version that the run has been started with
	Kind  string // node, key or join
	Name  string
	Why   string
	As    string // what it has probably become; "": that is not known
}

// Lines returns the entry of Def.Migrations, in Go, that covers the need; a name that is not known is NEW. There is none for a join that is gone.
func (n *Need) Lines() string {
	if n.Kind == neededJoin {
		return ""
	}
	as := cmp.Or(n.As, "NEW")
	step := fmt.Sprintf("graph.RenameNode(%q, %q)", n.Name, as)
	switch {
	case n.Kind == structure.ChangedKey && as == n.Name:
		step = fmt.Sprintf("graph.ConvertKey(was, is, convert) /* the key %q as it was and is, and a function from one type to the other; or graph.DropKey(%q) */", n.Name, n.Name)
	case n.Kind == structure.ChangedKey:
		step = fmt.Sprintf("graph.RenameKey(%q, %q) /* or graph.DropKey(%q) */", n.Name, as, n.Name)
	}
	return fmt.Sprintf("{From: %q, Steps: []graph.MigrationStep{%s}}", n.From, step)
}

// DescribePlan says what has changed, what to do about it, and what the run needs.
func DescribePlan[C fmt.Stringer](changes []C, missing []string, needs []Need) string {
	s := "; "
	if len(changes) > 0 {
		s = ":"
		for _, c := range changes {
			s += "\n  " + c.String()
		}
		s += "\n"
	}
	if len(missing) > 0 {
		s += "it no longer has " + strings.Join(missing, ", ")
	} else {
		s += "set AcceptChanges to continue with what there is now"
	}
	if len(needs) > 0 {
		s += "\nto continue with its values, write into Def.Migrations:"
	}
	for i := range needs {
		n := &needs[i]
		s += "\n  " + strings.TrimSpace(fmt.Sprintf("%s // %s %q: %s", n.Lines(), n.Kind, n.Name, n.Why))
	}
	return s
}

// CheckEntries returns what is wrong with the entries of a graph with a version. Names that later entries change again need not be there.
func (g *Graph) CheckEntries(version string, hasKey func(name string) bool) (faults []error) {
	seen := map[string]bool{}
	for i, e := range g.Entries {
		switch {
		case e.From == "":
			faults = append(faults, fmt.Errorf("migration %d has no From", i+1))
		case e.From == version:
			faults = append(faults, fmt.Errorf("a migration is from %q, which is the version of the graph itself", e.From))
		case seen[e.From]:
			faults = append(faults, fmt.Errorf("two migrations are from %q", e.From))
		}
		seen[e.From] = true
		for k := range e.Steps {
			if err := g.checkStep(&e.Steps[k], i == len(g.Entries)-1, hasKey); err != nil {
				faults = append(faults, fmt.Errorf("migration from %q: %w", e.From, err))
			}
		}
	}
	return faults
}

func (g *Graph) checkStep(s *Step, last bool, hasKey func(name string) bool) error {
	switch s.Op {
	case RenameNode, MoveTask:
		switch {
		case s.To == "" || last && !slices.Contains(g.Nodes, s.To):
			return fmt.Errorf("%s %s: there is no node %q%s", s.Op, s.From, s.To, nearest.SuggestName(s.To, slices.Sorted(slices.Values(g.Nodes))))
		case last && s.Op == RenameNode && slices.Contains(g.Nodes, s.From):
			return fmt.Errorf("rename node %s: the graph still has it; move takes its tasks to another one", s.From)
		}
	case RenameKey, ConvertKey, DefaultKey:
		if s.To == "" || last && !hasKey(s.To) {
			return fmt.Errorf("%s %s: there is no key %q", s.Op, cmp.Or(s.From, s.To), s.To)
		}
	case DropKey:
	default:
		return errors.New("a step was not made by RenameNode, MoveTask, RenameKey, ConvertKey, DefaultKey or DropKey")
	}
	return nil
}

// neededJoin is the Kind of a join.
const neededJoin = "join"

// A Plan is how a run would be continued with a graph that has changed.
type Plan struct {
	Was     string // the digest of the graph before
	Changes []structure.Change
	Done    []string // what the steps have changed, in words
	Needs   []Need
	Missing []string // nodes of the graph itself that the run is about to execute
	Covered bool     // the migrations say all that is to be done

	State record.ThreadState // as the steps leave it
	Wrote map[string]bool    // keys of the root that the steps have changed
}

// planner makes a plan.
type planner struct {
	*Plan
	shape   []byte
	known   bool            // what has changed is known
	matched map[string]bool // the paths of graphs for which there is a migration
	open    bool            // something changed without a migration
}

// NewPlan plans how a run is continued with a graph. is is its structure. It returns nil if the graph is the one that the run is driven with. The state of the run is not changed.
func NewPlan(s *record.ThreadState, g *Graph, is []byte) *Plan {
	root := s.Frames[""]
	if root == nil || g.IsRecorded(root.Digest) {
		return nil
	}
	p := &planner{Plan: &Plan{Was: root.Digest, State: copyState(s), Wrote: map[string]bool{}}, shape: s.Shape, matched: map[string]bool{}}
	p.Changes, p.known = structure.CompareGraphs(s.Shape, is)
	p.State.Shape = is
	p.planFrame("", "", g)
	for _, c := range p.Changes {
		p.open = p.open || !p.matched[c.Graph] && !p.matchesAt(g, c.Graph)
	}
	p.open = p.open || !p.known && !p.matched[""]
	p.Covered = !p.open && len(p.Needs) == 0
	return p.Plan
}

// matchesAt reports whether the graph at a path has a migration from what it was.
func (p *planner) matchesAt(g *Graph, path string) bool {
	for word := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if g == nil {
			return false
		}
		if node, kind, named := strings.Cut(word, "#"); named {
			g = g.Named(node, kind)
		} else if word != "" {
			g = g.Child(word)
		}
	}
	if g == nil {
		return false
	}
	_, found := findSteps(g.Entries, structure.VersionAt(p.shape, path))
	return found
}

// planFrame plans for the graph at a path of the journal; in is its path in the structure that the run started with.
func (p *planner) planFrame(path, in string, g *Graph) {
	f := p.State.Frames[path]
	if f == nil || g == nil || g.IsRecorded(f.Digest) {
		return
	}
	m := &mover{state: &p.State, path: path, frame: f, was: map[string]string{}, wrote: map[string]bool{}}
	if path == "" {
		m.wrote = p.Wrote
	}
	version := structure.VersionAt(p.shape, in)
	steps, found := findSteps(g.Entries, f.Digest, version)
	p.matched[in] = p.matched[in] || found
	need := Need{Graph: in, From: shortenVersion(version)}
	if version == "" || version == structure.VersionAt(p.State.Shape, in) {
		need.From = f.Digest
	}
	for _, s := range steps {
		done, err := m.applyStep(s)
		if err != nil {
			p.addNeed(need, "key", cmp.Or(s.To, s.From), fmt.Sprintf("%s: %v", s.Op, err), "")
			continue
		}
		if done != "" {
			p.Done = append(p.Done, describePlace(in)+done)
		}
	}
	p.checkFrame(f, g, need)
	f.Digest = g.Digest
	for _, t := range g.Tags {
		if f.Tags == nil {
			f.Tags = map[string]string{}
		}
		f.Tags[t.Key] = t.Tag
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		if slices.Contains(g.Nodes, t.Node) {
			p.planFrame(path+taskID(f.Step, t)+"/", in+m.originalName(t.Node)+"/", g.Child(t.Node))
		}
	}
}

// shortenVersion returns the beginning of a hash, and other versions as they are.
func shortenVersion(version string) string {
	const hash, enough = 64, 12
	if len(version) == hash && strings.Trim(version, "0123456789abcdef") == "" {
		return version[:enough]
	}
	return version
}

func describePlace(in string) string {
	if in == "" {
		return ""
	}
	return "below " + strings.TrimSuffix(in, "/") + ", "
}

func (p *planner) addNeed(n Need, kind, name, why, as string) {
	n.Kind = kind
	n.Name = name
	n.Why = why
	n.As = as
	p.Needs = append(p.Needs, n)
}

// checkFrame finds what the graph does not have or cannot read.
func (p *planner) checkFrame(f *record.Frame, g *Graph, need Need) {
	for _, name := range record.NextNames(f.Tasks) {
		if slices.Contains(g.Nodes, name) {
			continue
		}
		if need.Graph == "" {
			p.Missing = append(p.Missing, name)
		}
		p.addNeed(need, structure.ChangedNode, name, "it is gone, and the run is about to execute it", p.findSuccessor(need.Graph, structure.ChangedNode, name))
	}
	for _, a := range f.Arrived {
		if !g.HasJoin(a) {
			p.addJoinNeed(g, need, a)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Keys)) {
		known, err := g.CheckKey(name, f.Tags[name], f.Keys[name])
		switch {
		case err != nil:
			p.addNeed(need, structure.ChangedKey, name, err.Error(), name)
		case !known:
			p.addNeed(need, structure.ChangedKey, name, "the run has a value of it, and the graph does not declare it any more", p.findSuccessor(need.Graph, structure.ChangedKey, name))
		}
	}
}

// addJoinNeed adds what is missing of a join that the run has reached: its nodes, or itself.
func (p *planner) addJoinNeed(g *Graph, need Need, a record.Arrival) {
	sources, target, _ := strings.Cut(a.Join, ">")
	all := true
	for _, name := range append(strings.Split(sources, "+"), target) {
		if slices.Contains(g.Nodes, name) {
			continue
		}
		all = false
		if !slices.ContainsFunc(p.Needs, func(n Need) bool { return n.Kind == structure.ChangedNode && n.Graph == need.Graph && n.Name == name }) {
			p.addNeed(need, structure.ChangedNode, name, "the run has come from "+a.Source+" to a join with it", p.findSuccessor(need.Graph, structure.ChangedNode, name))
		}
	}
	if all {
		p.addNeed(need, neededJoin, a.Join, "the run has come to it from "+a.Source+", and the graph does not have it any more", "")
	}
}

// findSuccessor returns what a node or a key has probably become: the one that is new and described alike, or whose name is near.
func (p *planner) findSuccessor(in, kind, gone string) string {
	was := ""
	for _, c := range p.Changes {
		if c.Graph == in && c.Kind == kind && c.Name == gone {
			was = c.Was
		}
	}
	var alike, others []string
	for _, c := range p.Changes {
		if c.Graph != in || c.Kind != kind || c.Was != "" {
			continue
		}
		others = append(others, c.Name)
		if c.Is == was {
			alike = append(alike, c.Name)
		}
	}
	for _, list := range [][]string{alike, others} {
		if len(list) == 1 {
			return list[0]
		}
		if near := nearest.FindName(gone, list); near != "" {
			return near
		}
	}
	return ""
}

// copyState returns a copy of which the maps and lists can be changed.
func copyState(s *record.ThreadState) record.ThreadState {
	c := *s
	c.Asked = maps.Clone(s.Asked)
	c.Run.Broken = maps.Clone(s.Run.Broken)
	c.Frames = make(map[string]*record.Frame, len(s.Frames))
	for path, f := range s.Frames {
		n := *f
		n.Keys = maps.Clone(f.Keys)
		n.Tags = maps.Clone(f.Tags)
		n.Tasks = slices.Clone(f.Tasks)
		for i := range n.Tasks {
			n.Tasks[i].Over = slices.Clone(n.Tasks[i].Over)
		}
		n.Arrived = slices.Clone(f.Arrived)
		n.Visits = maps.Clone(f.Visits)
		n.Done = maps.Clone(f.Done)
		n.Effects = maps.Clone(f.Effects)
		n.Notes = maps.Clone(f.Notes)
		n.Order = slices.Clone(f.Order)
		n.Failures = slices.Clone(f.Failures)
		n.Asks = make(map[string]*record.AskedQuestion, len(f.Asks))
		for key, q := range f.Asks {
			asked := *q
			n.Asks[key] = &asked
		}
		if n.Visits == nil {
			n.Visits = map[string]int{}
		}
		c.Frames[path] = &n
	}
	return c
}
