package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// A part is what an agent says: made of the request alone, so that a repeated
// request gets the same reply.
type part func(ctx context.Context, v view) llm.Message

// A view is a request as a part sees it.
type view struct {
	round   int      // replies so far
	asked   string   // what the agent got first
	results []string // of all calls so far
}

func (v view) last() string {
	if len(v.results) == 0 {
		return ""
	}
	return v.results[len(v.results)-1]
}

// field is a field of the newest result.
func (v view) field(name string) string {
	var o map[string]any
	_ = json.Unmarshal([]byte(v.last()), &o)
	return fmt.Sprint(o[name])
}

// A stage counts what is done to the world.
type stage struct {
	mu       sync.Mutex
	requests map[string]int // by agent, prompt and round
	calls    map[string]int // of the tool "work", by arguments
	told     io.Writer      // a line for each request; nil: no reader
}

func newStage() *stage { return &stage{requests: map[string]int{}, calls: map[string]int{}} }

func (s *stage) model(name string, p part) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			v := view{}
			for _, m := range r.Messages {
				switch {
				case m.Role == llm.RoleAssistant:
					v.round++
				case m.Role == llm.RoleUser && v.asked == "":
					v.asked = m.Text()
				}
				for _, p := range m.Parts {
					if t, ok := p.(llm.ToolResult); ok {
						v.results = append(v.results, llm.Message{Parts: t.Content}.Text())
					}
				}
			}
			s.mu.Lock()
			s.requests[fmt.Sprint(name, "/", v.asked, "/", v.round)]++
			if s.told != nil {
				_, _ = fmt.Fprintf(s.told, "request %s/%s/%d\n", name, v.asked, v.round) // the reader may be gone
			}
			s.mu.Unlock()
			m := p(ctx, v)
			if err := ctx.Err(); err != nil {
				yield(llm.Delta{}, err)
				return
			}
			yield(llm.Delta{Done: &llm.Reply{Message: m, Usage: llm.Usage{Input: 10, Output: 1}}}, nil)
		}
	})
}

// work is a tool that may not run twice.
func (s *stage) work() tool.Tool {
	return tool.Tool{Name: "work", Effect: tool.Undeclared, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls[string(c.Args)]++
		return tool.TextResult("worked"), nil
	}}
}

func words(text string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}
}

// calls is a reply with calls, each a name and its arguments.
func calls(v view, pairs ...string) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant}
	for i := 0; i < len(pairs); i += 2 {
		m.Parts = append(m.Parts, llm.ToolCall{ID: fmt.Sprintf("r%dc%d", v.round, i/2), Name: pairs[i], Args: json.RawMessage(pairs[i+1])})
	}
	return m
}

func compile(t testing.TB, c team.Config) *graph.Graph {
	t.Helper()
	g, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// invoke runs a team with a lead and one kind of agent to its end.
func invoke(t *testing.T, c team.Config) graph.Result {
	t.Helper()
	res, err := (&graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// pair is a lead and one kind of agent, "explore".
func pair(s *stage, leads, explores part, spawn team.Spawn) team.Config {
	return team.Config{Lead: team.Member{Agent: agent.Config{Model: s.model("lead", leads)}, Spawn: &spawn},
		Agents: map[string]team.Member{"explore": {Agent: agent.Config{Model: s.model("explore", explores), Tools: []tool.Tool{s.work()}}}}}
}

func spawnCall(prompt string) []string {
	return []string{"agent__spawn", fmt.Sprintf(`{"agent":"explore","prompt":%q}`, prompt)}
}

// ids are the agents that the results of spawns name.
func ids(v view) (ids []string) {
	for _, r := range v.results {
		var o struct{ Status, ID, Message string }
		if json.Unmarshal([]byte(r), &o) == nil && strings.Contains(o.Message, "spawned as") {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

func TestSpawnAndCollect(t *testing.T) {
	s := newStage()
	var told []string
	res := invoke(t, pair(s, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0:
			return calls(v, append(spawnCall("a"), spawnCall("b")...)...)
		case 1:
			m := calls(v)
			for i, id := range ids(v) {
				m.Parts = append(m.Parts, calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, id)).Parts...)
				c := m.Parts[i].(llm.ToolCall)
				c.ID += fmt.Sprint("x", i)
				m.Parts[i] = c
			}
			return m
		case 2:
			return calls(v, "agent__list", `{}`, "agent__check", fmt.Sprintf(`{"id":%q}`, ids(v)[0]), "agent__collect", `{"id":"nobody"}`, "agent__spawn", `{"agent":"explore"}`)
		}
		told = v.results
		return words("All done.")
	}, func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			m := calls(v, "work", fmt.Sprintf(`{"for":%q}`, v.asked))
			m.Parts = append([]llm.Part{llm.Text{Text: "I look."}}, m.Parts...)
			return m
		}
		return words("Found " + v.asked + ".")
	}, team.Spawn{}))
	if res.Status != graph.Done || agent.LastResponse(res.State) != "All done." {
		t.Fatalf("%v, %q", res.Status, agent.LastResponse(res.State))
	}
	for i, want := range []string{`"status":"ok"`, `"status":"ok"`, `"status":"completed"`, `"output":"I look.\nFound b."`,
		`{"active_count":0,"max_concurrent":4,"agents":[]}`, `No agent found with id 'agent_explore_`,
		`Agent 'nobody' not found. Use agent__check to verify it exists and is finished.`, `'prompt' is required`} {
		if !strings.Contains(told[i], want) {
			t.Errorf("result %d is %s, want %s", i, told[i], want)
		}
	}
	if got := agent.Spent.Get(res.State); got.Calls != 4+2*2 {
		t.Errorf("the team has cost %d calls, want 8", got.Calls)
	}
	if len(s.calls) != 2 {
		t.Errorf("work was done for %v", s.calls)
	}
}

