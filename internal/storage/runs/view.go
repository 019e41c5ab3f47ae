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

// A Usage is what the journal of a run says of its state and of what its models have replied, from one pass over it: now
// or at an earlier point. What its methods return is made of what was read, and of what came after an earlier point,
// which they read when it is asked for. It is not safe for concurrent use.
type Usage struct {
	*Detail

	archive *Archive
	store   *Store
	place   runRef           // of the run; of a turn of a session, first is the start that was read
	turns   bool             // each start begins another run: that of the next turn
	named   bool             // it began with the start of the run; of a copied turn, that is elsewhere
	reading *history.Reading // of the thread
	limit   int64            // the last record that counts; 0: the newest
	parts   *parts           // of a View; nil: only what models have replied is wanted
	models  Calls            // of the whole run, also after limit
	points  []Checkpoint     // of the thread, oldest first
}

// A View is what the journal of a run says, from one pass over it: a [Usage], and what happened in the run until then,
// the calls of its tools, and the parts that worked. Reading the tree also reads other runs that are parts of this one.
// It is not safe for concurrent use.
type View struct {
	Usage
}

// ReadView reads all that the journal of a run says, now or at RUN@AT: see [Archive.ReadRunDetail]. It passes over the
// journal once.
func (a *Archive) ReadView(ctx context.Context, point string) (*View, error) {
	u, err := a.readUsage(ctx, point, newParts())
	if err != nil {
		return nil, err
	}
	return &View{*u}, nil
}

// ReadUsage is ReadView without what happened in the run.
func (a *Archive) ReadUsage(ctx context.Context, point string) (*Usage, error) {
	return a.readUsage(ctx, point, nil)
}

// ReadSession is ReadView now, and for the name of the thread of a session it has what happened in all its runs.
func (a *Archive) ReadSession(ctx context.Context, id string) (*View, error) {
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return nil, err
	}
	u := newUsage(a, st, found, newParts())
	u.turns = false
	u.named = true
	u.limit = found.last
	if err := u.readFirst(ctx); err != nil {
		return nil, err
	}
	return &View{*u}, nil
}

func (a *Archive) readUsage(ctx context.Context, point string, p *parts) (*Usage, error) {
	id, at, err := SplitPoint(point)
	if err != nil {
		return nil, err
	}
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return nil, err
	}
	u := newUsage(a, st, found, p)
	u.limit = cmp.Or(at, found.last)
	if err := u.readFirst(ctx); err != nil {
		return nil, err
	}
	return u, u.findOriginal(ctx)
}

