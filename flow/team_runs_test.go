//go:build unix

package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
	"raddle.dev/tool/script"
)

// ownScripts are the tools of the scripts in the directories of the agents.
type ownScripts struct{ root string }

// Open implements Toolbox.
func (b ownScripts) Open(n ToolNeed) (*Toolset, error) {
	h := &script.Host{Workspace: b.root, Env: os.Environ(), Agent: &script.Agent{Name: n.Agent, Dir: n.Dir, Variables: n.Variables}}
	tools, _ := h.OwnTools()
	return &Toolset{Tools: tools, Instructions: func(ctx context.Context) (string, error) { return h.Instructions(ctx, nil) }}, nil
}

func collect(id string) []string { return []string{"agent__collect", fmt.Sprintf(`{"id":%q}`, id)} }

func spawn(name, prompt string) []string {
	return []string{"agent__spawn", fmt.Sprintf(`{"agent":%q,"prompt":%q}`, name, prompt)}
}

// spawnAll starts agents, collects them in order, and says what they came to.
func spawnAll(agents ...string) role {
	return func(_ context.Context, v view) llm.Message {
		var pairs []string
		switch v.round {
		case 0:
			for _, name := range agents {
				pairs = append(pairs, spawn(name, "for "+v.asked)...)
			}
			return calls(v, pairs...)
		case 1:
			for i := range agents {
				pairs = append(pairs, collect(v.field(i, "id"))...)
			}
			return calls(v, pairs...)
		}
		return words(strings.Join(v.results[len(agents):], "\n"))
	}
}

// An agent that would start three of itself for ever is held by the number that may
// run at once, and by how deep they may be.
func TestSpawningWithoutEnd(t *testing.T) {
	var mu sync.Mutex
	told := map[string]chan struct{}{} // closed when the agent of a prompt has made its calls
	gate := func(prompt string) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		if told[prompt] == nil {
			told[prompt] = make(chan struct{})
		}
		return told[prompt]
	}
	refused := map[string]int{}
	x := newTroupe(t, map[string]string{"loop/config.yaml": "name: loop\ncan_spawn_agents: true\nmax_concurrent_agents: 2\nmax_agent_depth: 3\n"}, map[string]role{
		"loop": func(ctx context.Context, v view) llm.Message {
			var pairs []string
			switch v.round {
			case 0:
				if above := strings.LastIndexByte(v.asked, '.'); above > 0 { // all of its siblings are started before it continues
					select {
					case <-gate(v.asked[:above]):
					case <-ctx.Done():
					}
				}
				for i := range 3 {
					pairs = append(pairs, spawn("loop", fmt.Sprint(v.asked, ".", i))...)
				}
				return calls(v, pairs...)
			case 1:
				close(gate(v.asked))
				for i := range 3 {
					mu.Lock()
					refused[v.field(i, "message")]++
					mu.Unlock()
					if v.field(i, "status") == "ok" {
						pairs = append(pairs, collect(v.field(i, "id"))...)
					}
				}
				if pairs != nil {
					return calls(v, pairs...)
				}
			}
			return words("ended")
		},
	})
	x.run("loop", "0")
	full, deep := 0, refused["Max agent depth exceeded (4/3)"]
	for text, n := range refused {
		if strings.Contains(text, "It waits for a place: 2/2 agents run.") {
			full += n
		}
	}
	if full != 1+3+9 || deep != 3*27 {
		t.Errorf("%d wait for a place, %d are refused for being too deep: %v", full, deep, refused)
	}
	if len(told) != 1+3+9+27 {
		t.Errorf("%d agents made calls", len(told))
	}
}

