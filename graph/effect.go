package graph

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"raddle.dev/graph/internal/effectid"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/probe"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/timing"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/writer"
	"raddle.dev/graph/journal"
)

// InDoubt says what happens to an effect whose intent was recorded and whose outcome
// was not: the process died in between, the function panicked, or its context ended
// while it ran, and it is unknown whether the effect happened.
//
// A function that returns an error while its context is alive has failed, and that is
// recorded: the effect is no longer in doubt, and is called again under every policy.
type InDoubt int

// The policies. Under all but DoubtRetry, a call records its intent first.
const (
	DoubtRetry InDoubt = iota // call it again: it is read-only, idempotent, or uses EffectKey
	DoubtAsk                  // ask a person: retry, skip or fail
	DoubtSkip                 // continue with T's zero value
	DoubtFail                 // fail the node
)

// Effect describes a call whose result must survive.
type Effect struct {
	// Name says what the effect does. Concurrent effects of one task need distinct names.
	Name string

	// Key is the caller's own identity for it, for example the id of a tool call. If
	// empty, it is the ordinal among those of the name in the task.
	Key string

	// InDoubt says what happens if its outcome is unknown. The zero value is DoubtRetry.
	InDoubt InDoubt
}

// Do calls fn once and journals its result before it returns it. When the node runs
// again, after a crash, a question or a retry, Do returns the recorded result and does
// not call fn. A failure is not recorded as a result. The effect's identity is the run,
// the task, the name and the ordinal of the call, not the attempt: to get a new call on
// each retry, put Attempt(ctx) into the name.
//
// fn runs on the goroutine of the caller. Its context is made from ctx, and EffectKey and
// Note work in it. Concurrent calls of one task need distinct names. Outside a node, and
// in a goroutine that outlives it, Do returns an error and does not call fn. If T cannot be
// read again, the error is a *TypeError, and fn is not called: see Key.
func Do[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	return DoEffect(ctx, Effect{Name: name}, fn)
}

// DoEffect is Do with a description of the effect: a key of its own, and what happens if
// its outcome is unknown. Under DoubtAsk the error is then ErrWaiting, until there is an
// answer, and the node must return it; under DoubtFail it is a failure of the node.
func DoEffect[T any](ctx context.Context, e Effect, fn func(context.Context) (T, error)) (v T, err error) {
	a, ok := attemptOf(ctx)
	if !ok {
		return v, errors.New("graph: Do needs the context of a node")
	}
	if err := value.CheckType[T](); err != nil {
		return v, fmt.Errorf("effect %q: its result: %w", e.Name, err)
	}
	call, err := a.beginEffect(e)
	if err != nil {
		return v, err
	}
	defer call.finish()
	if b, ok := call.recordedResult(); ok {
		if v, err = value.Decode[T](b); err != nil {
			err = fmt.Errorf("effect %q: its recorded result cannot be read: %w; Edit or Fork the thread to make the effect again", e.Name, err)
		}
		return v, err
	}
	skip, err := call.resolveDoubt(ctx)
	if err != nil {
		return v, err
	}
	if !skip {
		in := &effectCtx{ctx, call}
		end := probe.BeginEffect(in)
		call.watch.Start(call.drive.now())
		v, err = fn(in)
		call.watch.End(call.drive.now())
		if end(); err != nil {
			call.recordFailure(ctx)
			return v, err
		}
	}
	debug := call.drive.settings.Debug
	if !debug && !call.isResultNeeded() {
		return value.ClipAs(v), nil
	}
	b, err := value.Encode(nil, v)
	if err != nil {
		return v, fmt.Errorf("effect %q: %w", e.Name, err)
	}
	if debug {
		if v, err = value.Decode[T](b); err != nil {
			return v, fmt.Errorf("effect %q: %w (what was recorded cannot be read again)", e.Name, err)
		}
	}
	return value.ClipAs(v), call.recordResult(b)
}

// Note records something about the running effect before it has a result, for example
// the id of a child process. It is durable when Note returns. After a crash
// history.Snapshot.InDoubt lists it.
func Note(ctx context.Context, note []byte) error {
	c, _ := ctx.Value(effectKey{}).(*effectCall)
	if c == nil {
		return errors.New("graph: Note needs the context of an effect")
	}
	return c.recordIntent(note)
}

