//go:build unix

package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A workshop gives every agent a tool that may not run twice, and instructions that a
// script would make. It counts both.
type workshop struct{ x *troupe }

// Open implements Toolbox.
func (w workshop) Open(n ToolNeed) (*Toolset, error) {
	count := func(what string) {
		w.x.mu.Lock()
		defer w.x.mu.Unlock()
		w.x.requests[what]++
	}
	work := tool.Tool{Name: "work", Effect: tool.Undeclared, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		count("work " + n.Agent + string(c.Args))
		return tool.TextResult("worked"), nil
	}}
	return &Toolset{Tools: []tool.Tool{work}, Instructions: func(context.Context) (string, error) {
		count("instructions " + n.Agent)
		return "You are " + n.Agent + ".", nil
	}}, nil
}

var busyTeam = map[string]string{
	"lead/config.yaml":  leadFile + "spawnable_agents: [able, form]\n",
	"able/config.yaml":  "name: able\ncan_spawn_agents: true\ndynamic_instructions: true\n",
	"below/config.yaml": "name: below\n",
	"form/graph.yaml": `
name: form
start: ask
nodes:
  ask: {type: input, question: "name?", state_updates: {name: "{{input}}"}, next: run}
  run: {type: agent, agent: below, prompt: "{{name}}", state_updates: {x: "{{output}}"}, next: e}
  e: {type: end, output: "{{x}}"}
`,
	"desk/graph.yaml": `
name: desk
start: write
nodes:
  write: {type: llm, prompt: "{{initial_prompt}}", tools: [agent__spawn, agent__collect], state_updates: {x: "{{output}}"}, next: run}
  run: {type: agent, agent: lead, prompt: Go on., state_updates: {x: "{{x}} {{output}}"}, next: e}
  e: {type: end, output: "{{x}}"}
`,
}

func newBusyTeam(t *testing.T) *troupe {
	return newTroupe(t, busyTeam, map[string]role{
		"lead": spawnAll("able", "form"),
		"desk": spawnAll("able"),
		"able": func(ctx context.Context, v view) llm.Message {
			if !strings.HasPrefix(v.request.System, "You are able.") {
				return words("nobody has told me who I am")
			}
			return spawnAll("below")(ctx, v)
		},
		"below": once("work", `{"n":1}`, "work", `{"n":2}`),
	})
}

// toTheEnd loads a team anew and drives it until it is over: whoever asks gets an
// answer.
func (x *troupe) toTheEnd(root string, s graph.Store) (res graph.Result, doubts int, err error) {
	x.t.Helper()
	for range 20 {
		a, r := x.runner(root, Host{Tooling: Tooling{Box: workshop{x}}}, s)
		in := graph.Resume{Thread: "t"}
		for _, q := range res.Questions {
			answer := graph.Answer{ID: q.ID, Value: "Ada"}
			if q.Kind == agent.KindDoubt {
				answer.Value = "retry"
				doubts++
			}
			in.Answers = append(in.Answers, answer)
		}
		if res, err = r.InvokeResume(x.t.Context(), in); errors.Is(err, graph.ErrNoThread) {
			res, err = r.Invoke(x.t.Context(), withThread(a.Input("Go.")))
		}
		if err != nil || res.Status == graph.Done {
			return res, doubts, err
		}
	}
	return res, doubts, errors.New("it never ends")
}

// tally sums up what was done: replies of models, and the rest.
func tally(requests map[string]int) (replies, works int) {
	for what, n := range requests {
		if strings.Contains(what, "/") {
			replies += n
		} else {
			works += n
		}
	}
	return replies, works
}

// A team in files is broken after each of its records, and goes on in another
// process: no reply that is recorded is asked for again, nothing is done again
// without somebody's word, and all ends as if nothing had happened.
func TestCrashesOfATeamInFiles(t *testing.T) {
	crashes(t, "lead", 4, 1)
}

// The same with teams below the nodes of a graph, after some records.
func TestCrashesOfTeamsInGraphs(t *testing.T) { crashes(t, "desk", 6, 7) }

