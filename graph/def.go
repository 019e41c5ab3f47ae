package graph

import (
	"context"
	"maps"
	"slices"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/structure"
)

// End is the target that ends a path. A run is done when no task is left to run.
const End = "END"

// Func is the body of a node. ctx ends when the run is cancelled or a timeout passes,
// and gives access to Do, Interrupt, Emit and Call; s is the state before the step. The
// writes of a Func that returns an error are dropped. A Func that ignores ctx delays
// the run until it returns, at most for Runner.HungAfter; an update that it returns in
// this time counts. It may run on the goroutine that drives the run: a Func that calls
// runtime.Goexit fails, and may end the caller's goroutine too.
type Func func(ctx context.Context, s State) (Update, error)

// Update is what a node returns: its writes and where to go.
type Update struct {
	// Writes are folded into the state at the end of the step, in this order.
	Writes []Write

	// Goto names the targets that are followed instead of the node's edges, branches and
	// joins. If nil, those are followed; if empty and not nil, none is.
	Goto []string

	// Send starts additional tasks, together with the edges or Goto.
	Send []Send

	// Halt ends the run at the end of this step, if it is not nil.
	Halt *Halt

	failed *handledFailure // the failure that OnError handles; nil: there is none
}

// Put returns an Update that only writes.
func Put(w ...Write) Update { return Update{Writes: w} }

// Send starts one task of a node with its own overlay: writes folded into the state
// that only this task sees.
type Send struct {
	// To names the node that runs. It must be one that the sending node may name: see
	// Node.Routes.
	To string

	// Overlay is folded into the state that the task sees, and nowhere else.
	Overlay []Write
}

// Halt ends the run, not just its path: tasks that would have followed are dropped and
// named in the StepCommitted event. Branches of the node are not evaluated.
type Halt struct {
	// Value is the result of the run: Result.Value. It must be storable as Register says.
	Value any
}

// Node is one node. Give it a Run, or a child Graph with In and Out, or both: then Run
// calls the child with Call. A Run with Children calls them with CallChild.
type Node struct {
	// Name is unique in the graph. It is not empty and not End, and has no '/', '#' or
	// '[': these build paths.
	Name string

	// Kind is a word for pictures and events, such as "llm" or "script".
	Kind string

	// Title is for pictures; if empty, they show Name.
	Title string

	// Doc says in one or two sentences, for people, what the node is for.
	Doc string

	// Run is the body. If nil, the node only runs its child Graph.
	Run Func

	// CheckAnswer returns why an answer to a question of the node is refused, in words
	// for people, or nil. It is called before the answer is recorded and after the
	// check of the question's type and options: an answer that Resume refuses changes
	// nothing, and an answer given ahead that is refused opens the question with
	// Question.Rejected. Answer.Value is the value decoded from JSON. Answer.ID is
	// empty if an answer given ahead does not name the question itself; if the question
	// also has options, a refused answer stays for later questions. CheckAnswer has no
	// state and must be pure: another process than the one that asked may call it. If
	// nil, every answer is accepted.
	CheckAnswer func(q Question, a Answer) error

	// Graph is the child, which runs once in a task: see Call. If nil, there is none.
	Graph *Graph

	// In returns the child's first writes; if nil, there are none. It must be pure: it
	// may run again. Only a node without Run may have it.
	In func(State) ([]Write, error)

	// Out makes the node's update from the state before the step and the child's outcome;
	// if nil, the node writes nothing. It must be pure. Only a node without Run may have
	// it.
	Out func(State, Child) (Update, error)

	// Inherit lets the child read those keys of the parent that it has not written
	// itself.
	Inherit bool

	// Children are kinds of children that run under names, several at once: see
	// CallChild. A node with Children needs a Run, and has no Graph.
	Children map[string]ChildGraph

	// Routes are the names that Goto and Send may use, in addition to End.
	Routes []string

	// AnyRoute lets Goto and Send name every node of the graph. Routes is then not
	// needed.
	AnyRoute bool

	// Ends are further names for Goto and Send: a name of this node's own to a target.
	Ends map[string]string

	// OnError names the node that runs when this one has failed permanently: see Causes. Each task of a Send that fails
	// gets a task of that node with the same overlay. With End, the failure ends the path, and Result.Failures lists
	// it. If empty, the failure ends the run.
	OnError string

	// OnErrorIf reports whether OnError applies to a failure: one that it does not apply to ends the run. If nil, it
	// applies to all. It must be pure; a panic in it is a failure of the node.
	OnErrorIf func(error) bool

	// Timeout is the longest time of one attempt. Then its context ends, and the attempt
	// fails with ErrTimeout. If 0, there is no limit.
	Timeout time.Duration

	// Retry says when another attempt follows a failed one. If Attempts is 0,
	// Runner.Retry applies.
	Retry Retry

	// Hooks are called around the attempts of this node, inside those of Def.Hooks.
	Hooks []Hooks

	// Cache lets the node be skipped if it has run with the same input before. If nil,
	// or if the Runner has no Cache, it always runs.
	Cache *CachePolicy

	// BreakBefore and BreakAfter stop the run at the node, Paused: see Break.
	BreakBefore, BreakAfter bool

	// MaxVisits is the number of steps of a run in which the node may run; one more is a
	// *LimitError. If 0, Def.MaxVisits applies.
	MaxVisits int

	// Quiet says that Run returns soon, even if its context ends, and does not use
	// Emit. It fits nodes that compute, ask or choose, but not calls of models or
	// programs. If events are read, its steps cost less, because it runs on the
	// reader's goroutine. Then what it emits is delivered when it has returned, and
	// Runner.HungAfter does not apply to it. Quiet is ignored for nodes with children.
	Quiet bool
}

