// Package flowtest runs the test cases of agents as Go tests: the files *.test.yaml next to a graph.yaml or
// config.yaml, as `raddle test` runs them.
//
//	func TestAgents(t *testing.T) { flowtest.Files(t, "agents") }
package flowtest

import (
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/proving/testrun"
)

// Files runs the cases of all files *.test.yaml in a directory and below, each as a subtest named FILE/CASE. Cases run
// side by side with other parallel tests. dir may also be one file. It is an error if there is none.
func Files(t *testing.T, dir string) {
	t.Helper()
	files, err := testrun.FindFiles([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("there is no file *%s in %s", testcase.Suffix, dir)
	}
	runner := &testrun.Runner{}
	for _, path := range files {
		f, err := testcase.Load(path)
		if err != nil {
			t.Error(err)
			continue
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			name = filepath.Base(path)
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			for _, c := range f.Cases {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					runCase(t, runner, c)
				})
			}
		})
	}
}

func runCase(t *testing.T, runner *testrun.Runner, c *testcase.Case) {
	t.Helper()
	r, err := runner.RunCase(t.Context(), c, testrun.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		text := f.Pos.String() + ": " + f.What + ": " + f.Message
		if diff := testrun.DiffTexts(f.Want, f.Got); diff != nil {
			text += "\n  " + strings.Join(diff, "\n  ")
		}
		t.Error(text)
	}
}
