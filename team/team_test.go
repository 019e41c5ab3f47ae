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
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
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
	res, err := (&graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
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

func TestFailedAgentIsReported(t *testing.T) {
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
	st := journal.NewMemory()
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
			case journal.KindCall:
				alive[name] = true
			case journal.KindReturn:
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
func oldestFirst(t *testing.T, st journal.Store) (all []history.Entry) {
	t.Helper()
	for e, err := range history.Entries(t.Context(), st, "t") {
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

// askers is a lead with three agents that each ask a person, and a fourth that waits
// in its queue for a place.
func askers(s *stage, spawn team.Spawn) team.Config {
	c := pair(s, func(_ context.Context, v view) llm.Message {
		switch {
		case v.round == 0:
			return calls(v, append(append(append(spawnCall("a"), spawnCall("b")...), spawnCall("c")...),
				"agent__task_create", `{"subject":"d","agent":"explore","prompt":"d"}`)...)
		case v.round < 4:
			return calls(v, collectCall(ids(v)[v.round-1])...)
		case v.round == 4:
			return calls(v, "agent__task_list", "{}")
		case v.round == 5:
			return calls(v, collectCall(taskAgent(v.last(), 0))...)
		}
		return words(strings.Join(v.results, "\n"))
	}, func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			return calls(v, "user__input", `{"question":"Which?"}`)
		}
		return words(v.asked + " is done")
	}, spawn)
	m := c.Agents["explore"]
	m.Agent.Tools = agent.UserTools(false)
	c.Agents["explore"] = m
	return c
}

// Every spawned agent was allowed: narrower rules, which came while the run
// was parked, hold for agents that are spawned from then on, and no agent's work is lost.
func TestNarrowerRulesAfterAPause(t *testing.T) {
	for name, rule := range map[string]team.Spawn{"places": {Max: 1}, "none": {Max: -1}, "depth": {Max: 3, Depth: -1}, "names": {Max: 3, Only: []string{}}} {
		t.Run(name, func(t *testing.T) {
			s, st := newStage(), journal.NewMemory()
			res, err := (&graph.Runner{Graph: compile(t, askers(s, team.Spawn{Max: 3})), Store: st}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			if err != nil || len(res.Questions) != 3 {
				t.Fatal(res.Status, res.Questions, err)
			}
			res, _, err = finish(t, &graph.Runner{Graph: compile(t, askers(s, rule)), Store: st})
			if err != nil || res.Status != graph.Done {
				t.Fatal(res.Status, err)
			}
			said := agent.LastResponse(res.State)
			for _, want := range []string{"a is done", "b is done", "c is done", "d is done"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is missing in\n%s", want, said)
				}
			}
			for asked, n := range s.requests {
				if strings.HasPrefix(asked, "explore/") && n != 1 {
					t.Errorf("request %s was made %d times", asked, n)
				}
			}
		})
	}
}

// Agents that are cancelled together end together: it takes as long as the slowest.
func TestCancelledTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		const slow = 5 * time.Second
		hangs := tool.Tool{Name: "hang", Effect: tool.Idempotent, Run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			time.Sleep(slow)
			return tool.Result{}, ctx.Err()
		}}
		var took time.Duration
		var began time.Time
		c := pair(s, func(_ context.Context, v view) llm.Message {
			switch v.round {
			case 0:
				return calls(v, spawnCall("parent")...)
			case 1:
				synctest.Wait() // all are running
				began = time.Now()
				return calls(v, "agent__cancel", fmt.Sprintf(`{"id":%q}`, ids(v)[0]))
			}
			took = time.Since(began)
			return words("ok")
		}, func(_ context.Context, v view) llm.Message {
			switch {
			case v.asked != "parent":
				return calls(v, "hang", "{}")
			case v.round == 0:
				return calls(v, append(append(spawnCall("a"), spawnCall("b")...), spawnCall("c")...)...)
			}
			return calls(v, collectCall(ids(v)[0])...)
		}, team.Spawn{})
		m := c.Agents["explore"]
		m.Spawn, m.Agent.Tools = &team.Spawn{}, []tool.Tool{hangs}
		c.Agents["explore"] = m
		invoke(t, c)
		if took != slow {
			t.Errorf("it took %v to cancel four agents that each take %v", took, slow)
		}
	})
}

