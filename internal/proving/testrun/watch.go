package testrun

import (
	"context"
	"iter"
	"slices"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/tool"
)

// effect is a call that reaches the outside.
type effect struct {
	kind effectKind
	what string // for people: the script pay.sh of node pay
	node string // which makes it
}

// beginFunc is called before each effect. What it returns is called after it, with the error of the effect. ctx is that
// of the effect, so that graph.EffectKey names it.
type beginFunc func(ctx context.Context, e effect) (end func(error))

// watchEffects makes a host call begin around the effects of scripts, models, tools and searches.
func watchEffects(h *flow.Host, names *naming, begin beginFunc) {
	w := &watcher{names, begin}
	around := h.Around
	h.Around = func(ctx context.Context, c flow.NodeCall, next func(context.Context) (string, error)) (text string, err error) {
		if around != nil {
			inner := next
			next = func(ctx context.Context) (string, error) { return around(ctx, c, inner) }
		}
		if c.Kind != "script" {
			return next(ctx)
		}
		end := w.begin(ctx, effect{scriptEffect, w.nameScript(ctx, c.Node), w.nameNode(ctx)})
		text, err = next(ctx)
		end(err)
		return text, err
	}
	h.Tooling.Around = append(slices.Clone(h.Tooling.Around), w.watchTool)
	h.Models = &watchedModels{h.Models, w}
	search := h.Retrieval.Around
	h.Retrieval.Around = func(next flow.SearchFunc) flow.SearchFunc {
		if search != nil {
			next = search(next)
		}
		return func(ctx context.Context, q flow.SearchRequest) ([]rag.Hit, error) {
			end := w.begin(ctx, effect{outsideEffect, "the search", w.nameNode(ctx)})
			found, err := next(ctx, q)
			end(err)
			return found, err
		}
	}
}

type watcher struct {
	names *naming
	begin beginFunc
}

// nameNode names the node that works in ctx as test cases do.
func (w *watcher) nameNode(ctx context.Context) string { return w.names.find(graph.TaskPath(ctx)).Name }

// nameScript names the script of a node, with its file if the node is found.
func (w *watcher) nameScript(ctx context.Context, node string) string {
	if file := w.names.find(graph.TaskPath(ctx)).Script; file != "" {
		return "the script " + file + " of node " + node
	}
	return "the script of node " + node
}

// watchTool is an agent.ToolMiddleware.
func (w *watcher) watchTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
		end := w.begin(ctx, effect{toolEffect, "the tool " + t.Name, w.nameNode(ctx)})
		res, err := next(ctx, t, c)
		end(err)
		return res, err
	}
}

// watchedModels are models whose calls are watched.
type watchedModels struct {
	flow.Models
	watcher *watcher
}

// Open implements [flow.Models].
func (m *watchedModels) Open(ctx context.Context, dir, id string) (llm.Model, error) {
	opened, err := m.Models.Open(ctx, dir, id)
	if err != nil {
		return nil, err
	}
	return &watchedModel{opened, m.watcher}, nil
}

type watchedModel struct {
	llm.Model
	watcher *watcher
}

// Stream implements [llm.Model].
func (m *watchedModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		end := m.watcher.begin(ctx, effect{outsideEffect, "the request to the model", m.watcher.nameNode(ctx)})
		var failed error
		m.Model.Stream(ctx, r)(func(d llm.Delta, err error) bool {
			failed = err
			return yield(d, err)
		})
		end(failed)
	}
}
