package graph

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// InDoubt says what becomes of an effect whose intent was recorded and whose
// result was not: the process died in between, and nobody knows whether it
// happened.
//
// An effect whose function returned an error is in doubt too when the run is
// resumed: that it failed is not recorded.
type InDoubt int

// The policies. Every call other than Retry records its intent first.
const (
	DoubtRetry InDoubt = iota // do it again: it is read-only, idempotent, or takes EffectKey
	DoubtAsk                  // ask a person: retry, skip or fail
	DoubtSkip                 // go on with T's zero value
	DoubtFail                 // fail the node
)

// Effect describes a call whose result must survive.
type Effect struct {
	Name    string  // what it is; concurrent effects of one task need distinct names
	Key     string  // the caller's own identity for it, a tool-call id for one; "": its ordinal among those of the name
	InDoubt InDoubt // see InDoubt
}

// Do runs fn once and journals its result before it is used: when the node runs
// again, after a crash, a question or a retry, the recorded result is returned
// and fn is not called. A failure is not recorded. The effect's identity is the
// run, the task, the name and the ordinal of the call, not the attempt: who wants
// a fresh call on a retry puts Attempt(ctx) into the name.
func Do[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	return DoEffect(ctx, Effect{Name: name}, fn)
}

// DoEffect is Do with more said about the effect.
func DoEffect[T any](ctx context.Context, e Effect, fn func(context.Context) (T, error)) (v T, err error) {
	t := taskOf(ctx)
	if t == nil {
		return v, errors.New("graph: Do needs the context of a node")
	}
	call, err := t.effect(e)
	if err != nil {
		return v, err
	}
	defer call.finish()
	if b, ok := call.recorded(); ok {
		return decodeValue[T](b)
	}
	skip, err := call.doubt()
	if skip || err != nil {
		return v, err
	}
	if v, err = fn(&effectCtx{ctx, call}); err != nil || !call.kept() {
		return v, err
	}
	b, err := encodeValue(nil, v)
	if err != nil {
		return v, fmt.Errorf("effect %q: %w", e.Name, err)
	}
	return v, call.record(b)
}

// Note records something about the effect under way, before it has a result: the
// identity of a child process, for one. It is durable when Note returns. After a
// crash InDoubtEffects shows it.
func Note(ctx context.Context, note []byte) error {
	c, _ := ctx.Value(effectKey{}).(*effectCall)
	if c == nil {
		return errors.New("graph: Note needs the context of an effect")
	}
	return c.intend(note)
}

// EffectKey identifies the effect under way, the same in every process and
// attempt, and another after a Fork or an Edit: pass it on as an idempotency key.
// It is "" outside Do.
func EffectKey(ctx context.Context) string {
	c, _ := ctx.Value(effectKey{}).(*effectCall)
	if c == nil {
		return ""
	}
	return c.t.drive.run + c.t.drive.branch + "/" + c.t.frame.path + c.t.local() + "/" + c.e.Name + "/" + c.ord
}

type effectKey struct{}

// effectCtx is the context that fn of Do gets.
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
	t   *task
	e   Effect
	ord string
	id  string // within its frame
}

func (t *task) effect(e Effect) (*effectCall, error) {
	if err := t.returned(); err != nil {
		return nil, err
	}
	c := &effectCall{t: t, e: e}
	t.mu.Lock()
	if t.busy[e.Name+"\x00"+e.Key] {
		t.mu.Unlock()
		return nil, fmt.Errorf("graph: effect %q is already under way in node %s: give concurrent effects distinct names", e.Name, t.node().Name)
	}
	if t.busy == nil {
		t.busy = map[string]bool{}
	}
	t.busy[e.Name+"\x00"+e.Key] = true
	t.mu.Unlock()
	if e.Key != "" {
		c.ord = "=" + e.Key // no key is taken for an ordinal
	} else {
		c.ord = t.ordinal(e.Name)
	}
	c.id = t.local() + "\x00" + e.Name + "\x00" + c.ord
	return c, nil
}

// ordinal counts calls of one name in one attempt.
func (t *task) ordinal(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ordinals == nil {
		t.ordinals = map[string]int{}
	}
	n := t.ordinals[name]
	t.ordinals[name]++
	return strconv.Itoa(n)
}

func (c *effectCall) finish() {
	c.t.mu.Lock()
	delete(c.t.busy, c.e.Name+"\x00"+c.e.Key)
	c.t.mu.Unlock()
}

// recorded is the result that an earlier drive or attempt left.
func (c *effectCall) recorded() ([]byte, bool) {
	c.t.mu.Lock()
	b, ok := c.t.results[c.id]
	c.t.mu.Unlock()
	if ok || c.t.frame.raw == nil {
		return b, ok
	}
	b, ok = c.t.frame.raw.effects[c.id]
	return b, ok
}

// doubt applies the policy to an intent without a result, or records the intent.
func (c *effectCall) doubt() (skip bool, err error) {
	x := c.t.drive
	if err := x.j.failed(); err != nil {
		return false, err
	}
	if c.e.InDoubt == DoubtRetry || x.j == nil {
		return false, nil
	}
	if raw := c.t.frame.raw; raw != nil {
		if _, intended := raw.notes[c.id]; intended {
			return c.decide()
		}
	}
	return false, c.intend(nil)
}

func (c *effectCall) decide() (skip bool, err error) {
	switch c.e.InDoubt {
	case DoubtSkip:
		return true, nil
	case DoubtFail:
		return false, fmt.Errorf("effect %q was under way when the process died, and may or may not have happened", c.e.Name)
	}
	answer, err := Interrupt[string](c.t.ctx(), Ask{
		Name:    "doubt " + c.e.Name + c.ord,
		Kind:    "select",
		Prompt:  fmt.Sprintf("%q was under way when the process died, and may or may not have happened. Do it again?", c.e.Name),
		Options: []string{"retry", "skip", "fail"},
	})
	switch {
	case err != nil || answer == "retry":
		return false, err
	case answer == "skip":
		return true, nil
	}
	return false, fmt.Errorf("effect %q: failed by the answer to its question", c.e.Name)
}

func (c *effectCall) intend(note []byte) error {
	j := c.t.drive.j
	if j == nil {
		return nil
	}
	return j.add(KindIntent, putString(putString(nil, c.t.frame.path), c.id), note, j.level == EveryEffect)
}

// kept tells whether anybody may ask for the result again.
func (c *effectCall) kept() bool { return c.t.drive.j != nil || c.t.node().Retry.Attempts > 1 }

func (c *effectCall) record(b []byte) error {
	j := c.t.drive.j
	if j == nil {
		c.t.remember(c.id, b)
		return nil
	}
	if err := j.add(KindEffect, putString(putString(nil, c.t.frame.path), c.id), b, j.level == EveryEffect); err != nil {
		return err
	}
	if c.t.node().Retry.Attempts > 1 {
		c.t.remember(c.id, b)
	}
	return nil
}

// remember keeps a result for the next attempt.
func (t *task) remember(id string, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.results == nil {
		t.results = map[string][]byte{}
	}
	t.results[id] = b
}