// An agent that does not exist any more when it should continue, which the caller accepts,
// has failed for that reason, and so has a task that was to be given to it.
func TestAgentsThatAreGone(t *testing.T) {
	for why, change := range map[string]func(map[string]team.Member){
		"agent 'explore' no longer exists": func(all map[string]team.Member) { delete(all, "explore") },
		"its file is damaged": func(all map[string]team.Member) {
			all["explore"] = team.Member{Fault: errors.New("its file is damaged")}
		},
	} {
		s, st := newStage(), journal.NewMemory()
		c := askers(s, team.Spawn{Max: 3})
		if res, err := (&graph.Runner{Graph: compile(t, c), Store: st}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")}); err != nil || len(res.Questions) != 3 {
			t.Fatal(res.Status, res.Questions, err)
		}
		change(c.Agents)
		res, err := (&graph.Runner{Graph: compile(t, c), Store: st}).InvokeResume(t.Context(), graph.Resume{Thread: "t", AcceptChanges: true})
		if said := agent.LastResponse(res.State); err != nil || strings.Count(said, fmt.Sprintf(`"error":%q`, why)) != 4 {
			t.Errorf("%s: %v, %v, %s", why, res.Status, err, said)
		}
	}
}

// The cost of the summary of an output is part of the cost of the turn.
func TestSummariesArePaidFor(t *testing.T) {
	s := newStage()
	c := pair(s, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0:
			return calls(v, spawnCall("long")...)
		case 1:
			return calls(v, collectCall(ids(v)[0])...)
		}
		return words("ok")
	}, func(context.Context, view) llm.Message { return words(strings.Repeat("long ", 1000)) }, team.Spawn{})
	c.Lead.Spawn.Summary = s.model("summary", func(context.Context, view) llm.Message { return words("short") })
	res := invoke(t, c)
	requests, _ := s.total()
	if spent := agent.Spent.Get(res.State); spent.Calls != requests || requests != 5 || spent.Usage.Input != 50 {
		t.Errorf("%d requests, and the turn has cost %+v", requests, spent)
	}
}

// A parked run is compared with the graphs of the agents that are running in it, and
// not against those of all that it might have spawned: one that is installed or
// removed meanwhile changes nothing. What has changed is consented to once.
func TestChangedAgentsOfAParkedTeam(t *testing.T) {
	st := journal.NewMemory()
	crew := func(change func(map[string]team.Member)) *graph.Runner {
		c := askers(newStage(), team.Spawn{Max: 3})
		change(c.Agents)
		return &graph.Runner{Graph: compile(t, c), Store: st}
	}
	stranger := team.Member{Agent: agent.Config{Model: newStage().model("stranger", nil)}}
	res, err := crew(func(all map[string]team.Member) { all["stranger"] = stranger }).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || len(res.Questions) != 3 {
		t.Fatal(res.Status, res.Questions, err)
	}
	r := crew(func(all map[string]team.Member) { all["another"] = stranger }) // d is queued instead of the one that is answered
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "this"}}}); err != nil || len(res.Questions) != 3 {
		t.Fatal(res.Status, res.Questions, err)
	}
	r = crew(func(all map[string]team.Member) {
		m := all["explore"]
		m.Agent.Continue.Max = 3
		all["explore"] = m
	})
	var changed *graph.ChangedError
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); !errors.As(err, &changed) || !strings.HasPrefix(changed.Child, "team/agent_explore_") {
		t.Fatalf("%v, of %+v", err, changed)
	}
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", AcceptChanges: true}); err != nil || len(res.Questions) != 3 {
		t.Fatal(res.Status, res.Questions, err)
	}
	if res, _, err = finish(t, r); err != nil || res.Status != graph.Done {
		t.Fatal(res.Status, err)
	}
	for _, want := range []string{"a is done", "b is done", "c is done", "d is done"} {
		if said := agent.LastResponse(res.State); !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
}

