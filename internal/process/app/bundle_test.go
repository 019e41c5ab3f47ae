//go:build unix

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
)

// Every agent that comes with raddle has no finding, nor do the agents that it runs. It
// has a description and all its tools. This needs no model and no key.
func TestBundledAgents(t *testing.T) {
	w := newPlace(t)
	p, _ := w.process(-1)
	if err := p.Bundled.InstallOnce(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, place := range p.ListAgents() {
		names = append(names, place.Name)
		a, err := p.Load(LoadRequest{Agent: place.Name, Strict: true})
		if err != nil {
			t.Errorf("%s: %v", place.Name, err)
			continue
		}
		for _, member := range a.Agents() {
			for _, f := range member.Findings {
				t.Errorf("%s: %v", place.Name, f)
			}
		}
		about := ""
		if a.Config != nil {
			about = a.Config.Description
		} else {
			about = a.File.Description
		}
		if len(about) < 40 || len(about) > 130 || !strings.HasSuffix(about, ".") {
			t.Errorf("%s says of itself %q", place.Name, about)
		}
	}
	if !slices.Equal(names, BundledAgents()) || len(names) != 12 {
		t.Errorf("agents %v", names)
	}
}

// The agents that an orchestrator starts are the installed ones, and they get the value of
// a variable, too.
func TestBundledTeams(t *testing.T) {
	w := newPlace(t)
	p, _ := w.process(-1)
	for name, want := range map[string][]string{"sisyphus": {"coder", "explore", "oracle"}, "code-reviewer": {"file-reviewer"}} {
		a, err := p.Load(LoadRequest{Agent: name})
		if err != nil {
			t.Fatal(err)
		}
		team := a.Config.Team
		names := slices.Sorted(slices.Values(*team.Spawnable))
		if !team.CanSpawn || !slices.Equal(names, want) {
			t.Errorf("%s may spawn %v", name, names)
		}
	}
}

// A name that no agent has installs nothing, and neither does a list.
func TestBundledLater(t *testing.T) {
	w := newPlace(t)
	w.write("home/.config/raddle/agents/own/config.yaml", "name: own\ninstructions: x\n")
	p, _ := w.process(-1)
	if _, err := p.FindAgent("explroe"); err == nil || err.(*failure.Error).Next != "did you mean explore?" {
		t.Errorf("got %v", err)
	}
	if _, err := p.FindAgent("./none"); err == nil {
		t.Error("a path that does not exist is an agent")
	}
	var names []string
	for _, place := range p.ListAgents() {
		names = append(names, place.Name)
	}
	want := append(BundledAgents(), "own")
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Errorf("agents %v", names)
	}
	if entries, err := os.ReadDir(p.Dirs.Agents); err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if _, err := p.FindAgent("own"); err != nil || !config.IsDir(filepath.Join(p.Dirs.Agents, "explore")) {
		t.Errorf("the agents that own may run are missing: %v", err)
	}
}

// A process tries to install once, and only if no process has done it before.
func TestBundledOnce(t *testing.T) {
	w := newPlace(t)
	p, _ := w.process(-1)
	if err := p.Bundled.InstallOnce(); err != nil {
		t.Fatal(err)
	}
	coder := filepath.Join(p.Dirs.Agents, "coder")
	if err := os.RemoveAll(coder); err != nil {
		t.Fatal(err)
	}
	again, _ := w.process(-1)
	for _, q := range []*Process{p, again} {
		if config.IsDir(coder) || slices.ContainsFunc(q.ListAgents(), func(a Place) bool { return a.Name == "coder" }) {
			t.Error("an agent that was deleted is there again")
		}
		if _, err := q.FindAgent("coder"); err == nil || !strings.Contains(err.(*failure.Error).Next, "raddle agents install coder") {
			t.Errorf("got %v", err)
		}
	}
}

// jira-helper works with any server that has the name; without one it reports
// that.
func TestJiraHelper(t *testing.T) {
	server, err := shopServer()
	if err != nil {
		t.Fatal(err)
	}
	w := newPlace(t)
	m := &model{t: t, text: "done", rounds: [][]call{{{"1", "mcp_search_atlassian", `{"query":"stock"}`},
		{"2", "mcp_invoke_atlassian", `{"tool":"check_stock","arguments":{"sku":"R-210"}}`}, {"3", "user__confirm", `{"question":"Write the issue?"}`}}}}
	w.serve(m)
	p, _ := w.process(-1)
	if err := p.Bundled.InstallOnce(); err != nil {
		t.Fatal(err)
	}
	w.write("home/.config/raddle/agents/jira-helper/mcp.json", `{"mcpServers": {"atlassian": {"command": "`+server+`"}}}`)
	run, err := p.StartRun(Request{Agent: "jira-helper", Prompt: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	res, err := run.Drive(t.Context(), answering(pickFirst))
	if err != nil || flow.OutcomeOf(res).Output != "done" {
		t.Fatalf("%+v %v", res, err)
	}
	said := fmt.Sprint(agent.History(res.State))
	for _, want := range []string{"check_stock", `"pieces":12`, `{"answer":"yes"}`} {
		if !strings.Contains(said, want) {
			t.Errorf("the outcomes lack %q: %s", want, said)
		}
	}
	first := m.request(0)
	if system := first.system(); !strings.Contains(system, "You help with issues in Jira. Today is 2") {
		t.Errorf("the system prompt is %q", system)
	}
}

// Installed agents cost one read of a file.
func BenchmarkInstalled(b *testing.B) {
	p, err := Open(Options{Work: b.TempDir(), Environ: []string{"HOME=" + b.TempDir()}})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Bundled.InstallOnce(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.Bundled = &Bundled{dirs: p.Dirs}
		if err := p.Bundled.InstallOnce(); err != nil {
			b.Fatal(err)
		}
	}
}
