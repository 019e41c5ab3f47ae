package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A View is what the journal of a run says, from one pass over it: the state of the run, or that at an earlier point,
// what happened in it until then, the calls of its models and tools, the parts that worked, and its checkpoints. What
// its methods return is made of what was read; those with a context read what is missing: what came after an earlier
// point, or other runs. A view is not safe for concurrent use.
type View struct {
	*Detail

	archive *Archive
	store   *Store
	place   runRef           // of the run; of a turn of a session, first is the start that was read
	turns   bool             // each start begins another run: that of the next turn
	named   bool             // it began with the start of the run; of a copied turn, that is elsewhere
	reading *history.Reading // of the thread
	limit   int64            // the last record that counts; 0: the newest
	parts   *parts           // nil: only what models have replied is wanted
	models  Calls            // of the whole run, also after limit
	points  []Checkpoint     // of the thread, oldest first
}

// ReadView reads all that the journal of a run says, now or at RUN@AT: see [Archive.ReadRunDetail]. It passes over the
// journal once.
func (a *Archive) ReadView(ctx context.Context, point string) (*View, error) {
	return a.readView(ctx, point, newParts())
}

// ReadUsage is ReadView without what happened in the run: only the details, ReadModels and Points are there.
func (a *Archive) ReadUsage(ctx context.Context, point string) (*View, error) {
	return a.readView(ctx, point, nil)
}

// ReadSession is ReadView now, and for the name of the thread of a session it has what happened in all its runs.
func (a *Archive) ReadSession(ctx context.Context, id string) (*View, error) {
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return nil, err
	}
	v := newView(a, st, found, newParts())
	v.turns = false
	v.named = true
	v.limit = found.last
	return v, v.readFirst(ctx)
}

func (a *Archive) readView(ctx context.Context, point string, p *parts) (*View, error) {
	id, at, err := SplitPoint(point)
	if err != nil {
		return nil, err
	}
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return nil, err
	}
	v := newView(a, st, found, p)
	v.limit = cmp.Or(at, found.last)
	if err := v.readFirst(ctx); err != nil {
		return nil, err
	}
	return v, v.findOriginal(ctx)
}

// newView returns a view of a run that has read nothing.
func newView(a *Archive, st *Store, at runRef, p *parts) *View {
	_, _, kept := SessionOf(at.thread)
	return &View{
		archive: a,
		store:   st,
		place:   at,
		turns:   kept,
		named:   !kept,
		reading: history.NewReading(at.thread),
		parts:   p,
	}
}

// readFirst reads the thread, as far as it counts.
func (v *View) readFirst(ctx context.Context) error {
	if err := v.readRecords(ctx, v.limit); err != nil {
		return v.store.pointError(ctx, journal.Point{Thread: v.place.thread, Seq: v.limit}, err)
	}
	return v.describeRun(ctx)
}

// Update reads what the run has recorded since the view was read, and only that, as long as no other turn of its
// session has started. A view of an earlier point does not change. After an error, the view must not be used.
func (v *View) Update(ctx context.Context) error {
	if v.At > 0 {
		return nil
	}
	run := v.Run
	if !v.named {
		if err := v.readAgain(ctx, v.Snapshot.Thread); err != nil || v.Run == run {
			return err
		}
		return v.readAgain(ctx, run)
	}
	if err := v.readRecords(ctx, 0); err != nil {
		return err
	}
	if err := v.describeRun(ctx); err != nil || v.Run == run {
		return err
	}
	return v.readAgain(ctx, run)
}

// readAgain makes the view that of a run, by its id or by the name of its thread.
func (v *View) readAgain(ctx context.Context, id string) error {
	read, err := v.archive.readView(ctx, id, v.emptyParts())
	if err == nil {
		*v = *read
	}
	return err
}

// emptyParts returns parts that have read nothing, if the view has parts.
func (v *View) emptyParts() *parts {
	if v.parts == nil {
		return nil
	}
	return newParts()
}

// readRecords adds the records of the thread that were not read yet, up to one of them (0: all). It fails with
// [journal.ErrNoPoint] if that is not there.
func (v *View) readRecords(ctx context.Context, upTo int64) error {
	for r, err := range v.store.Read(ctx, v.place.thread, journal.Range{After: v.reading.Head(), UpTo: upTo}) {
		if err != nil {
			return fmt.Errorf("read thread %s: %w", v.place.thread, err)
		}
		if err := v.addRecord(r); err != nil {
			return err
		}
	}
	head := v.reading.Head()
	if head > 0 && (upTo == 0 || head == upTo) {
		return nil
	}
	_, err := history.Inspect(ctx, v.store.Store, v.place.thread, upTo) // says what is wrong
	return cmp.Or(err, fmt.Errorf("%w %s: record %d", journal.ErrNoPoint, v.place.thread, upTo))
}

// addRecord adds the next record of the thread.
func (v *View) addRecord(r journal.Record) error {
	first := v.reading.Head() == 0
	e, c, err := v.reading.Add(r)
	if err != nil {
		return err
	}
	if e.IsCheckpoint() || first && e.Kind == journal.KindSnapshot {
		v.points = append(v.points, newCheckpoint(&e))
	}
	counts := v.limit == 0 || e.Seq <= v.limit
	if v.turns && (e.Kind == journal.KindStart || e.Kind == journal.KindFork) && v.place.containsRecord(e.Seq) {
		if counts {
			v.beginTurn(&e)
		} else {
			v.place.last = e.Seq - 1
		}
	}
	if !v.place.containsRecord(e.Seq) {
		return nil
	}
	if !counts || v.parts == nil {
		return v.addReply(&e, r.Data)
	}
	f, err := newFact(e, c, r.Data)
	if err != nil {
		return fmt.Errorf("run %s, record %d: %w", v.place.run, e.Seq, err)
	}
	v.parts.addFact(f)
	if f.reply != nil {
		v.models.addRecorded(f.reply, &e)
	}
	return nil
}

