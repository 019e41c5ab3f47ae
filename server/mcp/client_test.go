package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/clienttest"
)

// slowGraph works until it is cancelled.
var slowGraph = map[string]string{
	"graph.yaml": "name: slow\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: finished}\n",
	"work.sh":    "sleep 60\necho '{}'\n",
}

// waitUntilAbandoned waits until the run of the slow graph is cancelled: a client does not wait for that.
func waitUntilAbandoned(t *testing.T, home *clienttest.Home) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		got := clienttest.ReadOutput(t, home.Command(t, "runs", "ls", "--agent", "slow"))
		if strings.Contains(got, "abandoned") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the run is not cancelled: %s", got)
		}
	}
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
	waitUntilAbandoned(t, home)
	c := clienttest.NodeCommand(t, "mcp", "client.mjs", "stdio", home.Raddle)
	c.Env = append(c.Env, home.Environ()...)
	if got := clienttest.ReadOutput(t, c); !strings.Contains(got, "result: done Paged") {
		t.Errorf("stdio: %s", got)
	}
}

// The official client for Python gets progress, answers questions, cancels a call that works, and sees errors.
func TestExtraPythonClient(t *testing.T) {
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", slowGraph)
	for what, want := range map[string][]string{
		"reply":    {"result: done Order 1007 is in the workshop", "calls: 3"},
		"question": {"asked: Page the engineer on call?", "asked: Anything to add", "result: done Paged"},
		"cancel":   {"cancelled"},
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
	waitUntilAbandoned(t, home)
}

// inspector is MCP Inspector's program for terminals.
const inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

// inspect runs MCP Inspector against a server. It returns the JSON that was printed, and the exit code.
func inspect(t *testing.T, server *clienttest.Server, args ...string) (printed []byte, code int) {
	t.Helper()
	c := clienttest.NodeCommand(t, "inspector", inspector, append([]string{"--cli", server.URL + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + server.Token}, args...)...)
	printed, err := c.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return printed, exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return printed, 0
}

// MCP Inspector's CLI finds no error in the schemas of the tools, gets an answer that needed tools, answers a question with the tool
// raddle_answer, and sees an error as one. It has no elicitation and cannot cancel a call.
func TestExtraInspector(t *testing.T) {
	server := clienttest.NewHome(t).Serve(t)
	if printed, code := inspect(t, server, "--method", "tools/list", "--strict"); code != 0 || !bytes.Contains(printed, []byte(`"raddle_answer"`)) {
		t.Errorf("tools/list ends with %d:\n%s", code, printed)
	}
	call := func(want string, wantCode int, tool string, args ...string) (run string) {
		t.Helper()
		printed, code := inspect(t, server, append([]string{"--method", "tools/call", "--tool-name", tool}, args...)...)
		var result struct {
			StructuredContent struct{ Run, Status, Output, Error string }
			IsError           bool
		}
		line, _, _ := bytes.Cut(printed, []byte("\n{\"error\"")) // on an error, it comes last
		if err := json.Unmarshal(line, &result); err != nil {
			t.Fatalf("%v: %s", err, printed)
		}
		c := result.StructuredContent
		if got := c.Status + " " + c.Output; !strings.HasPrefix(got, want) || code != wantCode || result.IsError != (wantCode != 0) {
			t.Errorf("%s: %s, code %d", tool, printed, code)
		}
		return c.Run
	}
	call("done Order 1007 is in the workshop", 0, "assistant", "--tool-arg", "prompt=Where is order 1007?")
	run := call("waiting", 0, "triage")
	call("done Not paged", 0, "raddle_answer", "--tool-arg", "run="+run, "answer=no")
	call("failed", 5, "assistant", "--tool-arg", "prompt=nothing that the transcript knows")
}