// Retry says when a failed attempt of a node is followed by another. Attempts that fail
// write nothing, and all attempts see the same input; effects that succeeded are not
// repeated. A waiting, paused or cancelled node is never retried.
type Retry struct {
	// Attempts is the largest number of attempts. 1 means no retry. 0 means no retry, or
	// what Runner.Retry says.
	Attempts int

	// Delay is the pause before the second attempt. If 0, attempts follow at once.
	Delay time.Duration

	// Factor multiplies the delay from attempt to attempt. If 0, it is 2.
	Factor float64

	// MaxDelay is the longest pause. If 0, it is 30 s.
	MaxDelay time.Duration

	// Jitter is the share of each pause that is random, from 0 to 1. The same task and
	// attempt get the same pause in every process.
	Jitter float64

	// Within is the time after the start of the first attempt from which no other one
	// starts. If 0, there is no limit.
	Within time.Duration

	// If reports whether an error is worth another attempt. If nil, every error is. A
	// panic in it is an error of the node.
	If func(error) bool
}

// Edge leads from nodes to nodes. With one From it is taken whenever that node is done;
// with Pick only the targets of the labels that it returns are taken. With several From
// it is a join: it is taken once when all of them have been done since it was last
// taken.
type Edge struct {
	// From names the sources.
	From []string

	// To names the targets; a join has exactly one. An edge with Pick has Cases instead.
	To []string

	// Pick returns the labels of the targets that are taken. It is called with the state
	// after the step, and must be pure. If nil, all of To are taken.
	Pick func(State) ([]string, error)

	// Cases are the targets by label. The label "" means that no target is taken, unless
	// Cases has it.
	Cases map[string]string
}

