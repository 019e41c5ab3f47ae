package acp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/clienttest"
)

// The official clients for Python and TypeScript get a reply with calls and a plan, allow a call, answer a question, cancel a turn that
// works, and see an error.
func TestExtraPythonClient(t *testing.T) {
	testClient(t, func(raddle, what string) *exec.Cmd {
		return clienttest.PythonCommand(t, "acp", "client.py", raddle, what)
	})
}

func TestExtraTypeScriptClient(t *testing.T) {
	testClient(t, func(raddle, what string) *exec.Cmd {
		return clienttest.NodeCommand(t, "acp", "client.mjs", raddle, what)
	})
}

func testClient(t *testing.T, command func(raddle, what string) *exec.Cmd) {
	t.Helper()
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", map[string]string{
		"graph.yaml": "name: slow\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: finished}\n",
		"work.sh":    "touch \"$HOME/started\"\nsleep 60\necho '{}'\n",
	})
	for what, want := range map[string][]string{
		"reply":    {"end_turn I look up the order", "in the workshop until Friday", "calls: 3"},
		"question": {"When will the raddle be picked up?", "permission: allow_once, reject_once", "A raddle is reserved for Ada", "plan: true"},
		"cancel":   {"cancelled"},
		"error":    {"error: true"},
	} {
		_ = os.Remove(filepath.Join(home.Dir, "started"))
		c := command(home.Raddle, what)
		c.Env, c.Dir = append(c.Env, home.Environ()...), home.Dir
		got := clienttest.ReadOutput(t, c)
		for _, part := range want {
			if !strings.Contains(strings.ToLower(got), strings.ToLower(part)) {
				t.Errorf("%s: %q is missing in:\n%s", what, part, got)
			}
		}
	}
}
