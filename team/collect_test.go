package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/team"
)

type collection struct {
	Status string
	Agents []struct{ ID, Output, Status string }
	Left   []string `json:"not_collected"`
}

func readCollection(t *testing.T, text string) (c collection) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return c
}

// A lead collects 20 agents, which finish one after the other in the reverse order of
// their start, with one call for each that has finished.
func TestCollectAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const agents = 20
		s := newStage()
		var prompts, order []string
		for i := range agents {
			prompts = append(prompts, fmt.Sprint(agents-i))
		}
		collects := 0
		g := compile(t, pair(s, one(prompts, func(_ context.Context, v view) llm.Message {
			if v.round > 1 {
				c := readCollection(t, v.last())
				for _, a := range c.Agents {
					order = append(order, a.Output)
				}
				if len(c.Left) == 0 {
					return words("ok")
				}
			}
			collects++
			return calls(v, "agent__collect", `{"any":"true"}`)
		}), func(_ context.Context, v view) llm.Message {
			d, _ := time.ParseDuration(v.asked + "s")
			time.Sleep(d)
			return words(v.asked)
		}, team.Spawn{Max: agents}))
		if _, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")}); err != nil {
			t.Fatal(err)
		}
		if collects > agents || len(order) != agents || order[0] != "1" || order[agents-1] != "20" {
			t.Errorf("%d calls, in the order %v", collects, order)
		}
	})
}

func TestCollectSeveral(t *testing.T) {
	s := newStage()
	var results []string
	invoke(t, pair(s, one([]string{"a", "b", "c"}, func(_ context.Context, v view) llm.Message {
		known := ids(v)
		list, _ := json.Marshal(known[:2])
		switch v.round {
		case 1:
			return calls(v, "agent__collect", fmt.Sprintf(`{"ids":%s}`, list))
		case 2:
			return calls(v, "agent__collect", fmt.Sprintf(`{"ids":%s}`, list), "agent__collect", `{}`)
		case 3:
			return calls(v, "agent__collect", fmt.Sprintf(`{"ids":[%q,%q],"any":true}`, known[0], known[2]))
		case 4:
			return calls(v, "agent__collect", `{"any":true}`)
		}
		results = v.results[3:]
		return words("ok")
	}), func(_ context.Context, v view) llm.Message { return words("done " + v.asked) }, team.Spawn{}))
	first := readCollection(t, results[0])
	if first.Status != "ok" || len(first.Agents) != 2 || first.Agents[0].Output != "done a" || first.Agents[1].Output != "done b" || len(first.Left) != 1 {
		t.Errorf("all of two: %s", results[0])
	}
	if !strings.Contains(results[1], "None of these agents can be collected: agent_explore_") {
		t.Errorf("collected twice: %s", results[1])
	}
	for i, want := range map[int]string{2: "'id' is required", 3: `"output":"done c"`, 4: "You have no agents to collect."} {
		if !strings.Contains(results[i], want) {
			t.Errorf("result %d is %s, want %s", i, results[i], want)
		}
	}
}