func TestLimits(t *testing.T) {
	s := newStage()
	var told []string
	hold := make(chan struct{})
	invoke(t, team.Config{
		Lead: team.Member{Spawn: &team.Spawn{Max: 2, Depth: 1, Only: []string{"explore", "ghost"}}, Agent: agent.Config{Model: s.model("lead", func(_ context.Context, v view) llm.Message {
			switch v.round {
			case 0:
				return calls(v, append(append(spawnCall("a"), spawnCall("b")...), spawnCall("c")...)...)
			case 1:
				return calls(v, "agent__cancel", fmt.Sprintf(`{"id":%q}`, ids(v)[0]), "agent__spawn", `{"agent":"other","prompt":"x"}`, "agent__spawn", `{"agent":"ghost","prompt":"x"}`,
					"agent__cancel", `{"id":"nobody"}`, "agent__list", `{}`)
			case 2:
				close(hold)
				return calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, ids(v)[1]))
			}
			told = v.results
			return words("ok")
		})}},
		Agents: map[string]team.Member{"explore": {Spawn: &team.Spawn{Depth: 1}, Agent: agent.Config{Model: s.model("explore", func(ctx context.Context, v view) llm.Message {
			if v.round == 0 {
				select {
				case <-hold:
				case <-ctx.Done():
				}
				return calls(v, spawnCall("deeper")...)
			}
			return words(v.last())
		})}}, "other": {Agent: agent.Config{Model: s.model("other", nil)}}},
	})
	for i, want := range []string{"spawned as", "spawned as", "It waits for a place: 2/2 agents run.", "Cancelled agent 'explore'",
		"Agent 'other' is not in this agent's `spawnable_agents` whitelist. Allowed: explore, ghost.", "There is no agent 'ghost'", "No agent found with id 'nobody'",
		`"active_count":2,"max_concurrent":2`, `Max agent depth exceeded (2/1)`} {
		if !strings.Contains(told[i], want) {
			t.Errorf("result %d is %s, want %s", i, told[i], want)
		}
	}
}

func TestFailedAgentSaysSo(t *testing.T) {
	s := newStage()
	var told []string
	c := pair(s, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0:
			return calls(v, spawnCall("a")...)
		case 1:
			return calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, ids(v)[0]))
		case 2:
			return calls(v, append(spawnCall("b"), "agent__list", "{}")...)
		}
		told = v.results
		return words("ok")
	}, func(_ context.Context, v view) llm.Message {
		return calls(v, "work", fmt.Sprint(`{"n":`, v.round, `}`))
	}, team.Spawn{Max: 1, Reminders: 1})
	m := c.Agents["explore"]
	m.Agent.MaxIterations = 2
	c.Agents["explore"] = m
	invoke(t, c)
	for _, want := range []string{`"status":"failed"`, `"exit_status":"Failed(`, `"output":""`, "has replied 2 times"} {
		if !strings.Contains(told[1], want) {
			t.Errorf("the result %s lacks %s", told[1], want)
		}
	}
	if !strings.Contains(told[2], "spawned as") {
		t.Errorf("its place is not free: %s", told[2])
	}
}