// NoteFirstPart records that the first part of the result of the running effect is there, for example of a reply that
// streams: history.Entry.Timing has when. Later calls of it do nothing, and neither does one outside an effect.
func NoteFirstPart(ctx context.Context) {
	if c, _ := ctx.Value(effectKey{}).(*effectCall); c != nil {
		c.watch.NoteFirst(c.drive.now)
	}
}

// NoteRetry records that what the running effect calls has failed, and that it is called again after a wait of this
// length: history.Entry.Timing has the sum. Outside an effect it does nothing.
func NoteRetry(ctx context.Context, wait time.Duration) {
	if c, _ := ctx.Value(effectKey{}).(*effectCall); c != nil {
		c.watch.NoteRetry(wait)
	}
}

// EffectKey identifies the running effect. It is the same in every process and attempt,
// and differs after a fork or an edit: use it as an idempotency key. ctx should be the
// context that Do passes to its function. With that of the node it is the key of the
// only effect that runs there; if none or several do, it is a random text, another one
// on each call. It is "" outside a node.
func EffectKey(ctx context.Context) string {
	c, _ := ctx.Value(effectKey{}).(*effectCall)
	if c == nil {
		a, ok := attemptOf(ctx)
		if !ok {
			return ""
		}
		if c = a.onlyEffect(); c == nil {
			return rand.Text()
		}
	}
	return c.drive.run + c.drive.branch + "/" + c.frame.path + c.localID() + "/" + c.effect.Name + "/" + c.ord
}

type effectKey struct{}

// effectCtx is the context that the function of Do gets.
type effectCtx struct {
	context.Context
	call *effectCall
}

func (c *effectCtx) Value(k any) any {
	if k == (effectKey{}) {
		return c.call
	}
	return c.Context.Value(k)
}

// effectCall is one call of Do.
type effectCall struct {
	attempt
	effect Effect
	ord    string // its ordinal, or '=' and its key
	id     string // unique within its frame
	watch  timing.Watch
}

// beginEffect starts a call of Do.
func (a attempt) beginEffect(e Effect) (*effectCall, error) {
	c := &effectCall{attempt: a, effect: e}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotEndedLocked(); err != nil {
		return nil, err
	}
	in, name := a.ensureInner(), e.Name+"\x00"+e.Key
	if in.busy[name] {
		return nil, fmt.Errorf("graph: effect %q is already running in node %s: give concurrent effects distinct names", e.Name, a.node().Name)
	}
	fold.SetEntry(&in.busy, name, true)
	in.running = append(in.running, c)
	if e.Key != "" {
		c.ord = "=" + e.Key // so that a key is never read as an ordinal
	} else {
		c.ord = in.ordinals.NextOrdinal(e.Name)
	}
	c.id = EffectID{Task: a.localIDLocked(), Name: e.Name, Call: c.ord}.String()
	return c, nil
}

func (c *effectCall) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.checkNotHungLocked() == nil {
		delete(c.inner.busy, c.effect.Name+"\x00"+c.effect.Key)
		c.inner.running = slices.DeleteFunc(c.inner.running, func(o *effectCall) bool { return o == c })
	}
}

// onlyEffect returns the effect that runs in the attempt, or nil if none or several do.
func (a attempt) onlyEffect() *effectCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checkNotHungLocked() != nil || a.inner == nil || len(a.inner.running) != 1 {
		return nil
	}
	return a.inner.running[0]
}

// recordedResult returns the result that an earlier drive or attempt left.
func (c *effectCall) recordedResult() ([]byte, bool) {
	c.mu.Lock()
	o := c.inner.results[c.id]
	c.mu.Unlock()
	if o.known == succeeded || c.raw == nil {
		return o.value, o.known == succeeded
	}
	b, ok := c.raw.Effects[c.id]
	return b, ok
}

// resolveDoubt applies the policy to an intent without an outcome, or records the intent.
func (c *effectCall) resolveDoubt(ctx context.Context) (skip bool, err error) {
	d := c.drive
	d.outages.AwaitEnd(ctx) // an effect must not start while it is unknown whether its result can be recorded
	if err := d.checkDriving(ctx); err != nil {
		return false, err
	}
	if c.effect.InDoubt == DoubtRetry || d.journal == nil {
		return false, nil
	}
	if c.isInDoubt() {
		if skip, err = c.applyDoubtPolicy(); skip || err != nil {
			return skip, err
		}
	}
	if err := c.recordIntent(nil); err != nil || d.lease == nil {
		return false, err
	}
	return false, d.checkDriving(ctx) // the store may have taken its time
}

