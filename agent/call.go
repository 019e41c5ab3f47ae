package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// ToolRetry says when a tool call that returned an error is made again, within the
// same effect. A result with Error set is not an error in this sense: the model
// handles it.
type ToolRetry struct {
	Attempts int              // in total; 0 and 1: no retry
	Delay    time.Duration    // before the second attempt; it doubles with each further attempt
	If       func(error) bool // nil: retry if the connection broke or timed out
}

// errUnrecorded ends an effect that is only looked up.
var errUnrecorded = errors.New("agent: nothing is recorded")

// loadRecorded returns the result that an earlier drive recorded for an effect. ok
// reports whether there is one.
func loadRecorded[T any](ctx context.Context, name, key string) (v T, ok bool, err error) {
	over, cancel := context.WithCancel(ctx)
	cancel() // then the engine treats errUnrecorded as an interrupted call, not as a failure of the effect
	v, err = graph.DoEffect(over, graph.Effect{Name: name, Key: key}, func(context.Context) (T, error) { return v, errUnrecorded })
	if errors.Is(err, errUnrecorded) {
		return v, false, nil
	}
	return v, err == nil, err
}

// callRecord is what the effect of a call records. If it contains no result, the call
// was interrupted before its outcome was recorded, and may or may not have
// happened.
type callRecord struct {
	Result *tool.Result `json:"result,omitempty"`
	Spent  Spend        `json:"spent,omitzero"` // by the agents and models that it used
	// Ask is the question that a person must answer before the call can
	// continue.
	Ask *tool.Question `json:"ask,omitempty"`
	// Edited are the arguments with which the call was made, if a person has
	// changed them.
	Edited json.RawMessage `json:"edited,omitempty"`
	// Notes are what hooks have said to the model before the call.
	Notes []string `json:"notes,omitempty"`
	// Refused reports whether the call was not made.
	Refused bool `json:"refused,omitempty"`
	// Permission is how it was decided whether the call may be made, in the record of its first try.
	Permission *Permission `json:"permission,omitempty"`
}

// outcome returns what the model reads.
func (r *callRecord) outcome() tool.Result {
	result := *r.Result
	if len(r.Edited) > 0 {
		result.Content = append([]llm.Part{llm.Text{Text: describeEdit(r.Edited)}}, result.Content...)
	}
	for _, note := range slices.Backward(r.Notes) {
		result.Content = append([]llm.Part{llm.Text{Text: note + "\n"}}, result.Content...)
	}
	return result
}

// ReadOutcome decodes the record of a call: what the model read, or the question that a person must answer before the
// call can continue. If both are nil, the call was cut off.
func ReadOutcome(data []byte) (*tool.Result, *tool.Question, error) {
	var r callRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, nil, fmt.Errorf("the recorded outcome of a call: %w", err)
	}
	if r.Result == nil {
		return nil, r.Ask, nil
	}
	return new(r.outcome()), nil, nil
}

// runOnce makes a call unless its outcome is already recorded. A call that cannot
// safely be repeated records its intent first. If it was interrupted after
// that, a person decides whether it is repeated; each further try is an effect
// with its own intent.
func (st *actStep) runOnce(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	var edited json.RawMessage // the arguments of a person, if they replace those of the model
	var before hooked
	for try := 1; ; try++ {
		e := callEffect(t.Name, c.ID, try)
		m, ok, err := loadRecorded[callRecord](ctx, e.Name, e.Key)
		if err == nil && try == 1 {
			before, err = st.runBefore(ctx, t, c, ok)
			c.Args = before.args
		}
		if err == nil && !ok {
			m, err = st.beginTry(ctx, t, c, callTry{e, try, edited, before})
		}
		if err != nil {
			return tool.Result{}, err
		}
		if m.Result != nil {
			st.addSpent(m.Spent)
			st.addSeen(m.Result.Seen)
			if m.Refused {
				return m.outcome(), nil
			}
			return st.runAfter(ctx, t, madeCall(c, m), m.outcome())
		}
		if try == 1 && edited == nil {
			if c.Args, edited, err = st.loadEdits(ctx, c); err != nil {
				return tool.Result{}, err
			}
		}
		if m.Ask != nil {
			answer, err := st.askForTool(ctx, t, c, e.Key, m.Ask)
			if err != nil {
				return tool.Result{}, err
			}
			c.Answers = append(c.Answers, answer)
			continue
		}
		if again, err := st.resolveDoubt(ctx, t, c, e.Key); err != nil {
			return tool.Result{}, err
		} else if !again {
			return tool.FailedResult("The call was cut off before its outcome was known, and was not repeated. It may or may not have happened; check before you repeat it."), nil
		}
		c.Repeat = true
	}
}

