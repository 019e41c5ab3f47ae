package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// logOf reads a team's log from a journal, like a program that has only the journal.
func logOf(t *testing.T, st graph.Store) *team.History {
	t.Helper()
	entries := map[int64]bool{}
	for _, e := range oldestFirst(t, st) {
		if e.Kind == graph.KindEffect && team.IsLog(e.ID) {
			entries[e.Seq] = true
		}
	}
	past := &team.History{}
	for r, err := range st.Read(t.Context(), "t", graph.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !entries[r.Seq] {
			continue
		}
		var data json.RawMessage
		if err := json.Unmarshal(r.Data, &data); err != nil {
			t.Fatal(err)
		}
		if err := past.Add(data); err != nil {
			t.Fatal(err)
		}
	}
	return past
}

// What happened to agents can be read from the journal when nothing else is left
// of them, and events have told it.
func TestPast(t *testing.T) {
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
	st := graph.NewMemory()
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
