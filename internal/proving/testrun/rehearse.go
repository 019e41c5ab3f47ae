package testrun

import (
	"context"
	"encoding/json"
	"path/filepath"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Rehearsal lets runs of an agent work in any process with the answers of a test case, and watches their effects.
type Rehearsal struct {
	Agent *flow.Agent    // that works
	Case  *testcase.Case // what answers for models, tools and nodes; nil: nothing does, they are real
	Model string         // replaces every model; "": none is replaced. Not with a case

	// Begin is called before each effect: what is called for people, the node, and graph.EffectKey. What it returns is
	// called after it with its error. It is called by several goroutines at once.
	Begin func(key, what, node string) (end func(error))

	Price func(model string, u llm.Usage) (dollars float64, known bool) // of a reply
}

// AdjustHost is for Process.Adjust of package app. Each host gets answers of its own: what a case lists for the first, second, …
// execution begins again in the next drive of a run.
func (r *Rehearsal) AdjustHost(h *flow.Host) {
	names := newNaming(r.Agent)
	if r.Case != nil {
		newStubs(r.Case, names, r.Price).adjustHost(h)
	}
	if r.Model != "" {
		h.Model = r.Model
		h.Models = &oneModel{h.Models, r.Model}
	}
	watchEffects(h, names, func(ctx context.Context, e effect) func(error) {
		return r.Begin(graph.EffectKey(ctx), e.what, e.node)
	})
}

// oneModel is the model of all nodes.
type oneModel struct {
	flow.Models
	id string
}

// IsKnown implements [flow.Models].
func (m *oneModel) IsKnown(string, string) bool { return true }

// Open implements [flow.Models].
func (m *oneModel) Open(ctx context.Context, dir, _ string) (llm.Model, error) {
	return m.Models.Open(ctx, dir, m.id)
}

// NewAnswers returns what answers the questions of one run: as the case says, or else with the default or the first
// choice of a question; a call that asks for permission is refused, and one in doubt is made again. ok is false if
// only an event or a time can answer it. It is not safe for concurrent use.
func (r *Rehearsal) NewAnswers() func(q graph.Question) (value any, ok bool) {
	c := r.Case
	if c == nil {
		c = &testcase.Case{}
	}
	s := newStubs(c, newNaming(r.Agent), r.Price)
	return func(q graph.Question) (any, bool) {
		if v, ok := s.answer(q); ok {
			return decodeEvent(q, v), true
		}
		return chooseAnswer(q)
	}
}

// chooseAnswer answers a question of which no case says anything.
func chooseAnswer(q graph.Question) (any, bool) {
	switch {
	case q.Kind == graph.KindEvent || len(q.Options) == 0 && !q.Free && !q.Due.IsZero():
		return nil, false
	case q.Kind == agent.KindDoubt:
		return string(tool.DoubtRetry), true
	case q.Kind == agent.KindPermission:
		return "no", true
	case q.Default != "":
		return q.Default, true
	case len(q.Options) > 0:
		return q.Options[0], true
	}
	switch q.Type {
	case "number":
		return 1, true
	case "boolean":
		return true, true
	case "array":
		return []any{}, true
	case "object":
		return map[string]any{}, true
	}
	return "yes", true
}

// decodeEvent returns an answer of a case as data if the question waits for an event.
func decodeEvent(q graph.Question, v any) any {
	if text, isText := v.(string); isText && q.Kind == graph.KindEvent && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return v
}

// FindCase returns the case of an agent's directory that is best to be repeated: the one with a name, or else the first
// that must end as done, in which nothing fails on purpose and no time passes, and whose answers are not lists for
// several executions; nil: there is none. The error says that there is no case with the name, or that a file cannot be
// read.
func FindCase(dir, name string) (*testcase.Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+testcase.Suffix))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		f, err := testcase.Load(path)
		if err != nil {
			return nil, err
		}
		for _, c := range f.Cases {
			if c.Name == name || name == "" && isRepeatable(c) {
				return c, nil
			}
		}
	}
	if name != "" {
		return nil, failure.NewUsage("see the names with: raddle test --verbose "+dir, "no test case of %s has the name %q", dir, name)
	}
	return nil, nil
}

// isRepeatable reports whether a case gives the same answers in each drive of a run.
func isRepeatable(c *testcase.Case) bool {
	if len(c.Faults) > 0 || c.Passes() > 0 || c.Expect.Error != nil || c.Expect.Status != "" && c.Expect.Status != "done" {
		return false
	}
	inOrder := map[string]int{} // replies without a condition, by node: a drive would get the first one again
	for i := range c.Replies {
		if r := &c.Replies[i]; len(r.Match)+len(r.After)+r.Turn == 0 {
			inOrder[r.Node]++
		}
	}
	for _, t := range c.Tools {
		for _, result := range t.Results {
			if result.Match == "" {
				inOrder["tool "+t.Tool]++
			}
		}
	}
	for _, n := range c.Nodes {
		inOrder["output of "+n.Node] = len(n.Outputs)
	}
	for _, n := range inOrder {
		if n > 1 {
			return false
		}
	}
	return true
}

// CopyAgent copies the directory of an agent, and those of the agents below it, into a directory, each under its name.
func CopyAgent(a *flow.Agent, to string) error {
	dirs := []string{a.Dir}
	for _, child := range a.Agents()[1:] {
		dirs = append(dirs, child.Dir)
	}
	return copyAgents(dirs, to)
}
