package server

import (
	"context"
	"slices"
	"strings"
	"sync"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/failure"
)

// SetBreaks replaces the places at which a run stops, Paused, when the service drives it from now on. A drive that works already keeps its
// own. Each place names a node of the run's graph. The service keeps the places until the run has ended, or the service itself.
func (s *Service) SetBreaks(ctx context.Context, id string, breaks []graph.Break) error {
	if err := s.RequireScope(ctx, ScopeStart); err != nil {
		return err
	}
	d, err := s.findRun(ctx, id)
	if err != nil {
		return err
	}
	if d.Final {
		return failure.NewStale("fork it, and set the breaks of the copy", "run %s is %s: it does not stop anywhere", d.Run, d.Status)
	}
	found, err := s.FindBreaks(ctx, id, breaks)
	if err != nil {
		return err
	}
	s.breaks.set(d.Run, found)
	return nil
}

// FindBreaks returns breaks with the paths that their nodes have in the engine: the node that a map runs is below the map. Their order is
// that of the paths, and each is there once. It refuses nodes that the graph of the run does not have.
func (s *Service) FindBreaks(ctx context.Context, id string, breaks []graph.Break) ([]graph.Break, error) {
	if len(breaks) == 0 {
		return nil, nil
	}
	d, err := s.findRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.Record == nil {
		return nil, failure.NewStale("", "run %s cannot stop at a node: raddle did not start it", d.Run)
	}
	a, err := s.process.Load(app.LoadRequest{Agent: d.Record.Dir, Model: d.Record.Override, Variables: d.Record.Variables})
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	if a.File == nil {
		return nil, failure.NewUsage("pause the run", "run %s is a conversation, which has no nodes at which it could stop", d.Run)
	}
	paths := listBreakPaths(a)
	found := slices.Clone(breaks)
	for i, b := range breaks {
		path, known := paths[b.Node]
		if !known {
			return nil, failure.NewUsage("name a node of graph.yaml", "the graph of agent '%s' has no node %q at which a run could stop", a.Name, b.Node)
		}
		found[i].Node = path
	}
	slices.SortFunc(found, compareBreaks)
	return slices.Compact(found), nil
}

// compareBreaks orders breaks by their paths; that before a node comes first.
func compareBreaks(a, b graph.Break) int {
	if c := strings.Compare(a.Node, b.Node); c != 0 || a.After == b.After {
		return c
	}
	if a.After {
		return 1
	}
	return -1
}

// listBreakPaths returns the paths of the nodes of a graph, by these paths and by the names of the nodes.
func listBreakPaths(a *flow.Agent) map[string]string {
	paths := map[string]string{}
	for _, n := range a.File.Nodes {
		paths[n.ID] = n.ID
	}
	for _, n := range a.File.Nodes {
		if n.Branch != nil {
			path := n.ID + "/" + n.Branch.To
			paths[path], paths[n.Branch.To] = path, path
		}
	}
	return paths
}

// ListBreaks returns the places that SetBreaks has set.
func (s *Service) ListBreaks(ctx context.Context, id string) ([]graph.Break, error) {
	if err := s.RequireScope(ctx, ScopeRead); err != nil {
		return nil, err
	}
	d, err := s.findRun(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.breaks.of(d.Run), nil
}

// breakSet has the places at which runs stop, by run. It is safe for concurrent use.
type breakSet struct {
	mu  sync.Mutex
	all map[string][]graph.Break
}

// set replaces the places of a run; none: they are forgotten.
func (b *breakSet) set(run string, breaks []graph.Break) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(breaks) == 0 {
		delete(b.all, run)
		return
	}
	if b.all == nil {
		b.all = map[string][]graph.Break{}
	}
	b.all[run] = breaks
}

// of returns the places of a run.
func (b *breakSet) of(run string) []graph.Break {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all[run])
}