// newUsage returns what is known of a run that has read nothing.
func newUsage(a *Archive, st *Store, at runRef, p *parts) *Usage {
	_, _, kept := SessionOf(at.thread)
	return &Usage{
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
func (u *Usage) readFirst(ctx context.Context) error {
	if err := u.readRecords(ctx, u.limit); err != nil {
		return u.store.pointError(ctx, journal.Point{Thread: u.place.thread, Seq: u.limit}, err)
	}
	return u.describeRun(ctx)
}

// Update reads what the run has recorded since the view was read, and only that, as long as no other turn of its
// session has started. A view of an earlier point does not change. After an error, the view must not be used.
func (u *Usage) Update(ctx context.Context) error {
	if u.At > 0 {
		return nil
	}
	run := u.Run
	if !u.named {
		if err := u.readAgain(ctx, u.Snapshot.Thread); err != nil || u.Run == run {
			return err
		}
		return u.readAgain(ctx, run)
	}
	if err := u.readRecords(ctx, 0); err != nil {
		return err
	}
	if err := u.describeRun(ctx); err != nil || u.Run == run {
		return err
	}
	return u.readAgain(ctx, run)
}

// readAgain makes the view that of a run, by its id or by the name of its thread.
func (u *Usage) readAgain(ctx context.Context, id string) error {
	read, err := u.archive.readUsage(ctx, id, u.emptyParts())
	if err == nil {
		*u = *read
	}
	return err
}

// emptyParts returns parts that have read nothing, if the view has parts.
func (u *Usage) emptyParts() *parts {
	if u.parts == nil {
		return nil
	}
	return newParts()
}

// readRecords adds the records of the thread that were not read yet, up to one of them (0: all). It fails with
// [journal.ErrNoPoint] if that is not there.
func (u *Usage) readRecords(ctx context.Context, upTo int64) error {
	for r, err := range u.store.Read(ctx, u.place.thread, journal.Range{After: u.reading.Head(), UpTo: upTo}) {
		if err != nil {
			return fmt.Errorf("read thread %s: %w", u.place.thread, err)
		}
		if err := u.addRecord(r); err != nil {
			return err
		}
	}
	head := u.reading.Head()
	if head > 0 && (upTo == 0 || head == upTo) {
		return nil
	}
	_, err := history.Inspect(ctx, u.store.Store, u.place.thread, upTo) // says what is wrong
	return cmp.Or(err, fmt.Errorf("%w %s: record %d", journal.ErrNoPoint, u.place.thread, upTo))
}

// addRecord adds the next record of the thread.
func (u *Usage) addRecord(r journal.Record) error {
	first := u.reading.Head() == 0
	e, c, err := u.reading.Add(r)
	if err != nil {
		return err
	}
	if e.IsCheckpoint() || first && e.Kind == journal.KindSnapshot {
		u.points = append(u.points, newCheckpoint(&e))
	}
	counts := u.limit == 0 || e.Seq <= u.limit
	if u.turns && (e.Kind == journal.KindStart || e.Kind == journal.KindFork) && u.place.containsRecord(e.Seq) {
		if counts {
			u.beginTurn(&e)
		} else {
			u.place.last = e.Seq - 1
		}
	}
	if !u.place.containsRecord(e.Seq) {
		return nil
	}
	if !counts || u.parts == nil {
		return u.addReply(&e, r.Data)
	}
	f, err := newFact(e, c, r.Data)
	if err != nil {
		return fmt.Errorf("run %s, record %d: %w", u.place.run, e.Seq, err)
	}
	u.parts.addFact(f)
	if f.reply != nil {
		u.models.addRecorded(f.reply, &e)
	}
	return nil
}

// addReply adds a record that counts only if it is the reply of a model.
func (u *Usage) addReply(e *history.Entry, data []byte) error {
	if e.Kind != journal.KindEffect || !flow.IsReply(e.ID) {
		return nil
	}
	r, err := flow.ReadReply(data)
	if err != nil {
		return fmt.Errorf("run %s, record %d: %w", u.place.run, e.Seq, err)
	}
	u.models.addRecorded(&r, e)
	return nil
}

// beginTurn begins with the next run of a session.
func (u *Usage) beginTurn(e *history.Entry) {
	u.place.run = e.What
	u.place.first = e.Seq
	u.named = e.Kind == journal.KindStart
	u.models = Calls{}
	u.parts = u.emptyParts()
}

// describeRun sets the details of the run by what was read of it.
func (u *Usage) describeRun(ctx context.Context) (err error) {
	at := journal.Point{Thread: u.place.thread, Seq: u.limit}
	again := func() (*history.Snapshot, error) {
		if err := u.readRecords(ctx, 0); err != nil {
			return nil, err
		}
		return u.reading.Snapshot(ctx, u.store.Store)
	}
	live := u.store.Store
	if u.limit > 0 {
		live = nil
	}
	snap, err := u.reading.Snapshot(ctx, live)
	if err != nil {
		return err
	}
	u.Detail, err = u.archive.newDetail(ctx, u.store, at, snap, again)
	return err
}

// findOriginal reads the run again if it is a turn of a session that is not the one that was read: a copied turn, of
// which the original may be in another thread, or a turn in whose place an earlier point of the session was named.
func (u *Usage) findOriginal(ctx context.Context) error {
	if u.named && (!u.turns || u.place.run == u.Run) {
		return nil
	}
	st, found, err := u.archive.locateRun(ctx, u.Run)
	if err != nil {
		return err
	}
	u.turns = false
	u.named = false
	if found.thread == u.place.thread && found.first == u.place.first {
		return nil
	}
	other := newUsage(u.archive, st, found, u.emptyParts())
	other.turns = false
	other.named = false
	other.limit = u.limitIn(found.thread)
	if err := other.readRecords(ctx, cmp.Or(other.limit, found.last)); err != nil {
		return err
	}
	other.Detail = u.Detail
	*u = *other
	return nil
}

// limitIn returns the last record that counts in a thread that has the run (0: all of the run do). The records of a
// branch have other numbers than those that it was copied from: of these, the ones up to the point that was copied.
func (u *Usage) limitIn(thread string) int64 {
	switch thread {
	case u.place.thread:
		return u.At
	case u.Snapshot.From.Thread:
		return u.Snapshot.From.Seq
	}
	return 0
}

// readRest reads what came after the last record that counts.
func (u *Usage) readRest(ctx context.Context) error {
	if u.limit == 0 {
		return nil
	}
	return u.readRecords(ctx, 0)
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
func (u *Usage) ReadModels(ctx context.Context) (Calls, error) {
	err := u.readRest(ctx)
	c := u.models
	c.Models = slices.Clone(c.Models)
	c.Flaws = slices.Clone(c.Flaws)
	return c, err
}

// Points returns the checkpoints of the thread, newest first, also those after the point of the view.
func (u *Usage) Points(ctx context.Context) ([]Checkpoint, error) {
	err := u.readRest(ctx)
	list := append([]Checkpoint{}, u.points...)
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
