package check_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"raddle.dev/flow"
	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/testkit/testfile"
)

func mustParse(t testing.TB, text string) *spec.File {
	t.Helper()
	f, err := flow.ParseGraph("graph.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func writeFile(t testing.TB, dir, name, text string) {
	t.Helper()
	testfile.WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
}

// texts of findings, with their nodes.
func findingTexts(findings []strictyaml.Finding) []string {
	texts := []string{}
	for _, f := range findings {
		text := f.Message
		if f.Node != "" {
			text = f.Node + ": " + text
		}
		texts = append(texts, text)
	}
	return texts
}

func TestCheckTools(t *testing.T) {
	text := func(nodes string) string {
		return "name: g\nstart: l\nnodes:\n  l: {type: llm, prompt: p, next: e, tools: [a, a.sh, b, b.py, c.rb, user__ask, user__select, agent__check_inbox, agent__spawn, 'mcp:s', 'mcp:', mcp_search_s, .sh]}\n" + nodes + "  e: {type: end}\n"
	}
	k := check.Context{Loaded: true, Tools: []string{"a", "b.py"}, Servers: []string{"s"}}
	want := []string{
		"l: llm node references unknown tool 'c.rb'",
		"l: llm node references unknown tool 'agent__spawn'",
		"l: llm node references unknown MCP server 'mcp:'",
		"l: llm node references unknown tool '.sh'",
	}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(mustParse(t, text("")), k))); diff != "" {
		t.Error(diff)
	}
	agent := "  x: {type: agent, agent: y, prompt: p, next: e}\n"
	want = append(slices.Delete(want, 1, 2), "x: unreachable")
	got := findingTexts(check.ValidateFile(mustParse(t, text(agent)), k))
	if len(got) != 4 || got[1] != want[0] {
		t.Errorf("with an agent node: %q", got)
	}
	if got := check.ValidateFile(mustParse(t, text("")), check.Context{}); len(got) != 0 {
		t.Errorf("without a loaded agent: %v", got)
	}
}

func TestCheckSkillsThatAreOff(t *testing.T) {
	k := check.Context{Loaded: true, Skills: []string{"seen"}}
	for name, c := range map[string]struct {
		graph, node string
		want        []string
	}{
		"on":         {"", "", []string{"graph 'enabled_skills': 'away' is not installed", "l: llm node 'enabled_skills': 'away' is not installed"}},
		"said to be": {"skills_enabled: true\n", ", skills_enabled: true", []string{"graph 'enabled_skills': 'away' is not installed", "l: llm node 'enabled_skills': 'away' is not installed"}},
		"graph off":  {"skills_enabled: false\n", ", skills_enabled: true", []string{}},
		"node off":   {"", ", skills_enabled: false", []string{"graph 'enabled_skills': 'away' is not installed"}},
	} {
		f := mustParse(t, "name: g\nstart: l\n"+c.graph+"enabled_skills: [seen, away]\nnodes:\n  l: {type: llm, prompt: p, next: e, enabled_skills: [away]"+c.node+"}\n  e: {type: end}\n")
		if diff := cmp.Diff(c.want, findingTexts(check.ValidateFile(f, k))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestCheckServersOfTheGraph(t *testing.T) {
	f := mustParse(t, "name: g\nstart: l\nmcp_servers: [absent, s]\nnodes:\n  l: {type: llm, prompt: p, next: e, tools: ['mcp:s', 'mcp:absent', mcp_search_absent, 'mcp:typo', 'mcp:all']}\n  e: {type: end}\n")
	want := []string{
		"l: llm node references unknown MCP server 'mcp:typo'",
		"l: llm node references unknown MCP server 'mcp:all'",
	}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(f, check.Context{Loaded: true, Servers: []string{"s"}}))); diff != "" {
		t.Error(diff)
	}
}

func TestCheckSkills(t *testing.T) {
	f := mustParse(t, "name: g\nstart: l\nenabled_skills: [seen, hidden]\nnodes:\n  l: {type: llm, prompt: p, next: e, enabled_skills: [seen, hidden, away]}\n  e: {type: end}\n")
	k := check.Context{Loaded: true, Skills: []string{"seen", "hidden"}, VisibleSkills: []string{"seen"}}
	want := []string{
		"graph 'enabled_skills': 'hidden' is not in the global 'visible_skills' allow-list",
		"l: llm node 'enabled_skills': 'hidden' is not in the global 'visible_skills' allow-list",
		"l: llm node 'enabled_skills': 'away' is not installed",
	}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(f, k))); diff != "" {
		t.Error(diff)
	}
	want = []string{"l: llm node 'enabled_skills' references 'away' which is not in graph-level 'enabled_skills' (seen, hidden)"}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(f, check.Context{}))); diff != "" {
		t.Error(diff)
	}
}

