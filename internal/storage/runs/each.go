package runs

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// EachRun returns the runs whose ids begin with prefix, newest first. below leaves out all runs that are not before it
// in this order; "": none. Runs are read as the loop needs them: what comes after its end costs nothing, except for one
// look at each session. An error is last. The sequence reads the store each time.
func (a *Archive) EachRun(ctx context.Context, prefix, below string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		st, err := a.StoreToRead()
		if err != nil {
			yield(Info{}, err)
			return
		}
		if st == nil {
			return
		}
		w := &runWalk{ctx: ctx, store: st, below: below, yield: yield, jobs: &jobSet{store: st}}
		for t, err := range st.Threads(ctx, prefix) {
			if err == nil && !isRunThread(t.Name) {
				continue
			}
			if err == nil {
				err = w.addThread(t)
			}
			if err != nil {
				yield(Info{}, err)
				return
			}
			if w.over {
				return
			}
		}
		if err := w.passSessions(""); err != nil {
			yield(Info{}, err)
		}
	}
}

// A runWalk passes on runs, newest first. Threads come by their names, descending: those of sessions first, whose runs
// belong between the others.
type runWalk struct {
	ctx   context.Context
	store *Store
	below string
	yield func(Info, error) bool
	jobs  *jobSet

	sessions []listedThread // that have not been passed on; sorted as soon as the first thread below their names comes
	sorted   bool
	over     bool // the loop has ended
}

// A listedThread is a thread with what its newest record says.
type listedThread struct {
	journal.ThreadInfo
	info history.RunInfo
	run  string
	err  error // its journal is damaged
}

// addThread takes the next thread.
func (w *runWalk) addThread(t journal.ThreadInfo) error {
	if t.Name > sessionPrefix {
		listed, err := w.store.readThread(w.ctx, t)
		if err == nil {
			w.sessions = append(w.sessions, listed)
		}
		return err
	}
	if err := w.passSessions(t.Name); err != nil || w.over || w.below != "" && t.Name >= w.below {
		return err
	}
	listed, err := w.store.readThread(w.ctx, t)
	if err != nil {
		return err
	}
	return w.pass(listed)
}

// passSessions passes on the runs of sessions that are newer than a run.
func (w *runWalk) passSessions(than string) error {
	if !w.sorted {
		w.sorted = true
		slices.SortStableFunc(w.sessions, func(a, b listedThread) int {
			return cmp.Or(strings.Compare(b.run, a.run), b.info.Updated.Compare(a.info.Updated))
		})
		// branches of a conversation: the one that was changed last
		w.sessions = slices.CompactFunc(w.sessions, func(a, b listedThread) bool {
			_, _, kept := SessionOf(b.Name)
			return kept && a.run == b.run
		})
	}
	for len(w.sessions) > 0 && !w.over && w.sessions[0].run > than {
		next := w.sessions[0]
		w.sessions = w.sessions[1:]
		// the branch before the first turn
		if _, _, kept := SessionOf(next.Name); kept && next.err == nil && strings.HasPrefix(next.run, sessionPrefix) {
			continue
		}
		if w.below != "" && next.run >= w.below {
			continue
		}
		if err := w.pass(next); err != nil {
			return err
		}
	}
	return nil
}

// pass passes on a run with its status.
func (w *runWalk) pass(t listedThread) error {
	var i Info
	err := t.err
	if err == nil {
		i, err = w.store.describeListed(w.ctx, t.info, w.jobs)
	}
	if err == nil && i.Status == Crashed {
		i, err = w.store.describeAgain(w.ctx, t.Name, i)
	}
	if IsDamage(err) {
		i = damagedInfo(Info{Run: t.Name}, err)
		err = nil
	}
	if err == nil {
		w.over = !w.yield(i, nil)
	}
	return err
}

// readThread reads what the newest record of a thread says.
func (s *Store) readThread(ctx context.Context, t journal.ThreadInfo) (listed listedThread, err error) {
	listed = listedThread{ThreadInfo: t, run: t.Name}
	listed.info, err = history.Describe(t)
	if err == nil {
		err = s.completeInfo(ctx, &listed.info)
	}
	if IsDamage(err) {
		listed.err = err
		return listed, nil
	}
	listed.run = RunOf(t.Name, listed.info.Run)
	return listed, err
}

// completeInfo adds the run of a session whose newest record does not name it: the oldest one counts there.
func (s *Store) completeInfo(ctx context.Context, d *history.RunInfo) error {
	if _, _, kept := SessionOf(d.Thread); !kept || d.Status != graph.Crashed && d.Status != graph.Running {
		return nil
	}
	snap, err := history.Inspect(ctx, s.Store, d.Thread, 0)
	if err == nil {
		d.Run = snap.Run
		d.Label = snap.Label
		d.Graph = snap.Graph
		d.Started = snap.Started
	}
	return err
}