// A lead that collects again and again in place of answering is held back. All calls
// of one reply return the question.
func TestCollectWithoutAnswering(t *testing.T) {
	for name, form := range map[string]string{"one": `{"id":%q}`, "several": `{"ids":[%q]}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				rounds, shown := 0, 0
				c := escalateTool(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
					rounds = v.round
					shown = strings.Count(strings.Join(v.results, ""), `"status":"pending"`)
					if last := v.results[max(0, len(v.results)-2):]; strings.Contains(strings.Join(last, ""), `Escalation timed out`) || v.round > 50 {
						return words(v.last())
					}
					call := fmt.Sprintf(form, ids(v)[0])
					return calls(v, "agent__collect", call, "agent__collect", call)
				}), 5*time.Minute)
				res, err := (&graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
				if err != nil {
					t.Fatal(err)
				}
				if rounds > 8 || rounds < 4 || shown != 2*(rounds-2) {
					t.Errorf("%d rounds, the question was shown %d times; %s", rounds, shown, agent.LastResponse(res.State))
				}
			})
		})
	}
}

// logOf reads a team's log from a journal, like a program that has only the journal.
func logOf(t *testing.T, st journal.Store) *team.History {
	t.Helper()
	past, err := readTeamLog(t.Context(), st, "t")
	if err != nil {
		t.Fatal(err)
	}
	return &past
}

// The history of agents can be read from the journal after they have ended. It agrees with the events.
func TestHistory(t *testing.T) {
	s := newStage()
	hold := make(chan struct{})
	c := pair(s, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0: // a place is free for the first of the tasks alone
			return calls(v, "agent__task_create", `{"subject":"one","agent":"explore","prompt":"works"}`,
				"agent__task_create", `{"subject":"two","agent":"explore","prompt":"fails"}`,
				"agent__task_create", `{"subject":"three","agent":"explore","prompt":"never","blocked_by":["2"]}`)
		case 1:
			return calls(v, "agent__task_list", `{}`)
		case 2:
			close(hold)
			return calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, taskAgent(v.last(), 0)))
		case 3:
			return calls(v, "agent__task_list", `{}`)
		case 4:
			return calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, taskAgent(v.last(), 1)))
		case 5:
			return calls(v, spawnCall("is cancelled")...)
		case 6:
			return calls(v, spawnCall("waits for a place\n and never gets one")...)
		case 7:
			return calls(v, "agent__cancel", fmt.Sprintf(`{"id":%q}`, v.field("id")), "agent__cancel", fmt.Sprintf(`{"id":%q}`, ids(v)[0]))
		case 8:
			return calls(v, append(spawnCall("is cancelled"), spawnCall("is left waiting")...)...)
		}
		return words("Done.")
	}, func(ctx context.Context, v view) llm.Message {
		switch v.asked {
		case "fails":
			return calls(v, "work", fmt.Sprint(`{"n":`, v.round, `}`))
		case "is cancelled":
			<-ctx.Done()
		default:
			<-hold
		}
		return words("Found.")
	}, team.Spawn{Max: 1})
	m := c.Agents["explore"]
	m.Agent.MaxIterations = 1
	c.Agents["explore"] = m
	st := journal.NewMemory()
	var told []string
	for ev, err := range (&graph.Runner{Graph: compile(t, c), Store: st}).Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(graph.ValueEmitted); ok && ev.Path == "" {
			switch v := b.Value.(type) {
			case team.AgentStarted:
				told = append(told, fmt.Sprintf("start %s for task %q: %s", team.AgentOf(v.ID), v.Task, v.Purpose))
			case team.AgentQueued:
				told = append(told, "queued: "+v.Purpose)
			case team.AgentEnded:
				told = append(told, v.Status)
				if v.Status == "completed" && v.Spent.Calls != 1 {
					t.Errorf("its cost: %+v", v.Spent)
				}
			case team.TaskWaiting:
				told = append(told, "waiting: "+v.Subject)
			}
		}
	}
	want := []string{`start explore for task "1": one`, "waiting: two", "completed", `start explore for task "2": two`, "failed", `start explore for task "": is cancelled`,
		"queued: waits for a place and never gets one", "cancelled", "cancelled", `start explore for task "": is cancelled`, "queued: is left waiting", "cancelled", "cancelled"}
	if !slices.Equal(told, want) {
		t.Errorf("events\n%q, want\n%q", told, want)
	}
	past := logOf(t, st)
	var got []string
	for _, a := range past.Agents {
		if a.Parent != team.Lead || a.Began.IsZero() != strings.Contains(a.Purpose, "wait") || a.Ended.Before(a.Began) || team.AgentOf(a.ID) != "explore" {
			t.Errorf("%+v", a)
		}
		got = append(got, fmt.Sprintf("%s %s: %s", a.Task, a.Status, a.Purpose))
	}
	for _, k := range past.Tasks {
		got = append(got, fmt.Sprint(k.Subject, " ", k.Status, " ", k.BlockedBy, k.BlockedForEver))
	}
	want = []string{"1 completed: one", "2 failed: two", " cancelled: is cancelled", " cancelled: waits for a place and never gets one", " cancelled: is cancelled", " cancelled: is left waiting",
		"one completed [] []", "two failed [] []", "three blocked [2] [2]"}
	if !slices.Equal(got, want) {
		t.Errorf("the log tells\n%q, want\n%q", got, want)
	}
}

// taskAgent is the agent that works on a task of a list.
func taskAgent(list string, i int) string {
	var o struct {
		Tasks []struct {
			AgentID string `json:"agent_id"`
		}
	}
	if json.Unmarshal([]byte(list), &o) != nil || i >= len(o.Tasks) {
		return ""
	}
	return o.Tasks[i].AgentID
}

func TestAgentOf(t *testing.T) {
	for id, want := range map[string]string{"agent_explore_1f2e3d4c": "explore", "agent_a_b_00000000": "a_b", "lead": "", "agent_explore_1f2e3d4": "", "agent__1f2e3d4c": "", "agent_x_1f2e3d4g": "", "": ""} {
		if got := team.AgentOf(id); got != want {
			t.Errorf("AgentOf(%q) = %q, want %q", id, got, want)
		}
	}
}

// settled is a model that notes the settings of its requests.
func settled(m llm.Model, note func(string)) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		temperature := "none"
		if r.Temperature != nil {
			temperature = fmt.Sprint(*r.Temperature)
		}
		note(fmt.Sprint(temperature, " ", r.MaxTokens, " ", r.Effort))
		return m.Stream(ctx, r)
	})
}

// Overrides reach the agents of a team by the path of its node and their names, and those of the
// turn itself reach all agents that they do not name.
func TestOverrides(t *testing.T) {
	s := newStage()
	var mu sync.Mutex
	asked := map[string]string{}
	note := func(name string) func(string) {
		return func(settings string) {
			mu.Lock()
			defer mu.Unlock()
			if old, ok := asked[name]; ok && old != settings {
				t.Errorf("%s was asked with %q and with %q", name, old, settings)
			}
			asked[name] = settings
		}
	}
	c := pair(s, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0:
			return calls(v, append(spawnCall("a"), "agent__spawn", `{"agent":"other","prompt":"b"}`)...)
		case 1:
			return calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, ids(v)[0]), "agent__collect", fmt.Sprintf(`{"id":%q}`, ids(v)[1]))
		}
		return words("ok")
	}, func(_ context.Context, v view) llm.Message { return words("found") }, team.Spawn{})
	other := c.Agents["explore"]
	for name, m := range map[string]*team.Member{"lead": &c.Lead, "explore": new(c.Agents["explore"]), "other": &other} {
		m.Agent.Model = settled(m.Agent.Model, note(name))
		if name != "lead" {
			c.Agents[name] = *m
		}
	}
	g := compile(t, c)
	set := map[string]agent.Override{"": {Effort: new("low")}, "think": {Temperature: new(0.1)}, "team": {MaxTokens: new(10)},
		"team/lead/think": {MaxTokens: new(20)}, "team/explore": {Temperature: new(0.2)}, "team/explore/think": {MaxTokens: new(30)}}
	if err := agent.CheckOverrides(g, map[string]agent.Override{"": {}, "team": {}, "team/explore": {}, "team/explore/think": {}}); err != nil {
		t.Error(err)
	}
	if err := agent.CheckOverrides(g, map[string]agent.Override{"team/nobody": {}}); err == nil || !strings.Contains(err.Error(), `"team/other/think"`) {
		t.Errorf("of nobody: %v", err)
	}
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: append(agent.Turn("Go."), agent.Overrides.Set(set))})
	if err != nil || agent.LastResponse(res.State) != "ok" {
		t.Fatal(res.Status, err)
	}
	for name, want := range map[string]string{"lead": "0.1 20 low", "explore": "0.2 30 low", "other": "none 10 low"} {
		if asked[name] != want {
			t.Errorf("%s was asked with %q, want %q", name, asked[name], want)
		}
	}
}

// Agents above the limit wait for a place. While the one that has the place waits for
// a person, the run parks, and it continues with all of them after the answer.
func TestSpawnsAboveTheLimit(t *testing.T) {
	s := newStage()
	c := pair(s, one([]string{"ask", "b", "c"}, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 1:
			return calls(v, "agent__list", "{}", "agent__collect", `{"id":"`+ids(v)[2]+`"}`)
		case 2:
			return calls(v, "agent__collect", `{"ids":["`+ids(v)[0]+`","`+ids(v)[1]+`"]}`)
		}
		return words(strings.Join(v.results, "\n"))
	}), func(_ context.Context, v view) llm.Message {
		if v.asked == "ask" && v.round == 0 {
			return calls(v, "user__ask", `{"question":"Which?","options":["red","blue"]}`)
		}
		return words("done " + v.asked)
	}, team.Spawn{Max: 1})
	m := c.Agents["explore"]
	m.Agent.Tools = agent.UserTools(false)
	c.Agents["explore"] = m
	r := &graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 {
		t.Fatalf("%v, %v, %v", res.Status, err, res.Questions)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "red"}}})
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v", res.Status, err)
	}
	got := agent.LastResponse(res.State)
	for _, want := range []string{"It waits for a place: 1/1 agents run.", `"active_count":1,"max_concurrent":1`, `"output":"done ask"`, `"output":"done b"`, `"output":"done c"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if strings.Count(got, `"status":"queued"`) != 2 {
		t.Errorf("two agents of %s are queued", got)
	}
}

// A model that spawns in a loop fills the places and a queue, and no more.
func TestQueuedSpawnsAreBounded(t *testing.T) {
	s := newStage()
	const places, more = 1, 70
	c := pair(s, func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0:
			var list []string
			for i := range places + more {
				list = append(list, spawnCall(fmt.Sprint("part ", i))...)
			}
			return calls(v, list...)
		case 1:
			return calls(v, "agent__cancel", `{"id":"`+ids(v)[0]+`"}`, "agent__cancel", `{"id":"`+ids(v)[5]+`"}`)
		case 2: // one that waits has the place, and one is gone
			return calls(v, append(append(spawnCall("later"), spawnCall("later still")...), spawnCall("too late")...)...)
		}
		return words(strings.Join(v.results, "\n"))
	}, func(ctx context.Context, v view) llm.Message {
		<-ctx.Done()
		return words("never")
	}, team.Spawn{Max: places, Reminders: 1})
	got := agent.LastResponse(invoke(t, c).State)
	for text, want := range map[string]int{"It waits for a place": 64 + 2, "Not spawned: 1/1 agents run and 64 others wait for a place, which is the most. Collect or cancel some, then spawn again.": more - 64 + 1} {
		if n := strings.Count(got, text); n != want {
			t.Errorf("%q is said %d times, want %d", text, n, want)
		}
	}
}

