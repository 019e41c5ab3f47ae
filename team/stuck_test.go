package team_test

import (
	"context"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

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
			for ev, err := range (&graph.Runner{Graph: compile(t, cfg), Store: graph.NewMemory()}).Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
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
