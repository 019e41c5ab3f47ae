package team_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

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
	r := &graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}
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