// What spawned agents ask reaches the person with their paths, and may be answered in
// any order: tools that ask, permissions, and the nodes of graphs.
func TestQuestionsOfSpawnedAgents(t *testing.T) {
	x := newTroupe(t, map[string]string{
		"lead/config.yaml": leadFile, "asker/config.yaml": "name: asker\n", "guarded/config.yaml": "name: guarded\n",
		"guarded/tools.sh": "# @describe Does it\n# @cmd Does it\ndoit() { echo \"$$\" >> \"$LLM_OUTPUT\"; }\n",
		"form/graph.yaml": `
name: form
start: ask
nodes:
  ask: {type: input, question: "name?", state_updates: {name: "{{input}}"}, next: ok}
  ok: {type: approval, question: "Is {{name}} right?", options: ["yes", "no"], routes: {"yes": e, "no": e}, on_other: e}
  e: {type: end, output: "{{name}} it is"}
`}, map[string]role{
		"lead":    spawnAll("asker", "guarded", "form"),
		"asker":   once("user__ask", `{"question":"Which?","options":["left","right"]}`),
		"guarded": once("doit", `{}`),
	})
	host := Host{Tooling: Tooling{Box: ownScripts{x.root}, Gate: asks{"doit"}}}
	store := journal.NewMemory()
	a, r := x.runner("lead", host, store)
	res, err := r.Invoke(t.Context(), withThread(a.Input("Go.")))
	var answered []string
	for _, turn := range []struct{ node, answer string }{{"ask", "Ada"}, {"act", "once"}, {"ok", "yes"}, {"act", "right"}} {
		if err != nil || res.Status != graph.Waiting {
			t.Fatalf("%v: %v, behind %v", res.Status, err, answered)
		}
		i := slices.IndexFunc(res.Questions, func(q graph.Question) bool {
			return q.Node == turn.node && strings.HasPrefix(q.ID, "team/agent_") && (q.Kind == agent.KindPermission) == (turn.answer == "once")
		})
		if i < 0 {
			t.Fatalf("no question is open at %s: %+v", turn.node, res.Questions)
		}
		answered = append(answered, filepath.Dir(digest.ReplaceAllString(res.Questions[i].ID, "")))
		_, r = x.runner("lead", host, store) // another process
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[i].ID, Value: turn.answer}}})
	}
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v, %+v", res.Status, err, res.Questions)
	}
	said := OutcomeOf(res).Output
	for _, want := range []string{`{\"answer\":\"right\"}`, `Ada it is`} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in %s", want, said)
		}
	}
	if want := []string{"team/agent_form", "team/agent_guarded", "team/agent_form", "team/agent_asker"}; !slices.Equal(answered, want) {
		t.Errorf("asked at %v, want %v", answered, want)
	}
}

func withThread(in graph.Input) graph.Input {
	in.Thread, in.Run = "t", "run"
	return in
}

// asks is a gate that asks for one tool.
type asks struct{ tool string }

func (g asks) Decide(_ context.Context, t tool.Tool, _ tool.Call, _ []string) (agent.Decision, error) {
	if t.Name == g.tool {
		return agent.Decision{Verdict: agent.Ask}, nil
	}
	return agent.Decision{Verdict: agent.Allow}, nil
}
func (asks) Always(context.Context, []string) error { return nil }

// Where no person is there, an agent's question goes to the one that has started it,
// who answers; permission is denied.
func TestEscalations(t *testing.T) {
	x := newTroupe(t, map[string]string{
		"lead/config.yaml": leadFile, "deeper/config.yaml": "name: deeper\n", "asker/config.yaml": "name: asker\nescalation_timeout: 60\n", "guarded/config.yaml": "name: guarded\n",
		"guarded/tools.sh": "# @describe Does it\n# @cmd Does it\ndoit() { echo \"$$\" >> \"$LLM_OUTPUT\"; }\n",
		"form/graph.yaml":  "name: form\nstart: l\nnodes:\n  l: {type: llm, prompt: decide, tools: [user__confirm, agent__spawn], next: d, state_updates: {x: \"{{output}}\"}}\n  d: {type: agent, agent: deeper, prompt: x, next: e, state_updates: {x: \"{{x}} {{output}}\"}}\n  e: {type: end, output: \"{{x}}\"}\n",
	}, map[string]role{
		"lead": func(_ context.Context, v view) llm.Message {
			if v.round == 0 {
				return calls(v, slices.Concat(spawn("asker", "x"), spawn("form", "x"), spawn("guarded", "x"))...)
			}
			last := v.results[len(v.results)-1]
			if _, id, waits := strings.Cut(last, `"escalation_id":"`); waits {
				return calls(v, "agent__reply_escalation", fmt.Sprintf(`{"escalation_id":%q,"reply":"left"}`, id[:strings.IndexByte(id, '"')]))
			}
			for i := range 3 {
				id := v.field(i, "id")
				if !slices.ContainsFunc(v.results[3:], func(r string) bool { return strings.Contains(r, `"id":"`+id+`"`) && strings.Contains(r, "exit_status") }) {
					return calls(v, collect(id)...)
				}
			}
			return words(strings.Join(v.results[3:], "\n"))
		},
		"asker":   once("user__ask", `{"question":"Which?","options":["left","right"]}`),
		"form":    once("user__confirm", `{"question":"Sure?"}`),
		"deeper":  once("user__input", `{"question":"How deep?"}`),
		"guarded": once("doit", `{}`),
	})
	a, r := x.runner("lead", Host{Headless: true, Tooling: Tooling{Box: ownScripts{x.root}, Gate: asks{"doit"}}}, journal.NewMemory())
	res, err := r.Invoke(t.Context(), a.Input("Go."))
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v", res.Status, err)
	}
	said := OutcomeOf(res).Output
	for _, want := range []string{`"question":"[ask] Which?","options":["left","right"]`, `[confirm] Sure?`, `[input] How deep?`, `"from_agent_name":"form"`, `{\"answer\":\"left\"}`, "tool_call_error"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in:\n%s", want, said)
		}
	}
}

