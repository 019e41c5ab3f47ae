package flow

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/llm"
)

// remoteFiles are an agent whose node and whose maps name a queue.
func remoteFiles(queue string) map[string]string {
	return map[string]string{"graph.yaml": `
name: near
initial_state: {items: [a, bb, ccc]}
start: fetch
nodes:
  fetch: {type: agent, agent: agent/far, prompt: "for {{items}}"` + queue + `, state_updates: {fetched: "<{{output}}>"}, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: far` + queue + `, max_concurrency: 2, collect_into: all, next: count}
  far: {type: agent, agent: agent/far, prompt: "item {{item}}"}
  count: {type: map, over: "{{items}}", as: item, branch: size` + queue + `, output_key: size, collect_into: sizes, next: end}
  size: {type: script, script: size.sh}
  end: {type: end, output: "{{fetched}} {{all}} {{sizes}}"}
`,
		"size.sh":        "n=$(printf '%s' \"$GRAPH_STATE\" | sed 's/.*\"item\":\"\\([a-z]*\\)\".*/\\1/' | tr -d '\\n' | wc -c)\necho \"{\\\"size\\\": {\\\"of\\\": $n}}\"\n",
		"far/graph.yaml": "name: far\nstart: end\nnodes:\n  end: {type: end, output: \"got {{initial_prompt}}\"}\n"}
}

// runRemote does what a run of its own does, and returns the answer.
func runRemote(t *testing.T, q graph.Question) graph.Answer {
	t.Helper()
	call, ok := graph.RemoteCallOf(&q)
	var in RemoteInput
	if !ok || call.Queue != "gpu" || json.Unmarshal(call.Input, &in) != nil {
		t.Fatalf("the question is %+v", q)
	}
	a, err := Load(in.Dir, Host{Depth: in.Depth, Bounds: Bounds{Branch: in.Branch}, Model: in.Model})
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	start := a.Input(in.Prompt)
	if in.State != nil {
		state, err := jsonvalue.ParseStored(in.State)
		if err != nil {
			t.Fatal(err)
		}
		start.Set = append(start.Set, StateWrites(a, state.(*jsonvalue.Object))...)
	}
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), start)
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%s: %v", res.Status, err)
	}
	return graph.Answer{ID: q.ID, Value: RemoteResult{Run: call.Run, Output: OutcomeOf(res).Output}}
}

// Nodes with a queue leave the same state in one process, and when their children are runs of their own.
func TestRemoteRunsLeaveTheSameState(t *testing.T) {
	want, err := newResumable(t, remoteFiles("")).drive()
	if err != nil || want.Status != graph.Done {
		t.Fatalf("%s: %v", want.Status, err)
	}
	alone, err := newResumable(t, remoteFiles(", queue: gpu")).drive()
	if err != nil || string(StateJSON(alone.State)) != string(StateJSON(want.State)) {
		t.Errorf("in one process: %s, %v\nwant %s", StateJSON(alone.State), err, StateJSON(want.State))
	}
	r, runs := newResumable(t, remoteFiles(", queue: gpu")), 0
	host := Host{Bounds: Bounds{Remote: true}}
	res, err := r.driveIn(host)
	for err == nil && res.Status == graph.Waiting {
		var answers []graph.Answer
		for _, q := range res.Questions {
			if call, _ := graph.RemoteCallOf(&q); strings.HasPrefix(q.ID, "each/") && call.Limit != 2 {
				t.Errorf("the limit of %s is %d", q.ID, call.Limit)
			}
			answers = append(answers, runRemote(t, q))
		}
		runs += len(answers)
		res, err = r.driveIn(host, answers...)
	}
	if err != nil || string(StateJSON(res.State)) != string(StateJSON(want.State)) || res.Value != want.Value {
		t.Errorf("with runs of their own: %s, %v\nwant %s", StateJSON(res.State), err, StateJSON(want.State))
	}
	if runs != 1+3+3 {
		t.Errorf("there were %d runs", runs)
	}
}

// A run of its own gets what the budget of the run above has left, and its use counts there when the answer is read.
func TestRemoteBudget(t *testing.T) {
	r := newResumable(t, remoteFiles(", queue: gpu"))
	host := Host{Bounds: Bounds{Remote: true}, Tooling: Tooling{Budget: agent.Budget{Tokens: 1000, Calls: 9}}}
	res, err := r.driveIn(host)
	if err != nil {
		t.Fatal(err)
	}
	limits := func() agent.Limits {
		t.Helper()
		call, _ := graph.RemoteCallOf(&res.Questions[0])
		var in RemoteInput
		if err := json.Unmarshal(call.Input, &in); err != nil || in.Budget == nil {
			t.Fatalf("%s: %v", call.Input, err)
		}
		return *in.Budget
	}
	if got := limits(); got != (agent.Limits{Tokens: 1000, Calls: 9}) {
		t.Errorf("the first run may use %+v", got)
	}
	use := func(q graph.Question, tokens int) graph.Answer {
		a := runRemote(t, q)
		given := a.Value.(RemoteResult)
		given.Spend = agent.Spend{Calls: 1, Usage: llm.Usage{Input: tokens - 10, Output: 10}}
		a.Value = given
		return a
	}
	if res, err = r.driveIn(host, use(res.Questions[0], 400)); err != nil {
		t.Fatal(err)
	}
	if got := limits(); len(res.Questions) != 3 || got != (agent.Limits{Tokens: 200, Calls: 2}) { // a third of what is left
		t.Errorf("the next run may use %+v", got)
	}
	var answers []graph.Answer
	for _, q := range res.Questions {
		answers = append(answers, use(q, 200))
	}
	if _, err = r.driveIn(host, answers...); err == nil || !strings.Contains(err.Error(), "1000 of 1000") {
		t.Errorf("a run above its budget asks for another one: %v", err)
	}
	if b := (agent.Budget{Tokens: 50}).Limit(&agent.Limits{Tokens: 600, Calls: 8}); b.Tokens != 50 || b.Calls != 8 {
		t.Errorf("the budget of the child is %+v", b)
	}
}

// A run that fails, fails its node in the words of a child in the process.
func TestRemoteFailure(t *testing.T) {
	r := newResumable(t, remoteFiles(", queue: gpu"))
	res, err := r.driveIn(Host{Bounds: Bounds{Remote: true}})
	if err != nil {
		t.Fatal(err)
	}
	text := RemoteFailure(RemoteInput{Agent: "far"}, "no luck")
	_, err = r.driveIn(Host{Bounds: Bounds{Remote: true}}, graph.Answer{ID: res.Questions[0].ID, Refused: text})
	if err == nil || !strings.HasSuffix(err.Error(), "Agent 'agent/far' failed: Graph execution failed for agent 'far': no luck") {
		t.Error(err)
	}
	if res, err = r.driveIn(Host{Bounds: Bounds{Remote: true}}); err != nil || res.Status != graph.Waiting {
		t.Fatalf("resumed: %s, %v", res.Status, err)
	}
	_, err = r.driveIn(Host{Bounds: Bounds{Remote: true}}, graph.Answer{ID: res.Questions[0].ID, Refused: "x", Value: RemoteResult{TimedOut: true}})
	if err == nil || !strings.HasSuffix(err.Error(), "Agent 'agent/far' timed out after 300s") {
		t.Error(err)
	}
}