// A wait for a message ends with the message, when its time has passed, and when no
// agent runs that may write.
func TestWaitForMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		var results []string
		var at []time.Duration
		start := time.Now()
		g := compile(t, pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
			at = append(at, time.Since(start))
			switch v.round {
			case 1:
				return calls(v, "agent__check_inbox", `{"wait_seconds":"60"}`)
			case 2:
				return calls(v, "agent__check_inbox", `{"wait_seconds":5}`)
			case 3:
				return calls(v, "agent__check_inbox", `{"wait_seconds":200}`)
			case 4:
				return calls(v, "agent__check_inbox", `{"wait_seconds":"soon"}`)
			}
			results = v.results[1:]
			return words("ok")
		}), func(_ context.Context, v view) llm.Message {
			time.Sleep(20 * time.Second)
			if v.round == 0 {
				return calls(v, "agent__send_message", `{"id":"parent","message":"up"}`)
			}
			return words("done")
		}, team.Spawn{}))
		if _, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{`"content":"up"`, `{"messages":[],"count":0}`, `{"messages":[],"count":0}`, "'wait_seconds' must be a number"} {
			if !strings.Contains(results[i], want) {
				t.Errorf("result %d is %s, want %s", i, results[i], want)
			}
		}
		for i, want := range []int{0, 20, 25, 40, 40} {
			if got := int(at[i].Seconds()); got != want {
				t.Errorf("round %d began after %d seconds, want %d", i+1, got, want)
			}
		}
	})
}