// madeCall returns a call with the arguments with which it was made.
func madeCall(c tool.Call, m callRecord) tool.Call {
	if len(m.Edited) > 0 {
		c.Args = m.Edited
	}
	return c
}

// A callTry is one try of a call.
type callTry struct {
	effect graph.Effect
	number int
	edited json.RawMessage // the arguments of a person, if they replace those of the model
	before hooked
}

// toolEffect is the prefix of the names of effects that are calls of tools.
const toolEffect = "tool "

// ToolOfEffect returns the name of the tool that the effects of a name call; ok is false for other effects.
func ToolOfEffect(name string) (tool string, ok bool) { return strings.CutPrefix(name, toolEffect) }

// CallOfEffect returns the id of the call of a tool that an effect is a try of; "": it is another effect.
func CallOfEffect(id graph.EffectID) (call string) {
	if _, ok := ToolOfEffect(id.Name); ok {
		call, _, _ = strings.Cut(strings.TrimPrefix(id.Call, "="), trySeparator)
	}
	return call
}

// trySeparator stands before the number of a try in the key of its effect, from 2.
const trySeparator = "#"

// callEffect returns the effect of one try of a call.
func callEffect(name, id string, try int) graph.Effect {
	if try > 1 {
		id += trySeparator + strconv.Itoa(try)
	}
	return graph.Effect{Name: toolEffect + name, Key: id}
}

func (st *actStep) addSpent(s Spend) {
	st.mu.Lock()
	st.spent = st.spent.add(s)
	st.mu.Unlock()
}

// askForTool asks a person the question of a call. If there is no person to
// ask, the answer says so.
func (st *actStep) askForTool(ctx context.Context, t tool.Tool, c tool.Call, key string, q *tool.Question) (tool.Answer, error) {
	if st.act.Headless {
		return tool.Answer{Prompt: q.Prompt, Refused: "no one is present to answer"}, nil
	}
	if err := st.announceQuestion(ctx, t, c, "call "+key, q.Prompt); err != nil {
		return tool.Answer{}, err
	}
	value, err := graph.Interrupt[any](ctx, graph.Ask{Name: "call " + key, Kind: q.Kind, Prompt: st.act.redact(q.Prompt), Options: q.Options, Free: true,
		Data: CallData{ID: c.ID, Tool: t.Name, Args: c.Args}})
	if refusal := refusalOf(err); refusal != nil {
		return tool.Answer{Prompt: q.Prompt, Refused: refusal.Reason}, nil
	}
	if err != nil {
		return tool.Answer{}, err
	}
	text, err := json.Marshal(value)
	return tool.Answer{Prompt: q.Prompt, Value: text}, err
}

// beginTry makes one try of a call, if it is permitted. A refusal is recorded too,
// so that a resume with different rules does not make the call.
func (st *actStep) beginTry(ctx context.Context, t tool.Tool, c tool.Call, try callTry) (callRecord, error) {
	e := try.effect
	var permission *Permission
	if try.number == 1 {
		p := permitted{call: c, refused: try.before.refused}
		if p.refused != nil {
			p.why = st.refuseCall(byHook, t.Name, try.before.why)
		} else if err := st.requestPermission(ctx, t, &p); err != nil {
			return callRecord{}, err
		}
		if c, permission = p.call, p.why; p.edited {
			try.edited = c.Args
		}
		if p.refused != nil {
			r := st.emitDone(ctx, llm.ToolCall{ID: c.ID, Name: t.Name}, *p.refused)
			return graph.DoEffect(ctx, e, func(context.Context) (callRecord, error) {
				return callRecord{Result: &r, Edited: try.edited, Refused: true, Permission: permission}, nil
			})
		}
	}
	if !t.MayRepeat(c.Args) {
		e.InDoubt = graph.DoubtSkip // resolveDoubt decides instead
	}
	return graph.DoEffect(ctx, e, func(ctx context.Context) (callRecord, error) {
		counted, err := countToolCall(ctx)
		if err != nil {
			return callRecord{}, err
		}
		c.Key = strings.TrimSuffix(graph.EffectKey(ctx), strings.TrimPrefix(e.Key, c.ID))
		cost := &toolSpend{}
		// each parallel call gets the answers to its own questions
		r, err := st.runWithEvents(withToolSpend(graph.NameQuestions(ctx, "tool "+c.ID), cost), t, c)
		if q := (*tool.Question)(nil); errors.As(err, &q) {
			return callRecord{Ask: q, Spent: cost.spent, Permission: permission}, nil
		} else if errors.Is(err, tool.ErrCutOff) {
			return callRecord{Permission: permission}, nil
		}
		if err == nil {
			counted()
		}
		return callRecord{Result: &r, Spent: cost.spent, Edited: try.edited, Notes: try.before.notes, Permission: permission}, err
	})
}

