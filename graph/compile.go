package graph

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"raddle.dev/graph/internal/nearest"
	"raddle.dev/graph/internal/reach"
	"raddle.dev/graph/internal/structure"
)

// Graph is a compiled, immutable Def. It is safe for any number of concurrent runs.
type Graph struct {
	def     Def
	table   *table
	nodes   []compiledNode
	joins   []join
	sources int // of all joins
	start   []int
	byName  map[string]int
	finally int  // the node of Def.Finally; end: there is none
	breaks  bool // a node has a break
	ends    bool // it may end contexts of nodes by itself, or children of it may
	digest  string
	before  string        // the digest that earlier versions have recorded: without reducers and types
	outline func() []byte // the structure as a journal holds it
}

// A compiledNode is a Node with its targets resolved: end (-1) means End.
type compiledNode struct {
	Node
	to      []int
	picks   []pick
	joins   []joinRef
	routes  map[string]int
	hooks   []Hooks // the graph's, then the node's
	listens bool    // one of the hooks has Emit

	started Body // a TaskStarted
}

type pick struct {
	choose func(State) ([]string, error)
	cases  map[string]int
}

type join struct {
	id   string // names it in the journal
	from []string
	to   int
	bit  int // of its first source, in a set of the sources of all joins
}

// joinRef is one source of one join.
type joinRef struct{ join, src int }

const end = -1

const defaultMaxSteps = 10_000_000

// Name returns the Def's name.
func (g *Graph) Name() string { return g.def.Name }

// Digest identifies the definition: keys with their reducers and what their types consist of, nodes, edges and children, but not limits or
// the code of functions. A run records the digest of the graph it was started with.
func (g *Graph) Digest() string { return g.digest }

// Compile checks a Def and returns it as a Graph. Names must be unique and known, every
// node must have a body and lead somewhere, every node must be reachable, every join
// must be able to fire. The error joins all problems.
func Compile(d Def) (*Graph, error) {
	d.Start, d.First = slices.Clone(d.Start), slices.Clone(d.First)
	c := &compiler{g: &Graph{def: d, byName: map[string]int{End: end}, finally: end}}
	if c.g.def.MaxSteps == 0 {
		c.g.def.MaxSteps = defaultMaxSteps
	}
	c.compileKeys()
	c.declareNodes()
	c.connectNodes()
	c.resolveStarts()
	c.resolveFinally()
	c.checkMigrations()
	if len(c.errs) == 0 {
		c.checkReachable()
	}
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	c.g.digest, c.g.before = computeDigest(c.g, true), computeDigest(c.g, false)
	c.g.ends, c.g.outline = canEndNodeContext(c.g), sync.OnceValue(c.g.packStructure)
	return c.g, nil
}

// canEndNodeContext reports whether the graph, or a child of it, may end the context of a node.
func canEndNodeContext(g *Graph) bool {
	if d := &g.def; d.Timeout > 0 || d.StepTimeout > 0 || d.FailFast {
		return true
	}
	for i := range g.nodes {
		if n := &g.nodes[i]; n.Timeout > 0 || n.Children != nil || n.Graph != nil && (n.Run != nil || n.Graph.ends) {
			return true
		}
	}
	return false
}

type compiler struct {
	g    *Graph
	errs []error
}

func (c *compiler) addFault(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("graph %s: "+format, append([]any{c.g.def.Name}, args...)...))
}

func (c *compiler) compileKeys() {
	t := &table{index: map[string]int{}, open: c.g.def.Open}
	for _, k := range c.g.def.Keys {
		if keyOf(k) == nil {
			c.addFault("a key in Keys was not made by Last, Append, Merge, Sum, Max, Min, Concat, Fold or Dyn")
			continue
		}
		d := k.def()
		if _, dup := t.index[d.name]; dup {
			c.addFault("key %q is declared twice", d.name)
			continue
		}
		if d.name == "" {
			c.addFault("a key has no name")
		}
		if err := d.checkStorable(); err != nil {
			c.addFault("%w", err)
		}
		t.addKey(d)
	}
	c.g.table = t
	if _, _, err := applyWrites(State{t: t, v: make([]any, len(t.keys))}, [][]Write{c.g.def.First}, nil, nil, false); err != nil {
		c.addFault("First: %w", err)
	}
}

