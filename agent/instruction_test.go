package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

func TestInstructionPlaces(t *testing.T) {
	type colour string
	graph.Register[colour]("agent_test.colour")
	a, d := graph.Last[string]("a"), graph.Last[json.Number]("d")
	user := graph.Last[map[string]any]("user_values")
	for _, k := range []struct{ text, want string }{
		{"{a} {b?} {user:c} {{d}}", "x  blue 10000000000000001"},
		{"{b} and {{b}}", "{b} and {{b}}"},
		{"{{b?}}.", "."},
		{`{"a": 1} {a-b} {1a} { a } {}`, `{"a": 1} {a-b} {1a} { a } {}`},
		{"{team:a} {:a} {user:}", "{team:a} {:a} {user:}"},
		{"{user:list} {user:nested} {user:null?}", `[1,"<b>"] {"k":true} `},
		{"{app:name}/{app:name}", "{a}/{a}"},
		{"{temp:none}", "{temp:none}"},
	} {
		m := &asked{name: "m"}
		in := agent.Instruction{Text: k.text, Values: map[string]agent.Source{
			"user": agent.FromKey(user), "app": agent.FromMap(map[string]string{"name": "{a}"}), "temp": agent.FromMap(map[string]int{})}}
		g, err := graph.Compile(graph.Def{Name: "g", Keys: append(agent.Keys(), a, d, user), Nodes: []graph.Node{agent.Think{Model: m, System: in.System}.Node("m")},
			Start: []string{"m"}, Edges: []graph.Edge{{From: []string{"m"}, To: []string{graph.End}}}})
		if err != nil {
			t.Fatal(err)
		}
		s := invoke(t, g, append(agent.Turn("what is {a}?"), a.Set("x"), d.Set("10000000000000001"),
			user.Set(map[string]any{"c": colour("blue"), "list": []any{1, "<b>"}, "nested": map[string]any{"k": true}, "null": nil}))...)
		equal(t, k.text, m.requests[0].System, k.want)
		equal(t, "what the user says", m.seen(0), "user: what is {a}?")
		equal(t, "the conversation", conversation(s), "user: what is {a}? | assistant: m 1")
	}
}

func TestStrictInstructionNamesAllThatIsMissing(t *testing.T) {
	in := agent.Instruction{Text: "{one} {two?} {run:three}", Strict: true, Values: map[string]agent.Source{"run": agent.FromMap(map[string]string{})}}
	g := chain(t, agent.Think{Model: &asked{}, Request: llm.Request{}, System: in.System}.Node("m"))
	_, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: agent.Turn("hi")})
	if err == nil || !strings.Contains(err.Error(), "{one} has no value") || !strings.Contains(err.Error(), "{run:three} has no value") || strings.Contains(err.Error(), "{two?} has") {
		t.Errorf("error %v", err)
	}
}
