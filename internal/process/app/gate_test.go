//go:build unix

package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// A rule that can never match, because the tool does not declare what it touches, is
// an error with its place, not a rule without effect.
func TestRuleInVain(t *testing.T) {
	w := newPlace(t)
	w.write("mine/config.yaml", "name: Mine\n")
	w.write("mine/tools.sh", "# @cmd Runs a text.\n# @option --text!\nrun_it() { eval \"$argc_text\"; }\n")
	w.write("home/.config/raddle/permissions.yaml", "deny:\n  - run_it(touch *)\n")
	proc, _ := w.process(-1)
	_, err := proc.Load(LoadRequest{Agent: filepath.Join(w.dir, "mine")})
	if err == nil || !strings.Contains(err.Error(), `permissions.yaml:2:5: error: rule "run_it(touch *)" can never match: the tool run_it does not declare`) {
		t.Errorf("got %v", err)
	}
	w.write("home/.config/raddle/permissions.yaml", "deny:\n  - run_it(text=touch *)\n")
	if _, err := proc.Load(LoadRequest{Agent: filepath.Join(w.dir, "mine")}); err != nil {
		t.Errorf("a rule about an argument: %v", err)
	}
}

// Each decision reads the mode, which may change while a run works.
func TestModeChangesBetweenDecisions(t *testing.T) {
	w := newPlace(t)
	w.write("mine/config.yaml", "name: Mine\n")
	proc, _ := w.process(-1)
	mode := permission.NewModeSwitch(permission.ModePlan)
	dir := filepath.Join(w.dir, "mine")
	gate, err := proc.Tools.NewGate(proc.Tools.NewToolbox(w.dir, dir), dir, mode)
	if err != nil {
		t.Fatal(err)
	}
	write := tool.Tool{Name: "save", Touches: func(json.RawMessage) (tool.Touch, error) { return tool.Touch{Writes: []string{"a.txt"}}, nil }}
	for _, c := range []struct {
		mode permission.Mode
		want agent.Verdict
	}{{permission.ModePlan, agent.Deny}, {permission.ModeAsk, agent.Ask}, {permission.ModeEdits, agent.Allow}, {permission.ModePlan, agent.Deny}} {
		mode.SetMode(c.mode)
		if d, err := gate.Decide(t.Context(), write, tool.Call{Args: json.RawMessage("{}")}, []string{"save(b.txt)"}); err != nil || d.Verdict != c.want {
			t.Errorf("mode %s: verdict %v, want %v (%v)", c.mode, d.Verdict, c.want, err)
		}
	}
}

