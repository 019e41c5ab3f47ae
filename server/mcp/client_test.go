package mcp_test

import (
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/clienttest"
)

// slowGraph works until it is cancelled.
var slowGraph = map[string]string{
	"graph.yaml": "name: slow\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: finished}\n",
	"work.sh":    "sleep 60\necho '{}'\n",
}

// The official client for TypeScript gets progress, answers questions, cancels a call that works, and sees errors, over HTTP and stdio.
func TestExtraTypeScriptClient(t *testing.T) {
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", slowGraph)
	server := home.Serve(t)
	for what, want := range map[string][]string{
		"reply":    {"result: done Order 1007 is in the workshop", "calls: 3"},
		"question": {"Page the engineer on call?", "asked: Anything to add", "result: done Paged"},
		"tool":     {"status: waiting", "result: done Not paged"},
		"cancel":   {"cancelled"},
		"error":    {"error: failed"},
	} {
		got := clienttest.ReadOutput(t, server.Connect(clienttest.NodeCommand(t, "mcp", "client.mjs", what)))
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is missing in:\n%s", what, part, got)
			}
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) { // the client does not wait for the end of the run
		got := clienttest.ReadOutput(t, home.Command(t, "runs", "ls", "--agent", "slow"))
		if strings.Contains(got, "abandoned") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the run is not cancelled: %s", got)
		}
	}
	c := clienttest.NodeCommand(t, "mcp", "client.mjs", "stdio", home.Raddle)
	c.Env = append(c.Env, home.Environ()...)
	if got := clienttest.ReadOutput(t, c); !strings.Contains(got, "result: done Paged") {
		t.Errorf("stdio: %s", got)
	}
}

// The official client for Python gets progress, answers questions and sees errors.
func TestExtraPythonClient(t *testing.T) {
	home := clienttest.NewHome(t)
	for what, want := range map[string][]string{
		"reply":    {"result: done Order 1007 is in the workshop", "calls: 3"},
		"question": {"asked: Page the engineer on call?", "asked: Anything to add", "result: done Paged"},
		"error":    {"error: failed"},
	} {
		c := clienttest.PythonCommand(t, "mcp", "client.py", home.Raddle, what)
		c.Env = append(c.Env, home.Environ()...)
		got := clienttest.ReadOutput(t, c)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is missing in:\n%s", what, part, got)
			}
		}
	}
}
