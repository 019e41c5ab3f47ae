// Package versus says how two runs differ: where they part, what each of their nodes took and cost, and in one sentence
// what the difference comes from. It reads their moments, and replays nothing.
package versus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// Run is what is compared of a run.
type Run struct {
	Info    runs.Info
	Prompt  string
	Output  string        // what it has returned
	Active  time.Duration // for which it worked
	Moments []runs.Moment // oldest first
	Since   int64         // only what came after this record, at which the other run was copied from it; 0: all
}

// ReadPair reads two runs to compare; a point may be RUN@N: the run up to a record. Of a fork and the run that it was
// copied from, both begin behind the record that was copied.
func ReadPair(ctx context.Context, archive *runs.Archive, a, b string) (x, y *Run, err error) {
	if x, err = readRun(ctx, archive, a); err != nil {
		return nil, nil, err
	}
	if y, err = readRun(ctx, archive, b); err != nil {
		return nil, nil, err
	}
	if err := y.cutAtFork(ctx, archive, x); err != nil {
		return nil, nil, err
	}
	return x, y, x.cutAtFork(ctx, archive, y)
}

func readRun(ctx context.Context, archive *runs.Archive, point string) (*Run, error) {
	v, err := archive.ReadView(ctx, point)
	if err != nil {
		return nil, err
	}
	r := &Run{Info: v.Info, Active: v.Snapshot.Active, Moments: v.Moments()}
	if v.Record != nil {
		r.Prompt = v.Record.Prompt
	}
	if v.Snapshot.Status == graph.Done {
		r.Output = flow.OutcomeOf(graph.Result{Status: graph.Done, Value: v.Snapshot.Result}).Output
	}
	return r, nil
}

// cutAtFork lets a fork and the run that it was copied from begin behind the fork. It does nothing to other runs.
func (r *Run) cutAtFork(ctx context.Context, archive *runs.Archive, original *Run) error {
	from := r.Info.From
	if from == nil || from.Run != original.Info.Run || from.At <= 0 {
		return nil
	}
	before, err := readRun(ctx, archive, from.String())
	if err != nil {
		return err
	}
	start, err := readRun(ctx, archive, runs.Point{Run: r.Info.Run, At: 1}.String())
	if err != nil {
		return err
	}
	original.Since = from.At
	original.Active = max(0, original.Active-before.Active)
	original.Moments = slices.DeleteFunc(original.Moments, func(m runs.Moment) bool { return m.Seq <= from.At })
	r.Active = max(0, r.Active-start.Active)
	return nil
}

// Comparison is how two runs differ.
type Comparison struct {
	A     Side         `json:"a"`
	B     Side         `json:"b"`
	Text  string       `json:"text" doc:"what differs and where it comes from, in one sentence"`
	Since int64        `json:"since,omitempty" doc:"of a fork and the run that it was copied from: the record of that run behind which both are compared"`
	First *Split       `json:"first,omitempty" doc:"where they part; absent: all that both have recorded is the same"`
	Nodes []NodeWork   `json:"nodes" nullable:"false" doc:"what each node took and cost, in the order of the first run, then of the second"`
	Pairs []RecordPair `json:"pairs" nullable:"false" doc:"records of both runs that are about the same, ascending in both"`
}

// RecordPair are two records that are about the same.
type RecordPair struct {
	A int64 `json:"a" doc:"number of the record of the first run"`
	B int64 `json:"b" doc:"that of the second"`
}

// Side is one of two runs.
type Side struct {
	Run    string   `json:"run"`
	Agent  string   `json:"agent"`
	Status string   `json:"status"`
	Reason string   `json:"reason,omitempty" doc:"why it failed"`
	Worked float64  `json:"worked_ms"`
	Cost   *float64 `json:"cost_usd" doc:"of the replies whose price is known; null: of none"`
	Tokens int      `json:"tokens"`
	Calls  int      `json:"calls" doc:"recorded replies of models"`
	Output string   `json:"output,omitempty" doc:"what it has returned"`
}

// Split is the first difference of two runs.
type Split struct {
	A    int64  `json:"a,omitempty" doc:"number of the record of the first run; absent: it has none"`
	B    int64  `json:"b,omitempty" doc:"that of the second"`
	Node string `json:"node,omitempty" doc:"path of the node"`
	Text string `json:"text" doc:"what differs, in words"`
}

// NodeWork is what a node did in both runs, all its visits and items together.
type NodeWork struct {
	Node string `json:"node" doc:"path, without the numbers of items; empty: the run itself"`
	A    Work   `json:"a"`
	B    Work   `json:"b"`
}

