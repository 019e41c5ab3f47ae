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

// A RunRange selects runs. The zero RunRange is all of them.
type RunRange struct {
	Prefix string // of their ids
	Below  string // only runs that come after this one, newest first
	Status string // that of [Info], or several, separated by commas; "": any
	Agent  string // "": any

	due   bool // only runs that may wait for a time
	ended bool // only runs that have ended for good
}

// EachRun returns runs, newest first. Runs are read as the loop needs them: what comes after its end costs nothing. An
// error is last. The sequence reads the store each time.
func (a *Archive) EachRun(ctx context.Context, r RunRange) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		st, err := a.StoreToRead()
		if err != nil {
			yield(Info{}, err)
			return
		}
		if st == nil {
			return
		}
		statuses := r.splitStatuses()
		w := &runWalk{
			ctx:   ctx,
			store: st,
			below: r.Below,
			jobs:  &jobSet{store: st},
			yield: func(i Info, err error) bool {
				if err == nil && (r.Status != "" && !slices.Contains(statuses, i.Status) || r.Agent != "" && i.Agent != r.Agent) {
					return true
				}
				return yield(i, err)
			},
		}
		if err := w.walkRuns(&r); err != nil {
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
	fills    bool          // lines that say nothing are written
	pending  *listedThread // of the index, taken and not passed on: another branch of its conversation may follow
	over     bool          // the loop has ended
}

// A listedThread is a thread with what its newest record says.
type listedThread struct {
	journal.ThreadInfo
	info history.RunInfo
	run  string
	err  error // its journal is damaged
	line *runLine
}

// The first page of a list is short, for callers that want only the newest runs.
const (
	firstLines = 64
	maxLines   = 2048
	mostFilled = 1000 // lines that say nothing which a list writes itself
)

// listStatuses returns the statuses of lines among which the runs of the range are; nil: all.
func (r *RunRange) listStatuses() []string {
	if r.due {
		return []string{graph.Waiting.String()}
	}
	if r.ended {
		return []string{graph.Done.String(), graph.Abandoned.String(), graph.CleanedUp.String()}
	}
	if r.Status == "" {
		return nil
	}
	list := []string{}
	for _, status := range r.splitStatuses() {
		list = append(list, recordedStatuses(status)...)
	}
	return list
}

// splitStatuses returns the statuses that the range names.
func (r *RunRange) splitStatuses() []string { return strings.Split(r.Status, ",") }

// walkRuns passes on the runs of a range.
func (w *runWalk) walkRuns(r *RunRange) error {
	index, ok := w.store.inside().(journal.Index)
	if !ok {
		for t, err := range w.store.Threads(w.ctx, r.Prefix) {
			if err == nil && isRunThread(t.Name) {
				err = w.addThread(t)
			}
			if err != nil || w.over {
				return err
			}
		}
		return w.passSessions("")
	}
	count, err := index.CountLines(w.ctx)
	if err != nil {
		return explainStoreError(w.ctx, err)
	}
	w.fills = count[""] <= mostFilled
	lines := journal.LineRange{Prefix: r.Prefix, Statuses: r.listStatuses(), Label: r.Agent}
	if err := w.addFew(index, r); err != nil {
		return err
	}
	if r.Below != "" { // sessions of which only the thread is known may have runs after it
		before := lines
		before.Statuses = []string{}
		if err := w.walkLines(index, before, sessionPrefix); err != nil {
			return err
		}
		lines.Below = r.Below
	}
	if err := w.walkLines(index, lines, ""); err != nil {
		return err
	}
	if err := w.passPending(); err != nil {
		return err
	}
	return w.passSessions("")
}

// addFew takes the lines of runs whose status is not the recorded one, if the range is those of such a status: of those
// that have ended and that a process of this machine holds nevertheless, and of those with jobs.
func (w *runWalk) addFew(index journal.Index, r *RunRange) error {
	var threads []string
	for _, status := range r.splitStatuses() {
		few, err := w.listFew(status)
		if err != nil {
			return err
		}
		threads = append(threads, few...)
	}
	slices.Sort(threads)
	listed := r.listStatuses()
	for _, thread := range slices.Compact(threads) {
		l, ok, err := index.ReadLine(w.ctx, thread)
		if err != nil {
			return explainStoreError(w.ctx, err)
		}
		d, known := decodeLine(&l)
		isThere := slices.Contains(listed, l.Status) // in the pages of lines
		if ok && known && !isThere && strings.HasPrefix(thread, r.Prefix) && (r.Below == "" || l.Order < r.Below) {
			w.sessions = append(w.sessions, *newListedLine(&l, d))
		}
	}
	return nil
}