// TestSecretsStayAwayFromCommandsThatNobodyAllowed runs texts as a gate permits them. A command that runs only because it is known to be harmless
// has no secrets in its environment, in whichever way it takes them apart; a command that a rule or a person allows has them.
func TestSecretsStayAwayFromCommandsThatNobodyAllowed(t *testing.T) {
	w := newPlace(t)
	const secret = "ghp_0123456789abcdef"
	w.env = append(w.env, "GITHUB_TOKEN="+secret, "EXTRA_HEADER=Authorization: Bearer abc-0123456789", "DATABASE_URL=pg://ann:in-a-url-1@h/x", "api_key=lower-case-1", "COPY=x"+secret+"y", "PLAIN=seen")
	w.write("mine/config.yaml", "name: Mine\n")
	w.write("mine/tools/execute_command.sh", "# @describe Runs a text.\n# @option --command!\nmain() { bash -c \"$argc_command\" >>\"$LLM_OUTPUT\"; }\n")
	w.write("has.sh", "echo has ${#GITHUB_TOKEN}\n")
	w.write("plain/x", "")
	w.write("other/config.yaml", "name: Other\n")
	w.write("home/.config/raddle/permissions.yaml", "allow: ['execute_command(true *)', 'execute_command(id *)', 'execute_command(printf *)', 'execute_command(bash ../has.sh)', 'execute_command(bash has.sh *)', 'any write(.vscode/**)']\n")
	proc, _ := w.process(-1)
	for _, name := range []string{"mine", "other"} {
		dir := filepath.Join(w.dir, name)
		box := proc.Tools.NewToolbox(w.dir, dir)
		gate, err := proc.Tools.NewGate(box, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		set, err := box.Open(flow.ToolNeed{Agent: name, Dir: dir, Global: []string{"execute_command"}})
		if err != nil || len(set.Tools) != 1 {
			t.Fatal(err, set)
		}
		run := func(command string, answered bool) string {
			args, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				t.Fatal(err)
			}
			c := tool.Call{ID: "call", Args: args}
			d, err := gate.Decide(t.Context(), set.Tools[0], c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]agent.Verdict{false: agent.Allow, true: agent.Ask}[answered]; d.Verdict != want {
				t.Fatalf("%s: verdict %v: %s", command, d.Verdict, d.Prompt)
			}
			if c.Permit = d.Permit; answered {
				c.Permit = d.Permit.Answer(d.Grant)
			}
			return runInGraph(t, set.Tools[0], c)
		}
		for _, command := range []string{
			"echo has ${#GITHUB_TOKEN}", "echo has ${#EXTRA_HEADER}", "echo has ${#DATABASE_URL}", "echo has ${#api_key}", "echo has ${#COPY}",
			"echo has ${#GITHUB_TOKEN}; true", "true && echo has ${#GITHUB_TOKEN}", "id -u >/dev/null; echo has ${#GITHUB_TOKEN}", "true $(echo has ${#GITHUB_TOKEN})x; echo has ${#GITHUB_TOKEN}",
			"cd mine && echo has ${#GITHUB_TOKEN}", "for i in 1; do echo has ${#GITHUB_TOKEN}; done",
		} {
			if got := run(command, false); !strings.Contains(got, "has 0") || strings.Contains(got, "has 2") {
				t.Errorf("%s: %s: %s", name, command, got)
			}
		}
		if got := run("true; set | grep -c -e ^GITHUB_TOKEN -e ^COPY", false); !strings.Contains(got, `"output":"0`) {
			t.Errorf("%s: set: %s", name, got)
		}
		for command, answered := range map[string]bool{
			"printf 'has %s' ${#GITHUB_TOKEN}": false, "cd plain && bash ../has.sh | tail -1": false, "bash has.sh .vscode/x": false, "bash has.sh AGENTS.md": true, "bash -c 'echo has ${#GITHUB_TOKEN}'; touch a.x": true,
		} {
			if got := run(command, answered); !strings.Contains(got, "has 20") {
				t.Errorf("%s: %s was allowed: %s", name, command, got)
			}
		}
		if got := run("echo $PLAIN; echo ${#PATH}", false); !strings.Contains(got, "seen") || strings.Contains(got, `seen\n0`) {
			t.Errorf("%s: other variables: %s", name, got)
		}
	}
}