// isInDoubt reports whether the effect was started and its outcome is unknown.
func (c *effectCall) isInDoubt() bool {
	c.mu.Lock()
	o := c.inner.results[c.id]
	c.mu.Unlock()
	if o.known != unknown || c.raw == nil {
		return o.known == intentRecorded
	}
	_, open := c.raw.Notes[c.id]
	return open
}

// recordFailure records that fn has returned an error. If the call was cut off, its error does
// not say what happened: the effect stays in doubt.
func (c *effectCall) recordFailure(ctx context.Context) {
	if ctx.Err() != nil || !c.isInDoubt() {
		return
	}
	if c.saveOutcome(outcome{known: failed}) != nil {
		return
	}
	// if this record is lost, the effect is in doubt, which does no harm
	_ = c.drive.journal.AddRecord(journal.KindFailure, &record.Parts{Path: c.frame.path, ID: c.id, Timing: c.watch.Read()}, false)
}

func (c *effectCall) applyDoubtPolicy() (skip bool, err error) {
	const doubt = "was cut off before its outcome was recorded, and may or may not have happened"
	switch c.effect.InDoubt {
	case DoubtSkip:
		return true, nil
	case DoubtFail:
		return false, fmt.Errorf("effect %q %s", c.effect.Name, doubt)
	}
	answer, err := Interrupt[string](c.newContext(), Ask{
		Name:    c.questionName(),
		Kind:    "select",
		Prompt:  fmt.Sprintf("%q %s. Do it again?", c.effect.Name, doubt),
		Options: []string{"retry", "skip", "fail"},
	})
	switch {
	case err != nil || answer == "retry":
		return false, err
	case answer == "skip":
		return true, nil
	}
	return false, fmt.Errorf("effect %q: failed by the answer to its question", c.effect.Name)
}

// questionName returns the name of the question about the doubt. An answer is valid for the
// drive that gets it: after "retry", a second call that is cut off needs a new answer,
// and after "fail" the user may try again.
func (c *effectCall) questionName() string {
	name := "doubt " + c.effect.Name + c.ord
	raw := c.raw
	if raw == nil {
		return name
	}
	for n := 2; ; n++ {
		q := raw.Asks[EffectID{Task: c.localID(), Name: name, Call: "0"}.String()]
		if q == nil || !q.Answered || q.Now {
			return name
		}
		name = fmt.Sprintf("doubt %s%s again %d", c.effect.Name, c.ord, n)
	}
}

func (c *effectCall) recordIntent(note []byte) error {
	j := c.drive.journal
	if j == nil {
		return nil
	}
	if err := c.saveOutcome(outcome{known: intentRecorded}); err != nil {
		return err
	}
	return j.AddRecord(journal.KindIntent, &record.Parts{Path: c.frame.path, ID: c.id, Value: note}, c.drive.savesEach())
}

// isResultNeeded reports whether the result may be needed again.
func (c *effectCall) isResultNeeded() bool { return c.drive.journal != nil || c.canRetry() }

func (c *effectCall) recordResult(b []byte) error {
	j := c.drive.journal
	if j == nil {
		return c.saveOutcome(outcome{succeeded, b})
	}
	if err := c.checkNotHung(); err != nil {
		return err
	}
	parts := record.Parts{Path: c.frame.path, ID: c.id, Value: b, Timing: c.watch.Read()}
	if err := j.AddRecord(journal.KindEffect, &parts, c.drive.savesEach()); err != nil {
		return err
	}
	if c.node().Retry.Attempts > 1 {
		return c.saveOutcome(outcome{succeeded, b})
	}
	return nil
}

// outcome is what this drive knows of an effect.
type outcome struct {
	known stage
	value []byte // the result, if it succeeded
}

type stage uint8

const (
	unknown        stage = iota
	intentRecorded       // its intent was recorded
	failed               // and then it failed
	succeeded
)

// saveOutcome keeps the outcome of an effect for the next attempt.
func (c *effectCall) saveOutcome(o outcome) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkNotHungLocked(); err != nil {
		return err
	}
	fold.SetEntry(&c.ensureInner().results, c.id, o)
	return nil
}