// With `escalate: agent` the lead is asked first, and may ask the person in turn, also
// in a process that did not start the run.
func TestLeadIsAskedFirst(t *testing.T) {
	files := map[string]string{"lead/config.yaml": leadFile + "escalate: agent\n", "asker/config.yaml": "name: asker\n"}
	for name, c := range map[string]struct {
		person string
		reply  func(v view) llm.Message // the lead's first message after it was asked; nil: its own answer
	}{
		"the lead answers":        {},
		"the person, by the lead": {"right", func(v view) llm.Message { return calls(v, "user__input", `{"question":"Where do you want to go?"}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTroupe(t, files, map[string]role{
				"lead": func(_ context.Context, v view) llm.Message {
					last := v.results[max(0, len(v.results)-1):]
					switch {
					case v.round == 0:
						return calls(v, spawn("asker", "x")...)
					case v.round == 1:
						return calls(v, collect(v.field(0, "id"))...)
					case v.round == 2 && c.reply != nil:
						return c.reply(v)
					case strings.Contains(last[0], "exit_status"):
						return words(last[0])
					case strings.Contains(last[0], "Reply sent"):
						return calls(v, collect(v.field(0, "id"))...)
					}
					_, id, _ := strings.Cut(v.results[1], `"escalation_id":"`)
					reply := "left"
					if c.person != "" {
						reply = v.field(2, "answer")
					}
					return calls(v, "agent__reply_escalation", fmt.Sprintf(`{"escalation_id":%q,"reply":%q}`, id[:strings.IndexByte(id, '"')], reply))
				},
				"asker": once("user__ask", `{"question":"Which?","options":["left","right"]}`),
			})
			store := journal.NewMemory()
			a, r := x.runner("lead", Host{}, store)
			res, err := r.Invoke(t.Context(), a.Input("Go."))
			want := `{\"answer\":\"left\"}`
			if c.person != "" {
				if err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 || !strings.Contains(res.Questions[0].Prompt, "Where do you want to go?") {
					t.Fatalf("%v, %v, %+v", res.Status, err, res.Questions)
				}
				_, r = x.runner("lead", Host{}, store) // as another process would
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: res.Thread, Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: c.person}}})
				want = `{\"answer\":\"right\"}`
			}
			if err != nil || res.Status != graph.Done {
				t.Fatalf("%v, %v, %+v", res.Status, err, res.Questions)
			}
			if said := OutcomeOf(res).Output; !strings.Contains(said, want) {
				t.Errorf("%s is not in %s", want, said)
			}
		})
	}
}