func (c *compiler) declareNodes() {
	for _, n := range c.g.def.Nodes {
		switch {
		case !isValidName(n.Name) || n.Name == End:
			c.addFault("node name %q: a name is not empty, not %s, and has no '/', '#' or '['", n.Name, End)
		case n.Graph != nil && !n.Graph.isCompiled():
			c.addFault("the Graph of node %q was not made by Compile", n.Name)
		case n.Run == nil && n.Graph == nil:
			c.addFault("node %q has neither Run nor Graph", n.Name)
		case n.Graph == nil && (n.In != nil || n.Out != nil || n.Inherit):
			c.addFault("node %q has In, Out or Inherit but no Graph", n.Name)
		case n.Children != nil && (n.Graph != nil || n.Run == nil):
			c.addFault("node %q has Children: it needs a Run that calls them, and no Graph", n.Name)
		case n.Run != nil && (n.In != nil || n.Out != nil):
			c.addFault("node %q has both Run and In or Out: with Run, pass writes to Call", n.Name)
		}
		if _, dup := c.g.byName[n.Name]; dup && n.Name != End {
			c.addFault("node %q is declared twice", n.Name)
			continue
		}
		c.g.breaks = c.g.breaks || n.BreakBefore || n.BreakAfter
		for _, kind := range slices.Sorted(maps.Keys(n.Children)) {
			if g := n.Children[kind].Graph; g == nil {
				c.addFault("child %q of node %q has no Graph", kind, n.Name)
			} else if !g.isCompiled() {
				c.addFault("the Graph of child %q of node %q was not made by Compile", kind, n.Name)
			}
		}
		c.g.def.Defaults.applyTo(&n, c.g.def.Finally)
		n.Routes, n.Ends, n.Children = slices.Clone(n.Routes), maps.Clone(n.Ends), maps.Clone(n.Children)
		c.g.byName[n.Name] = len(c.g.nodes)
		hooks := slices.Concat(c.g.def.Hooks, n.Hooks)
		listens := slices.ContainsFunc(hooks, func(h Hooks) bool { return h.Emit != nil })
		c.g.nodes = append(c.g.nodes, compiledNode{Node: n, routes: map[string]int{End: end}, hooks: hooks, listens: listens, started: TaskStarted{Kind: n.Kind}})
	}
}

// resolveNode resolves a name; an unknown one is a problem.
func (c *compiler) resolveNode(name, where string) (int, bool) {
	i, ok := c.g.byName[name]
	if !ok {
		c.addFault("%s names node %q, which is not declared%s", where, name, nearest.SuggestName(name, slices.Sorted(maps.Keys(c.g.byName))))
	}
	return i, ok
}

func (c *compiler) connectNodes() {
	for i := range c.g.nodes {
		n := &c.g.nodes[i]
		for _, r := range n.Routes {
			if to, ok := c.resolveNode(r, fmt.Sprintf("Routes of node %q", n.Name)); ok {
				n.routes[r] = to
			}
		}
		c.resolveEnds(n)
		if n.OnError != "" {
			if to, ok := c.resolveNode(n.OnError, fmt.Sprintf("OnError of node %q", n.Name)); ok && to == i {
				c.addFault("OnError of node %q names the node itself", n.Name)
			}
		}
	}
	for _, e := range c.g.def.Edges {
		switch {
		case len(e.From) == 0:
			c.addFault("an edge to %s has no From", strings.Join(e.To, ", "))
		case len(e.From) > 1:
			c.addJoin(e)
		default:
			c.addEdge(e)
		}
	}
	for i := range c.g.nodes {
		n := &c.g.nodes[i]
		if n.edgeCount()+len(n.Routes)+len(n.Ends) == 0 && !n.AnyRoute && n.Name != c.g.def.Finally {
			c.addFault("node %q leads nowhere: give it an edge (to %s, if it ends a path) or Routes", n.Name, End)
		}
	}
}

// resolveEnds resolves a node's own names for targets, and checks what its cache needs.
func (c *compiler) resolveEnds(n *compiledNode) {
	for _, label := range slices.Sorted(maps.Keys(n.Ends)) {
		to, ok := c.resolveNode(n.Ends[label], fmt.Sprintf("end %q of node %q", label, n.Name))
		if was, taken := n.routes[label]; ok && taken && was != to {
			c.addFault("end %q of node %q leads to %q, but Routes lets it name the node %q itself", label, n.Name, n.Ends[label], label)
		}
		if ok {
			n.routes[label] = to
		}
	}
	if n.Cache == nil {
		return
	}
	if len(n.Cache.Keys) == 0 {
		c.addFault("the cache of node %q names no Keys: its result would be the same for every input", n.Name)
	}
	for _, k := range n.Cache.Keys {
		if keyOf(k) == nil || c.g.table.findSlot(k.def()) < 0 && c.g.def.Open == nil {
			c.addFault("the cache of node %q names a key that Def.Keys does not declare", n.Name)
		}
	}
}

// resolveTarget resolves a name that the node passes to Goto or Send.
func (n *compiledNode) resolveTarget(g *Graph, name string) (int, bool) {
	to, ok := n.routes[name]
	if !ok && n.AnyRoute {
		to, ok = g.byName[name]
		ok = ok && (to == end || to != g.finally)
	}
	return to, ok
}