// Tasks that stay blocked for ever are named to the lead, once, and in a warning of
// the run.
func TestTasksBlockedForEver(t *testing.T) {
	create := []string{"agent__task_create", `{"subject":"one","agent":"explore","prompt":"fail"}`,
		"agent__task_create", `{"subject":"two","agent":"explore","prompt":"x","blocked_by":["1"]}`,
		"agent__task_create", `{"subject":"three","blocked_by":["2"]}`}
	const both = `"blocked_for_ever":[{"id":"2","subject":"two","failed":["1"]},{"id":"3","subject":"three","failed":["1"]}]`
	const sentence = "task 2 (two), which needs task 1; task 3 (three), which needs task 1 stay blocked for ever"
	for name, c := range map[string]struct {
		call []string // what the lead does after it has made the tasks; nil: it ends its turn
		want string   // in what it reads next
	}{
		"collected":      {[]string{"agent__collect", `{"any":true}`}, both},
		"failed by hand": {[]string{"agent__task_fail", `{"task_id":"1"}`, "agent__collect", `{"any":true}`}, both},
		"reminded":       {nil, sentence},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			var results, reminders []string
			leads := s.model("lead", func(_ context.Context, v view) llm.Message {
				results = v.results
				switch {
				case v.round == 0:
					return calls(v, create...)
				case v.round == 1 && c.call != nil:
					return calls(v, c.call...)
				case c.call == nil && !strings.Contains(v.last(), `"active_count":0`):
					return calls(v, "agent__list", "{}") // until the agent has failed
				}
				return words("ok")
			})
			cfg := pair(s, nil, func(_ context.Context, v view) llm.Message { return calls(v, "work", "{}") }, team.Spawn{})
			m := cfg.Agents["explore"]
			m.Agent.MaxIterations = 1
			cfg.Agents["explore"], cfg.Lead.Agent.Model = m, leads
			var warnings []string
			for ev, err := range (&graph.Runner{Graph: compile(t, cfg), Store: journal.NewMemory()}).Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
				if err != nil {
					t.Fatal(err)
				}
				switch b := ev.Body.(type) {
				case graph.ValueEmitted:
					if w, ok := b.Value.(agent.Warning); ok {
						warnings = append(warnings, w.Text)
					}
				case graph.RunEnded:
					for _, m := range agent.History(b.Result.State) {
						if m.Role == llm.RoleUser {
							reminders = append(reminders, m.Text())
						}
					}
				}
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], sentence) {
				t.Errorf("warnings: %q", warnings)
			}
			if got := strings.Join(append(results, reminders...), "\n"); strings.Count(got, c.want) != 1 {
				t.Errorf("want %s once in\n%s", c.want, got)
			}
			if c.call != nil && len(reminders) != 1 {
				t.Errorf("the lead was reminded of what it knows: %q", reminders)
			}
		})
	}
}
