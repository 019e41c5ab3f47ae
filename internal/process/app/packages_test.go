//go:build unix

package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/process/toolbox"
)

// program writes an interpreter to a place that records that it ran, and then runs
// the one of the system.
func (p *place) program(name, mark string) {
	p.t.Helper()
	p.write(name, "#!/bin/sh\necho "+mark+" >>'"+p.dir+"/ran'\nPATH=/usr/local/bin:/usr/bin:/bin exec python3 \"$@\"\n")
	if err := os.Chmod(filepath.Join(p.dir, name), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// Interpreters and programs of the workspace run only after consent to everything in
// them, until a file there changes. Those of a named agent run at once.
func TestPackagesNeedConsent(t *testing.T) {
	w := newPlace(t)
	w.env[1] = "PATH=" + filepath.Join(w.dir, "tools", "bin") + ":.:bin::" + os.Getenv("PATH")
	w.program(".venv/bin/python", "venv")
	w.program("tools/bin/python3", "path")
	w.program("bin/python3", "relative")
	w.write(".venv/lib/x.py", "x = 1\n")
	w.write("py/config.yaml", "name: P\n")
	w.write("py/tools.py", "# raddle: read-only\ndef go():\n    'Goes.'\n    return 'went'\n")
	w.write("g/graph.yaml", "name: g\nstart: a\nnodes:\n  a: {type: script, script: a.py, timeout: 20, next: b}\n  b: {type: end, output: '{{x}}'}\n")
	w.write("g/a.py", "print('{\"x\": \"went\"}')\n")
	w.serve(&model{t: t, text: "done", rounds: [][]call{{{"1", "go", "{}"}}}})
	run := func(name string) string {
		t.Helper()
		_ = os.Remove(filepath.Join(w.dir, "ran"))
		p, _ := w.process(-1)
		if _, out := w.finish(p, Request{Agent: "./" + name, Prompt: "go"}, nil); out != "done" && out != "went" {
			t.Errorf("%s says %q", name, out)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(w.lines("ran"), " ")
	}
	pickups := func(name string) (list []toolbox.ImplicitDir, p *Process) {
		t.Helper()
		p, _ = w.process(-1)
		a, err := p.Load(LoadRequest{Agent: "./" + name})
		if err != nil {
			t.Fatal(err)
		}
		if list, err = p.Tools.FindImplicitDirs(a); err != nil {
			t.Fatal(err)
		}
		return list, p
	}
	if py, g := run("py"), run("g"); py != "" || g != "" {
		t.Errorf("without consent ran: %q, %q", py, g)
	}
	list, p := pickups("py")
	if len(list) != 2 || list[0].Dir != filepath.Join(w.dir, ".venv") || list[1].Dir != filepath.Join(w.dir, "tools", "bin") || !list[0].Packages {
		t.Fatalf("%+v", list)
	}
	if err := p.Tools.RecordConsent(list[0]); err != nil {
		t.Fatal(err)
	}
	if err := p.Tools.RecordRefusal(list[1]); err != nil {
		t.Fatal(err)
	}
	if py, g := run("py"), run("g"); py != "venv" || g != "" {
		t.Errorf("with consent ran: %q, %q", py, g)
	}
	if list, _ := pickups("py"); len(list) != 0 {
		t.Errorf("answered already: %+v", list)
	}
	w.write(".venv/lib/x.py", "x = 2\n")
	if py := run("py"); py != "" {
		t.Errorf("after a change ran: %q", py)
	}
	list, _ = pickups("py")
	if len(list) != 1 || list[0].Dir != filepath.Join(w.dir, ".venv") {
		t.Errorf("after a change: %+v", list)
	}
	if list, _ = pickups("g"); len(list) != 0 { // a script node takes python3 from PATH
		t.Errorf("for the graph: %+v", list)
	}
	w.program("py/.venv/bin/python", "own")
	if py := run("py"); py != "own" {
		t.Errorf("with the agent's own interpreter ran: %q", py)
	}
}

// A server that the user configured does not start in the workspace, where npx and
// python -m would run files of the workspace as the server.
func TestServersDoNotStartInTheWorkspace(t *testing.T) {
	w := newPlace(t)
	w.write("home/.config/raddle/functions/mcp.json", `{"mcpServers": {"s": {"command": "sh", "args": ["-c", "pwd > '`+w.dir+`/where'; echo $RADDLE_WORKSPACE ${RADDLE_WORKSPACE} >> '`+w.dir+`/where'"]}}}`)
	w.write("a/config.yaml", "name: A\nmcp_servers: [s]\nglobal_tools: [fs_cat]\n")
	w.serve(&model{t: t, text: "done"})
	p, _ := w.process(-1)
	w.finish(p, Request{Agent: "./a", Prompt: "go"}, nil)
	want := filepath.Join(w.dir, "home/.config/raddle/functions") + "\n" + w.dir + " " + w.dir
	if got := strings.Join(w.lines("where"), "\n"); got != want {
		t.Errorf("the server ran in %q, want %q", got, want)
	}
}

func TestPackagesAreFoundInARootWorkspace(t *testing.T) {
	dir := t.TempDir()
	agent, packages := filepath.Join(dir, "agents", "mine"), filepath.Join(dir, "node_modules")
	for _, d := range []string{agent, packages} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, workspace := range []string{dir, filepath.VolumeName(dir) + string(filepath.Separator)} {
		if found := process(t).Tools.NewToolbox(workspace, "").FoundPackages(agent); !slices.Contains(found, packages) {
			t.Errorf("in the workspace %s: %q", workspace, found)
		}
	}
}
