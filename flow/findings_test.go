package flow

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
)

// TestFindingsThatScriptsRefute checks that nodes which a script names count as reachable for people, and that of others
// only the first of each group is named.
func TestFindingsThatScriptsRefute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes, script string
		want          []string
	}{
		"a script names the end":       {"e: {type: end}", `echo '{"_next": "e"}'`, nil},
		"a script computes the end":    {"e: {type: end}", `echo "{\"_next\": \"$(next)\"}"`, []string{"unreachable e", "end-unreachable "}},
		"a script names a way to it":   {"a: {type: input, question: q, next: e}\n  e: {type: end}", `echo '{"_next": "a"}'`, nil},
		"the end of a row is not told": {"x: {type: input, question: q, next: y}\n  y: {type: input, question: q, next: e}\n  e: {type: end}", "echo '{}'", []string{"unreachable x", "end-unreachable "}},
		"a row against the order":      {"e: {type: end}\n  y: {type: input, question: q, next: e}\n  x: {type: input, question: q, next: y}", "echo '{}'", []string{"unreachable x", "end-unreachable "}},
		"two rows that meet":           {"x: {type: input, question: q, next: e}\n  y: {type: input, question: q, next: e}\n  e: {type: end}", "echo '{}'", []string{"unreachable x", "unreachable y", "end-unreachable "}},
		"a script that nothing reaches": {"t: {type: script, script: s.sh, next: e}\n  f: {type: end}\n  e: {type: end}", "echo '{\"_next\": \"f\"}'",
			[]string{"unreachable t"}},
	} {
		dir := t.TempDir()
		testfile.WriteFile(t, filepath.Join(dir, "graph.yaml"), "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh}\n  "+c.nodes+"\n")
		testfile.WriteFile(t, filepath.Join(dir, "s.sh"), c.script+"\n")
		a, err := Load(dir, Host{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range a.ListFindings() {
			if isAboutReach(f) {
				got = append(got, f.Code+" "+f.Node)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