// one makes a lead start an agent for each prompt, then do what rest says, with the
// rounds counted from there.
func one(prompts []string, rest part) part {
	return func(ctx context.Context, v view) llm.Message {
		if v.round == 0 {
			var pairs []string
			for _, p := range prompts {
				pairs = append(pairs, spawnCall(p)...)
			}
			return calls(v, pairs...)
		}
		return rest(ctx, v)
	}
}

func collectCall(id string) []string {
	return []string{"agent__collect", fmt.Sprintf(`{"id":%q}`, id)}
}

// asking is an agent that asks its spawner and tells the answer.
func asking(_ context.Context, v view) llm.Message {
	if v.round == 0 {
		return calls(v, "user__ask", `{"question":"Which?","options":["red","blue"]}`)
	}
	return words("told: " + v.last())
}

func escalateTool(s *stage, leads part, patience time.Duration) team.Config {
	c := pair(s, leads, asking, team.Spawn{})
	c.Escalate = true
	m := c.Agents["explore"]
	m.Patience, m.Agent.Tools = patience, agent.UserTools(true)
	c.Agents["explore"] = m
	return c
}

func TestEscalation(t *testing.T) {
	s := newStage()
	var told []string
	invoke(t, escalateTool(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 1, 3:
			return calls(v, collectCall(ids(v)[0])...)
		case 2:
			if !strings.Contains(v.last(), `"status":"pending"`) || !strings.Contains(v.last(), `"question":"[ask] Which?","options":["red","blue"]`) {
				t.Errorf("collect says %s", v.last())
			}
			_, id, _ := strings.Cut(v.last(), `"escalation_id":"`)
			id, _, _ = strings.Cut(id, `"`)
			return calls(v, "agent__reply_escalation", fmt.Sprintf(`{"escalation_id":%q,"reply":"blue"}`, id), "agent__reply_escalation", fmt.Sprintf(`{"escalation_id":%q,"reply":"red"}`, id))
		}
		told = v.results
		return words("ok")
	}), 0))
	for i, want := range map[int]string{2: `"message":"Reply sent to agent 'explore' for escalation 'esc_`, 3: "No pending escalation found with id 'esc_", 4: `told: {\"answer\":\"blue\"}`} {
		if !strings.Contains(told[i], want) {
			t.Errorf("result %d is %s, want %s", i, told[i], want)
		}
	}
}

func TestEscalationTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		c := escalateTool(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
			switch v.round {
			case 1:
				return calls(v, collectCall(ids(v)[0])...)
			case 2:
				time.Sleep(time.Hour)
				return calls(v, append(collectCall(ids(v)[0]), "agent__reply_escalation", `{"escalation_id":"esc_1","reply":"x"}`)...)
			}
			return words(v.results[2])
		}), 90*time.Second)
		res, err := (&graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		if err != nil {
			t.Fatal(err)
		}
		if got := agent.LastResponse(res.State); !strings.Contains(got, `Escalation timed out after 90 seconds waiting for user response\",\"fallback\":\"Make your best judgment and proceed`) {
			t.Error(got)
		}
	})
}