// Work is what a node did in a run.
type Work struct {
	Visits  int      `json:"visits"`
	Took    float64  `json:"took_ms" doc:"its requests, calls, searches and scripts, added up"`
	Cost    float64  `json:"cost_usd"`
	Tokens  int      `json:"tokens"`
	Written int      `json:"written" doc:"tokens of its replies"`
	Retries int      `json:"retries"`
	Failed  int      `json:"failed"`
	Models  []string `json:"models,omitempty"`
	Record  int64    `json:"record,omitempty" doc:"number of its first record; absent: it did nothing"`
}

// CompareRuns returns how two runs differ. price returns what a reply has cost, if that is known.
func CompareRuns(a, b *Run, price func(model string, u llm.Usage) (float64, bool)) *Comparison {
	x := newTrace(a, price)
	y := newTrace(b, price)
	c := &Comparison{A: x.side, B: y.side, Since: max(a.Since, b.Since), Pairs: []RecordPair{}, Nodes: []NodeWork{}}
	c.First = findSplit(x, y)
	c.addPairs(x, y)
	for _, name := range x.order {
		c.Nodes = append(c.Nodes, NodeWork{Node: name, A: *x.nodes[name], B: y.workOf(name)})
	}
	for _, name := range y.order {
		if x.nodes[name] == nil {
			c.Nodes = append(c.Nodes, NodeWork{Node: name, B: *y.nodes[name]})
		}
	}
	c.Text = c.describeRuns()
	if c.Since > 0 {
		c.Text = fmt.Sprintf("since the fork at @%d: %s", c.Since, c.Text)
	}
	return c
}

// addPairs sets which records are about the same.
func (c *Comparison) addPairs(x, y *trace) {
	for _, key := range x.keys {
		if e := y.events[key]; e != nil {
			c.Pairs = append(c.Pairs, RecordPair{A: x.events[key].record, B: e.record})
		}
	}
	slices.SortFunc(c.Pairs, func(p, q RecordPair) int { return cmp.Or(cmp.Compare(p.A, q.A), cmp.Compare(p.B, q.B)) })
	last := int64(0)
	c.Pairs = slices.DeleteFunc(c.Pairs, func(p RecordPair) bool { // branches may end in another order
		if p.B < last {
			return true
		}
		last = p.B
		return false
	})
}

// These are what events are.
const (
	prompt = "prompt"
	visit  = "visit"
	model  = "model"
	call   = "call"
	search = "search"
	script = "script"
	other  = "other"
	answer = "answer"
	fault  = "fault"
)

// An event is something that can be found in another run: the nth of its kind at a node.
type event struct {
	what, node string
	name       string // of the model, the tool or the effect
	text       string // what both must have
	more       string // what came of it
	failed     bool
	record     int64
}

// A trace is what a run did, event by event and node by node.
type trace struct {
	side   Side
	events map[string]*event
	keys   []string // of events, in the order of their records
	nodes  map[string]*Work
	order  []string       // of nodes
	counts map[string]int // of events by their kind and node
	agents map[string]string
	spawns map[string]int
	price  func(model string, u llm.Usage) (float64, bool)
}

func newTrace(r *Run, price func(model string, u llm.Usage) (float64, bool)) *trace {
	t := &trace{
		side: Side{
			Run:    r.Info.Run,
			Agent:  r.Info.Agent,
			Status: r.Info.Status,
			Reason: flow.PlainReason(r.Info.Reason),
			Worked: toMilliseconds(r.Active),
			Output: r.Output,
		},
		events: map[string]*event{},
		nodes:  map[string]*Work{},
		counts: map[string]int{},
		agents: map[string]string{},
		spawns: map[string]int{},
		price:  price,
	}
	for i := range r.Moments {
		m := &r.Moments[i]
		if m.Kind == journal.KindStart && m.Path == "" && len(t.keys) == 0 {
			t.addEvent(event{what: prompt, text: r.Prompt, record: m.Seq})
		}
		t.addMoment(m)
	}
	return t
}

func toMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// workOf returns what a node did.
func (t *trace) workOf(node string) Work {
	if w := t.nodes[node]; w != nil {
		return *w
	}
	return Work{}
}

// addEvent adds an event under a key that the same event of another run has.
func (t *trace) addEvent(e event) {
	kind := e.what + " " + e.node
	t.counts[kind]++
	key := kind + " " + strconv.Itoa(t.counts[kind])
	t.events[key] = &e
	t.keys = append(t.keys, key)
}

