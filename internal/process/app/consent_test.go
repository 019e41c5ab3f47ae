//go:build unix

package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// What lies in the working directory, and agents that the user did not name, need consent:
// before it a project's rules can only forbid, scripts ask for each call and their
// declarations are ignored, servers do not start. Consent ends when a file changes.
func TestConsent(t *testing.T) {
	w := newPlace(t)
	m := &model{t: t, text: "done", rounds: [][]call{{{"1", "look", "{}"}, {"2", "execute_command", `{"command":"touch made"}`}}}}
	w.serve(m)
	w.write("flows/main/graph.yaml", "name: m\nstart: a\nnodes:\n  a: {type: agent, agent: child, prompt: go, next: b}\n  b: {type: end, output: done}\n")
	w.write("flows/child/config.yaml", "name: Child\nglobal_tools: [execute_command]\nmcp_servers: [s]\n")
	w.write("flows/child/tools.sh", "# @cmd Looks.\n# raddle: read-only\nlook() { echo seen >>\"$LLM_OUTPUT\"; }\n")
	w.write("flows/child/mcp.json", `{"mcpServers": {"s": {"command": "touch", "args": ["started"]}}}`)
	w.write(".raddle/permissions.yaml", "allow: [execute_command(touch *)]\n")
	ran := func(named string) (asked []string) {
		t.Helper()
		p, _ := w.process(-1)
		w.finish(p, Request{Agent: named, Prompt: "go"}, func(q graph.Question) string {
			if q.Kind != agent.KindPermission {
				t.Errorf("asked: %+v", q)
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(q.Prompt, "May "), " ")
			asked = append(asked, name)
			return "once"
		})
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return asked
	}
	started := func() bool { _, err := os.Stat(w.dir + "/flows/child/started"); return err == nil }
	if got := fmt.Sprint(ran("flows/main")); got != "[look execute_command]" || started() {
		t.Errorf("without consent: asked for %s, server started: %v", got, started())
	}
	p, _ := w.process(-1)
	a, err := p.Load(LoadRequest{Agent: "flows/main"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.Tools.FindImplicitDirs(a)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	if files := fmt.Sprint(list[0].Files, list[1].Files); !strings.Contains(files, "permissions.yaml") || !strings.Contains(files, "tools.sh") || !strings.Contains(files, "mcp.json") {
		t.Errorf("shown are %s", files)
	}
	for _, u := range list {
		if err := p.Tools.RecordConsent(u); err != nil {
			t.Fatal(err)
		}
	}
	if got := ran("flows/main"); len(got) != 0 || !started() {
		t.Errorf("with consent: asked for %v, server started: %v", got, started())
	}
	w.write("flows/child/tools.sh", "# @cmd Looks.\nlook() { echo other >>\"$LLM_OUTPUT\"; }\n")
	if got := fmt.Sprint(ran("flows/main")); got != "[look]" {
		t.Errorf("after a change: asked for %s", got)
	}
	if got := ran("flows/child"); len(got) != 0 {
		t.Errorf("named itself: asked for %v", got)
	}
}