func TestMessages(t *testing.T) {
	s := newStage()
	var told []string
	ready := make(chan string, 1)
	sent := make(chan struct{})
	res := invoke(t, pair(s, one([]string{"writes", "reads"}, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 1:
			ready <- ids(v)[1]
			return calls(v, append(collectCall(ids(v)[0]), collectCall(ids(v)[1])...)...)
		case 2:
			return calls(v, "agent__check_inbox", "{}", "agent__check_inbox", "{}", "agent__send_message", fmt.Sprintf(`{"id":%q,"message":"late"}`, ids(v)[0]))
		}
		told = v.results
		return words("ok")
	}), func(_ context.Context, v view) llm.Message {
		switch {
		case v.asked == "writes" && v.round == 0:
			sibling := fmt.Sprintf(`{"to":%q,"message":"hello"}`, <-ready)
			return calls(v, "agent__send_message", sibling, "agent__send_message", sibling, "agent__send_message", `{"id":"parent","message":"up"}`, "agent__send_message", `{"id":"nobody","message":"x"}`)
		case v.asked == "writes":
			close(sent)
			return words(strings.Join(v.results, " "))
		case v.round == 0:
			<-sent
			return calls(v, "agent__check_inbox", "{}")
		}
		return words(v.last())
	}, team.Spawn{}))
	if res.Status != graph.Done {
		t.Fatal(res.Status)
	}
	for i, want := range map[int]string{2: "No agent found with id 'nobody'. Agent may not exist or may have already completed.",
		3: `"payload\":{\"type\":\"text\",\"content\":\"hello\"}`, 4: `{"messages":[{"from":"agent_explore_`, 5: `{"messages":[],"count":0}`, 6: "No agent found with id 'agent_explore_"} {
		if !strings.Contains(told[i], want) {
			t.Errorf("result %d is %s, want %s", i, told[i], want)
		}
	}
	if !strings.Contains(told[3], `\"count\":2`) || !strings.Contains(told[4], `"count":1`) {
		t.Errorf("inboxes: %s, %s", told[3], told[4])
	}
}

// A lead that ends its turn too early gets a reminder, and then the agents that still run are
// cancelled. No task of the queue takes their place.
func TestReminders(t *testing.T) {
	s := newStage()
	var ended error
	begun := make(chan struct{})
	c := pair(s, func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			return calls(v, append(spawnCall("a"), "agent__task_create", `{"subject":"b","agent":"explore","prompt":"b"}`,
				"agent__task_create", `{"subject":"c","agent":"explore","prompt":"c"}`)...)
		}
		<-begun
		return words(fmt.Sprint("answer ", v.round))
	}, func(ctx context.Context, _ view) llm.Message {
		close(begun)
		<-ctx.Done()
		ended = ctx.Err()
		return llm.Message{}
	}, team.Spawn{Reminders: 2, Max: 1})
	var res graph.Result
	started := 0
	for ev, err := range (&graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}).Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			if _, ok := b.Value.(team.AgentStarted); ok {
				started++
			}
		case graph.RunEnded:
			res = b.Result
		}
	}
	var said []string
	for _, m := range agent.History(res.State) {
		if m.Role == llm.RoleUser {
			said = append(said, m.Text())
		}
	}
	if len(said) != 3 || !strings.Contains(said[2], "still run: agent_explore_") || agent.LastResponse(res.State) != "answer 3" || !errors.Is(ended, context.Canceled) {
		t.Errorf("%q, %q, %v", said, agent.LastResponse(res.State), ended)
	}
	if started != 1 {
		t.Errorf("%d agents were started, want 1", started)
	}
}

func TestLongOutputsAreSummedUp(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for name, c := range map[string]struct{ summary, want string }{"summed up": {"short", `"output":"short"`}, "cut": {"", `characters left out`}} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			var told string
			invoke(t, pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
				if v.round == 1 {
					return calls(v, collectCall(ids(v)[0])...)
				}
				told = v.last()
				return words("ok")
			}), func(context.Context, view) llm.Message { return words(long) },
				team.Spawn{Threshold: 100, Summary: s.model("summary", func(_ context.Context, v view) llm.Message {
					if !strings.Contains(v.asked, long) {
						t.Errorf("the model is not given the output: %s", v.asked)
					}
					return words(c.summary)
				})}))
			if !strings.Contains(told, c.want) || strings.Contains(told, long) {
				t.Error(told)
			}
		})
	}
}

