//go:build unix

package app

import (
	"crypto/sha256"
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
	"raddle.dev/internal/storage/runs"
)

// Every agent that comes with raddle has no finding, nor do the agents that it runs. It
// has a description and all its tools. This needs no model and no key.
func TestBundledAgents(t *testing.T) {
	w := newPlace(t)
	p, _ := w.process(-1)
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

// The agents that an orchestrator starts are found, and they get the value of
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

// The agents that come with the program are read from it: whatever is done with them, nothing is written to the agents
// directory.
func TestBundledAgentsAreNotInstalled(t *testing.T) {
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
	for _, name := range []string{"own", "sisyphus"} {
		if _, err := p.Load(LoadRequest{Agent: name}); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(p.Dirs.Agents); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A copy in the agents directory counts once it was changed, also for agents that start others. An older copy that was
// not changed counts as not there.
func TestCopiesOfBundledAgents(t *testing.T) {
	w := newPlace(t)
	p, _ := w.process(-1)
	if _, err := p.Bundled.Reinstall([]string{"coder", "explore"}, false); err != nil {
		t.Fatal(err)
	}
	outdated := filepath.Join(p.Dirs.Agents, "explore", "tools.sh")
	manifest := filepath.Join(p.Dirs.Agents, ".bundle.json")
	text, err := os.ReadFile(outdated)
	if err != nil {
		t.Fatal(err)
	}
	digest := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	older := append(slices.Clone(text), "# of an older version\n"...)
	record, err := os.ReadFile(manifest)
	if err != nil || !strings.Contains(string(record), digest(text)) {
		t.Fatal(err, "the manifest lacks the file")
	}
	w.write("home/.config/raddle/agents/explore/tools.sh", string(older))
	w.write("home/.config/raddle/agents/.bundle.json", strings.ReplaceAll(string(record), digest(text), digest(older)))
	for _, name := range []string{"coder", "explore"} {
		if place, err := p.FindAgent(name); err != nil || !isInside(place.Dir, p.Dirs.Bundled) {
			t.Errorf("%+v %v", place, err)
		}
	}

	own := "name: mine\ninstructions: x\n"
	w.write("home/.config/raddle/agents/coder/config.yaml", own)
	place, err := p.FindAgent("coder")
	if err != nil || place.Dir != filepath.Join(p.Dirs.Agents, "coder") {
		t.Errorf("%+v %v", place, err)
	}
	places := map[string]string{}
	for _, a := range p.ListAgents() {
		places[a.Name] = a.Dir
	}
	if places["coder"] != place.Dir || !isInside(places["explore"], p.Dirs.Bundled) || len(places) != len(BundledAgents()) {
		t.Errorf("%v", places)
	}
	w.write("flow/graph.yaml", "name: flow\nstart: a\nnodes:\n  a: {type: agent, agent: coder, prompt: x, next: b}\n  b: {type: agent, agent: explore, prompt: x, next: c}\n  c: {type: end}\n")
	a, err := p.Load(LoadRequest{Agent: "./flow", Model: "openai:x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range a.Agents() {
		if strings.HasSuffix(member.Dir, "coder") && member.Dir != place.Dir || strings.HasSuffix(member.Dir, "explore") && !isInside(member.Dir, p.Dirs.Bundled) {
			t.Errorf("the graph runs %s", member.Dir)
		}
	}
	if len(a.Agents()) != 3 {
		t.Errorf("%d agents", len(a.Agents()))
	}
}

// A session continues when the directory of its agent moves with the version of the program, and a run when the cache
// was emptied.
func TestSessionOfABundledAgent(t *testing.T) {
	w := newPlace(t)
	w.serve(&model{t: t, text: "done"})
	p, _ := w.process(-1)
	w.finish(p, Request{Agent: "assistant", Prompt: "one", Session: "talk"}, nil)
	place, err := p.FindAgent("assistant")
	if err != nil {
		t.Fatal(err)
	}
	w.write("home/.config/raddle/agents/assistant/config.yaml", "name: mine\ninstructions: x\n")
	if _, out := w.finish(p, Request{Agent: "assistant", Prompt: "two", Session: "talk"}, nil); out != "done" {
		t.Errorf("%q", out)
	}
	if err := os.RemoveAll(p.Dirs.Bundled); err != nil {
		t.Fatal(err)
	}
	again, _ := w.process(-1)
	rec := &runs.Record{Agent: "assistant", Dir: place.Dir}
	if err := again.relocateAgent("r", rec, ""); err != nil || rec.Dir != place.Dir || !config.IsDir(place.Dir) {
		t.Errorf("%+v %v", rec, err)
	}
	rec.Dir = filepath.Join(filepath.Dir(filepath.Dir(place.Dir)), "older", "assistant")
	if err := again.relocateAgent("r", rec, ""); err != nil || rec.Dir != place.Dir {
		t.Errorf("%+v %v", rec, err)
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
	if _, err := p.Bundled.Reinstall([]string{"jira-helper"}, false); err != nil {
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

// Agents that were unpacked cost one look at each directory, and a digest of what the program has.
func BenchmarkUnpacked(b *testing.B) {
	p, err := Open(Options{Work: b.TempDir(), Environ: []string{"HOME=" + b.TempDir()}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.Bundled = &Bundled{dirs: p.Dirs}
		if _, err := p.Bundled.Unpack(); err != nil {
			b.Fatal(err)
		}
	}
}
