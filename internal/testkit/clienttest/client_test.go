package clienttest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/clienttest"
)

// The clients run in the versions of their lock files, and not in what is installed elsewhere.
func TestExtraClientsRunInTheirEnvironments(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		from, err := filepath.Abs("../clients/openai")
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			t.Fatal(err)
		}
		return rel
	}
	node := clienttest.NodeCommand(t, "openai", write("version.cjs", "console.log(process.version)"))
	if got := clienttest.ReadOutput(t, node); !strings.HasPrefix(got, "v22.") {
		t.Errorf("Node is %s", got)
	}
	python := clienttest.PythonCommand(t, "openai", write("version.py", "import openai, sys; print(openai.__version__, sys.prefix)"))
	if got := clienttest.ReadOutput(t, python); !strings.HasPrefix(got, "3.54.0 ") || !strings.HasSuffix(got, ".venv") {
		t.Errorf("openai is %s", got)
	}
}

// A home directory has the agents of the examples, and they work there without the repository.
func TestExtraHomeHasTheExamples(t *testing.T) {
	home := clienttest.NewHome(t)
	got := clienttest.ReadOutput(t, home.Command(t, "run", "-q", "assistant", "Where is order 1007?"))
	if want := "Order 1007 is in the workshop until Friday. Two raddles cost 49.00 EUR if you pick them up."; got != want {
		t.Errorf("assistant: %q", got)
	}
	got = clienttest.ReadOutput(t, home.Command(t, "run", "-q", "triage", "--answer", "no"))
	if !strings.HasPrefix(got, "Not paged: Card payments have failed") {
		t.Errorf("triage: %q", got)
	}
}
