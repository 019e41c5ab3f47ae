package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
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
		if _, err := (&graph.Runner{Graph: g, Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")}); err != nil {
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
				res, err := (&graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
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
