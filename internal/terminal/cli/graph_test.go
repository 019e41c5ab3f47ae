//go:build unix

package cli_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/testkit/termtest"
)

// On a terminal graph draws with characters, and lists are cut to its width; a pipe gets Mermaid, and whole lines.
func TestPicturesAndListsOnATerminal(t *testing.T) {
	long := strings.Repeat("word ", 60)
	w := newWorkplace(t, `
-- ask/graph.yaml --
name: ask
start: first
nodes:
  first: {type: script, script: first.sh, targets: [first], next: review}
  review: {type: approval, question: "`+long+`", options: [yes, no], routes: {yes: done, no: done}, on_other: done}
  done: {type: end}
-- ask/first.sh --
echo '{}'
`)
	if r := w.run("run", "-q", "./ask", long); r.code != 5 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	if r := w.run("graph", "last"); !strings.HasPrefix(r.out, "---\ntitle: ") || !strings.Contains(r.out, "flowchart TB") {
		t.Errorf("a pipe gets\n%s", r.out)
	}
	for _, test := range []struct {
		args string
		want []string
	}{
		{"graph ./ask", []string{"│ first  script │", "review  approval", "repeats", "▼", "┏"}},
		{"graph last", []string{"✓ first", "⏸ review", "· waiting"}},
		{"runs", []string{"⏸ waiting", "review: word word"}},
		{"runs ls --tree", []string{"⏸ waiting"}},
		{"inbox --output json", []string{"word word"}},
		{"runs show last", []string{"status     waiting", "first → review"}},
		{"runs history last", []string{"first: ran its script", "waits for an answer"}},
		{"check ./ask", []string{"ask: ok"}},
	} {
		out, errs, code := w.onTerminals(true, false, strings.Fields(test.args)...)
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s", test.args, code, errs)
		}
		screen := termtest.Render(100, out)
		for _, want := range test.want {
			if !strings.Contains(screen, want) {
				t.Errorf("%s shows no %q:\n%s", test.args, want, screen)
			}
		}
		if strings.HasPrefix(test.args, "graph") || test.args == "runs" {
			for line := range strings.Lines(screen) {
				if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > 100 {
					t.Errorf("%s: a line has %d columns: %s", test.args, n, line)
				}
			}
		}
	}
}
