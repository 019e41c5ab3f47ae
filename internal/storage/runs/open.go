package runs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/foreign"
)

// OpenRun is a run with open questions for people.
type OpenRun struct {
	Info
	Since time.Time       // when the first of them was asked
	Open  []AskedQuestion // in the order in which they were asked

	at OpenPoint
}

// An AskedQuestion is an open question as the index has it.
type AskedQuestion struct {
	graph.Question
	Since time.Time // when it was asked
	Part  bool      // it is long: Prompt is its beginning, and Options, Data and Default are missing
}

// An OpenPoint is the place of a run in the list of open runs. The zero OpenPoint is before the first one.
type OpenPoint struct {
	Since  int64 // Unix microseconds; 0: before the first run
	Thread string
}

// Point returns the place of the run.
func (r *OpenRun) Point() OpenPoint { return r.at }

// ListDueRuns returns the runs that wait for a time which has come at now, the first due first. No process drives them;
// a server may be about to.
func (a *Archive) ListDueRuns(ctx context.Context, now time.Time) (due []Info, err error) {
	for r, err := range a.EachRun(ctx, RunRange{due: true}) {
		if err != nil {
			return nil, err
		}
		waits := r.Status == graph.Waiting.String() || r.Status == Queued
		if waits && !r.Due.IsZero() && !now.Before(r.Due) {
			due = append(due, r)
		}
	}
	slices.SortStableFunc(due, func(a, b Info) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Run, b.Run)) })
	return due, nil
}

// ListOpenRuns returns at most limit runs that have open questions for people, the one that has waited longest first,
// from the one after a point on; a limit of 0 is none. more says that there may be others after them. A run that a
// process drives has the status Running. It reads the index alone, and as much of it as it returns, and completes it
// before: damaged are the runs of which the index does not say what there is, because their journals cannot be read,
// newest first. They may have questions too.
func (a *Archive) ListOpenRuns(ctx context.Context, after OpenPoint, limit int) (open []OpenRun, damaged []Info, more bool, err error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return nil, nil, false, err
	}
	unlisted, damaged, err := st.readUnlisted(ctx)
	if err != nil {
		return nil, nil, false, err
	}
	w := &openWalk{archive: a, store: st, limit: limit, unlisted: unlisted}
	if err = w.findMarks(ctx); err == nil {
		err = w.walkWaiting(ctx, after)
	}
	return w.open, append(damaged, w.damaged...), w.more, err
}

// An openWalk collects runs with open questions, in the order of their waits.
type openWalk struct {
	archive  *Archive
	store    *Store
	limit    int
	unlisted []journal.Line  // that wait, and of which the index does not say it
	foreign  map[string]bool // threads that came from elsewhere, about which no one has decided

	open    []OpenRun
	damaged []Info
	more    bool
}

// findMarks finds the runs that came from elsewhere and about which no one has decided. They ask about that, whatever
// their journals say.
func (w *openWalk) findMarks(ctx context.Context) error {
	index, ok := w.store.inside().(journal.Index)
	if !ok {
		return nil
	}
	marks, err := listFewLines(ctx, index, undecidedMark)
	if err != nil {
		return err
	}
	w.foreign = map[string]bool{}
	for i := range marks {
		if marks[i].Status != undecidedMark {
			continue
		}
		thread := foreign.MarkedBy(marks[i].Thread)
		l, ok, err := index.ReadLine(ctx, thread)
		if err != nil {
			return explainStoreError(ctx, err)
		}
		d, known := decodeLine(&l)
		if !ok || !known || d.Status.Final() {
			continue
		}
		w.foreign[thread] = true
		if l.Wait == 0 {
			l.Wait = max(d.Updated.UnixMicro(), 1)
			w.unlisted = append(w.unlisted, l)
		}
	}
	return nil
}