// Def is a graph as plain data. Compile checks it.
type Def struct {
	// Name is the name of the graph, for people.
	Name string

	// Version is part of the digest: change it when the meaning of nodes changes.
	Version string

	// Migrations say how runs that were started with earlier versions continue with this one: from each entry to the next, and from the last one to this
	// graph. A resume whose run they cover applies them first, in one record, and needs no AcceptChanges.
	Migrations []Migration

	// Keys are the values of the state.
	Keys []AnyKey

	// Open makes a key that Keys does not list, so that nodes may write names that are
	// not declared. It must be pure. If nil, unknown keys are errors.
	Open func(name string) AnyKey

	// First are the first values of keys. They are folded when a thread starts, or a
	// child is called, before what the caller sets.
	First []Write

	// Nodes are the nodes. The writes of a step are folded in their order.
	Nodes []Node

	// Edges are the connections that nodes do not name themselves.
	Edges []Edge

	// Hooks are called around every node, but not around nodes of child graphs.
	Hooks []Hooks

	// Defaults are for the nodes that do not set them, but not for those of child graphs.
	Defaults Defaults

	// Start names the nodes that run first, in one step.
	Start []string

	// Finally names the node that runs, once, when a run ends without being done: after a failure that no node
	// handles, after a limit (Timeout, MaxSteps, MaxVisits), after Resume.Cancel. It sees the state of the last step, and
	// Cause and Causes say what happened. It cannot change the end: the run is then CleanedUp, or Abandoned if it was cancelled, its
	// error is an *EndingError, and it cannot be resumed. A crash, a pause and the end of the context are no ends: the run continues where it was, in
	// its Finally too. If the node itself fails, the run has Failed, and a resume repeats the node. No edge leads to it or
	// away from it, and Timeout does not hold for it. That of a child graph runs when the child fails; the next attempt of
	// its node then starts the child from its beginning. If empty, a failed run can be resumed.
	Finally string

	// MaxSteps is the largest number of steps of a run. If 0, it is 10,000,000.
	MaxSteps int

	// MaxVisits is the number of steps of a run in which one node may run. If 0, there
	// is no limit.
	MaxVisits int

	// Concurrency is the largest number of tasks of a step that run at once. If 0, there
	// is no limit.
	Concurrency int

	// Timeout is the longest active time of a run, without the time it waits for people.
	// The run then ends as TimedOut. That of a child starts at 0 again when its node is
	// retried or a failed run is resumed. If 0, there is no limit.
	Timeout time.Duration

	// StepTimeout is the longest time of one step. Its tasks then fail with ErrTimeout,
	// and their OnError is taken. If 0, there is no limit.
	StepTimeout time.Duration

	// MustHalt says that only a Halt ends a run successfully: to run out of tasks is a
	// *StuckError.
	MustHalt bool

	// FailFast cancels the siblings of a failed task. Otherwise they finish and are
	// recorded.
	FailFast bool
}

// NewEdge returns the plain edge from a node to others: Edge{From: {from}, To: to}.
func NewEdge(from string, to ...string) Edge { return Edge{From: []string{from}, To: to} }

// EdgeKind says how a connection of a [Structure] is taken at run time.
type EdgeKind string

// The kinds of edges.
const (
	// EdgePlain is always taken when its source is done.
	EdgePlain EdgeKind = "edge"
	// EdgeBranch is one possible target of a conditional edge; its label is the case that picks it.
	EdgeBranch EdgeKind = "branch"
	// EdgeJoin is one source of a join: the target starts when every source of the group is done.
	EdgeJoin EdgeKind = "join"
	// EdgeRoute is a target that a node may name itself.
	EdgeRoute EdgeKind = "route"
	// EdgeError is taken when the source has failed.
	EdgeError EdgeKind = "error"
)

// Structure is the shape of a graph as plain data: what is drawn, exported and shown in
// a studio. It contains nothing that runs and has no methods. The order of its slices
// is the order of declaration, so equal graphs give equal bytes.
type Structure struct {
	// Name is the name of the graph.
	Name string `json:"name,omitempty"`
	// Start names the nodes that run first.
	Start []string `json:"start,omitempty"`
	// Finally names the node that runs after an end without success; empty: there is none.
	Finally string `json:"finally,omitempty"`
	// Nodes are the nodes of this graph, without those of its children.
	Nodes []NodeInfo `json:"nodes,omitempty"`
	// Edges are the connections between these nodes, and from them to [End].
	Edges []EdgeInfo `json:"edges,omitempty"`
}

// NodeInfo describes one node of a [Structure].
type NodeInfo struct {
	// Name is unique within its Structure.
	Name string `json:"name"`
	// Kind is a word such as "llm", "script" or "approval"; empty for a plain function.
	Kind string `json:"kind,omitempty"`
	// Title is shown instead of the name if it is set.
	Title string `json:"title,omitempty"`
	// Doc says in a sentence what the node is for.
	Doc string `json:"doc,omitempty"`
	// AnyRoute reports whether the node may name every node of the Structure as the
	// next one; there are no edges for that.
	AnyRoute bool `json:"any_route,omitempty"`
	// Child is the graph that the node runs, nil for every other node.
	Child *Structure `json:"child,omitempty"`
	// Children are the graphs that the node may run under names, by kind; nil for every other node.
	Children map[string]Structure `json:"children,omitempty"`
}

