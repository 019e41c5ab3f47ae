package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
)

// Statuses of a run besides those of the engine.
const (
	Running = "running" // a process drives it
	Crashed = "crashed" // no process drives it, and the last one did not say that it stopped
)

// RunInfo is a line of a listing of runs.
type RunInfo struct {
	Run       string         `json:"run"`
	Agent     string         `json:"agent"`
	Graph     string         `json:"graph,omitempty"`
	Status    string         `json:"status"`
	Started   time.Time      `json:"started"`
	Updated   time.Time      `json:"updated"`
	PID       int            `json:"pid,omitempty"` // of the process that drives it, where it is known
	Questions []OpenQuestion `json:"questions"`
	Reason    string         `json:"reason,omitempty"` // of a failure
	From      *At            `json:"from,omitempty"`   // of a fork: what was copied
	Final     bool           `json:"-"`
}

// OpenQuestion is a question as listings show it.
type OpenQuestion struct {
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
}

// Runs lists the runs whose ids begin with prefix, newest first.
func (p *Process) Runs(ctx context.Context, prefix string) ([]RunInfo, error) {
	st, err := p.existing()
	if errors.Is(err, errNoStore) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var infos []RunInfo
	for t, err := range st.Threads(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		d, err := graph.Describe(t)
		if err != nil {
			return nil, err
		}
		infos = append(infos, st.info(d))
	}
	return infos, nil
}

// Family is Runs with each fork below the run that it was forked from, and how
// deep below: the runs that were not forked newest first, the forks of one run by
// where they were forked.
func (p *Process) Family(ctx context.Context) (infos []RunInfo, depths []int, err error) {
	st, err := p.existing()
	if errors.Is(err, errNoStore) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	trees, err := graph.Lineage(ctx, st, "")
	var add func(b graph.Branch, depth int)
	add = func(b graph.Branch, depth int) {
		infos, depths = append(infos, st.info(b.RunInfo)), append(depths, depth)
		for _, fork := range b.Forks {
			add(fork, depth+1)
		}
	}
	for _, b := range slices.Backward(trees) {
		add(b, 0)
	}
	return infos, depths, err
}

func (j *journals) info(d graph.RunInfo) RunInfo {
	i := RunInfo{Run: d.Thread, Agent: d.Label, Graph: d.Graph, Status: d.Status.String(), Started: d.Started, Updated: d.Updated,
		Questions: []OpenQuestion{}, Reason: flow.PlainReason(d.Reason), Final: d.Status.Final()}
	for _, q := range d.Questions {
		i.Questions = append(i.Questions, OpenQuestion{q.ID, q.Prompt})
	}
	if d.From.Thread != "" {
		i.From = &At{d.From.Thread, d.From.Seq}
	}
	if pid, yes := driven(j.locks(), d.Thread); yes {
		i.Status, i.PID, i.Final = Running, pid, false
	}
	return i
}

// lookUp finds a run by its id or a unique prefix of it.
func (p *Process) lookUp(ctx context.Context, id string) (*journals, string, error) {
	id = strings.ToLower(id)
	st, err := p.existing()
	if err != nil && !errors.Is(err, errNoStore) {
		return nil, "", err
	}
	var found []string
	if err == nil && id != "" {
		for t, err := range st.Threads(ctx, id) {
			if err != nil {
				return nil, "", err
			}
			if t.Name == id {
				return st, id, nil
			}
			found = append(found, t.Name)
		}
	}
	switch len(found) {
	case 1:
		return st, found[0], nil
	case 0:
		return nil, "", stale("see the runs with: raddle runs ls", "unknown run %q: none is kept in %s", id, p.Dirs.Short(strings.TrimPrefix(p.StoreURL(), "sqlite:")))
	}
	slices.Reverse(found)
	if len(found) > 5 {
		found = append(found[:5], "...")
	}
	return nil, "", stale("give more letters of it", "run %q is not the only one: %s", id, strings.Join(found, ", "))
}

// RunDetail is everything that a run's journal says of how it stands, or stood.
type RunDetail struct {
	RunInfo
	At       int64 // the record that was asked for; 0: the newest
	Snapshot *graph.Snapshot
	Record   *Record // nil: it was not started by the command line
}

// Show reads a run from its journal alone, as it stands or as it stood at RUN@AT;
// its agent need not exist any more.
func (p *Process) Show(ctx context.Context, point string) (*RunDetail, error) {
	st, at, err := p.point(ctx, point)
	if err != nil {
		return nil, err
	}
	snap, err := graph.Inspect(ctx, st, at.Thread, at.Seq)
	if err != nil {
		return nil, st.pointError(ctx, at, err)
	}
	rec, _ := decodeRecord(snap.Meta)
	d := &RunDetail{RunInfo: st.info(snap.RunInfo), At: at.Seq, Snapshot: snap, Record: rec}
	if at.Seq == 0 {
		return d, nil
	}
	now, err := p.Runs(ctx, at.Thread)
	if len(now) > 0 { // the oldest is listed last, and no other id begins with all of its own
		d.RunInfo = now[len(now)-1]
	}
	return d, err
}

// History lists the records of a run, newest first.
func (p *Process) History(ctx context.Context, id string) (string, []graph.Entry, error) {
	st, id, err := p.lookUp(ctx, id)
	if err != nil {
		return "", nil, err
	}
	var entries []graph.Entry
	for e, err := range graph.History(ctx, st, id) {
		if err != nil {
			return id, nil, err
		}
		entries = append(entries, e)
	}
	return id, entries, nil
}

// Remove deletes a run's journal for good. A run that is being driven stays.
func (p *Process) Remove(ctx context.Context, id string) (string, error) {
	st, id, err := p.lookUp(ctx, id)
	if err != nil {
		return "", err
	}
	lock, err := st.hold(id)
	if err != nil {
		return id, err
	}
	defer lock.release()
	if err := st.Prune(ctx, id, math.MaxInt64); err != nil {
		return id, fmt.Errorf("remove run %s: %w", id, err)
	}
	return id, nil
}

// LockDir is where the lock files of driven runs are, "" without any.
func (p *Process) LockDir() string {
	where, err := p.location()
	if err != nil || where.file == "" {
		return ""
	}
	return filepath.Clean((&journals{file: where.file}).locks())
}
