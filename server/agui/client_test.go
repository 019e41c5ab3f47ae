package agui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/clienttest"
)

// runClient runs the protocol's own client, and returns the lines that it printed.
func runClient(t *testing.T, s *clienttest.Server, args ...string) []string {
	t.Helper()
	out := clienttest.ReadOutput(t, s.Connect(clienttest.NodeCommand(t, "agui", "client.mjs", args...)))
	t.Logf("%s:\n%s", strings.Join(args, " "), out)
	return strings.Split(out, "\n")
}

// expectLines fails unless the lines are among the others, in this order.
func expectLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	rest := got
	for _, w := range want {
		i := slices.IndexFunc(rest, func(line string) bool { return strings.HasPrefix(line, w) })
		if i < 0 {
			t.Errorf("no line %q at its place in:\n%s", w, strings.Join(got, "\n"))
			return
		}
		rest = rest[i+1:]
	}
}

// The official client, which verifies every event, has a conversation with examples/assistant and examples/triage.
func TestExtraClient(t *testing.T) {
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", map[string]string{
		"graph.yaml": "name: slow\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: late}\n",
		"work.sh":    "echo began >" + filepath.Join(home.Dir, "began") + "\nsleep 50\necho ended >" + filepath.Join(home.Dir, "ended") + "\necho '{}'\n",
	})
	home.AddAgent(t, "broken", map[string]string{
		"config.yaml":     "name: broken\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- match: x\n  error: {class: bad_request, message: the model refuses}\n",
	})
	s := home.Serve(t)

	t.Run("stream and tools", func(t *testing.T) {
		got := runClient(t, s, "assistant", "Where is order 1007, and what would two raddles cost?", "yes", "yes", "yes")
		expectLines(t, got, "started", "call call_1_0 order_status", "call call_1_1 quote", "call call_1_2 mcp_invoke_shop", "result call_1_0",
			`finished success "Order 1007 is in the workshop`, "pieces true", "message user", `message assistant "I look up`, "message tool", "message tool", "message tool", `message assistant "Order 1007`)
	})
	t.Run("questions of an agent", func(t *testing.T) {
		got := runClient(t, s, "assistant", "Reserve a raddle for Ada", "today", "yes", "yes")
		expectLines(t, got, `interrupt input_required - "When will the raddle be picked up?"`, "started", "interrupt tool_call", "started", `finished success "A raddle is reserved for Ada`)
		starts := map[string]int{}
		for _, line := range got {
			if strings.HasPrefix(line, "call ") {
				starts[line]++
			}
		}
		for line, n := range starts {
			if n != 1 {
				t.Errorf("%s: %d times", line, n)
			}
		}
	})
	t.Run("questions of a graph", func(t *testing.T) {
		got := runClient(t, s, "triage", "", "yes", "Look at the release.")
		expectLines(t, got, "step classify", "interrupt input_required", "interrupt input_required", `finished success "Paged`, "state {")
		if last := got[len(got)-1]; !strings.Contains(last, `"note":"Look at the release."`) || !strings.Contains(last, `"severity":"high"`) {
			t.Errorf("state: %s", last)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		began := time.Now()
		got := runClient(t, s, "slow", "x", "close")
		expectLines(t, got, "started", "step work", "error abort")
		awaitStatus(t, home, "slow", "canceled")
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the run stopped after %v", took)
		}
		if _, err := os.Stat(filepath.Join(home.Dir, "ended")); err == nil {
			t.Error("the script has ended")
		}
	})
	t.Run("errors", func(t *testing.T) {
		expectLines(t, runClient(t, s, "broken", "x"), "started", "error failed")
		expectLines(t, runClient(t, s, "missing", "x"), "failed HTTP 404")
	})
}

// awaitStatus waits until the newest run of an agent has a status.
func awaitStatus(t *testing.T, home *clienttest.Home, agent, status string) {
	t.Helper()
	out := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		b, err := home.Command(t, "runs", "ls").Output()
		if err != nil {
			t.Fatal(err)
		}
		out = string(b)
		for line := range strings.Lines(out) {
			if strings.Contains(line, agent) && strings.Contains(line, status) {
				return
			}
		}
	}
	t.Errorf("no run of %s is %s:\n%s", agent, status, fmt.Sprint(out))
}