// EdgeInfo describes one connection of a [Structure].
type EdgeInfo struct {
	// From names a node of the same Structure.
	From string `json:"from"`
	// To names a node of the same Structure, or is [End].
	To string `json:"to"`
	// Label is the case, option or reason for which the edge is taken; empty for an
	// unconditional edge.
	Label string `json:"label,omitempty"`
	// Kind says how the edge is taken.
	Kind EdgeKind `json:"kind"`
	// Join groups the sources of one join: edges with Kind "join", the same To and the same Join belong together.
	// It is 0 for every other edge.
	Join int `json:"join,omitempty"`
}

// Structure returns the shape of the graph as plain data, children included.
func (g *Graph) Structure() Structure {
	s := Structure{Name: g.def.Name, Start: slices.Clone(g.def.Start), Finally: g.def.Finally}
	for i := range g.nodes {
		n := &g.nodes[i]
		info := NodeInfo{Name: n.Name, Kind: n.Kind, Title: n.Title, Doc: n.Doc, AnyRoute: n.AnyRoute}
		if n.Graph != nil {
			child := n.Graph.Structure()
			info.Child = &child
		}
		for kind, sub := range n.Children {
			fold.SetEntry(&info.Children, kind, sub.Graph.Structure())
		}
		s.Nodes = append(s.Nodes, info)
		s.Edges = append(s.Edges, g.outgoingEdges(n)...)
	}
	for i, j := range g.joins {
		for _, from := range j.from {
			s.Edges = append(s.Edges, EdgeInfo{From: from, To: g.nameOf(j.to), Kind: EdgeJoin, Join: i + 1})
		}
	}
	return s
}

// packStructure returns the structure and the keys as a journal holds them.
func (g *Graph) packStructure() []byte {
	keys := map[string][]structure.Key{}
	versions := map[string]string{"": g.def.Version}
	g.listKeys("", keys, versions)
	return structure.PackGraph(g.Structure(), keys, versions)
}

// listKeys adds the keys and versions of the graph and of its children.
func (g *Graph) listKeys(path string, keys map[string][]structure.Key, versions map[string]string) {
	if g.def.Version != "" {
		versions[path] = g.def.Version
	}
	for _, k := range g.table.keys {
		keys[path] = append(keys[path], k.describe())
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.Graph != nil {
			n.Graph.listKeys(path+n.Name+"/", keys, versions)
		}
		for kind, sub := range n.Children {
			sub.Graph.listKeys(path+n.Name+"#"+kind+"/", keys, versions)
		}
	}
}

// outgoingEdges lists the edges that leave a node, except joins.
func (g *Graph) outgoingEdges(n *compiledNode) (es []EdgeInfo) {
	for _, to := range n.to {
		es = append(es, EdgeInfo{From: n.Name, To: g.nameOf(to), Kind: EdgePlain})
	}
	for _, p := range n.picks {
		for _, label := range slices.Sorted(maps.Keys(p.cases)) {
			es = append(es, EdgeInfo{From: n.Name, To: g.nameOf(p.cases[label]), Label: label, Kind: EdgeBranch})
		}
	}
	for _, r := range n.Routes {
		es = append(es, EdgeInfo{From: n.Name, To: r, Kind: EdgeRoute})
	}
	for _, label := range slices.Sorted(maps.Keys(n.Ends)) {
		es = append(es, EdgeInfo{From: n.Name, To: n.Ends[label], Label: label, Kind: EdgeRoute})
	}
	if n.OnError != "" {
		es = append(es, EdgeInfo{From: n.Name, To: n.OnError, Kind: EdgeError})
	}
	return es
}

// CachePolicy lets the engine skip a node that has run with the same input before, in
// any run. It is for pure nodes: their effects, questions and events do not happen
// again.
type CachePolicy struct {
	// Keys are the input: what the result depends on. There must be at least one.
	Keys []AnyKey

	// Version is part of the identity: change it when the node's meaning changes. So are
	// Def.Version and the structure of the graph.
	Version string

	// TTL is how long an update may be used. If 0, it does not expire.
	TTL time.Duration
}

// Cache keeps the updates of nodes that have a CachePolicy. Implementations must be
// safe for concurrent use. An error of the cache is a failure of the node.
type Cache interface {
	// Get returns a value that has not expired.
	Get(ctx context.Context, key string) (value []byte, found bool, err error)
	// Set stores a value; with ttl 0 it does not expire. Set must not keep a reference
	// to value.
	Set(ctx context.Context, key string, value []byte, ttl time.Duration) error
	// Clear removes all keys that begin with prefix: see CacheKey.
	Clear(ctx context.Context, prefix string) error
}