// Whatever ends an agent, nothing that its tools have started outlives it.
func TestProcessesEndWithTheirAgent(t *testing.T) {
	const hang = "# @describe Waits\n# @cmd Waits\nhang() { mkfifo never; echo $$ > ready; read -r _ < never; }\n"
	collects := func(v view) llm.Message { return calls(v, collect(v.field(0, "id"))...) }
	for name, c := range map[string]struct {
		files map[string]string
		lead  role
		want  string
	}{
		"cancelled": {map[string]string{"hang/config.yaml": "name: hang\n"}, func(_ context.Context, v view) llm.Message {
			return calls(v, "agent__cancel", fmt.Sprintf(`{"id":%q}`, v.field(0, "id")))
		}, "Cancelled agent 'hang'"},
		"timed out": {map[string]string{"hang/config.yaml": "name: hang\ntimeout: 1\n"}, func(_ context.Context, v view) llm.Message { return collects(v) },
			"Agent 'hang' failed: it timed out after 1s"},
		"below one that fails": {map[string]string{"hang/config.yaml": "name: hang\n", "between/config.yaml": "name: between\ncan_spawn_agents: true\n"},
			func(_ context.Context, v view) llm.Message { return collects(v) }, "Agent 'between' failed: panic in node think: it has had enough"},
		"left behind": {map[string]string{"hang/config.yaml": "name: hang\n"}, func(_ context.Context, v view) llm.Message { return words("I am done") }, "I am done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.files["lead/config.yaml"], c.files["hang/tools.sh"] = leadFile, hang
			x := newTroupe(t, c.files, nil)
			ready := filepath.Join(x.root, "ready")
			if err := syscall.Mkfifo(ready, 0o600); err != nil {
				t.Fatal(err)
			}
			var pid int
			started := make(chan struct{})
			first := "hang"
			if c.files["between/config.yaml"] != "" {
				first = "between"
			}
			x.roles = map[string]role{"hang": once("hang", "{}"), "between": func(_ context.Context, v view) llm.Message {
				if v.round == 0 {
					return calls(v, spawn("hang", "x")...)
				}
				<-started
				panic("it has had enough")
			}, "lead": func(ctx context.Context, v view) llm.Message {
				switch {
				case v.round == 0:
					return calls(v, spawn(first, "x")...)
				case v.round == 1:
					text, err := os.ReadFile(ready)
					if pid, _ = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || pid == 0 {
						t.Errorf("%q, %v", text, err)
					}
					close(started)
					return c.lead(ctx, v)
				case name == "left behind":
					return c.lead(ctx, v)
				}
				return words(v.results[len(v.results)-1])
			}}
			a, r := x.runner("lead", Host{Tooling: Tooling{Box: ownScripts{x.root}}}, journal.NewMemory())
			res, err := r.Invoke(t.Context(), a.Input("Go."))
			if said := OutcomeOf(res).Output; err != nil || !strings.Contains(said, c.want) {
				t.Errorf("%q, %v", said, err)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is still there: %v", pid, err)
			}
		})
	}
}

// Two turns of a conversation start agents; the second knows the first.
func TestTwoTurnsOfATeam(t *testing.T) {
	x := newTroupe(t, map[string]string{"lead/config.yaml": leadFile, "a/config.yaml": "name: a\nagent_session: own\n"}, map[string]role{
		"lead": spawnAll("a"),
		"a": func(_ context.Context, v view) llm.Message {
			return words(fmt.Sprint(v.asked, " with ", len(v.request.Messages)))
		},
	})
	store := journal.NewMemory()
	var ids []string
	for i, prompt := range []string{"one", "two"} {
		a, r := x.runner("lead", Host{}, store)
		in := a.Input(prompt)
		in.Thread, in.Topics = "t", graph.TopicEmit
		var res graph.Result
		for e, err := range r.Run(t.Context(), in) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case graph.ValueEmitted:
				if s, ok := b.Value.(team.AgentStarted); ok {
					ids = append(ids, s.ID)
				}
			case graph.RunEnded:
				res = b.Result
			}
		}
		if said := OutcomeOf(res).Output; !strings.Contains(said, `"output":"for `+prompt+` with 1"`) {
			t.Errorf("%s: %s", prompt, said)
		}
		if n := len(agent.History(res.State)); n != 6*(i+1) {
			t.Errorf("%d messages behind turn %d", n, i+1)
		}
	}
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("started %v", ids)
	}
}