// walkWaiting collects the runs after a point.
func (w *openWalk) walkWaiting(ctx context.Context, after OpenPoint) error {
	r := journal.WaitRange{After: after.Since, AfterThread: after.Thread, Limit: maxLines}
	if w.limit > 0 {
		r.Limit = min(w.limit+1, maxLines)
	}
	for {
		page, last, err := w.readWaiting(ctx, r)
		if err != nil {
			return err
		}
		jobs := &jobSet{store: w.store}
		if err := jobs.readJobs(ctx, page); err != nil {
			return err
		}
		for i := range page {
			if w.more = w.limit > 0 && len(w.open) == w.limit; w.more {
				return nil
			}
			if err := w.addLine(ctx, &page[i], jobs); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		r.After = page[len(page)-1].Wait
		r.AfterThread = page[len(page)-1].Thread
	}
}

// readWaiting returns the next lines that wait, and whether there are no more of them.
func (w *openWalk) readWaiting(ctx context.Context, r journal.WaitRange) (page []journal.Line, last bool, err error) {
	if index, ok := w.store.inside().(journal.Index); ok {
		if page, err = index.ListWaiting(ctx, r); err != nil {
			return nil, false, explainStoreError(ctx, err)
		}
	}
	last = len(page) < r.Limit
	order := func(a, b journal.Line) int {
		return cmp.Or(cmp.Compare(a.Wait, b.Wait), cmp.Compare(a.Thread, b.Thread))
	}
	for _, l := range w.unlisted {
		isAfter := r.After == 0 || order(l, journal.Line{Wait: r.After, Thread: r.AfterThread}) > 0
		if isAfter && (last || order(l, page[len(page)-1]) < 0) {
			page = append(page, l)
			slices.SortFunc(page, order)
		}
	}
	return page, last, nil
}

// addLine adds the run of a line, if it still asks.
func (w *openWalk) addLine(ctx context.Context, from *journal.Line, jobs *jobSet) error {
	l, known := decodeLine(from)
	if !known || !isRunThread(from.Thread) {
		return nil
	}
	l.ApplyLease(from.Lease)
	i, err := w.store.describeListed(ctx, l.RunInfo, jobs)
	if err != nil {
		return err
	}
	i.line = l
	r := OpenRun{Info: i, Since: time.UnixMicro(from.Wait), at: OpenPoint{from.Wait, from.Thread}}
	if w.foreign[from.Thread] {
		return w.addForeign(ctx, &r)
	}
	for n := range l.Asked {
		q := &l.Asked[n]
		if len(graph.ForPeople([]graph.Question{q.Question})) > 0 {
			r.Open = append(r.Open, AskedQuestion{Question: q.Question, Since: q.Since, Part: q.Part})
		}
	}
	if len(r.Open) > 0 {
		w.open = append(w.open, r)
	}
	return nil
}

// addForeign adds a run that came from elsewhere. What it asks is made from its journal.
func (w *openWalk) addForeign(ctx context.Context, r *OpenRun) error {
	d, err := w.archive.ReadRunDetail(ctx, r.threadName())
	if IsDamage(err) {
		w.damaged = append(w.damaged, damagedInfo(r.Info, err))
		return nil
	}
	if errors.As(err, new(*UnknownError)) || errors.Is(err, journal.ErrNoThread) { // it was removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	for _, q := range graph.ForPeople(d.Snapshot.Questions) {
		r.Open = append(r.Open, AskedQuestion{Question: q, Since: r.Since})
	}
	if len(r.Open) > 0 {
		w.open = append(w.open, *r)
	}
	return nil
}

// readUnlisted writes the lines that say nothing. It returns those that wait and cannot be written, and the runs whose
// journals cannot be read, newest first.
func (s *Store) readUnlisted(ctx context.Context) (unlisted []journal.Line, damaged []Info, err error) {
	index, ok := s.inside().(journal.Index)
	if !ok {
		for t, err := range s.Threads(ctx, "") {
			if err != nil {
				return nil, nil, err
			}
			if err := s.readUnlistedThread(ctx, nil, &journal.Line{Thread: t.Name, Lease: t.Lease}, &unlisted, &damaged); err != nil {
				return nil, nil, err
			}
		}
		return unlisted, damaged, nil
	}
	for r := (journal.LineRange{Statuses: []string{}, Limit: firstLines}); ; {
		page, err := index.ListLines(ctx, r)
		if err != nil {
			return nil, nil, explainStoreError(ctx, err)
		}
		for i := range page {
			if err := s.readUnlistedThread(ctx, index, &page[i], &unlisted, &damaged); err != nil {
				return nil, nil, err
			}
		}
		if len(page) < r.Limit {
			return unlisted, damaged, nil
		}
		r.Below = page[len(page)-1].Order
		r.BelowThread = page[len(page)-1].Thread
	}
}

// readUnlistedThread reads a thread of which only its name and its lease are known.
func (s *Store) readUnlistedThread(ctx context.Context, index journal.Index, from *journal.Line, unlisted *[]journal.Line, damaged *[]Info) error {
	if !isRunThread(from.Thread) {
		if index != nil {
			_, _ = fillLine(ctx, s.inside(), index, from.Thread) // a file that cannot be written stays as it is
		}
		return nil
	}
	l := newRunLine(from.Thread)
	err := l.catchUp(ctx, s.inside(), 0)
	if IsDamage(err) {
		*damaged = append(*damaged, damagedInfo(Info{Run: from.Thread}, err))
		return nil
	}
	line := l.encodeLine()
	if err != nil || l.Head == 0 || line == nil {
		return explainStoreError(ctx, err)
	}
	if index != nil && index.FillLine(ctx, *line) == nil {
		return nil
	}
	if line.Wait > 0 {
		line.Lease = from.Lease
		*unlisted = append(*unlisted, *line)
	}
	return nil
}
