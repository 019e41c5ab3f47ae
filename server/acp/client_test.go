package acp_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/clienttest"
)

// The official client for Python gets a reply with calls and a plan, allows a call, answers a question, cancels a turn that works, and
// sees an error.
func TestExtraPythonClient(t *testing.T) {
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", map[string]string{
		"graph.yaml": "name: slow\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: finished}\n",
		"work.sh":    "touch \"$HOME/started\"\nsleep 60\necho '{}'\n",
	})
	for what, want := range map[string][]string{
		"reply":    {"end_turn I look up the order", "in the workshop until Friday", "calls: 3"},
		"question": {"When will the raddle be picked up?", "permission: allow_once, reject_once", "A raddle is reserved for Ada", "plan: True"},
		"cancel":   {"cancelled"},
		"error":    {"error: True"},
	} {
		c := clienttest.PythonCommand(t, "acp", "client.py", home.Raddle, what)
		c.Env, c.Dir = append(c.Env, home.Environ()...), home.Dir
		got := clienttest.ReadOutput(t, c)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is missing in:\n%s", what, part, got)
			}
		}
	}
}
