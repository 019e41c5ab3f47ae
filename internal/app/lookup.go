package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"raddle.dev/graph"
)

// A spot is the place of a run in the store.
type spot struct {
	thread string
	run    string
	first  int64 // its start record, if a session was searched
	last   int64 // the newest record of an earlier turn of a session; 0 if the run is the last one of the thread
}

// holds reports whether a record of the thread belongs to the run.
func (s spot) holds(seq int64) bool { return seq >= s.first && (s.last == 0 || seq <= s.last) }

// runOf returns the id of the last run of a thread.
func runOf(thread, run string) string {
	if _, _, ok := SessionOf(thread); ok {
		return run
	}
	return thread
}

// lookUp finds the thread of a run that is to be changed or continued, by its id, a
// unique prefix of it, or the thread's name.
func (p *Process) lookUp(ctx context.Context, id string) (*journals, string, error) {
	st, found, err := p.locate(ctx, id)
	if err == nil && found.last > 0 {
		agent, name, _ := SessionOf(found.thread)
		err = stale("name the session itself: "+found.thread, "run %s is an earlier turn of session '%s' of agent '%s'", found.run, name, agent)
	}
	return st, found.thread, err
}

// locate finds a run by its id, a unique prefix of it, or the name of its thread.
func (p *Process) locate(ctx context.Context, id string) (*journals, spot, error) {
	if !strings.HasPrefix(id, sessionPrefix) {
		id = strings.ToLower(id)
	}
	st, err := p.existing()
	if err != nil && !errors.Is(err, errNoStore) {
		return nil, spot{}, err
	}
	var found []spot
	if err == nil && id != "" {
		if found, err = st.matching(ctx, id); err != nil {
			return nil, spot{}, err
		}
	}
	switch len(found) {
	case 1:
		return st, found[0], nil
	case 0:
		return nil, spot{}, stale("see the runs with: raddle runs ls", "unknown run %q: there is no such run in %s", id, p.Dirs.Short(strings.TrimPrefix(p.StoreURL(), "sqlite:")))
	}
	var names []string
	for _, f := range slices.Backward(found) {
		names = append(names, f.run)
	}
	if len(names) > mostNamed {
		names = append(names[:mostNamed], "...")
	}
	return nil, spot{}, stale("type more of the id", "%q matches several runs: %s", id, strings.Join(names, ", "))
}

// mostNamed is the largest number of runs that an error names.
const mostNamed = 5

// matching returns the runs whose id, or whose thread's name, begins with id; if one
// is equal to id, only that one.
func (j *journals) matching(ctx context.Context, id string) (found []spot, err error) {
	for t, err := range j.Threads(ctx, id) {
		if err != nil {
			return nil, err
		}
		_, _, kept := SessionOf(t.Name)
		if t.Name == id {
			return []spot{{thread: id, run: id}}, nil
		}
		if !kept || strings.HasPrefix(id, sessionPrefix) {
			found = append(found, spot{thread: t.Name, run: t.Name})
		}
	}
	if strings.HasPrefix(id, sessionPrefix) {
		return found, nil
	}
	for t, err := range j.Threads(ctx, sessionPrefix) {
		if err != nil {
			return nil, err
		}
		turns, err := j.turns(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		for _, turn := range turns {
			if turn.run == id {
				return []spot{turn}, nil
			}
			if strings.HasPrefix(turn.run, id) {
				found = append(found, turn)
			}
		}
	}
	return found, nil
}

// turns returns the runs of a session that are still in its journal, newest first.
func (j *journals) turns(ctx context.Context, thread string) (list []spot, err error) {
	last := int64(0)
	for e, err := range graph.History(ctx, j, thread) {
		if err != nil {
			return nil, err
		}
		if e.Kind == graph.KindStart || e.Kind == graph.KindFork {
			list = append(list, spot{thread: thread, run: e.What, first: e.Seq, last: last})
			last = e.Seq - 1
		}
	}
	return list, nil
}