// nameNode returns a path whose agents of teams have the same names in every run: those that they were spawned with are
// chosen at random.
func (t *trace) nameNode(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		name := team.AgentOf(part)
		if name == "" {
			continue
		}
		if t.agents[part] == "" {
			t.spawns[name]++
			t.agents[part] = name + "·" + strconv.Itoa(t.spawns[name])
		}
		parts[i] = t.agents[part]
	}
	return strings.Join(parts, "/")
}

var itemNumber = pattern.CompileLater(`\[\d+\]`)

// noteWork returns what a node did, for the caller to add to.
func (t *trace) noteWork(node string, record int64) *Work {
	name := itemNumber().ReplaceAllString(node, "")
	w := t.nodes[name]
	if w == nil {
		w = &Work{Record: record}
		t.nodes[name] = w
		t.order = append(t.order, name)
	}
	return w
}

// addMoment adds what happened at a moment.
func (t *trace) addMoment(m *runs.Moment) {
	node := t.nameNode(m.Node)
	if m.Failure != "" && m.Kind != journal.KindStep {
		for _, failed := range m.FailedNodes {
			at := t.nameNode(failed)
			t.noteWork(at, m.Seq).Failed++
			t.addEvent(event{what: fault, node: at, failed: true, record: m.Seq, more: m.Failure})
		}
	}
	switch m.Kind {
	case journal.KindStep:
		for _, from := range m.From {
			at := t.nameNode(strings.TrimPrefix(m.Node+"/"+from, "/"))
			if !m.Inner {
				t.noteWork(at, m.Seq).Visits++
				t.addEvent(event{what: visit, node: at, record: m.Seq})
			}
		}
	case journal.KindTask:
		if strings.HasSuffix(node, "]") { // an item of a map; the step says all others
			t.noteWork(node, m.Seq).Visits++
			t.addEvent(event{what: visit, node: node, record: m.Seq})
		}
	case journal.KindAnswer:
		t.addEvent(event{what: answer, node: node, text: string(m.Answer) + m.Refused, record: m.Seq})
	case journal.KindEffect, journal.KindFailure:
		t.addEffect(m, node)
	}
}

// addEffect adds an effect.
func (t *trace) addEffect(m *runs.Moment, node string) {
	w := t.noteWork(node, m.Seq)
	w.Took += toMilliseconds(m.Took)
	w.Retries += m.Timing.Retries
	e := event{what: other, node: node, name: m.Effect, record: m.Seq, failed: m.Kind == journal.KindFailure}
	switch {
	case m.Reply != nil:
		e.what = model
		e.name = m.Reply.Model
		e.more = m.Reply.Text
		for _, asked := range m.Asks {
			e.more += "\n" + asked.Name + " " + string(asked.Args)
		}
		t.addReply(w, m.Reply)
	case m.Call != nil:
		e.what = call
		e.name = m.Call.Tool
		e.text = string(m.Call.Args)
		e.more = m.Call.Status + "\n" + m.Call.Outcome
		e.failed = m.Failure != ""
	case m.Search != nil:
		e.what = search
		text, _ := json.Marshal(m.Search)
		e.more = string(text)
	case m.Effect == script:
		e.what = script
		e.more = m.Output
	}
	t.addEvent(e)
}

// addReply adds what a reply used.
func (t *trace) addReply(w *Work, r *flow.Reply) {
	tokens := r.Usage.Input + r.Usage.Output
	w.Tokens += tokens
	w.Written += r.Usage.Output
	t.side.Tokens += tokens
	t.side.Calls++
	if !slices.Contains(w.Models, r.Model) {
		w.Models = append(w.Models, r.Model)
	}
	cost, known := t.price(r.Model, r.Usage)
	if !known {
		return
	}
	w.Cost += cost
	if t.side.Cost == nil {
		t.side.Cost = new(float64)
	}
	*t.side.Cost += cost
}

// findSplit returns the first difference of two runs; nil: there is none.
func findSplit(x, y *trace) *Split {
	var first *Split
	least := int64(0)
	all := maps.Clone(x.events)
	maps.Copy(all, y.events)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		a, b := x.events[key], y.events[key]
		text := describeSplit(a, b)
		if text == "" {
			continue
		}
		s := &Split{Node: all[key].node, Text: text}
		at := int64(0)
		for _, e := range []*event{b, a} {
			if e != nil && (at == 0 || e.record < at) {
				at = e.record
			}
		}
		if a != nil {
			s.A = a.record
		}
		if b != nil {
			s.B = b.record
		}
		if first == nil || at < least {
			first = s
			least = at
		}
	}
	return first
}