// The next turn on the thread knows what the lead said in the one before, and
// nothing of its agents.
func TestNextTurn(t *testing.T) {
	s := newStage()
	var rounds []int
	g := compile(t, pair(s, func(_ context.Context, v view) llm.Message {
		rounds = append(rounds, len(v.results))
		switch v.round {
		case 0, 3:
			return calls(v, spawnCall(fmt.Sprint("turn ", v.round))...)
		case 1, 4:
			return calls(v, collectCall(ids(v)[len(ids(v))-1])...)
		}
		return words(fmt.Sprint("said ", v.round, v.last()))
	}, func(_ context.Context, v view) llm.Message { return words("done " + v.asked) }, team.Spawn{}))
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	for i, want := range []string{"done turn 0", "done turn 3"} {
		res, err := agent.InvokeNext(t.Context(), r, graph.Input{Thread: "t", Set: agent.Turn(fmt.Sprint("Go ", i))})
		if err != nil || !strings.Contains(agent.LastResponse(res.State), want) {
			t.Fatalf("turn %d: %v, %q", i, err, agent.LastResponse(res.State))
		}
		if got := agent.Spent.Get(res.State).Calls; got != 4 {
			t.Errorf("turn %d has cost %d calls, want 4", i, got)
		}
	}
	if fmt.Sprint(rounds) != "[0 1 2 2 3 4]" {
		t.Errorf("results that the lead saw: %v", rounds)
	}
}

// A run that is paused while the lead collects continues with the agents where they
// were.
func TestPauseWhileTheLeadCollects(t *testing.T) {
	s := newStage()
	pause := make(chan struct{})
	c := pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			return calls(v, collectCall(ids(v)[0])...)
		}
		return words(v.last())
	}), func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			close(pause)
			return calls(v, "work", "{}")
		}
		return words("ready")
	}, team.Spawn{})
	r := &graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Pause: pause})
	if err != nil || res.Status != graph.Paused {
		t.Fatalf("%v, %v", res.Status, err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if err != nil || res.Status != graph.Done || !strings.Contains(agent.LastResponse(res.State), "ready") || s.calls["{}"] != 1 {
		t.Errorf("%v, %v, %q, %v", res.Status, err, agent.LastResponse(res.State), s.calls)
	}
}

// TestTerminalShowsTheLead: of all replies in a team, TerminalFilter passes only those of the lead.
func TestTerminalShowsTheLead(t *testing.T) {
	s := newStage()
	g := compile(t, pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			return calls(v, collectCall(ids(v)[0])...)
		}
		return words("the answer")
	}), func(context.Context, view) llm.Message { return words("an aside") }, team.Spawn{}))
	keeps := agent.TerminalFilter(g)
	var heard []string
	for e, err := range (&graph.Runner{Graph: g}).Run(t.Context(), graph.Input{Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if m, final := agent.FinalReply(e); final && keeps(e) {
			heard = append(heard, m.Text())
		}
	}
	if len(heard) != 1 || heard[0] != "the answer" {
		t.Errorf("heard %q", heard)
	}
}

// A lead that does other things while an agent waits for its reply gets a reminder in
// what its tools say.
func TestNotice(t *testing.T) {
	for text, want := range map[string]string{`{"output":"worked"}`: `{"output":"worked","pending_escalations":[{"escalation_id":"esc_`,
		`{}`: `{"pending_escalations":[`, `[1]`: `{"output":[1],"pending_escalations":[`, `plain "words"`: `{"output":"plain \"words\"","pending_escalations":[`, "": `{"output":"DONE","pending_escalations":[`} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				var told string
				c := escalateTool(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
					switch v.round {
					case 1:
						synctest.Wait() // until the agent has asked
						return calls(v, "look", "{}")
					case 2:
						told = v.last()
						return calls(v, "agent__cancel", fmt.Sprintf(`{"id":%q}`, ids(v)[0]))
					case 3:
						return calls(v, "look", `{"again":1}`)
					}
					return words(v.last())
				}), 0)
				c.Lead.Agent.Tools = []tool.Tool{{Name: "look", Effect: tool.ReadOnly, Run: func(context.Context, tool.Call) (tool.Result, error) {
					if text == "" {
						return tool.Result{}, nil
					}
					return tool.Result{Content: []llm.Part{llm.Text{Text: text}}}, nil
				}}}
				res, err := (&graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(told, want) || !json.Valid([]byte(told)) || !strings.Contains(told, `"escalation_instruction":`) {
					t.Errorf("told %s, want %s", told, want)
				}
				if got := agent.LastResponse(res.State); strings.Contains(got, "pending") {
					t.Errorf("nobody waits, and the lead is told %s", got)
				}
			})
		})
	}
}
