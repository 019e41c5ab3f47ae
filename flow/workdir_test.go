package flow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow/check"
	"raddle.dev/graph"
)

// TestScriptsRunWhereTheCallerIs: a script sees the project that raddle was started in, unless the graph or
// the node says that it runs in the agent's directory.
func TestScriptsRunWhereTheCallerIs(t *testing.T) {
	for _, k := range []struct{ graph, node, want string }{
		{"", "", "project"},
		{"", "working_dir: caller", "project"},
		{"", "working_dir: agent", "agent"},
		{"working_dir: agent", "", "agent"},
		{"working_dir: agent", "working_dir: caller", "project"},
		{"working_dir: caller", "", "project"},
	} {
		t.Run(k.graph+","+k.node, func(t *testing.T) {
			root := t.TempDir()
			agent, project := filepath.Join(root, "agent"), filepath.Join(root, "project")
			if err := os.Mkdir(project, 0o755); err != nil {
				t.Fatal(err)
			}
			writeCaseFile(t, agent, "graph.yaml", "name: g\n"+k.graph+"\nstart: s\nnodes:\n  s:\n    type: script\n    script: s.sh\n    next: e\n    "+k.node+
				"\n  e: {type: end, output: \"{{here}}\"}\n")
			writeCaseFile(t, agent, "s.sh", `printf '{"here": "%s"}' "$(basename "$PWD")"`)
			a, err := Load(agent, Host{Workspace: project})
			if err != nil {
				t.Fatal(err)
			}
			g, err := a.CompileGraph()
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), a.Input(""))
			if got, _ := res.Value.(string); err != nil || got != k.want {
				t.Errorf("it ran in %q, want %q (%v)", got, k.want, err)
			}
		})
	}
}

// TestWorkingDirHint: check names the file that a script will not find.
func TestWorkingDirHint(t *testing.T) {
	for script, want := range map[string]string{
		"cat data/owners.txt\n":                          "data/owners.txt",
		"done <./list.txt\n":                             "./list.txt",
		"open('list.txt')\n":                             "list.txt",
		"# cat list.txt\n":                               "",
		"cat \"$LLM_AGENT_DATA_DIR/list.txt\"\n":         "",
		"cat \"$(dirname \"$0\")/../list.txt\"\n":        "",
		"cat shared.txt; make build\n":                   "",
		"cat none.txt\n":                                 "",
		"cd \"${PROJECT_DIR:-.}\"; cat README.md go.mod": "",
	} {
		root := t.TempDir()
		agent, project := filepath.Join(root, "agent"), filepath.Join(root, "project")
		for _, name := range []string{"data/owners.txt", "list.txt", "shared.txt"} {
			writeCaseFile(t, agent, name, "x")
		}
		writeCaseFile(t, project, "shared.txt", "x")
		writeCaseFile(t, agent, "s.sh", script)
		f, err := ParseGraph("graph.yaml", []byte("name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: ok}\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range check.ValidateFile(f, check.Context{Dir: agent, Workspace: project}) {
			if f.Code == "working-dir" {
				got = f.Message
			}
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}