// isUnfinished reports whether an error of a tool is not the outcome of its
// call.
func isUnfinished(err error) bool {
	var q *tool.Question
	return errors.As(err, &q) || errors.Is(err, tool.ErrCutOff)
}

func isWaiting(err error) bool {
	return errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused)
}

// runWithEvents runs a call inside its middleware and emits its events.
func (st *actStep) runWithEvents(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	var began time.Time
	if st.events {
		began = time.Now()
		if len(c.Answers) == 0 {
			graph.Emit(ctx, ToolStarted{ID: c.ID, Name: t.Name, Args: c.Args})
		}
		c.Progress = func(text string) { graph.Emit(ctx, ToolProgress{ID: c.ID, Name: t.Name, Text: st.act.redact(text)}) }
		printed := &printedLines{emit: func(text string) { graph.Emit(ctx, ToolOutput{ID: c.ID, Name: t.Name, Text: st.act.redact(text)}) }}
		defer printed.close()
		c.Output = printed.add
	}
	run, release := Interruptible(ctx)
	defer release()
	r, err := st.runWithRecover(run, t, c, wrapTool(st.runWithRetry, st.act.Around))
	cut := context.Cause(run) == ErrInterrupted || isInterruption(err)
	switch {
	case err == nil && !(cut && r.Error):
	case isWaiting(err) || IsBudgetExhausted(ctx, err) || isUnfinished(err) && !cut:
		return r, err
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case cut:
		markInterrupted(ctx)
		r = cutOutcome(t, c.Args, r)
	default:
		r = tool.FailedResult("%v", err)
	}
	r = st.redactResult(r)
	if st.events {
		graph.Emit(ctx, ToolDone{ID: c.ID, Name: t.Name, Text: r.Text(), Error: r.Error, Took: time.Since(began), Changes: r.Changes, Media: llm.Media(r.Content)})
	}
	return r, nil
}

// runWithRecover turns a panic of a tool into an error of the tool.
func (st *actStep) runWithRecover(ctx context.Context, t tool.Tool, c tool.Call, run ToolFunc) (r tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r = tool.Result{}
			err = fmt.Errorf("%s panicked: %v", t.Name, p)
			graph.Emit(ctx, Warning{Text: st.act.redact(fmt.Sprintf("tool %s panicked: %v\n%s", t.Name, p, debug.Stack()))})
		}
	}()
	return run(ctx, t, c)
}

// runWithRetry makes the attempts of a call.
func (st *actStep) runWithRetry(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	again := st.act.Calls.Retry
	for attempt := 1; ; attempt++ {
		r, err := st.runAttempt(ctx, t, c)
		if err == nil || isWaiting(err) || IsBudgetExhausted(ctx, err) || isUnfinished(err) || ctx.Err() != nil || attempt >= again.Attempts || !again.shouldRetry(err) {
			return r, err
		}
		wait := again.Delay << (attempt - 1)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			graph.NoteRetry(ctx, wait)
		case <-ctx.Done():
			timer.Stop()
			return r, err
		}
	}
}

// errToolTimeout is the cause of a context that Calls.Timeout ended.
var errToolTimeout = errors.New("the tool's timeout has passed")

func (st *actStep) runAttempt(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	limit := st.act.Calls.Timeout
	if limit <= 0 {
		return t.Run(ctx, c)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errToolTimeout)
	defer cancel()
	r, err := t.Run(limited, c)
	if err != nil && ctx.Err() == nil && context.Cause(limited) == errToolTimeout {
		return tool.FailedResult("Tool call '%s' timed out after %v", t.Name, limit), nil
	}
	return r, err
}

func (r *ToolRetry) shouldRetry(err error) bool {
	if r.If != nil {
		return r.If(err)
	}
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &timeout) && timeout.Timeout()
}

// redactResult removes secrets from the texts of a result, the contents of files with secrets from its changes, and
// their sums from what it has seen.
func (st *actStep) redactResult(r tool.Result) tool.Result {
	r.Seen = slices.Clone(r.Seen)
	for i, f := range r.Seen {
		r.Seen[i] = f.Redact(st.act.redact)
	}
	if st.act.Redact == nil {
		return r
	}
	r.Changes = slices.Clone(r.Changes)
	for i, c := range r.Changes {
		r.Changes[i] = c.Redact(st.act.Redact)
	}
	r.Content = llm.RedactMessage(llm.Message{Parts: r.Content}, st.act.Redact).Parts
	return r
}
