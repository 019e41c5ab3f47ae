package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testneed"
)

// The reference files have no findings, and run as they are.
func TestReferenceFilesRun(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	w := newWorkplace(t, "")
	if err := os.CopyFS(filepath.Join(w.dir, "reference"), os.DirFS("../../examples/reference")); err != nil {
		t.Fatal(err)
	}
	if r := w.run("check", "--strict", "reference/graph", "reference/agent"); r.code != 0 || r.out != "graph: ok\nagent: ok\n" {
		t.Error(r)
	}
	for _, test := range []struct{ out, args string }{
		{"A bowline holds, and opens.\n", "reference/graph|Which knot holds?|--answer|yes"},
		{"Take a bowline.\n", "reference/agent|About knots?"},
	} {
		if r := w.run(append([]string{"run", "-q"}, strings.Split(test.args, "|")...)...); r.code != 0 || r.out != test.out {
			t.Error(test.args, r)
		}
	}
}
