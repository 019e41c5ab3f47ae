package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Again says when a call of a tool that returned an error is made again, within
// one effect. A result with Error set is no error: the model has to deal with it.
type Again struct {
	Attempts int              // in all; 0 and 1: no retry
	Delay    time.Duration    // before the second attempt; it doubles from there on
	If       func(error) bool // nil: a connection that broke or timed out
}

// errUnrecorded ends an effect that is only looked up.
var errUnrecorded = errors.New("agent: nothing is recorded")

// recorded is the outcome that an earlier drive has recorded for an effect.
func recorded[T any](ctx context.Context, name, key string) (T, bool, error) {
	v, err := graph.DoEffect(ctx, graph.Effect{Name: name, Key: key}, func(context.Context) (T, error) {
		var zero T
		return zero, errUnrecorded
	})
	if errors.Is(err, errUnrecorded) {
		return v, false, nil
	}
	return v, err == nil, err
}

// once makes a call unless its outcome is recorded. A call that cannot simply be
// repeated records its intent first; when the process died behind an intent, a
// person says what is to become of the call, and a further try is an effect of
// its own with an intent of its own.
func (x *acting) once(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	name := "tool " + t.Name
	for try := 1; ; try++ {
		key := c.ID
		if try > 1 {
			key += "#" + strconv.Itoa(try)
		}
		if r, ok, err := recorded[tool.Result](ctx, name, key); ok || err != nil {
			return r, err
		}
		if try == 1 {
			if refused, err := x.permit(ctx, t, c); err != nil || refused != nil {
				return x.refused(ctx, name, key, refused, err)
			}
		}
		r, ran, err := x.begun(ctx, t, c, graph.Effect{Name: name, Key: key})
		if err != nil || ran {
			return r, err
		}
		if r, again, err := x.doubt(ctx, t, c, key); !again || err != nil {
			return r, err
		}
	}
}

// refused records that a call was not permitted, so that a resume under other
// rules does not make it after all.
func (x *acting) refused(ctx context.Context, name, key string, r *tool.Result, err error) (tool.Result, error) {
	if err != nil {
		return tool.Result{}, err
	}
	return graph.DoEffect(ctx, graph.Effect{Name: name, Key: key}, func(context.Context) (tool.Result, error) {
		return x.redacted(*r), nil
	})
}

// begun makes one try of a call. ran is false for a call that was under way when
// its process died.
func (x *acting) begun(ctx context.Context, t tool.Tool, c tool.Call, e graph.Effect) (r tool.Result, ran bool, err error) {
	if !t.Effect.Repeats() {
		e.InDoubt = graph.DoubtSkip
	}
	r, err = graph.DoEffect(ctx, e, func(ctx context.Context) (tool.Result, error) {
		ran = true
		c.Key = strings.TrimSuffix(graph.EffectKey(ctx), strings.TrimPrefix(e.Key, c.ID))
		return x.told(ctx, t, c)
	})
	if ran && waits(err) && e.InDoubt != graph.DoubtRetry { // it ended of its own accord: not in doubt
		if _, err := graph.DoEffect(ctx, graph.Effect{Name: "asked", Key: e.Key}, func(context.Context) (bool, error) { return true, nil }); err != nil {
			return r, ran, err
		}
	}
	return r, ran, err
}

func waits(err error) bool {
	return errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused)
}

// doubt says what becomes of a call that was begun and has no outcome.
func (x *acting) doubt(ctx context.Context, t tool.Tool, c tool.Call, key string) (r tool.Result, again bool, err error) {
	if _, asked, err := recorded[bool](ctx, "asked", key); asked || err != nil {
		return r, asked, err
	}
	skipped := tool.Failed("The call was under way when its process died, and was not repeated. It may or may not have happened; check before you repeat it.")
	if x.act.Headless {
		return skipped, false, nil
	}
	answer, err := graph.Interrupt[any](ctx, graph.Ask{Name: "doubt " + key, Kind: KindDoubt, Options: []string{"retry", "skip"},
		Prompt: x.act.redact(fmt.Sprintf("%s with %s was under way when its process died, and may or may not have happened. Do it again?", t.Name, c.Args)),
		Data:   CallData{ID: c.ID, Tool: t.Name, Args: c.Args}})
	var refusal *graph.RefusedError
	if errors.As(err, &refusal) {
		return skipped, false, nil
	}
	if err != nil {
		return r, false, err
	}
	switch strings.ToLower(strings.TrimSpace(fmt.Sprint(answer))) {
	case "retry", "yes", "y", "true":
		return r, true, nil
	}
	return skipped, false, nil
}

// told runs a call within its middleware and tells of it.
func (x *acting) told(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	var began time.Time
	if x.events {
		began = time.Now()
		graph.Emit(ctx, ToolStarted{ID: c.ID, Name: t.Name, Args: c.Args})
	}
	r, err := guarded(ctx, t, c, runner(x.retried, x.act.Around))
	switch {
	case err == nil:
	case waits(err):
		return r, err
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	default:
		r = tool.Failed("%v", err)
	}
	r = x.redacted(r)
	if x.events {
		graph.Emit(ctx, ToolDone{ID: c.ID, Name: t.Name, Text: r.Text(), Error: r.Error, Took: time.Since(began)})
	}
	return r, nil
}

// guarded makes a panic of a tool its error.
func guarded(ctx context.Context, t tool.Tool, c tool.Call, run ToolFunc) (r tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = tool.Result{}, fmt.Errorf("%s panicked: %v", t.Name, p)
			graph.Emit(ctx, Warning{Text: fmt.Sprintf("tool %s panicked: %v\n%s", t.Name, p, debug.Stack())})
		}
	}()
	return run(ctx, t, c)
}

// retried makes the attempts of a call.
func (x *acting) retried(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	again := x.act.Calls.Retry
	for attempt := 1; ; attempt++ {
		r, err := x.attempt(ctx, t, c)
		if err == nil || waits(err) || ctx.Err() != nil || attempt >= again.Attempts || !again.allows(err) {
			return r, err
		}
		timer := time.NewTimer(again.Delay << (attempt - 1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r, err
		}
	}
}

// errToolTimeout is the cause of a context that ended because of Calls.Timeout.
var errToolTimeout = errors.New("the tool's timeout has passed")

func (x *acting) attempt(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	limit := x.act.Calls.Timeout
	if limit <= 0 {
		return t.Run(ctx, c)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errToolTimeout)
	defer cancel()
	r, err := t.Run(limited, c)
	if err != nil && ctx.Err() == nil && context.Cause(limited) == errToolTimeout {
		return tool.Failed("Tool call '%s' timed out after %v", t.Name, limit), nil
	}
	return r, err
}

func (a *Again) allows(err error) bool {
	if a.If != nil {
		return a.If(err)
	}
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &timeout) && timeout.Timeout()
}

// redacted takes secrets out of a result's texts.
func (x *acting) redacted(r tool.Result) tool.Result {
	if x.act.Redact == nil {
		return r
	}
	parts := make([]llm.Part, len(r.Content))
	for i, p := range r.Content {
		if t, ok := p.(llm.Text); ok {
			p = llm.Text{Text: x.act.Redact(t.Text)}
		}
		parts[i] = p
	}
	return tool.Result{Content: parts, Error: r.Error}
}
