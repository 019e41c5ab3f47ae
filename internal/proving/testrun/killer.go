package testrun

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/pattern"
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
	watchEffects(h, k.names, func(ctx context.Context, e effect) func(error) {
		done := k.recordEffect(ctx, e.kind, e.what)
		return func(err error) {
			if err == nil && e.kind != outsideEffect {
				done()
			}
		}
	})
}
