package a2a_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/clienttest"
)

// The official client of Python has a conversation with examples/assistant and examples/triage.
func TestExtraClient(t *testing.T) {
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", map[string]string{
		"graph.yaml": "name: slow\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: late}\n",
		"work.sh":    "sleep 50\necho ended >" + filepath.Join(home.Dir, "ended") + "\necho '{}'\n",
	})
	home.AddAgent(t, "broken", map[string]string{
		"config.yaml":     "name: broken\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- match: x\n  error: {class: bad_request, message: the model refuses}\n",
	})
	s := home.Serve(t)
	for name, c := range map[string]struct{ args, want []string }{
		"stream and tools": {
			[]string{"assistant", "Where is order 1007, and what would two raddles cost?"},
			[]string{"card assistant", "task ", "artifact reply I look up", "status working Calls order_status.", "artifact reply Order 1007", "state completed",
				"read completed True", "has reply I look up", "has reply Order 1007", "listed True", "refused TaskNotFoundError"},
		},
		"questions of an agent": {
			[]string{"assistant", "Reserve a raddle for Ada", "today", "yes", "yes"},
			[]string{"status input_required When will", "state input_required", "status input_required May mcp_invoke_shop", "state completed", "has reply A raddle is reserved for Ada"},
		},
		"questions of a graph": {
			[]string{"triage", "It is broken", "yes", "Look at the release."},
			[]string{"status input_required Card payments have failed", "status input_required Anything to add", "artifact output Paged", "state completed", "has output Paged"},
		},
		"cancel": {[]string{"slow", "x", "cancel"}, []string{"cancelled canceled", "state canceled", "read canceled"}},
		"error":  {[]string{"broken", "x"}, []string{"status failed at node", "state failed", "read failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := clienttest.ReadOutput(t, s.Connect(clienttest.PythonCommand(t, "a2a", "client.py", c.args...)))
			rest := strings.Split(out, "\n")
			for _, w := range c.want {
				i := slices.IndexFunc(rest, func(line string) bool { return strings.HasPrefix(line, w) })
				if i < 0 {
					t.Fatalf("no line %q at its place in:\n%s", w, out)
				}
				rest = rest[i+1:]
			}
		})
	}
	if _, err := os.Stat(filepath.Join(home.Dir, "ended")); err == nil {
		t.Error("the cancelled script has ended")
	}
}
