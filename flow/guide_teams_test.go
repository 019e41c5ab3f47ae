package flow

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/team"
)

// scripts is Models that know transcripts only, each opened once.
type scripts struct {
	mu     sync.Mutex
	opened map[string]llm.Model
}

func (*scripts) IsKnown(_, id string) bool       { return strings.HasPrefix(id, "script:") }
func (*scripts) Facts(string, string) ModelFacts { return ModelFacts{} }
func (s *scripts) Open(_ context.Context, dir, id string) (llm.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(dir, strings.TrimPrefix(id, "script:"))
	if s.opened[path] == nil {
		m, err := script.Open(path)
		if err != nil {
			return nil, err
		}
		s.opened[path] = m
	}
	return s.opened[path], nil
}

var guideFile = regexp.MustCompile("(?s)```yaml\n# ([^\n]+)\n(.*?)```")

// The files that the guide to teams shows are agents that run, and say what it says
// they say; it names every tool.
func TestGuideToTeams(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/teams.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range team.Tools(true) {
		if !strings.Contains(string(text), "`"+u.Name+"`") {
			t.Errorf("the guide does not name %s", u.Name)
		}
	}
	root := t.TempDir()
	files := guideFile.FindAllStringSubmatch(string(text), -1)
	for _, f := range files {
		writeCaseFile(t, root, f[1], f[2])
	}
	if n := strings.Count(string(text), "```yaml"); n != len(files) || n < 5 {
		t.Fatalf("%d of %d blocks say what file they are", len(files), n)
	}
	for name, want := range map[string]string{"news": "Read: The moon does, and the sun. Asked: the moon makes them: yes.", "desk": "The moon does, and the sun.: yes"} {
		a, err := Load(filepath.Join(root, name), Host{Models: &scripts{opened: map[string]llm.Model{}}})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(a.Findings, func(f strictyaml.Finding) bool { return f.Code != "initial-prompt" }) {
			t.Errorf("%s: %v", name, a.Findings)
		}
		g, err := a.CompileGraph()
		if err != nil {
			t.Fatal(err)
		}
		r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
		in := a.Input("Report on the tides.")
		in.Thread = "t"
		res, err := r.Invoke(t.Context(), in)
		if err != nil || res.Status != graph.Waiting {
			t.Fatalf("%s: %v, %v", name, res.Status, err)
		}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "yes"}}})
		if said := OutcomeOf(res).Output; err != nil || said != want || name == "news" && !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("%s says %q, %v", name, said, err)
		}
	}
}
