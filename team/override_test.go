package team_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

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

// Overrides reach the agents of a team by the path of its node and their names, and
// those of the turn itself everybody whom they do not name.
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
	res, err := (&graph.Runner{Graph: g, Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: append(agent.Turn("Go."), agent.Overrides.Set(set))})
	if err != nil || agent.LastResponse(res.State) != "ok" {
		t.Fatal(res.Status, err)
	}
	for name, want := range map[string]string{"lead": "0.1 20 low", "explore": "0.2 30 low", "other": "none 10 low"} {
		if asked[name] != want {
			t.Errorf("%s was asked with %q, want %q", name, asked[name], want)
		}
	}
}
