package agent

import (
	"context"
	"iter"
	"slices"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A ModelFunc is a Model made of a function.
type ModelFunc func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error]

// Stream implements llm.Model.
func (f ModelFunc) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, r)
}

// ModelMiddleware goes around the calls of a model: it may change the request,
// answer in the model's place, and see or change every delta. It runs inside the
// effect of the call, so what is recorded is what it made of the reply; it does
// not run for a recorded one.
type ModelMiddleware func(next llm.Model) llm.Model

// A ToolFunc runs a call of a tool.
type ToolFunc func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error)

// ToolMiddleware goes around the calls of tools, once around all attempts of a
// call: it may change the arguments, give a result in the tool's place, and
// change the result. It runs inside the effect of the call. It must pass on an
// error that means that the call waits.
type ToolMiddleware func(next ToolFunc) ToolFunc

// wrapped is the model within its middleware, the first outermost.
func wrapped(m llm.Model, around []ModelMiddleware) llm.Model {
	for i := len(around) - 1; i >= 0; i-- {
		m = around[i](m)
	}
	return m
}

// runner is what runs a call within its middleware, the first outermost.
func runner(run ToolFunc, around []ToolMiddleware) ToolFunc {
	for i := len(around) - 1; i >= 0; i-- {
		run = around[i](run)
	}
	return run
}

// LimitCalls lets at most n calls at once of some tools begin, in all runs of the
// graphs that share it; without names of all tools. The others wait for their
// turn. A tool may be under several limits. Calls.Concurrency bounds the calls of
// one reply.
func LimitCalls(n int, tools ...string) ToolMiddleware {
	slots := make(chan struct{}, max(n, 1))
	return func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
			if len(tools) > 0 && !slices.Contains(tools, t.Name) {
				return next(ctx, t, c)
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return tool.Result{}, context.Cause(ctx)
			}
			defer func() { <-slots }()
			return next(ctx, t, c)
		}
	}
}
