package agent

import (
	"context"
	"iter"

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
