package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// waitNode waits for a time or an event. No process needs to live meanwhile.
type waitNode struct {
	span   spec.Template // how long
	moment spec.Template // until when

	event    spec.Template // the name of the event
	match    []eventMember // what its data must hold, in file order
	deadline spec.Deadline // of the event
}

// An eventMember is a member that the data of an event must have.
type eventMember struct {
	name  string
	value spec.Template // strict
}

// waitFields are the fields that say what a wait node waits for: it has exactly one.
var waitFields = []string{"for", "until", "event"}

// eventScope is the name of the data of an event in state_updates.
const eventScope = "event"

var waitKind = &kind{
	Kind: spec.Kind{
		Name:     "wait",
		Doc:      "Waits for a time or an event, which no process needs to live through.",
		Optional: []string{"for", "until", "event", "match", "deadline", "on_deadline", "state_updates"},
		Scoped:   eventScope,
		Late:     true,

		NotInBranch: true,
		BranchFault: "which is a wait node; a node before the map waits for all of its items",
	},
	decode: func(m *spec.NodeFields) nodeBody {
		b := &waitNode{
			span:     m.ReadSpan("for"),
			moment:   m.ReadMoment("until"),
			event:    m.AddStrict("event", m.ReadText("event", strictyaml.Optional)),
			deadline: m.ReadDeadline(),
		}
		for _, pair := range m.ReadPairs("match", strictyaml.Optional) {
			b.match = append(b.match, eventMember{pair.Key, m.AddStrict("match", pair.Value)})
		}
		b.checkFields(m)
		return b
	},
}

// checkFields reports fields that do not belong together.
func (b *waitNode) checkFields(m *spec.NodeFields) {
	var given []string
	for _, field := range waitFields {
		if m.Source.FieldNode(field) != nil {
			given = append(given, field)
		}
	}
	switch {
	case given == nil:
		m.ReportMissing(waitFields[0])
	case len(given) > 1:
		text := fmt.Sprintf("invalid value: the node has `%s`, too; a wait node has exactly one of them", given[0])
		m.AddFault(m.FindField(given[1]), given[1], "invalid-value", text)
	case given[0] == "event" && strings.TrimSpace(b.event.Text) == "":
		m.AddFault(m.FindField("event"), "event", "invalid-value", "invalid value: the name of the event is empty")
	}
	if slices.Contains(given, "event") {
		return
	}
	for _, field := range []string{"match", "deadline", "on_deadline"} {
		if at := m.FindField(field); at != nil {
			m.AddFault(at, field, "invalid-value", "invalid value: only a node that waits for an `event` has it")
		}
	}
}

// Checks returns none: what a wait node needs is checked when it is read.
func (b *waitNode) Checks() check.Checks { return nil }

// Advise reports what reads the data of an event that the node does not wait for.
func (b *waitNode) Advise(a *check.Adviser, n *spec.Node) {
	if b.event.Text != "" {
		adviseDeadline(a, n, &b.deadline, func(string) string { return "" })
		return
	}
	for _, u := range n.Updates {
		for _, path := range u.Value.Paths() {
			if rest, ok := strings.CutPrefix(path, eventScope); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				a.WarnAt(n, n.At("state_updates"), "no-event", "{{event}} has no value: the node waits for a time", "write `event: NAME` to wait for an event")
			}
		}
	}
}

func (b *waitNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{} }

func (b *waitNode) compile(_ *nodeCompiler, node *graph.Node) error {
	node.Quiet = true
	return nil
}

// run waits, and continues at next.
func (b *waitNode) run(nr *nodeRun) error {
	if b.event.Text == "" {
		if err := b.sleep(nr); err != nil {
			return err
		}
		nr.applyUpdates("", nil)
		return nr.goNext()
	}
	data, moved, err := b.await(nr)
	if err != nil || moved {
		return err
	}
	nr.applyUpdates(eventScope, nr.host().redactValue(data))
	return nr.goNext()
}

// await waits for the event, and returns its data, as package jsonvalue has them. moved reports that it has not come
// before the deadline and that the node leads to that of on_deadline.
func (b *waitNode) await(nr *nodeRun) (data any, moved bool, err error) {
	w := graph.EventWait{}
	if w.Name, err = nr.renderStrict(b.event, "Failed to interpolate event"); err != nil {
		return nil, false, err
	}
	for _, m := range b.match {
		text, err := nr.renderStrict(m.value, "Failed to interpolate match, key '"+m.name+"'")
		if err != nil {
			return nil, false, err
		}
		if w.Match == nil {
			w.Match = map[string]any{}
		}
		w.Match[m.name] = text
	}
	span, again, err := nr.renderDeadline(&b.deadline)
	if err != nil {
		return nil, false, err
	}
	w.Deadline = span
	ctx := context.Context(nr)
	if again != "" {
		ctx = graph.NameQuestions(ctx, again)
	}
	raw, err := graph.Await[json.RawMessage](ctx, w)
	switch {
	case errors.Is(err, graph.ErrDeadline):
		return nr.passDeadline(&b.deadline, err)
	case err != nil:
		return nil, false, nr.refusalError("wait__event failed", "Waiting for the event failed", err)
	}
	data, err = jsonvalue.Parse(raw)
	return data, false, err
}

func (b *waitNode) sleep(nr *nodeRun) error {
	if b.span.Text == "" {
		text, err := nr.renderStrict(b.moment, "Failed to interpolate until")
		if err != nil {
			return err
		}
		at, err := spec.ParseMoment(text, time.Local)
		if err != nil {
			return newChainError("until", err)
		}
		return graph.SleepUntil(nr, at)
	}
	d, err := nr.renderSpan(b.span, "for")
	if err != nil {
		return err
	}
	return graph.Sleep(nr, d)
}

// renderSpan returns the duration that a template of a field says.
func (nr *nodeRun) renderSpan(t spec.Template, field string) (time.Duration, error) {
	text, err := nr.renderStrict(t, "Failed to interpolate "+field)
	if err != nil {
		return 0, err
	}
	d, err := spec.ParseSpan(text)
	if err != nil {
		return 0, newChainError(field, err)
	}
	return d, nil
}