// addReply adds a record that counts only if it is the reply of a model.
func (v *View) addReply(e *history.Entry, data []byte) error {
	if e.Kind != journal.KindEffect || !flow.IsReply(e.ID) {
		return nil
	}
	r, err := flow.ReadReply(data)
	if err != nil {
		return fmt.Errorf("run %s, record %d: %w", v.place.run, e.Seq, err)
	}
	v.models.addRecorded(&r, e)
	return nil
}

// beginTurn begins with the next run of a session.
func (v *View) beginTurn(e *history.Entry) {
	v.place.run = e.What
	v.place.first = e.Seq
	v.named = e.Kind == journal.KindStart
	v.models = Calls{}
	v.parts = v.emptyParts()
}

// describeRun sets the details of the run by what was read of it.
func (v *View) describeRun(ctx context.Context) (err error) {
	at := journal.Point{Thread: v.place.thread, Seq: v.limit}
	again := func() (*history.Snapshot, error) {
		if err := v.readRecords(ctx, 0); err != nil {
			return nil, err
		}
		return v.reading.Snapshot(ctx, v.store.Store)
	}
	live := v.store.Store
	if v.limit > 0 {
		live = nil
	}
	snap, err := v.reading.Snapshot(ctx, live)
	if err != nil {
		return err
	}
	v.Detail, err = v.archive.newDetail(ctx, v.store, at, snap, again)
	return err
}

// findOriginal reads the run again if it is a turn of a session that is not the one that was read: a copied turn, of
// which the original may be in another thread, or a turn in whose place an earlier point of the session was named.
func (v *View) findOriginal(ctx context.Context) error {
	if v.named && (!v.turns || v.place.run == v.Run) {
		return nil
	}
	st, found, err := v.archive.locateRun(ctx, v.Run)
	if err != nil {
		return err
	}
	v.turns = false
	v.named = false
	if found.thread == v.place.thread && found.first == v.place.first {
		return nil
	}
	other := newView(v.archive, st, found, v.emptyParts())
	other.turns = false
	other.named = false
	other.limit = v.limitIn(found.thread)
	if err := other.readRecords(ctx, cmp.Or(other.limit, found.last)); err != nil {
		return err
	}
	other.Detail = v.Detail
	*v = *other
	return nil
}

// limitIn returns the last record that counts in a thread that has the run (0: all of the run do). The records of a
// branch have other numbers than those that it was copied from: of these, the ones up to the point that was copied.
func (v *View) limitIn(thread string) int64 {
	switch thread {
	case v.place.thread:
		return v.At
	case v.Snapshot.From.Thread:
		return v.Snapshot.From.Seq
	}
	return 0
}

// readRest reads what came after the last record that counts.
func (v *View) readRest(ctx context.Context) error {
	if v.limit == 0 {
		return nil
	}
	return v.readRecords(ctx, 0)
}

// Path returns the nodes of the run's own graph that it has entered. Those of a parallel step are in a list.
func (v *View) Path() []any { return v.parts.path.listSteps(v.Snapshot.Status) }

// Moments returns what happened in the run, oldest first. It leaves out records that say nothing to people, such as the
// start of an effect whose result is recorded.
func (v *View) Moments() []Moment { return v.parts.story.listMoments() }

// ToolCalls returns the calls of tools that the models of the run have requested, in the order of the requests.
func (v *View) ToolCalls() []ToolCall { return v.parts.calls.listCalls(v.Snapshot.Values) }

// Searches returns the searches in knowledge bases that the run has made, with their results, in order.
func (v *View) Searches() []flow.Search { return slices.Clip(v.parts.searches) }

// ReadModels returns the model calls of the run, those of earlier drives too. Of a view of an earlier point, it returns
// all that the run has made.
func (v *View) ReadModels(ctx context.Context) (Calls, error) {
	err := v.readRest(ctx)
	c := v.models
	c.Models = slices.Clone(c.Models)
	c.Flaws = slices.Clone(c.Flaws)
	return c, err
}

// Points returns the checkpoints of the thread, newest first, also those after the point of the view.
func (v *View) Points(ctx context.Context) ([]Checkpoint, error) {
	err := v.readRest(ctx)
	list := append([]Checkpoint{}, v.points...)
	slices.Reverse(list)
	return list, err
}

// ReadStory returns the [View.Moments] of a run up to a record (0: the newest), without its state: of a session, those
// of all its runs.
func (a *Archive) ReadStory(ctx context.Context, id string, at int64) ([]Moment, error) {
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if at > 0 {
		found.last = at
	}
	p := newParts()
	last := int64(0)
	span := journal.Range{After: max(0, found.first-1), UpTo: found.last}
	for r, err := range journal.Records(ctx, st, found.thread, span) {
		if err == nil && last > 0 && r.Seq != last+1 {
			err = &journal.DamagedError{Thread: found.thread, Seq: last + 1, Err: errMissing}
		}
		if err != nil {
			return nil, err
		}
		last = r.Seq
		e, err := history.DecodeEntry(r)
		if err != nil {
			return nil, &journal.DamagedError{Thread: found.thread, Seq: r.Seq, Kind: r.Kind, Err: err}
		}
		f, err := readFact(e, r)
		if err != nil {
			return nil, fmt.Errorf("run %s, record %d: %w", found.run, r.Seq, err)
		}
		p.addFact(f)
	}
	return p.story.listMoments(), nil
}
