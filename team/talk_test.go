package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
)

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
		res, err := (&graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
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
	for ev, err := range (&graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}).Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
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
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
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
	r := &graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Pause: pause})
	if err != nil || res.Status != graph.Paused {
		t.Fatalf("%v, %v", res.Status, err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if err != nil || res.Status != graph.Done || !strings.Contains(agent.LastResponse(res.State), "ready") || s.calls["{}"] != 1 {
		t.Errorf("%v, %v, %q, %v", res.Status, err, agent.LastResponse(res.State), s.calls)
	}
}

// Of all that is said in a team, a reader who wants the answer alone hears the lead.
func TestTerminalHearsTheLead(t *testing.T) {
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
				res, err := (&graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
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
