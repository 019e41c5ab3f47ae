//go:build unix

package cli_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/docs/guide"
	"raddle.dev/internal/process/bundle"
	"raddle.dev/internal/testkit/testneed"
)

// TestAgentsPassTheirTests runs the tests of all examples and of all agents that come with raddle. Each of them has some, and those of graphs reach
// every node and every edge. which reach every node and edge of its graph.
func TestAgentsPassTheirTests(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	w := newWorkplace(t, "")
	var dirs []string
	for _, root := range []string{"../../../examples", "../../process/bundle/agents"} {
		dir, err := filepath.Abs(root)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	r := w.run(append([]string{"test", "--min-coverage", "100"}, dirs...)...)
	if r.code != 0 || r.err != "" {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	definitions, err := filepath.Glob("../../../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	nested, err := filepath.Glob("../../../examples/*/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	agents := 0
	for _, path := range append(definitions, nested...) {
		if base := filepath.Base(path); base == "graph.yaml" || base == "config.yaml" {
			agents++
			if found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.test.yaml")); found == nil {
				t.Errorf("%s has no tests", path)
			}
		}
	}
	for _, name := range bundle.Names() {
		agents++
		if found, _ := filepath.Glob(filepath.Join("../../process/bundle/agents", name, "*.test.yaml")); found == nil {
			t.Errorf("%s has no tests", name)
		}
	}
	if passed := len(regexp.MustCompile(`(?m)^.*\.test\.yaml: \d+ tests? passed$`).FindAllString(r.out, -1)); passed != agents {
		t.Errorf("%d files have passed, and there are %d agents\n%s", passed, agents, r.out)
	}
}

// TestTestingGuide writes the files of the guide and runs its commands.
func TestTestingGuide(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	w := newWorkplace(t, "")
	files, commands := 0, 0
	for _, block := range fence.FindAllStringSubmatch(guide.FindTopic("testing").Text, -1) {
		if block[1] != "console" {
			first, _, _ := strings.Cut(block[2], "\n")
			if name, ok := strings.CutPrefix(first, "# "); ok {
				w.write(name, block[2])
				files++
			}
			continue
		}
		for _, command := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n")+"\n", "\n")
			if r := w.run(splitWords(line)[1:]...); r.out != want {
				t.Errorf("%s prints\n%swant\n%s\n%s", line, r.out, want, r.err)
			}
			commands++
		}
	}
	if files < 3 || commands < 1 {
		t.Errorf("%d files, %d commands", files, commands)
	}
}
