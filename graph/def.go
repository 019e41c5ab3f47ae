package graph

import (
	"context"
	"maps"
	"slices"
	"time"
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
	Writes []Write
	Goto   []string // targets instead of the node's edges; nil: follow the edges
	Send   []Send   // additional tasks, together with the edges or Goto
	Halt   *Halt    // ends the run at the end of this step

	failed string // the failure that OnError handles
}

// Put returns an Update that only writes.
func Put(w ...Write) Update { return Update{Writes: w} }

// Send starts one task of a node with its own overlay: writes folded into the state
// that only this task sees.
type Send struct {
	To      string
	Overlay []Write
}

// Halt ends the run, not just its path: tasks that would have followed are dropped and
// named in the StepCommitted event. Branches of the node are not evaluated.
type Halt struct{ Value any }

// Node is one node. Give it a Run, or a child Graph with In and Out, or both: then Run
// calls the child with Call. A Run with Children calls them with CallChild.
type Node struct {
	Name  string // unique; not empty, not End, without '/', '#' and '[' (they build paths)
	Kind  string // for pictures and events: "llm", "script", …
	Title string // for pictures; "" means Name
	Doc   string // one or two sentences for people

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

	Graph   *Graph                             // the child
	In      func(State) ([]Write, error)       // the child's first writes; nil: none. Pure: it may run again
	Out     func(State, Child) (Update, error) // the node's update; nil: none. Pure
	Inherit bool                               // the child reads the parent's keys if it has not written them itself

	Children map[string]ChildGraph // kinds of children that run under names, several at once: see CallChild. Not together with Graph

	Routes                  []string          // what Goto and Send may name, in addition to End
	AnyRoute                bool              // Goto and Send may name every node of the graph; Routes is then not needed
	Ends                    map[string]string // further names for Goto and Send: a name of this node's own to a target
	OnError                 string            // the node that runs when this one has failed permanently; see Cause. End: the failure ends the path, and Result.Failures lists it
	Timeout                 time.Duration
	Retry                   Retry
	Hooks                   []Hooks
	Cache                   *CachePolicy // nil: never skipped
	BreakBefore, BreakAfter bool         // the run stops there, Paused: see Break

	MaxVisits int // steps of a run in which the node may run; 0: Def.MaxVisits

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
	Attempts int              // maximum number of attempts; 1: no retry; 0: no retry, or what Runner.Retry says
	Delay    time.Duration    // before the second attempt
	Factor   float64          // factor by which the delay grows; 0: 2
	MaxDelay time.Duration    // 0: 30 s
	Jitter   float64          // share of the delay that is random, 0 to 1
	Within   time.Duration    // no attempt starts later than this after the first; 0: no limit
	If       func(error) bool // nil: every error
}

// Edge leads from nodes to nodes. With one From it is taken whenever that node is done;
// with Pick only the targets of the labels that it returns are taken. With several From
// it is a join: it is taken once when all of them have been done since it was last
// taken.
type Edge struct {
	From  []string
	To    []string
	Pick  func(State) ([]string, error) // labels; evaluated on the state after the step. Pure. "" is not a label unless Cases has it
	Cases map[string]string             // label to target
}

// Def is a graph as plain data. Compile checks it.
type Def struct {
	Name    string
	Version string // part of the digest: change it when the meaning of nodes changes
	Keys    []AnyKey
	// Open makes a key that Keys does not list, so that nodes may write names that are
	// not declared. It must be pure. If nil, unknown keys are errors.
	Open  func(name string) AnyKey
	First []Write // the first values of keys: folded when a thread starts, or a child is called, before what the caller sets
	Nodes []Node  // writes of a step are folded in the order of the nodes
	Edges []Edge
	Hooks []Hooks  // around every node; children have their own
	Start []string // several: they run in the first step together

	MaxSteps    int           // steps of a run; 0: 10,000,000
	MaxVisits   int           // steps of a run in which one node may run; 0: no limit
	Concurrency int           // tasks of a step at once; 0: no limit
	Timeout     time.Duration // active time of a run, without the time it waits for people; of a child it starts at 0 again when its node is retried or a failed run is resumed; 0: none
	StepTimeout time.Duration // of one step; its tasks then fail with ErrTimeout, and their OnError is taken; 0: none
	MustHalt    bool          // only a Halt ends a run successfully; running out of tasks is a *StuckError
	FailFast    bool          // the first failed task cancels its siblings; else they finish and are recorded
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
	s := Structure{Name: g.def.Name, Start: slices.Clone(g.def.Start)}
	for i := range g.nodes {
		n := &g.nodes[i]
		info := NodeInfo{Name: n.Name, Kind: n.Kind, Title: n.Title, Doc: n.Doc, AnyRoute: n.AnyRoute}
		if n.Graph != nil {
			child := n.Graph.Structure()
			info.Child = &child
		}
		for kind, sub := range n.Children {
			setEntry(&info.Children, kind, sub.Graph.Structure())
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

// outgoingEdges lists the edges that leave a node, except joins.
func (g *Graph) outgoingEdges(n *cnode) (es []EdgeInfo) {
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