// Models that start agents without end come to an end: at no time do more agents
// run than may, and none is deeper than it may.
func TestSpawningWithoutEnd(t *testing.T) {
	s := newStage()
	var mu sync.Mutex
	waiting := 0
	spawns := func(_ context.Context, v view) llm.Message {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(v.last(), "It waits for a place: 2/2 agents run.") {
			waiting++
		}
		return calls(v, append(append(spawnCall("more"), spawnCall("and more")...), spawnCall("and one more")...)...)
	}
	c := pair(s, spawns, spawns, team.Spawn{Max: 2, Depth: 2})
	c.Lead.Agent.MaxIterations = 10
	m := c.Agents["explore"]
	m.Spawn, m.Agent.MaxIterations = &team.Spawn{Max: 2, Depth: 2}, 6
	c.Agents["explore"] = m
	st := graph.NewMemory()
	_, err := (&graph.Runner{Graph: compile(t, c), Store: st}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	var limit *agent.IterationError
	if !errors.As(err, &limit) {
		t.Fatalf("the run ended with %v", err)
	}
	if waiting == 0 {
		t.Error("no agent waits for a place")
	}
	alive, most := map[string]bool{}, 0
	for _, e := range oldestFirst(t, st) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(e.Path, "0.team.0#"), "/"); ok && strings.HasPrefix(name, "agent_") {
			switch e.Kind {
			case graph.KindCall:
				alive[name] = true
			case graph.KindReturn:
				delete(alive, name)
			}
		}
		most = max(most, len(alive))
	}
	if mayRun := 2 + 2*2; most == 0 || most > 2*mayRun { // one that has failed is dropped a moment after its place is free
		t.Errorf("%d agents had a frame at once, and %d may run", most, mayRun)
	}
}

// oldestFirst is the history of the thread from its beginning.
func oldestFirst(t *testing.T, st graph.Store) (all []graph.Entry) {
	t.Helper()
	for e, err := range graph.History(t.Context(), st, "t") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	slices.Reverse(all)
	return all
}

// An agent can be any graph: it is given the prompt and says what it has come to.
func TestGraphAsAgent(t *testing.T) {
	in, out := graph.Last[string]("in"), graph.Last[string]("out")
	g, err := graph.Compile(graph.Def{Name: "shout", Keys: []graph.AnyKey{in, out}, Start: []string{"shout"},
		Nodes: []graph.Node{{Name: "shout", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if in.Get(s) == "fail" {
				return graph.Update{}, errors.New("hoarse")
			}
			return graph.Put(out.Set(strings.ToUpper(in.Get(s)))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"shout"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage()
	c := pair(s, one([]string{"hello", "fail"}, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 1:
			return calls(v, append(append(collectCall(ids(v)[0]), collectCall(ids(v)[1])...), "agent__spawn", `{"agent":"mute","prompt":"x"}`)...)
		case 2:
			return calls(v, collectCall(ids(v)[2])...)
		}
		return words(strings.Join(v.results[2:], ""))
	}), nil, team.Spawn{})
	c.Agents["explore"] = team.Member{Graph: g,
		Input:  func(prompt string) []graph.Write { return []graph.Write{in.Set(prompt)} },
		Output: func(child graph.Child) string { return out.Get(child.State) }}
	c.Agents["mute"] = team.Member{Graph: g, Input: func(string) []graph.Write { return nil }}
	said := agent.LastResponse(invoke(t, c).State)
	if !strings.Contains(said, `"output":"HELLO"`) || !strings.Contains(said, "hoarse") || !strings.Contains(said, "panic in the output of the agent") || strings.Count(said, `"status":"failed"`) != 2 {
		t.Error(said)
	}
	c.Lead.Graph = g
	if _, err := c.Compile(); err == nil || !strings.Contains(err.Error(), "agent lead") {
		t.Errorf("a lead that is a graph: %v", err)
	}
}
