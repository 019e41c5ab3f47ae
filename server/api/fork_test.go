//go:build unix

package api

import (
	"fmt"
	"testing"

	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

// A copy that differs from its original and rests on answers needs the scope that the answers needed, whatever the difference, and
// however often it was copied. Other copies need what a start needs. The copy says who answered in the original.
func TestForkScopes(t *testing.T) {
	w := serveHome(t, servertest.NewHome(t, map[string]string{
		"pay/graph.yaml": `
name: pay
model: script:transcript.yaml
start: ask
nodes:
  ask: {type: input, question: "Pay {{initial_prompt}}?", state_updates: {said: "{{input}}"}, next: again}
  again: {type: input, question: "Sure?", next: polish}
  polish: {type: llm, prompt: "Thank for {{initial_prompt}}", next: done}
  done: {type: end, output: "{{output}}"}
`,
		"pay/transcript.yaml": "- {match: Thank, text: thanks, repeat: true}\n",
	}))
	caller := func(name string, scopes ...server.Scope) *server.Caller {
		return &server.Caller{Name: name, Scopes: scopes}
	}
	w.caller = caller("ann", server.Scopes...)
	run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "pay", "prompt": "10"}`)["run"].(string)
	w.get(200, "POST", "/runs/"+run+"/answers", `{"answers": [{"id": "ask", "value": "yes"}]}`)
	for waits := false; !waits; { // for the second question
		open := w.get(200, "GET", "/runs/"+run, "")["questions"].([]any)
		waits = len(open) == 1 && open[0].(map[string]any)["id"] == "again"
	}
	copied := w.get(201, "POST", "/runs/"+run+"/fork", `{}`)["run"].(string)
	answers := w.get(200, "GET", "/runs/"+copied, "")["answers"].([]any)
	if len(answers) != 1 || answers[0].(map[string]any)["by"] != "ann" || answers[0].(map[string]any)["run"] != run {
		t.Errorf("the copy has the answers %v", answers)
	}
	changes := map[string]string{"state": `"state": {"initial_prompt": "99999"}`, "prompt": `"prompt": "99999"`, "model": `"model": "openai:other"`, "template": `"templates": {"polish": "x"}`,
		"result": `"state": {"said": "yes"}`, "none": ""}
	for what, change := range changes {
		for _, c := range []struct {
			who  *server.Caller
			from string
			at   int
			ok   bool
		}{
			{caller("read", server.ScopeRead), run, 1, false},
			{caller("answer", server.ScopeRead, server.ScopeAnswer), run, 0, false},
			{caller("start", server.ScopeRead, server.ScopeStart), run, 1, true},
			{caller("start", server.ScopeRead, server.ScopeStart), run, 0, what == "none"},
			{caller("start", server.ScopeRead, server.ScopeStart), copied, 0, what == "none"},
			{caller("start", server.ScopeRead, server.ScopeStart), copied, 1, what == "none"},
			{caller("admin", server.ScopeRead, server.ScopeStart, server.ScopeAdmin), run, 0, what == "none"},
			{caller("both", server.ScopeRead, server.ScopeStart, server.ScopeAnswer), run, 0, true},
			{caller("both", server.ScopeRead, server.ScopeStart, server.ScopeAnswer), copied, 0, true},
		} {
			w.caller = c.who
			body := fmt.Sprintf(`{"at": %d}`, c.at)
			if change != "" {
				body = fmt.Sprintf(`{"at": %d, %s}`, c.at, change)
			}
			res := w.send("POST", "/runs/"+c.from+"/fork", body)
			res.Body.Close()
			if refused := res.StatusCode == 403; refused == c.ok {
				t.Errorf("%s forks %s@%d with another %s: status %d", c.who.Name, c.from, c.at, what, res.StatusCode)
			}
		}
	}
	w.caller = caller("ann", server.Scopes...)
	w.get(204, "DELETE", "/runs/"+run, "")
	w.caller = caller("start", server.ScopeRead, server.ScopeStart)
	w.refuse(403, "missing-scope", "POST", "/runs/"+copied+"/fork", `{"prompt": "99999"}`)
}