// crashes breaks a run, in which so many works are done, after each step-th record.
func crashes(t *testing.T, root string, worked, step int) {
	calm := newBusyTeam(t)
	count := &graphtest.Crash{Store: graph.NewMemory(), Limit: -1}
	want, _, err := calm.toTheEnd(root, count)
	if err != nil || strings.Count(OutcomeOf(want).Output, "worked") != worked || strings.Contains(OutcomeOf(want).Output, "nobody") {
		t.Fatal(OutcomeOf(want), err)
	}
	all, works := tally(calm.requests)
	for limit := 0; limit < count.RecordCount()-3; limit += step {
		x := newBusyTeam(t)
		store := &graphtest.Crash{Store: graph.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		if _, _, err := x.toTheEnd(root, store); err != nil && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		recorded := 0
		for e, err := range graph.History(t.Context(), store.Store, "t") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == graph.KindEffect && effectName(e.ID) == "model" {
				recorded++
			}
		}
		before, _ := tally(maps.Clone(x.requests))
		got, doubts, err := x.toTheEnd(root, store.Store)
		if err != nil || OutcomeOf(got) != OutcomeOf(want) {
			t.Fatalf("crash after %d records: %v\n%v, want\n%v", limit, err, OutcomeOf(got), OutcomeOf(want))
		}
		after, done := tally(x.requests)
		if recorded+after-before != all {
			t.Errorf("crash after %d records: %d replies were recorded and %d asked for later, want %d together", limit, recorded, after-before, all)
		}
		if again := done - works; again < 0 || again > doubts+1 { // the instructions are made again if they were not recorded
			t.Errorf("crash after %d records: %d works of %d with %d doubts: %v", limit, done, works, doubts, x.requests)
		}
	}
}

// The documents of a spawned agent are opened when it starts, and raddle does not ask: one
// whose base cannot be built fails and says why, and the others work.
func TestDocumentsOfSpawnedAgents(t *testing.T) {
	const sends = "name: sends\nstart: a\nnodes:\n  a: {type: agent, agent: knows, prompt: \"{{initial_prompt}}\", next: e, state_updates: {x: \"{{output}}\"}}\n  e: {type: end, output: \"{{x}}\"}\n"
	x := newTroupe(t, map[string]string{
		"lead/config.yaml":  leadFile + "max_concurrent_agents: 6\n",
		"knows/config.yaml": "name: knows\ndocuments: [zoo.md]\nembedding_model: keyword\n", "knows/zoo.md": "The zebra grazes.\n",
		"unsaid/config.yaml": "name: unsaid\ndocuments: [zoo.md]\n", "unsaid/zoo.md": "The lion sleeps.\n",
		"one/graph.yaml": sends, "two/graph.yaml": sends,
		"lost/graph.yaml": "name: lost\nstart: kb\nnodes:\n  kb: {type: rag, documents: [zoo.md], next: e}\n  e: {type: end}\n",
	}, map[string]role{
		"lead":   spawnAll("knows", "knows", "unsaid", "lost", "one", "two"),
		"knows":  func(_ context.Context, v view) llm.Message { return words(v.asked) },
		"unsaid": func(_ context.Context, v view) llm.Message { return words("never said") },
	})
	asked := func(string) (bool, error) { return false, errors.New("somebody was asked") }
	h := Host{Retrieval: Retrieval{Confirm: asked, Template: "__INPUT__ says the __CONTEXT__"}}
	a, r := x.runner("lead", h, graph.NewMemory())
	if err := a.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if child := a.spawnSet.agents["knows"]; len(child.bases) != 0 {
		t.Error("a base is open before anybody was spawned")
	}
	res, err := r.Invoke(t.Context(), a.Input("the zebra"))
	if err != nil {
		t.Fatal(err)
	}
	said := OutcomeOf(res).Output
	for want, n := range map[string]int{"The zebra grazes.": 4, "never said": 0,
		"Agent 'unsaid' failed: its documents have no knowledge base, and raddle does not ask": 2, // in the error and the exit status
		"Graph execution failed for agent 'lost': Agent 'lost' requires RAG for rag node 'kb'": 2} {
		if strings.Count(said, want) != n {
			t.Errorf("%q is %d times in\n%s", want, strings.Count(said, want), said)
		}
	}
	if err := a.Close(); err != nil || len(a.spawnSet.agents["knows"].bases) != 0 {
		t.Errorf("%v, %v", err, a.spawnSet.agents["knows"].bases)
	}
}

// Many agents beside a lead cost little: they are read, and no more.
func BenchmarkLoadLead(b *testing.B) {
	files := map[string]string{"lead/config.yaml": leadFile}
	for i := range 30 {
		files[fmt.Sprintf("c%d/config.yaml", i)] = "name: c\ncan_spawn_agents: true\ninstructions: x\n"
		files[fmt.Sprintf("g%d/graph.yaml", i)] = "name: g\nstart: a\nnodes:\n  a: {type: agent, agent: c1, prompt: x, next: l}\n  l: {type: llm, prompt: y, tools: [agent__spawn], next: e}\n  e: {type: end}\n"
	}
	root := b.TempDir()
	for name, text := range files {
		writeCaseFile(b, root, name, text)
	}
	for b.Loop() {
		a, err := Load(root+"/lead", Host{Model: "m:own"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := a.CompileGraph(); err != nil {
			b.Fatal(err)
		}
	}
}
