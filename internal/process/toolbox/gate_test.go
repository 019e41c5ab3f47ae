package toolbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// newTestShared returns the Shared of a home directory with a workspace in it, without a box.
func newTestShared(t *testing.T) *Shared {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dirs := config.Dirs{
		Work:      filepath.Join(dir, "home", "work"),
		Home:      filepath.Join(dir, "home"),
		Config:    filepath.Join(dir, "config"),
		State:     filepath.Join(dir, "state"),
		Functions: filepath.Join(dir, "functions"),
		Agents:    filepath.Join(dir, "agents"),
		Bundled:   filepath.Join(dir, "bundled"),
	}
	for _, d := range []string{dirs.Work, dirs.Config, dirs.State} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := NewShared(dirs, &config.Config{}, environ.Environ{"PATH=" + os.Getenv("PATH")}, nil)
	s.NoBox = true
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newTestGate returns a gate of the workspace, and the tools that come with the program.
func newTestGate(t *testing.T, s *Shared) (*Gate, *Toolbox) {
	t.Helper()
	tb := s.NewToolbox(s.Dirs.Work, "")
	g, err := s.NewGate(tb, "", permission.NewModeSwitch(permission.ModeEdits))
	if err != nil {
		t.Fatal(err)
	}
	return g, tb
}

// judge returns the decision about a call with one argument.
func judge(t *testing.T, g *Gate, name, key, value string, granted ...string) agent.Decision {
	t.Helper()
	tl, ok := builtin.Lookup(name, g.host)
	if !ok {
		t.Fatal("there is no tool ", name)
	}
	args, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.Decide(t.Context(), tl, tool.Call{Args: args}, granted)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The rules of the project can only forbid until the user has agreed to them; those of the user count at once.
func TestRulesOfTheGate(t *testing.T) {
	s := newTestShared(t)
	testfile.WriteFile(t, filepath.Join(s.Dirs.Config, "permissions.yaml"), "allow: [execute_command(make check)]\n")
	testfile.WriteFile(t, filepath.Join(s.Dirs.Work, ".raddle", "permissions.yaml"), "allow: [execute_command(make all)]\ndeny: [execute_command(make clean)]\n")
	verdicts := func() (list []agent.Verdict) {
		t.Helper()
		g, _ := newTestGate(t, s)
		for _, command := range []string{"make check", "make all", "make clean", "make other"} {
			list = append(list, judge(t, g, "execute_command", "command", command).Verdict)
		}
		return list
	}
	if got, want := verdicts(), []agent.Verdict{agent.Allow, agent.Ask, agent.Deny, agent.Ask}; !slices.Equal(got, want) {
		t.Errorf("without consent: %v, want %v", got, want)
	}
	if err := s.RecordConsent(ImplicitDir{Dir: filepath.Join(s.Dirs.Work, ".raddle"), Digest: digestOf(t, filepath.Join(s.Dirs.Work, ".raddle"))}); err != nil {
		t.Fatal(err)
	}
	if got, want := verdicts(), []agent.Verdict{agent.Allow, agent.Allow, agent.Deny, agent.Ask}; !slices.Equal(got, want) {
		t.Errorf("with consent: %v, want %v", got, want)
	}
	for _, path := range []string{filepath.Join(s.Dirs.Config, "permissions.yaml"), filepath.Join(s.Dirs.Work, ".raddle", "permissions.yaml")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		testfile.WriteFile(t, path, "allow: 7\n")
		if _, err := s.NewGate(s.NewToolbox(s.Dirs.Work, ""), "", nil); err == nil || !strings.Contains(err.Error(), "the permission rules cannot be used") || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s with a fault: %v", path, err)
		}
		testfile.WriteFile(t, path, string(text))
	}
}

func digestOf(t *testing.T, dir string) string {
	t.Helper()
	digest, _, err := permission.Digest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// What a person allows for the run counts for the calls that have it, and what is allowed always for every gate that
// reads the rules later, too.
func TestAnswersOfTheGate(t *testing.T) {
	s := newTestShared(t)
	g, _ := newTestGate(t, s)
	asked := judge(t, g, "execute_command", "command", "make check")
	if asked.Verdict != agent.Ask || !slices.Equal(asked.Grant, []string{"execute_command(make check)"}) || asked.Detail.Command != "make check" || asked.Detail.Dir != s.Dirs.Work {
		t.Fatalf("%+v %+v", asked, asked.Detail)
	}
	if !strings.HasPrefix(asked.Prompt, `May execute_command be called with {"command":"make check"}?`) {
		t.Errorf("%q", asked.Prompt)
	}
	if d := judge(t, g, "execute_command", "command", "make check", asked.Grant...); d.Verdict != agent.Allow || !d.Permit.Allowed {
		t.Errorf("with the answer: %+v", d)
	}
	if d := judge(t, g, "execute_command", "command", "make check"); d.Verdict != agent.Ask {
		t.Errorf("another run: %v", d.Verdict)
	}
	if err := g.Always(t.Context(), asked.Grant); err != nil {
		t.Fatal(err)
	}
	later, _ := newTestGate(t, s)
	for what, g := range map[string]*Gate{"this gate": g, "a later one": later} {
		if d := judge(t, g, "execute_command", "command", "make check"); d.Verdict != agent.Allow {
			t.Errorf("allowed always, %s: %v", what, d.Verdict)
		}
	}
	only := g.WithRules(permission.Rules{})
	if d := judge(t, only, "execute_command", "command", "make check"); d.Verdict != agent.Ask {
		t.Errorf("without the answers of this process: %v", d.Verdict)
	}
	if _, err := g.Decide(t.Context(), tool.Tool{Name: "x"}, tool.Call{}, []string{"("}); err == nil {
		t.Error("an answer that is no rule is taken")
	}
	if err := g.Always(t.Context(), []string{"("}); err == nil {
		t.Error("an answer that is no rule is kept")
	}
}

// A tool that learns more while it works may ask what it could do without a question.
func TestWhatATouchCouldDoWithoutAQuestion(t *testing.T) {
	s := newTestShared(t)
	testfile.WriteFile(t, filepath.Join(s.Dirs.Config, "permissions.yaml"), "deny: [execute_command(make clean)]\n")
	g, _ := newTestGate(t, s)
	permit := judge(t, g, "execute_command", "command", "ls").Permit
	for command, want := range map[string]string{
		"ls":         "",
		"make check": "no rule and no answer allows it",
		"make clean": "make clean",
	} {
		err := permit.Judge(json.RawMessage(`{"command":"`+command+`"}`), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
	if err := permit.Judge(json.RawMessage(`{"command":"make check"}`), []string{"execute_command(make check)"}); err != nil {
		t.Errorf("with more answers: %v", err)
	}
}

// The files with the rules are guarded: raddle asks before a tool writes them, although one of them is in the workspace.
func TestTheGateGuardsItsRules(t *testing.T) {
	s := newTestShared(t)
	g, _ := newTestGate(t, s)
	for path, want := range map[string]agent.Verdict{"notes.txt": agent.Allow, ".raddle/permissions.yaml": agent.Ask} {
		tl, _ := builtin.Lookup("fs_write", g.host)
		args := json.RawMessage(`{"path":"` + path + `","contents":"x"}`)
		if d, err := g.Decide(t.Context(), tl, tool.Call{Args: args}, nil); err != nil || d.Verdict != want {
			t.Errorf("%s: %v, %v", path, d.Verdict, err)
		}
	}
}

// What a script declares about itself counts only if its user agrees to it, unless it says that it is dangerous.
func TestDeclarationsOfDoubtfulTools(t *testing.T) {
	g := &Gate{doubts: func(name string) bool { return name == "doubtful" }}
	for _, c := range []struct {
		name string
		is   tool.Effect
		want tool.Effect
	}{
		{"doubtful", tool.ReadOnly, tool.Undeclared},
		{"doubtful", tool.Dangerous, tool.Dangerous},
		{"trusted", tool.ReadOnly, tool.ReadOnly},
	} {
		if got := g.distrustEffect(tool.Tool{Name: c.name, Effect: c.is}).Effect; got != c.want {
			t.Errorf("%s %v: %v", c.name, c.is, got)
		}
	}
}

func TestWhichToolsAsk(t *testing.T) {
	s := newTestShared(t)
	testfile.WriteFile(t, filepath.Join(s.Dirs.Config, "permissions.yaml"), "deny: [get_current_time]\nask: [fs_ls]\n")
	g, _ := newTestGate(t, s)
	for name, want := range map[string]CallRule{"get_current_time": Denied, "fs_ls": AlwaysAsks, "fs_cat": Depends} {
		tl, ok := builtin.Lookup(name, g.host)
		if got := g.describeCalls(tl); !ok || got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := g.describeCalls(tool.Tool{Name: "plain", Effect: tool.ReadOnly}); got != NeverAsks {
		t.Errorf("a tool that only reads: %q", got)
	}
}

func TestFilesOfRulesThatAPersonNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rules.yaml")
	if _, err := LoadRulesFile(path, "rules.yaml"); err == nil || !strings.Contains(err.Error(), "there is no file rules.yaml") {
		t.Errorf("no file: %v", err)
	}
	testfile.WriteFile(t, path, "allow: [fs_cat]\n")
	rules, err := LoadRulesFile(path, "rules.yaml")
	if err != nil || len(rules.Allow) != 1 {
		t.Fatalf("%+v, %v", rules, err)
	}
	cat, _ := builtin.Lookup("fs_cat", builtin.Host{})
	if err := CheckRules(rules, []tool.Tool{cat}); err != nil {
		t.Error(err)
	}
	testfile.WriteFile(t, path, "allow: [(]\n")
	if _, err := LoadRulesFile(path, "rules.yaml"); err == nil || !strings.Contains(err.Error(), "rules.yaml:1") {
		t.Errorf("a fault: %v", err)
	}
}
