package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
)

// Stop is a place at which a run stops.
type Stop struct {
	graph.Break
	Place string `json:"place" doc:"the node as the picture of the agent names it"`
}

// SetBreaks replaces the places at which a run stops, Paused, when a service drives it from now on. A drive that works
// already keeps its own. Each place names a node of the run's graph, or of a graph that it calls, by its path or as the
// picture names it. The places are saved, and removed when the run has ended. It returns them in the order of their
// paths.
func (s *Service) SetBreaks(ctx context.Context, id string, breaks []graph.Break) ([]Stop, error) {
	d, err := findRunFor(ctx, s, ScopeStart, id)
	if err != nil {
		return nil, err
	}
	if d.Final {
		return nil, failure.NewStale("fork it, and set the breaks of the copy", "run %s is %s: it does not stop anywhere", d.Run, d.Status)
	}
	found, err := s.FindBreaks(ctx, id, breaks)
	if err != nil {
		return nil, err
	}
	return found, s.files.writeBreaks(d.Run, found)
}

// FindBreaks returns the places that breaks name, in the order of their paths, each once. It refuses nodes that the
// graph of the run does not have.
func (s *Service) FindBreaks(ctx context.Context, id string, breaks []graph.Break) ([]Stop, error) {
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
	a, err := s.process.LoadOfRun(ctx, d.Record, d.Foreign != nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	if a.File == nil {
		return nil, failure.NewUsage("pause the run", "run %s is a conversation, which has no nodes at which it could stop", d.Run)
	}
	places := flow.ListBreakPlaces(a.Agent)
	var found []Stop
	for _, b := range breaks {
		i := slices.IndexFunc(places, func(p flow.BreakPlace) bool { return p.Place == b.Node || p.Path == b.Node })
		if i < 0 {
			return nil, failure.NewUsage("name a node of graph.yaml", "the graph of agent '%s' has no node %q at which a run could stop", a.Name, b.Node)
		}
		b.Node = places[i].Path
		found = append(found, Stop{b, places[i].Place})
	}
	slices.SortFunc(found, func(a, b Stop) int {
		after := map[bool]int{true: 1}
		return cmp.Or(cmp.Compare(a.Node, b.Node), after[a.After]-after[b.After])
	})
	return slices.Compact(found), nil
}

// ListBreaks returns the places that SetBreaks has set. A run that has ended, also in another process, stops nowhere.
func (s *Service) ListBreaks(ctx context.Context, id string) ([]Stop, error) {
	d, err := findRunFor(ctx, s, ScopeRead, id)
	if err != nil {
		return nil, err
	}
	if d.Final {
		return nil, s.files.writeBreaks(d.Run, nil)
	}
	return s.files.readBreaks(d.Run)
}

// nextBreaks returns the places at which the next drive of a run stops. Places that cannot be read stop nothing.
func (f *stateFiles) nextBreaks(run string, log *slog.Logger) (list []graph.Break) {
	stops, err := f.readBreaks(run)
	if err != nil {
		log.Error("the breaks of a run cannot be read", "run", run, "error", err)
	}
	for _, b := range stops {
		list = append(list, b.Break)
	}
	return list
}

// writeBreaks saves the places at which a run stops; none: they are removed.
func (f *stateFiles) writeBreaks(run string, stops []Stop) error {
	path := filepath.Join(f.breaks, run)
	if len(stops) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the breaks of run %s: %w", run, err)
		}
		return nil
	}
	text, err := json.Marshal(stops)
	if err == nil {
		err = writeSynced(path, text)
	}
	if err != nil {
		return &failure.Error{Kind: failure.Unavailable, Err: fmt.Errorf("save the breaks of run %s: %w", run, err), Next: noRoom}
	}
	return nil
}

// readBreaks returns the places at which a run stops.
func (f *stateFiles) readBreaks(run string) (list []Stop, err error) {
	text, err := os.ReadFile(filepath.Join(f.breaks, run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("the breaks of run %s: %w", run, err)
	}
	return list, nil
}
