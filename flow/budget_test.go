package flow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// tallyModels counts the calls of models.
type tallyModels struct{ made atomic.Int32 }

func (*tallyModels) IsKnown(_, _ string) bool                                  { return true }
func (*tallyModels) Facts(_, _ string) ModelFacts                              { return ModelFacts{} }
func (m *tallyModels) Open(context.Context, string, string) (llm.Model, error) { return m, nil }

func (m *tallyModels) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		n := m.made.Add(1)
		yield(llm.Delta{Done: &llm.Reply{Usage: llm.Usage{Input: 5, Output: 5}, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: fmt.Sprint("reply ", n)}}}}}, nil)
	}
}

// budgetFiles are a map of twenty items whose branch is an agent, with two calls for each item.
func budgetFiles(top, each string) map[string]string {
	return map[string]string{
		"graph.yaml": `
name: wide
model: m:x
` + top + `
start: each
initial_state: {list: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]}
nodes:
  each: {type: map, over: "{{list}}", as: item, branch: one, collect_into: said` + each + `, next: e}
  one: {type: agent, agent: sub, prompt: "{{item}}"}
  spent: {type: end, output: "it is used up"}
  e: {type: end, output: "{{said}}"}
`,
		"../sub/graph.yaml": `
name: sub
model: m:x
start: a
nodes:
  a: {type: llm, prompt: "{{initial_prompt}}", next: b}
  b: {type: llm, prompt: "{{initial_prompt}}", state_updates: {got: "{{output}}"}, next: e}
  e: {type: end, output: "{{got}}"}
`,
	}
}

// A budget of calls over twenty items and the agents below them is never exceeded, at whatever record the process is
// killed, and however often.
func TestBudgetThroughKills(t *testing.T) {
	const most = 23
	for what, files := range map[string]map[string]string{
		"of the graph": budgetFiles("budget: {calls: 23}", ""),
		"of the map":   budgetFiles("", ", budget: {calls: 23}"),
	} {
		models := &tallyModels{}
		drive := func(store journal.Store) error {
			r := &resumable{t, dirOf(t, files), store}
			_, err := r.driveIn(Host{Models: models})
			return err
		}
		var over *agent.BudgetError
		count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
		if err := drive(count); !errors.As(err, &over) || models.made.Load() != most || !strings.Contains(err.Error(), "graph.yaml:") || !strings.Contains(err.Error(), "23 of 23") {
			t.Fatalf("%s: %d calls, %v", what, models.made.Load(), err)
		}
		for first := 1; first < count.RecordCount(); first += 3 {
			models.made.Store(0)
			store := journal.NewMemory()
			for kill := first; kill > 1; kill = kill * 2 / 3 {
				if err := drive(&graphtest.Crash{Store: store, Limit: kill}); !errors.As(err, &over) && !errors.Is(err, graphtest.ErrCrash) {
					t.Fatalf("%s: killed after %d records: %v", what, kill, err)
				}
			}
			if err := drive(store); !errors.As(err, &over) || models.made.Load() > most {
				t.Fatalf("%s: killed after %d records and then again: %d calls of %d, %v", what, first, models.made.Load(), most, err)
			}
		}
	}
}

// dirs are the directories of agents that dirOf has written, by test.
func dirOf(t *testing.T, files map[string]string) string {
	t.Helper()
	return newResumable(t, files).dir
}

// When a budget is used up, its file says what follows.
func TestOnExceeded(t *testing.T) {
	for _, k := range []struct {
		name, top, each string
		answers         []string
		calls           int
		output, failure string
	}{
		{name: "a node", each: ", budget: {calls: 4, on_exceeded: spent}", calls: 4, output: "it is used up"},
		{name: "a node of the graph", top: "budget: {calls: 4, on_exceeded: spent}", calls: 4, output: "it is used up"},
		{name: "stop", each: ", budget: {calls: 4}", calls: 4, failure: "the budget of node 'each' and the agents below it (agent/graph.yaml:8) for calls is used up: 4 of 4"},
		{name: "ask, and more", each: ", budget: {calls: 25, on_exceeded: ask}", answers: []string{"continue"}, calls: 40, output: "reply"},
		{name: "ask, and stop", each: ", budget: {calls: 25, on_exceeded: ask}", answers: []string{"stop"}, calls: 25, failure: "25 of 25"},
		{name: "the graph asks twice", top: "budget: {calls: 15, on_exceeded: ask}", answers: []string{"continue", "continue"}, calls: 40, output: "reply"},
		{name: "the graph asks twice, and stops", top: "budget: {calls: 15, on_exceeded: ask}", answers: []string{"continue", "stop"}, calls: 30, failure: "graph 'agent'"},
		{name: "tokens", top: "budget: {tokens: 300}", calls: 30, failure: "for tokens is used up: 300 of 300"},
	} {
		t.Run(k.name, func(t *testing.T) {
			models := &tallyModels{}
			r := newResumable(t, budgetFiles(k.top, k.each))
			res, err := r.driveIn(Host{Models: models})
			for _, text := range k.answers {
				if err != nil || len(res.Questions) != 1 || !strings.Contains(res.Questions[0].Prompt, "is used up") {
					t.Fatalf("%v, %v, %+v", res.Status, err, res.Questions)
				}
				res, err = r.driveIn(Host{Models: models}, graph.Answer{ID: res.Questions[0].ID, Value: text})
			}
			switch {
			case int(models.made.Load()) != k.calls:
				t.Errorf("%d calls, want %d; %v, %v", models.made.Load(), k.calls, res.Status, err)
			case k.failure != "" && (err == nil || !strings.Contains(err.Error(), k.failure)):
				t.Errorf("%v, %v", res.Status, err)
			case k.failure == "" && (err != nil || !strings.Contains(fmt.Sprint(OutcomeOf(res).Output), k.output)):
				t.Errorf("%v, %v, %v", res.Status, err, OutcomeOf(res).Output)
			}
		})
	}
}
