package flow

import (
	"time"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
)

// waitNode waits for a time. No process needs to live meanwhile.
type waitNode struct {
	span   spec.Template // how long; empty: until a time
	moment spec.Template // until when
}

var waitKind = &kind{
	Kind: spec.Kind{
		Name:     "wait",
		Doc:      "Waits for a time, which no process needs to live through.",
		Optional: []string{"for", "until", "state_updates"},
		Late:     true,

		NotInBranch: true,
		BranchFault: "which is a wait node; a node before the map waits for all of its items",
	},
	decode: func(m *spec.NodeFields) nodeBody {
		b := &waitNode{span: m.ReadSpan("for"), moment: m.ReadMoment("until")}
		switch {
		case m.Source.FieldNode("for") != nil && m.Source.FieldNode("until") != nil:
			m.AddFault(m.FindField("until"), "until", "invalid-value", "invalid value: the node has `for`, too; a wait node has exactly one of them")
		case m.Source.FieldNode("for") == nil && m.Source.FieldNode("until") == nil:
			m.ReportMissing("for")
		}
		return b
	},
}

// Checks returns none: what a wait node needs is checked when it is read.
func (b *waitNode) Checks() check.Checks { return nil }

// Advise reports nothing.
func (b *waitNode) Advise(*check.Adviser, *spec.Node) {}

func (b *waitNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{} }

func (b *waitNode) compile(_ *nodeCompiler, node *graph.Node) error {
	node.Quiet = true
	return nil
}

// run waits, and continues at next.
func (b *waitNode) run(nr *nodeRun) error {
	err := b.sleep(nr)
	if err != nil {
		return err
	}
	nr.applyUpdates("", nil)
	return nr.goNext()
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