// TestARepositoryThatChangesAfterTheDecision gives a repository settings and hooks that name programs between the decision about a command of git and its
// run. Nothing of them runs for a command that no one allowed, whether the tool is raddle's own or a script of an agent; one that a rule or a person allowed
// uses the repository as it is.
func TestARepositoryThatChangesAfterTheDecision(t *testing.T) {
	testneed.RequirePrograms(t, "git", "bash")
	w := newPlace(t)
	git := func(args ...string) {
		c := exec.Command("git", append([]string{"-C", w.dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	mark := filepath.Join(t.TempDir(), "mark")
	w.write("mine/config.yaml", "name: Mine\n")
	w.write("mine/tools/execute_command.sh", "# @describe Runs a text.\n# @option --command!\nmain() { bash -c \"$argc_command\" >>\"$LLM_OUTPUT\"; }\n")
	w.write("other/config.yaml", "name: Other\n")
	w.write("a.txt", "x\n")
	w.write("home/.config/raddle/permissions.yaml", "allow: ['execute_command(git log *)', 'execute_command(git add *)', 'execute_command(true *)']\n")
	git("init", "-q", ".")
	git("add", "a.txt")
	git("commit", "-q", "-m", "x")
	config, hook := filepath.Join(w.dir, ".git", "config"), filepath.Join(w.dir, ".git", "hooks", "post-index-change")
	clean, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	program := "touch '" + mark + "'; false"
	traps := map[string]func(){
		"a monitor": func() { git("config", "core.fsmonitor", program) },
		"a hook": func() {
			w.write(".git/hooks/post-index-change", "#!/bin/sh\n"+program+"\n")
			if err := os.Chmod(hook, 0o755); err != nil {
				t.Fatal(err)
			}
		},
	}
	proc, _ := w.process(-1)
	for _, name := range []string{"mine", "other"} {
		dir := filepath.Join(w.dir, name)
		box := proc.Tools.NewToolbox(w.dir, dir)
		gate, err := proc.Tools.NewGate(box, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		set, err := box.Open(flow.ToolNeed{Agent: name, Dir: dir, Global: []string{"execute_command"}})
		if err != nil || len(set.Tools) != 1 {
			t.Fatal(err, set)
		}
		for what, trap := range traps {
			for _, c := range []struct {
				command string
				verdict agent.Verdict
				runs    bool // the program of the repository
			}{
				{"git status", agent.Allow, false},
				{"cd mine && git status", agent.Allow, false},
				{"true; git status", agent.Allow, false}, // the rule is about a command that needs none
				{"bash -c 'git ls-files -m; git status' | head", agent.Allow, false},
				{"git log -1; git status", agent.Allow, false},
				{"cd src && git add x", agent.Allow, true},
				{"git status; git add src/x", agent.Allow, true},
				{"git status; touch b.txt", agent.Ask, true},
			} {
				if err := errors.Join(os.WriteFile(config, clean, 0o600), os.RemoveAll(hook), os.RemoveAll(mark)); err != nil {
					t.Fatal(err)
				}
				w.write("src/x", time.Now().String()) // git writes its index then, which runs a hook
				w.write("a.txt", "x\n")
				args, err := json.Marshal(map[string]string{"command": c.command})
				if err != nil {
					t.Fatal(err)
				}
				call := tool.Call{ID: "call", Args: args}
				d, err := gate.Decide(t.Context(), set.Tools[0], call, nil)
				if err != nil || d.Verdict != c.verdict {
					t.Fatalf("%s: verdict %v, want %v: %s (%v)", c.command, d.Verdict, c.verdict, d.Prompt, err)
				}
				if call.Permit = d.Permit; d.Verdict == agent.Ask {
					call.Permit = d.Permit.Answer(d.Grant)
				}
				trap()
				out := runInGraph(t, set.Tools[0], call)
				if _, err := os.Stat(mark); (err == nil) != c.runs {
					t.Errorf("%s, %s, %s: the program ran: %v, want %v: %s", name, what, c.command, err == nil, c.runs, out)
				}
			}
		}
	}
}

// runInGraph makes a call as an effect of a run.
func runInGraph(t *testing.T, tl tool.Tool, c tool.Call) string {
	t.Helper()
	var text string
	node := graph.Node{Name: "call", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var err error
		text, err = graph.Do(ctx, "call", func(ctx context.Context) (string, error) {
			r, err := tl.Run(ctx, c)
			return r.Text(), err
		})
		return graph.Update{}, err
	}}
	g, err := graph.Compile(graph.Def{Name: "call", Nodes: []graph.Node{node}, Start: []string{"call"}, Edges: []graph.Edge{{From: []string{"call"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "call"}); err != nil || res.Err != nil {
		t.Fatal(err, res.Err)
	}
	return text
}

// TestPermitJudgesOtherArguments asks a permit about addresses, as a tool does at a redirection. An answer counts for the call that it is about.
func TestPermitJudgesOtherArguments(t *testing.T) {
	w := newPlace(t)
	w.write("mine/config.yaml", "name: Mine\n")
	w.write("home/.config/raddle/permissions.yaml", "allow: ['fetch_url_via_curl(http://a.test/docs/*)']\ndeny: ['any host(denied.test)']\n")
	proc, _ := w.process(-1)
	dir := filepath.Join(w.dir, "mine")
	gate, err := proc.Tools.NewGate(proc.Tools.NewToolbox(w.dir, dir), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	page, _ := builtin.Lookup("fetch_url_via_curl", builtin.Host{Workspace: w.dir})
	args := func(url string) json.RawMessage { return json.RawMessage(`{"url":"` + url + `"}`) }
	for _, c := range []struct {
		url      string
		granted  []string
		answered bool
		other    string
		want     bool
	}{
		{"http://a.test/docs/x", nil, false, "http://a.test/docs/y", true},
		{"http://a.test/docs/x", nil, false, "http://a.test/admin", false},
		{"http://b.test/x", []string{"fetch_url_via_curl(http://b.test/x*)"}, false, "http://b.test/xy", true},
		{"http://b.test/x", []string{"fetch_url_via_curl(http://b.test/x*)"}, false, "http://b.test/y", false},
		{"http://b.test/x", nil, true, "https://b.test/x/", true},
		{"http://b.test/x", nil, true, "http://c.test/x", false},
		{"http://b.test/x", nil, true, "http://denied.test/x", false},
		{"http://b.test/x", nil, true, "http://127.0.0.1/x", false},
	} {
		call := tool.Call{ID: "call", Args: args(c.url)}
		d, err := gate.Decide(t.Context(), page, call, c.granted)
		if err != nil || (d.Verdict == agent.Ask) != c.answered {
			t.Fatal(c.url, err, d.Verdict)
		}
		permit := d.Permit
		if c.answered {
			permit = permit.Answer(d.Grant)
		}
		if err := permit.Judge(args(c.other), permit.Granted); (err == nil) != c.want {
			t.Errorf("%s to %s: %v", c.url, c.other, err)
		}
	}
}
