package agent

import (
	"context"
	"iter"
	"slices"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A ModelFunc is a function that implements llm.Model.
type ModelFunc func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error]

// Stream calls f. It implements llm.Model.
func (f ModelFunc) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, r)
}

// ModelMiddleware wraps a model: it can change the request, answer instead of
// the model, and see or change every delta. It runs inside the effect of the
// call, so the journal records the reply as the middleware returns it. It does
// not run for a recorded reply.
type ModelMiddleware func(next llm.Model) llm.Model

// A ToolFunc runs a call of a tool.
type ToolFunc func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error)

// ToolMiddleware wraps tool calls, once around all attempts of a call: it can
// change the arguments, return a result instead of the tool, and change the
// result. It runs inside the effect of the call. It must pass on an error that
// means that the call waits.
type ToolMiddleware func(next ToolFunc) ToolFunc

// wrapModel returns the model inside its middleware, the first one outermost.
func wrapModel(m llm.Model, around []ModelMiddleware) llm.Model {
	for i := len(around) - 1; i >= 0; i-- {
		m = around[i](m)
	}
	return m
}

// wrapTool returns the function that runs a call inside its middleware, the first
// one outermost.
func wrapTool(run ToolFunc, around []ToolMiddleware) ToolFunc {
	for i := len(around) - 1; i >= 0; i-- {
		run = around[i](run)
	}
	return run
}

// LimitCalls allows at most n concurrent calls of the named tools, or of all
// tools if none is named, in all runs of the graphs that share it. Further
// calls wait until one of them ends, or their context does. n below 1 counts
// as 1. A tool may have several limits. To limit the calls of one reply,
// use Calls.Concurrency.
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