// listFew returns the threads that may have a status which is not the recorded one.
func (w *runWalk) listFew(status string) (threads []string, err error) {
	switch status {
	case Running:
		return listLocks(w.store.Location.LockDir()), nil
	case Queued, GivenUp:
		q := QueueOf(w.store)
		if q == nil {
			return nil, nil
		}
		jobs, err := q.ListJobs(w.ctx, status == GivenUp)
		if err != nil {
			return nil, explainStoreError(w.ctx, err)
		}
		for i := range jobs {
			w.jobs.noteJob(&jobs[i])
			threads = append(threads, jobs[i].Thread)
		}
	}
	return threads, nil
}

// walkLines takes the lines of a range whose order is at least from.
func (w *runWalk) walkLines(index journal.Index, lines journal.LineRange, from string) error {
	for lines.Limit = firstLines; ; lines.Limit = min(lines.Limit*4, maxLines) {
		page, err := index.ListLines(w.ctx, lines)
		if err != nil {
			return explainStoreError(w.ctx, err)
		}
		if err := w.jobs.readJobs(w.ctx, page); err != nil {
			return err
		}
		for i := range page {
			l := &page[i]
			if l.Order < from {
				return nil
			}
			if !isRunThread(l.Thread) {
				continue
			}
			if err := w.addLine(l); err != nil || w.over {
				return err
			}
		}
		if len(page) < lines.Limit {
			return nil
		}
		lines.Below = page[len(page)-1].Order
		lines.BelowThread = page[len(page)-1].Thread
	}
}

// addLine takes the next line of the index.
func (w *runWalk) addLine(from *journal.Line) error {
	l, known := decodeLine(from)
	if !known && w.fills {
		index, _ := w.store.inside().(journal.Index)
		filled, err := fillLine(w.ctx, w.store.inside(), index, from.Thread)
		if err == nil && filled != nil { // a file that cannot be written stays as it is
			lease := from.Lease
			from = filled.encodeLine()
			from.Lease = lease
			l, known = decodeLine(from)
		}
		if _, _, kept := SessionOf(from.Thread); known && kept { // its run belongs elsewhere
			w.sessions = append(w.sessions, *newListedLine(from, l))
			return nil
		}
	}
	if !known {
		if err := w.passPending(); err != nil || w.over {
			return err
		}
		t, err := w.store.findThread(w.ctx, from.Thread)
		if err != nil || t == nil {
			return err
		}
		return w.addThread(*t)
	}
	_, _, kept := SessionOf(from.Thread)
	if kept && strings.HasPrefix(from.Order, sessionPrefix) {
		return nil // the branch before the first turn
	}
	t := newListedLine(from, l)
	if p := w.pending; p != nil && kept && p.run == t.run { // branches of a conversation: the one that was changed last
		if t.info.Updated.After(p.info.Updated) {
			w.pending = t
		}
		return nil
	}
	if err := w.passPending(); err != nil {
		return err
	}
	w.pending = t
	return nil
}

// newListedLine returns the thread of a line of the index.
func newListedLine(from *journal.Line, l *runLine) *listedThread {
	l.ApplyLease(from.Lease)
	t := &listedThread{info: l.RunInfo, run: from.Order, line: l}
	t.Name = from.Thread
	t.Lease = from.Lease
	return t
}

// passPending passes on the run of the line that was taken last.
func (w *runWalk) passPending() error {
	t := w.pending
	w.pending = nil
	if t == nil || w.over {
		return nil
	}
	if t.run > sessionPrefix { // of another program: sessions, whose names come after it, are not known yet
		w.sessions = append(w.sessions, *t)
		return nil
	}
	if err := w.passSessions(t.run); err != nil || w.over || w.below != "" && t.run >= w.below {
		return err
	}
	return w.pass(*t)
}

// findThread returns what the store lists of a thread; nil: there is no such thread.
func (s *Store) findThread(ctx context.Context, thread string) (*journal.ThreadInfo, error) {
	for t, err := range s.Threads(ctx, thread) {
		if err != nil {
			return nil, err
		}
		if t.Name == thread {
			return &t, nil
		}
	}
	return nil, nil
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
	if err == nil && i.Status == Crashed && t.line == nil {
		i, err = w.store.describeAgain(w.ctx, t.Name, i)
	}
	if err == nil && i.Status == Crashed && t.line != nil {
		i, err = w.describeLineAgain(&t, i)
	}
	i.line = t.line
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

// describeLineAgain is describeAgain for a thread with a line.
func (w *runWalk) describeLineAgain(t *listedThread, i Info) (Info, error) {
	index, _ := w.store.inside().(journal.Index)
	from, ok, err := index.ReadLine(w.ctx, t.Name)
	if err != nil || !ok {
		return i, explainStoreError(w.ctx, err)
	}
	l, known := decodeLine(&from)
	if !known {
		return w.store.describeAgain(w.ctx, t.Name, i)
	}
	*t = *newListedLine(&from, l)
	return w.store.describeListed(w.ctx, t.info, w.jobs)
}
