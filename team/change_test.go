package team_test

import (
	"context"
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
			s, st := newStage(), graph.NewMemory()
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
		s, st := newStage(), graph.NewMemory()
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

// What it costs to sum up an output is part of what the turn has cost.
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
	st := graph.NewMemory()
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
	r := crew(func(all map[string]team.Member) { all["another"] = stranger }) // d takes the place of the one that is answered
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
