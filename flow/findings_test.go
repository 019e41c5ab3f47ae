package flow

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/strictyaml"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the code does now")

// TestFindings checks files against the findings that each archive lists: the
// error of a file that does not parse, then all findings.
func TestFindings(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "findings", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives (%v)", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var graph, want *txtar.File
			for i := range archive.Files {
				switch f := &archive.Files[i]; f.Name {
				case "graph.yaml":
					graph = f
				case "want.txt":
					want = f
				default:
					writeCaseFile(t, dir, f.Name, string(f.Data))
				}
			}
			got := strings.ReplaceAll(findingsText(dir, graph.Data), dir, "DIR")
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func findingsText(dir string, graph []byte) string {
	var b strings.Builder
	f, err := ParseGraph("graph.yaml", graph)
	var bad *spec.ParseError
	if errors.As(err, &bad) {
		b.WriteString("! " + strings.ReplaceAll(bad.Error(), "\n", "\n  ") + "\n")
		for _, found := range bad.Findings {
			b.WriteString(found.String() + "\n")
		}
		return b.String()
	}
	for _, list := range [][]strictyaml.Finding{f.Findings, check.ValidateFile(f, check.Context{Dir: dir}), check.ProvePlaceholders(f), check.AdviseFile(f)} {
		for _, found := range list {
			b.WriteString(string(found.Class) + "/" + found.Code + " " + found.String() + "\n")
		}
	}
	return b.String()
}