// allowedTargets lists the names that the node may pass to Goto and Send, sorted.
func (n *compiledNode) allowedTargets(g *Graph) []string {
	names := slices.Collect(maps.Keys(n.routes))
	if n.AnyRoute {
		names = slices.AppendSeq(names, maps.Keys(g.byName))
		names = slices.DeleteFunc(names, func(name string) bool { return name == g.def.Finally })
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// canEndPath reports whether the node itself may end its path.
func (n *compiledNode) canEndPath() bool {
	return slices.Contains(n.to, end) || slices.Contains(n.Routes, End) || slices.Contains(slices.Collect(maps.Values(n.Ends)), End)
}

func (c *compiler) addEdge(e Edge) {
	src, ok := c.resolveNode(e.From[0], "an edge")
	if !ok {
		return
	}
	if src == end {
		c.addFault("an edge leads from %s", End)
		return
	}
	n := &c.g.nodes[src]
	if e.Pick == nil {
		if len(e.To) == 0 || len(e.Cases) > 0 {
			c.addFault("the edge from %q needs To, or Pick with Cases", n.Name)
		}
		for _, t := range e.To {
			if to, ok := c.resolveNode(t, fmt.Sprintf("an edge from %q", n.Name)); ok {
				n.to = append(n.to, to)
			}
		}
		return
	}
	if len(e.To) > 0 || len(e.Cases) == 0 {
		c.addFault("the branch from %q has Pick: it needs Cases, and no To", n.Name)
	}
	p := pick{e.Pick, map[string]int{}}
	for _, label := range slices.Sorted(maps.Keys(e.Cases)) {
		if to, ok := c.resolveNode(e.Cases[label], fmt.Sprintf("case %q of the branch from %q", label, n.Name)); ok {
			p.cases[label] = to
		}
	}
	n.picks = append(n.picks, p)
}

func (c *compiler) addJoin(e Edge) {
	if e.Pick != nil || len(e.Cases) > 0 || len(e.To) != 1 {
		c.addFault("the join of %s needs exactly one To, and no Pick or Cases", strings.Join(e.From, ", "))
		return
	}
	to, ok := c.resolveNode(e.To[0], "a join")
	if ok && to == end {
		c.addFault("the join of %s leads to %s: it needs a node", strings.Join(e.From, ", "), End)
		return
	}
	j := join{id: strings.Join(e.From, "+") + ">" + e.To[0], from: slices.Clone(e.From), to: to}
	if slices.ContainsFunc(c.g.joins, func(o join) bool { return o.id == j.id }) {
		c.addFault("the join of %s to %q is declared twice", strings.Join(e.From, ", "), e.To[0])
		return
	}
	for i, f := range e.From {
		if slices.Contains(e.From[:i], f) {
			c.addFault("the join before %q names source %q twice", e.To[0], f)
			continue
		}
		if src, ok := c.resolveNode(f, fmt.Sprintf("the join before %q", e.To[0])); ok && src != end {
			c.g.nodes[src].joins = append(c.g.nodes[src].joins, joinRef{len(c.g.joins), i})
		}
	}
	j.bit = c.g.sources
	c.g.sources += len(j.from)
	c.g.joins = append(c.g.joins, j)
}

func (c *compiler) resolveStarts() {
	if len(c.g.def.Start) == 0 {
		c.addFault("Start names no node")
	}
	for _, s := range c.g.def.Start {
		to, ok := c.resolveNode(s, "Start")
		switch {
		case !ok:
		case to == end || slices.Contains(c.g.start, to):
			c.addFault("Start names %q twice, or %s", s, End)
		default:
			c.g.start = append(c.g.start, to)
		}
	}
	slices.Sort(c.g.start)
}

// resolveFinally resolves Def.Finally: nothing leads to that node or away from it.
func (c *compiler) resolveFinally() {
	name := c.g.def.Finally
	if name == "" {
		return
	}
	at, ok := c.resolveNode(name, "Finally")
	if !ok {
		return
	}
	if at == end {
		c.addFault("Finally names %s: it must be a node", End)
		return
	}
	c.g.finally = at
	n := &c.g.nodes[at]
	if len(n.joins) > 0 || n.AnyRoute || slices.ContainsFunc(n.possibleTargets(c.g), func(to int) bool { return to != end }) {
		c.addFault("node %q is Finally, so nothing but %s can follow it: leave out its other edges, Routes, Ends and OnError", name, End)
	}
	if n.edgeCount() == 0 {
		n.to = []int{end}
	}
	for i := range c.g.nodes {
		if slices.Contains(c.g.nodes[i].possibleTargets(c.g), at) {
			c.addFault("node %q leads to %q, which is Finally: it runs after the end was decided, and is no target", c.g.nodes[i].Name, name)
		}
	}
	for _, j := range c.g.joins {
		if j.to == at {
			c.addFault("the join of %s leads to %q, which is Finally: it runs after the end was decided, and is no target", strings.Join(j.from, ", "), name)
		}
	}
	if slices.Contains(c.g.start, at) {
		c.addFault("Start names %q, which is Finally: it runs after the end was decided", name)
	}
}

// checkReachable walks from the start; a join is passed when all its sources have been reached.
func (c *compiler) checkReachable() {
	anywhere := false // a node with AnyRoute was reached, so every other node is too
	w := reach.Nodes{Targets: func(i int) []int {
		n := &c.g.nodes[i]
		if n.AnyRoute && !anywhere {
			anywhere = true
			return slices.Collect(maps.Values(c.g.byName))
		}
		return n.possibleTargets(c.g)
	}, Joins: func(i int) (at []int) {
		for _, j := range c.g.nodes[i].joins {
			at = append(at, j.join)
		}
		return at
	}}
	for _, j := range c.g.joins {
		w.Passed = append(w.Passed, reach.Join{Sources: len(j.from), To: j.to})
	}
	seen, arrived := w.Walk(c.g.start, len(c.g.nodes))
	for i := range c.g.nodes {
		if !seen[i] && i != c.g.finally {
			c.addFault("node %q cannot be reached from %s", c.g.nodes[i].Name, strings.Join(c.g.def.Start, ", "))
		}
	}
	for i, j := range c.g.joins {
		if arrived[i] < len(j.from) {
			c.addFault("the join before %q can never fire: not all of %s can be reached", c.g.nodes[j.to].Name, strings.Join(j.from, ", "))
		}
	}
}

// possibleTargets lists every node that may follow, except those behind joins.
func (n *compiledNode) possibleTargets(g *Graph) []int {
	ts := slices.Clone(n.to)
	for _, r := range n.Routes {
		ts = append(ts, n.routes[r])
	}
	for _, label := range slices.Sorted(maps.Keys(n.Ends)) {
		ts = append(ts, n.routes[label])
	}
	for _, p := range n.picks {
		for _, label := range slices.Sorted(maps.Keys(p.cases)) {
			ts = append(ts, p.cases[label])
		}
	}
	if n.OnError != "" {
		ts = append(ts, g.byName[n.OnError])
	}
	return ts
}

func (g *Graph) nameOf(i int) string {
	if i == end {
		return End
	}
	return g.nodes[i].Name
}

// hasDigest reports whether a graph with a digest is the same as this one. shape is its structure, which a journal of an
// earlier version needs: its digest says nothing about reducers and types.
func (g *Graph) hasDigest(digest string, shape []byte) bool {
	if digest != g.before {
		return digest == g.digest
	}
	changes, known := structure.CompareGraphs(shape, g.outline())
	return !known || !slices.ContainsFunc(changes, func(c structure.Change) bool { return c.Kind == structure.ChangedKey })
}

// computeDigest hashes everything that the meaning of a journal depends on. Earlier versions had no types in it.
func computeDigest(g *Graph, typed bool) string {
	h := sha256.New()
	put := func(parts ...any) { _, _ = io.WriteString(h, fmt.Sprintf("%q\n", parts)) }
	put("graph", g.def.Name, g.def.Version, g.def.Start, g.def.Open != nil)
	if g.finally != end {
		put("finally", g.def.Finally)
	}
	for _, k := range g.table.keys {
		put("key", k.name, k.tag, int(k.fold))
		if typed {
			d := k.describe()
			put("type", d.Reducer, d.Shape)
		}
	}
	digestOf := func(child *Graph) string {
		if typed {
			return child.digest
		}
		return child.before
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		put("node", n.Name, n.Kind, n.Routes, n.OnError, n.to)
		if n.AnyRoute {
			put("any route")
		}
		for _, label := range slices.Sorted(maps.Keys(n.Ends)) {
			put("end", label, n.Ends[label])
		}
		for _, p := range n.picks {
			for _, label := range slices.Sorted(maps.Keys(p.cases)) {
				put("case", label, p.cases[label])
			}
		}
		if n.Graph != nil {
			put("child", digestOf(n.Graph))
		}
		for _, kind := range slices.Sorted(maps.Keys(n.Children)) {
			if sub := n.Children[kind]; !sub.OutsideDigest {
				put("child", kind, digestOf(sub.Graph))
			}
		}
	}
	for _, j := range g.joins {
		put("join", j.id)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// isValidName reports whether a name can be part of a path.
func isValidName(name string) bool { return name != "" && !strings.ContainsAny(name, "/#[") }
