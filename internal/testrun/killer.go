package testrun

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/tool"
)

// errKilled is the error of everything that a killed drive still tries.
var errKilled = errors.New("the run was killed by the test")

// A killer kills a drive at a point: from then on the drive saves nothing, and its context has ended. It also records which effects are made.
type killer struct {
	at killPoint

	names *naming // of the agent that runs

	mu       sync.Mutex
	appends  [][]recordName      // of the first drive
	seen     map[recordName]int  // how many records of a name there were; n is 0
	agents   map[string][]string // the ids of the agents of a team, by name
	saved    int                 // records
	killed   bool
	over     bool // the killed drive has ended
	cancel   context.CancelFunc
	last     []history.Entry // of the append at which the run was killed
	recorded map[string]bool
	made     map[string]*madeEffect
	repeated []string // effects that were made again although their result was recorded
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

// A recordName identifies a record in all runs of a case. Its number does not: nodes that work at the same time save in any order.
type recordName struct {
	kind           journal.Kind
	path, id, what string
	step           int
	n              int // of the records before it that have the same other fields
}

// nameRecords returns the names of records that a drive appends. The caller must hold mu.
func (k *killer) nameRecords(entries []history.Entry) (names []recordName) {
	for _, e := range entries {
		name := recordName{kind: e.Kind, path: k.numberAgents(e.Path), id: k.numberAgents(e.ID), what: k.numberAgents(e.What), step: e.Step}
		switch e.Kind {
		case journal.KindStart, journal.KindClaim, journal.KindSnapshot, journal.KindFork:
			name.what = "" // an id that each run has for itself
		}
		n := k.seen[name]
		k.seen[name]++
		name.n = n
		names = append(names, name)
	}
	return names
}

// agentIDs matches the ids of agents of a team, which differ between any two runs.
var agentIDs = regexp.MustCompile(`\b(agent_[\w-]+_)[0-9a-f]{8}\b`)

// numberAgents replaces what differs in the ids of agents by a number, in the order in which agents of the same name appear. The caller must hold mu.
func (k *killer) numberAgents(text string) string {
	return agentIDs.ReplaceAllStringFunc(text, func(id string) string {
		name := agentIDs.FindStringSubmatch(id)[1]
		at := slices.Index(k.agents[name], id)
		if at < 0 {
			at = len(k.agents[name])
			k.agents[name] = append(k.agents[name], id)
		}
		return name + strconv.Itoa(at+1)
	})
}

// listPoints returns the points at which a run like this one can be killed: each append, named by its first record, and each result of an effect
// that was saved together with others.
func (k *killer) listPoints() (points []killPoint) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, names := range k.appends {
		for i, name := range names {
			if i == 0 || name.kind == journal.KindEffect {
				points = append(points, killPoint{name, false}, killPoint{name, true})
			}
		}
	}
	return points
}

// isKilled reports whether the run was killed.
func (k *killer) isKilled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed
}

// drive drives the trial until it ends or is killed.
func (k *killer) drive(ctx context.Context, t *Trial) (graph.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.mu.Lock()
	k.cancel = cancel
	k.mu.Unlock()
	return t.Drive(ctx)
}

// endDrive reports whether the drive that has ended was killed; the next one is not.
func (k *killer) endDrive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended := k.killed && !k.over
	k.over = k.killed
	return ended
}

// lastingEnds are the ends after which a run does not continue unless a person asks for it.
var lastingEnds = []string{graph.Done.String(), graph.Failed.String(), graph.StepLimit.String(), graph.VisitLimit.String(), graph.TimedOut.String(), graph.Stuck.String(), graph.Abandoned.String()}

// hasEnded reports whether the end of the run was saved before it was killed.
func (k *killer) hasEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at.saved && slices.ContainsFunc(k.last, func(e history.Entry) bool { return e.Kind == journal.KindEnd && slices.Contains(lastingEnds, e.What) })
}

// hasWaited reports whether the run was killed after it was saved that it waits for an answer.
func (k *killer) hasWaited() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at.saved && slices.ContainsFunc(k.last, func(e history.Entry) bool { return e.Kind == journal.KindEnd && e.What == graph.Waiting.String() })
}

// isEmpty reports whether nothing was saved.
func (k *killer) isEmpty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.saved == 0
}

func (k *killer) wrapStore(s journal.Store) journal.Store {
	return &killedStore{Store: s, killer: k, drive: k.isOver()}
}

func (k *killer) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}

// killedStore is the store of one drive. It has no leases, so that the next drive need not wait for the end of a killed one.
type killedStore struct {
	journal.Store
	killer *killer
	drive  bool // of a drive after the killed one
}

// Append implements journal.Store.
func (s *killedStore) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	k := s.killer
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.drive {
		return k.save(ctx, s.Store, thread, after, recs)
	}
	if k.killed {
		return errKilled
	}
	entries := listEntries(after, recs)
	names := k.nameRecords(entries)
	k.appends = append(k.appends, names)
	kill := k.at.record.kind != 0 && slices.Contains(names, k.at.record)
	if !kill || k.at.saved {
		if err := k.save(ctx, s.Store, thread, after, recs); err != nil {
			return err
		}
	}
	if !kill {
		return nil
	}
	k.killed, k.last = true, entries
	k.cancel()
	return errKilled
}

// Prune implements journal.Store.
func (s *killedStore) Prune(ctx context.Context, thread string, before int64) error {
	s.killer.mu.Lock()
	killed := s.killer.killed && !s.drive
	s.killer.mu.Unlock()
	if killed {
		return errKilled
	}
	return s.Store.Prune(ctx, thread, before)
}

// save saves records, and records the effects whose results they contain. The caller must hold mu.
func (k *killer) save(ctx context.Context, st journal.Store, thread string, after int64, recs []journal.Record) error {
	if err := st.Append(ctx, thread, after, recs); err != nil {
		return err
	}
	k.saved += len(recs)
	for _, e := range listEntries(after, recs) {
		if e.Kind == journal.KindEffect {
			k.recorded[e.Path+strings.ReplaceAll(e.ID, "\x00", "/")] = true
		}
	}
	return nil
}

// listEntries returns the entries of records that can be decoded.
func listEntries(after int64, recs []journal.Record) (list []history.Entry) {
	for i, rec := range recs {
		if e, err := history.DecodeEntry(rec); err == nil {
			e.Seq = after + int64(i) + 1
			list = append(list, e)
		}
	}
	return list
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
	if k.recorded[path] {
		k.repeated = append(k.repeated, name)
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		m.completed = m.completed || !k.over
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

// describePoint returns when the run was killed.
func (k *killer) describePoint() string {
	var parts []string
	for _, e := range k.last {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("record %d (%s %s%s)", e.Seq, e.Kind, e.Path, e.What)))
	}
	if k.at.saved {
		return "after " + strings.Join(parts, ", ")
	}
	return "before " + strings.Join(parts, ", ")
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