// A SharedValue is a value that the tasks of a run share, at every depth, for example a
// budget. It belongs to the run, not to a step, and the journal keeps it: a drive
// starts with what the previous one has recorded. It is safe for concurrent use.
type SharedValue[T any] struct {
	a     attempt // that shares it
	name  string
	of    *sharedCell
	value *T
}

// sharedCell is the part of a shared value that all its users have in common.
type sharedCell struct {
	mu      writer.Lock // guards the fields below, and the value, also while that is recorded
	value   any         // a *T
	size    int         // size of the recorded value
	changed chan struct{}
}

// sharedValues holds the shared values of a drive.
type sharedValues struct {
	sharedMu sync.Mutex // guards the fields below
	shared   map[string]*sharedCell
	kept     map[string][]byte // the values in the journal when the drive started
}

// sharedPath is the frame under which the journal keeps shared values, and the consents
// to changed children: no task has such a path. The end of a step does not remove it; a
// new run, a fork or an edit does.
const sharedPath = "shared/"

// Share returns the value of the run with a name, or makes it: T's zero value if
// neither this drive nor an earlier one has recorded another. After a fork or an edit
// it starts with the zero value again. All uses of one name must have the same type.
func Share[T any](ctx context.Context, name string) (*SharedValue[T], error) {
	a, ok := attemptOf(ctx)
	if !ok {
		return nil, errors.New("graph: Share needs the context of a node")
	}
	if err := a.checkNotHung(); err != nil {
		return nil, err
	}
	if err := value.CheckType[T](); err != nil {
		return nil, fmt.Errorf("shared value %q: %w", name, err)
	}
	d := a.drive
	d.sharedMu.Lock()
	defer d.sharedMu.Unlock()
	c := d.shared[name]
	if c == nil {
		v := new(T)
		if b, ok := d.kept[sharedID(name)]; ok {
			var err error
			if *v, err = value.Decode[T](b); err != nil {
				return nil, fmt.Errorf("shared value %q: %w", name, err)
			}
		}
		c = &sharedCell{mu: writer.NewLock(), value: v, changed: make(chan struct{})}
		fold.SetEntry(&d.shared, name, c)
	}
	v, ok := c.value.(*T)
	if !ok {
		return nil, fmt.Errorf("graph: the shared value %q is a %s, not a %s", name, reflect.TypeOf(c.value).Elem(), reflect.TypeFor[T]())
	}
	return &SharedValue[T]{a, name, c, v}, nil
}

func sharedID(name string) string { return effectid.ShareName(name).String() }

// Use calls fn with the value while no other task uses it, and wakes the tasks that
// wait for a change. If fn returns true, the value is recorded before Use returns, as
// JSON: what is not in its JSON belongs to this drive only. fn must not block.
func (s *SharedValue[T]) Use(fn func(v *T) (record bool)) error {
	if err := s.a.checkNotHung(); err != nil {
		return err
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	defer s.wakeWaiters()
	if !fn(s.value) {
		return nil
	}
	return s.recordValue()
}

// Await calls fn with the value, at once and then after each Use by any task, until it
// returns true or an error; what it does to the value is not recorded. If ctx ends
// first, the error is its cause.
func (s *SharedValue[T]) Await(ctx context.Context, fn func(v *T) (done bool, err error)) error {
	for {
		if err := s.a.checkNotHung(); err != nil {
			return err
		}
		s.of.mu.Lock()
		done, err := fn(s.value)
		changed := s.of.changed
		s.of.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wakeWaiters wakes all tasks that wait. The caller must hold mu.
func (s *SharedValue[T]) wakeWaiters() {
	close(s.of.changed)
	s.of.changed = make(chan struct{})
}

// recordValue journals the value. The caller must hold mu.
func (s *SharedValue[T]) recordValue() error {
	j := s.a.drive.journal
	if j == nil {
		return nil
	}
	b, err := value.Encode(nil, *s.value)
	if err != nil {
		return fmt.Errorf("shared value %q: %w", s.name, err)
	}
	j.AddStateSize(len(b) - s.of.size)
	s.of.size = len(b)
	return j.AddRecord(journal.KindEffect, &record.Parts{Path: sharedPath, ID: sharedID(s.name), Value: b}, s.a.drive.savesEach())
}