func TestCheckAgents(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"main/graph.yaml", "graphic/graph.yaml", "plain/config.yaml", "empty/notes.txt", "file", "more/far/config.yaml", "more/empty/graph.yaml"} {
		writeFile(t, root, path, "x")
	}
	f := mustParse(t, `
name: g
start: a
nodes:
  a: {type: agent, agent: graphic, prompt: p, next: b}
  b: {type: agent, agent: plain, prompt: p, next: c}
  c: {type: agent, agent: empty, prompt: p, next: d}
  d: {type: agent, agent: file, prompt: p, next: f}
  f: {type: agent, agent: far, prompt: p, next: g}
  g: {type: agent, agent: "", prompt: p, next: h}
  h: {type: agent, agent: memory, prompt: p, next: e}
  e: {type: end}
`)
	dir := filepath.Join(root, "main")
	want := []string{
		"c: Agent 'empty' has neither a config.yaml nor a graph.yaml",
		"d: Agent 'file' not found (directory missing)",
		"f: Agent 'far' not found (directory missing)",
		"g: Agent '' not found (directory missing)",
		"h: Agent 'memory' not found (directory missing)",
	}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(f, check.Context{Dir: dir}))); diff != "" {
		t.Error(diff)
	}
	k := check.Context{Dir: dir, AgentDirs: []string{root, filepath.Join(root, "more")}, Agent: func(name string) bool { return name == "memory" }}
	want = []string{"d: Agent 'file' not found (directory missing)", "g: Agent '' not found (directory missing)"}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(f, k))); diff != "" {
		t.Error(diff)
	}
}

func TestCheckScriptPaths(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "agent/scripts/a.sh", "x")
	writeFile(t, dir, "shared/b.sh", "x")
	f := mustParse(t, "name: g\nstart: a\nnodes:\n  a: {type: script, script: ./scripts/a.sh, next: b}\n  b: {type: script, script: ../shared/b.sh, next: c}\n"+
		"  c: {type: script, script: "+filepath.Join(dir, "shared", "b.sh")+", next: d}\n  d: {type: script, script: none.sh, next: e}\n  e: {type: end}\n")
	agent := filepath.Join(dir, "agent")
	want := []string{"d: Script file not found: '" + filepath.Join(agent, "none.sh") + "'"}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(f, check.Context{Dir: agent}))); diff != "" {
		t.Error(diff)
	}
}

func TestCheckCycles(t *testing.T) {
	for name, tt := range map[string]struct{ nodes, want string }{
		"self":           {"a: {type: llm, prompt: p, next: a}", "a -> a"},
		"first in order": {"a: {type: llm, prompt: p, next: e, fallback: b}\n  b: {type: llm, prompt: p, next: [e, c]}\n  c: {type: input, question: q, next: b}\n  x: {type: input, question: q, next: x}", "b -> c -> b"},
		"unreachable":    {"a: {type: input, question: q, next: e}\n  x: {type: input, question: q, next: y}\n  y: {type: script, script: s.sh, fallback: x}", "x -> y -> x"},
		"end":            {"a: {type: input, question: q, next: z}\n  z: {type: end, next: a}", "a -> z -> a"},
		"map branch":     {"a: {type: map, over: '{{x}}', as: i, branch: b, collect_into: o, next: e}\n  b: {type: llm, prompt: p, fallback: a}", "a -> b -> a"},
		"none":           {"a: {type: llm, prompt: p, next: [b, c]}\n  b: {type: llm, prompt: p, next: d}\n  c: {type: llm, prompt: p, next: d}\n  d: {type: llm, prompt: p, next: e}", ""},
	} {
		f := mustParse(t, "name: g\nstart: a\nnodes:\n  "+tt.nodes+"\n  e: {type: end}\n")
		got := ""
		for _, found := range check.ValidateFile(f, check.Context{}) {
			if found.Code == "cycle" {
				got += found.Message
			}
		}
		if tt.want != "" {
			tt.want = "Cycle detected: " + tt.want
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestCheckGroups(t *testing.T) {
	f := mustParse(t, `
name: g
start: a
reducers: {sum: sum}
nodes:
  a: {type: llm, prompt: p, next: [x, y, x]}
  b: {type: llm, prompt: p, next: [y, x]}
  one: {type: llm, prompt: p, next: [ask]}
  same: {type: llm, prompt: p, next: [ask, ask]}
  ask: {type: approval, question: q, options: [], routes: {}, on_other: e}
  x: {type: llm, prompt: "{{output}} {{own}}", state_updates: {sum: "1", own: "{{own}}", both: x}, next: e}
  y: {type: agent, agent: z, prompt: "{{own.deep[0]}} {{sum}}", state_updates: {sum: "1", both: x}, output_schema: {properties: {output: {}}}, next: e}
  e: {type: end}
`)
	var got []string
	for _, found := range check.ValidateFile(f, check.Context{}) {
		if found.Severity == strictyaml.SeverityError {
			got = append(got, found.Code+" "+found.Node)
		}
	}
	want := []string{"parallel-writes ", "parallel-reads y"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

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
					writeFile(t, dir, f.Name, string(f.Data))
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
	f, err := flow.ParseGraph("graph.yaml", graph)
	var bad *spec.ParseError
	if errors.As(err, &bad) {
		b.WriteString("! " + strings.ReplaceAll(bad.Error(), "\n", "\n  ") + "\n")
		for _, found := range bad.Findings {
			b.WriteString(found.String() + "\n")
		}
		return b.String()
	}
	for _, list := range [][]strictyaml.Finding{f.Findings, check.ValidateFile(f, check.Context{Dir: dir}), check.ProvePlaceholders(f), check.AdviseFile(f, nil)} {
		for _, found := range list {
			b.WriteString(string(found.Class) + "/" + found.Code + " " + found.String() + "\n")
		}
	}
	return b.String()
}
