package testrun

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/tool"
)

// A killer kills a drive where its trial says so: from then on the drive saves nothing, and its context has ended. It
// also records which effects are made.
type killer struct {
	trial *disturb.Trial
	names *naming // of the agent that runs

	agents agentNumbers

	mu       sync.Mutex // guards the fields below
	now      *disturb.Drive
	drives   int
	made     map[string]*madeEffect
	repeated []string // effects that were made again although their result was recorded
}

// newKiller returns the killer of a trial. It also names records for it.
func newKiller(trial *disturb.Trial) *killer {
	k := &killer{trial: trial, made: map[string]*madeEffect{}}
	trial.ReplaceNames(k.agents.replaceIDs)
	return k
}

// madeEffect is an effect that was made.
type madeEffect struct {
	name      string
	kind      effectKind
	n         int
	completed bool // the killed drive got its result
}

// effectKind says what a person can do about an effect that is not idempotent.
type effectKind int

const (
	scriptEffect effectKind = iota
	toolEffect
	outsideEffect // a model, or a search
)

// agentIDs matches the ids of agents of a team, which differ between any two runs.
var agentIDs = pattern.CompileLater(`\b(agent_[\w-]+_)[0-9a-f]{8}\b`)

// agentNumbers gives the agents of a team numbers that are the same in each run.
type agentNumbers struct {
	mu     sync.Mutex
	byName map[string][]string // ids
}

// replaceIDs replaces what differs in the ids of agents by a number, in the order in which agents of the same name
// appear.
func (a *agentNumbers) replaceIDs(text string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return agentIDs().ReplaceAllStringFunc(text, func(id string) string {
		name := agentIDs().FindStringSubmatch(id)[1]
		at := slices.Index(a.byName[name], id)
		if at < 0 {
			at = len(a.byName[name])
			if a.byName == nil {
				a.byName = map[string][]string{}
			}
			a.byName[name] = append(a.byName[name], id)
		}
		return name + strconv.Itoa(at+1)
	})
}

// isKilled reports whether the run was killed.
func (k *killer) isKilled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now.CutOff() != ""
}

// drive drives the trial until it ends or is killed.
func (k *killer) drive(ctx context.Context, t *Trial) (graph.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.mu.Lock()
	k.now = k.trial.NewDrive(cancel)
	k.drives++
	k.mu.Unlock()
	return t.Drive(ctx)
}

// wrapStore returns the store of the drive that begins. It has no leases, so that the next drive need not wait for the
// end of a killed one.
func (k *killer) wrapStore(s journal.Store) journal.Store {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now.WrapStore(struct{ journal.Store }{s})
}

// recordEffect records that an effect is made. The caller calls done when the effect has a result.
func (k *killer) recordEffect(ctx context.Context, kind effectKind, name string) (done func()) {
	key := graph.EffectKey(ctx)
	_, path, _ := strings.Cut(key, "/")
	if key == "" {
		return func() {}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.made[path]
	if m == nil {
		m = &madeEffect{name: name, kind: kind}
		k.made[path] = m
	}
	m.n++
	if k.trial.IsRecorded(path) {
		k.repeated = append(k.repeated, name)
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		m.completed = m.completed || k.drives == 1
	}
}

// listRepeated returns the effects that were made more than once, by path. It leaves out harmless effects, requests to
// models and searches, unless there are no others.
func (k *killer) listRepeated(harmless map[string]bool) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all, repeated []string
	for _, path := range slices.Sorted(maps.Keys(k.made)) {
		if m := k.made[path]; m.n > 1 {
			all = append(all, path)
			if !harmless[path] && m.kind != outsideEffect {
				repeated = append(repeated, path)
			}
		}
	}
	if len(repeated) == 0 {
		return all
	}
	return repeated
}

// describeCauses returns which effects cause a difference, and what to do; "" if there are none.
func (k *killer) describeCauses(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	kind := scriptEffect
	for _, path := range paths {
		names = append(names, k.made[path].name)
		kind = max(kind, k.made[path].kind)
	}
	text := strings.Join(slices.Compact(names), " and ") + " ran twice: the run was killed before the result was saved."
	switch kind {
	case scriptEffect:
		text += " Let it do its work only once for each value of RADDLE_IDEMPOTENCY_KEY; see: raddle help durability"
	case toolEffect:
		text += " Let it do its work only once for each value of RADDLE_IDEMPOTENCY_KEY, or set `in_doubt: skip`; see: raddle help durability"
	}
	return text
}

// adjustHost makes the killer record the effects of scripts, models, tools and searches.
func (k *killer) adjustHost(h *flow.Host) {
	around := h.Around
	h.Around = func(ctx context.Context, c flow.NodeCall, next func(context.Context) (string, error)) (string, error) {
		done := func() {}
		if c.Kind == "script" {
			done = k.recordEffect(ctx, scriptEffect, k.nameScript(ctx, c.Node))
		}
		var text string
		var err error
		if around != nil {
			text, err = around(ctx, c, next)
		} else {
			text, err = next(ctx)
		}
		if err == nil {
			done()
		}
		return text, err
	}
	h.Tooling.Around = append(slices.Clone(h.Tooling.Around), k.recordTool)
	h.Models = &recordingModels{h.Models, k}
	search := h.Retrieval.Around
	h.Retrieval.Around = func(next flow.SearchFunc) flow.SearchFunc {
		if search != nil {
			next = search(next)
		}
		return func(ctx context.Context, q flow.SearchRequest) ([]rag.Hit, error) {
			done := k.recordEffect(ctx, outsideEffect, "the search")
			found, err := next(ctx, q)
			if err == nil {
				done()
			}
			return found, err
		}
	}
}

// nameScript names the script of a node, with its file if the node is found.
func (k *killer) nameScript(ctx context.Context, node string) string {
	if file := k.names.find(graph.TaskPath(ctx)).Script; file != "" {
		return "the script " + file + " of node " + node
	}
	return "the script of node " + node
}

// recordTool is an agent.ToolMiddleware that records calls.
func (k *killer) recordTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
		done := k.recordEffect(ctx, toolEffect, "the tool "+t.Name)
		res, err := next(ctx, t, c)
		if err == nil {
			done()
		}
		return res, err
	}
}

// recordingModels are models whose calls are recorded.
type recordingModels struct {
	flow.Models
	killer *killer
}

// Open implements [flow.Models].
func (m *recordingModels) Open(ctx context.Context, dir, id string) (llm.Model, error) {
	opened, err := m.Models.Open(ctx, dir, id)
	if err != nil {
		return nil, err
	}
	return &recordingModel{opened, m.killer}, nil
}

type recordingModel struct {
	llm.Model
	killer *killer
}

// Stream implements [llm.Model].
func (m *recordingModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.killer.recordEffect(ctx, outsideEffect, "the request to the model")
		m.Model.Stream(ctx, r)(yield)
	}
}