// A spawned agent is what its file says: it continues by itself while its todo list has open items,
// and an llm node of a graph that lists the tools writes to the one above.
func TestSpawnedAgentsAreWhatTheirFilesSay(t *testing.T) {
	x := newTroupe(t, map[string]string{"mine/lead/config.yaml": leadFile,
		"yours/does/config.yaml":  "name: does\nmodel: m:does\nauto_continue: true\nmax_auto_continues: 2\nvariables: [{name: who, description: whom to greet}]\ninstructions: Greet {{who}}.\n",
		"yours/writes/graph.yaml": "name: writes\nmodel: m:writes\nstart: l\nnodes:\n  l: {type: llm, prompt: \"{{initial_prompt}}\", tools: [agent__send_message], state_updates: {x: \"{{output}}\"}, next: e}\n  e: {type: end, output: \"{{x}}\"}\n",
	}, map[string]role{
		"lead": func(ctx context.Context, v view) llm.Message {
			if v.round < 2 {
				return spawnAll("does", "writes")(ctx, v)
			} else if v.round == 2 {
				return calls(v, "agent__check_inbox", "{}")
			}
			return words(strings.Join(v.results, "\n"))
		},
		"does": func(_ context.Context, v view) llm.Message {
			if v.round == 0 && len(v.request.Messages) == 1 {
				return calls(v, "todo__init", `{"goal":"greet"}`, "todo__add", `{"task":"say hello"}`)
			}
			return words("hello, as told: " + v.request.System[:len("Greet Ada.")])
		},
		"writes": once("agent__send_message", `{"id":"parent","message":"I write"}`),
	})
	a, r := x.runner("mine/lead", Host{AgentDirs: AgentDirs{Dirs: []string{filepath.Join(x.root, "yours")}}, Variables: map[string]string{"who": "Ada"}}, journal.NewMemory())
	res, err := r.Invoke(t.Context(), a.Input("Go."))
	said := OutcomeOf(res).Output
	if err != nil || strings.Count(said, "hello, as told: Greet Ada.") != 3 || !strings.Contains(said, `"from":"agent_writes_`) || !strings.Contains(said, "I write") {
		t.Errorf("%s, %v", said, err)
	}
}

// All agents spend from the budget of the lead, and the run continues when there is more.
func TestTeamsSpendFromOneBudget(t *testing.T) {
	x := newTroupe(t, map[string]string{"lead/config.yaml": leadFile + "max_tokens_per_turn: 40\n", "a/config.yaml": "name: a\n"},
		map[string]role{"lead": spawnAll("a", "a"), "a": once("agent__check_inbox", "{}")})
	store := journal.NewMemory()
	a, r := x.runner("lead", Host{}, store)
	_, err := r.Invoke(t.Context(), withThread(a.Input("Go.")))
	if _, over := errors.AsType[*agent.BudgetError](err); !over {
		t.Fatal(err)
	}
	writeCaseFile(t, x.root, "lead/config.yaml", leadFile)
	_, r = x.runner("lead", Host{}, store)
	res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if said := OutcomeOf(res).Output; err != nil || strings.Count(said, "Completed") != 2 {
		t.Errorf("%s, %v", said, err)
	}
}

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
				return words("my name is missing")
			}
			return spawnAll("below")(ctx, v)
		},
		"below": once("work", `{"n":1}`, "work", `{"n":2}`),
	})
}

// toTheEnd loads a team again and drives it to its end: every question gets an answer.
func (x *troupe) toTheEnd(root string, s journal.Store) (res graph.Result, doubts int, err error) {
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
		if res, err = r.InvokeResume(x.t.Context(), in); errors.Is(err, journal.ErrNoThread) {
			res, err = r.Invoke(x.t.Context(), withThread(a.Input("Go.")))
		}
		if err != nil || res.Status == graph.Done {
			return res, doubts, err
		}
	}
	return res, doubts, errors.New("it never ends")
}

// tally counts what was done: replies of models, and the rest.
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

// A team in files is stopped after each of its records, and continues in another process: no
// recorded reply is asked for again, nothing is done again unless a person says so, and all ends as
// if nothing had happened.
func TestCrashesOfATeamInFiles(t *testing.T) {
	crashes(t, "lead", 4, 1)
}

// The same with teams below the nodes of a graph, after some records.
func TestCrashesOfTeamsInGraphs(t *testing.T) { crashes(t, "desk", 6, 7) }

// crashes breaks a run, in which so many works are done, after each step-th record.
func crashes(t *testing.T, root string, worked, step int) {
	calm := newBusyTeam(t)
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	want, _, err := calm.toTheEnd(root, count)
	if err != nil || strings.Count(OutcomeOf(want).Output, "worked") != worked || strings.Contains(OutcomeOf(want).Output, "my name is missing") {
		t.Fatal(OutcomeOf(want), err)
	}
	all, works := tally(calm.requests)
	for limit := 0; limit < count.RecordCount()-3; limit += step {
		x := newBusyTeam(t)
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		if _, _, err := x.toTheEnd(root, store); err != nil && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		recorded := 0
		for e, err := range history.Entries(t.Context(), store.Store, "t") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == journal.KindEffect && graph.ParseEffectID(e.ID).Name == "model" {
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
	a, r := x.runner("lead", h, journal.NewMemory())
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

// Many agents next to a lead cost little: they are only read.
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
