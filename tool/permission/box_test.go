package permission_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// boxedTool runs its argument as a shell command, in a box if it must.
var boxedTool = tool.Tool{Name: "execute_command", Touches: func(args json.RawMessage) (tool.Touch, error) {
	touch, err := shellTool.Touches(args)
	var a struct {
		Hosts   []string
		Outside bool `json:"outside_box,string"`
	}
	_ = json.Unmarshal(args, &a)
	touch.Boxes, touch.Unboxed, touch.Network = !a.Outside, a.Outside, a.Hosts
	return touch, err
}}

// withBox returns the policy of a room with a box that hides its directory outside.
func (r room) withBox() permission.Policy {
	p := r.policy
	p.Box = &permission.Box{Holds: func() bool { return true }, Hides: func(path string) bool { return strings.HasPrefix(path, r.outside) }}
	return p
}

// decideCommand returns the decision about a shell text.
func decideCommand(t *testing.T, p permission.Policy, command string) permission.Decision {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Decide(t.Context(), boxedTool, tool.Call{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBoxReplacesQuestions(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	for _, c := range []struct {
		command string
		mode    permission.Mode
		verdict permission.Verdict
		boxed   bool
	}{
		{command: "cat a.txt", verdict: permission.Allow},
		{command: "make test", verdict: permission.Allow, boxed: true},
		{command: "cat a.txt; make test", verdict: permission.Allow, boxed: true},
		{command: "$X", verdict: permission.Allow, boxed: true},
		{command: "cat /etc/hosts", verdict: permission.Allow, boxed: true},
		{command: "python3 -c 'open(\"/etc/x\", \"w\")'", verdict: permission.Allow, boxed: true},
		{command: "cat " + r.outside + "/secret", verdict: permission.Ask},
		{command: "echo x > " + r.outside + "/new", verdict: permission.Ask},
		{command: "echo x > .git/hooks/pre-commit", verdict: permission.Ask},
		{command: "make test", mode: permission.ModeAsk, verdict: permission.Ask},
		{command: "make test", mode: permission.ModePlan, verdict: permission.Deny},
		{command: "cat a.txt", mode: permission.ModePlan, verdict: permission.Allow},
	} {
		p := r.withBox()
		p.Mode = c.mode
		if d := decideCommand(t, p, c.command); d.Verdict != c.verdict || d.Boxed != c.boxed || d.Boxed && d.Allowed {
			t.Errorf("%s in mode %q: %v, boxed %v, allowed %v: %v", c.command, c.mode, d.Verdict, d.Boxed, d.Allowed, d.Reasons)
		}
	}
}

// Rules come before the box: what they deny or ask about, they deny or ask about in spite of it, and what they allow runs outside of it.
func TestRulesComeBeforeTheBox(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	rules, err := permission.LoadRules("rules", []byte("allow: ['execute_command(make *)']\nask: ['execute_command(npm *)']\ndeny: ['execute_command(curl *)', 'any read(**/secret)']\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := r.withBox()
	p.Rules = []permission.Rules{rules}
	for command, want := range map[string]permission.Verdict{
		"make test": permission.Allow, "npm test": permission.Ask, "curl x": permission.Deny, "bash -c 'curl x'": permission.Deny, "cat secret": permission.Deny, "go test": permission.Allow,
	} {
		d := decideCommand(t, p, command)
		if d.Verdict != want || d.Boxed != (command == "go test") {
			t.Errorf("%s: %v, boxed %v, %v", command, d.Verdict, d.Boxed, d.Reasons)
		}
	}
	d := decideCommand(t, p, "make test && go test")
	if d.Verdict != permission.Allow || !d.Boxed {
		t.Errorf("a text with a command that no rule allows: %v, boxed %v", d.Verdict, d.Boxed)
	}
}

// A call that runs in the box and asks for hosts only stays there with the answer, which opens the hosts to it.
func TestHostsOfTheBox(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	for _, c := range []struct {
		command, hosts, rules string
		verdict               permission.Verdict
		boxed                 bool
		grant                 string
	}{
		{command: "npm ci", hosts: "npm.example", verdict: permission.Ask, boxed: true, grant: "any host(npm.example)"},
		{command: "npm ci", hosts: "npm.example cdn.example:8443", verdict: permission.Ask, boxed: true, grant: "any host(npm.example) any host(cdn.example:8443)"},
		{command: "npm ci", hosts: "localhost", verdict: permission.Ask, boxed: true, grant: "any host(localhost)"},
		{command: "npm ci", hosts: "npm.example", rules: "allow: ['any host(npm.example)']", verdict: permission.Allow, boxed: true},
		{command: "npm ci", hosts: "npm.example:8443", rules: "allow: ['any host(npm.example)']", verdict: permission.Ask, boxed: true, grant: "any host(npm.example:8443)"},
		{command: "npm ci", hosts: "localhost", rules: "allow: ['any host(*)']", verdict: permission.Ask, boxed: true, grant: "any host(localhost)"},
		{command: "npm ci", hosts: "npm.example", rules: "deny: ['any host(*.example)']", verdict: permission.Deny},
		{command: "npm ci", hosts: "npm.example", rules: "ask: ['any host(npm.example)']", verdict: permission.Ask, boxed: true, grant: "any host(npm.example)"},
		{command: "npm ci", hosts: "npm.example", rules: "allow: ['execute_command(npm ci)']", verdict: permission.Allow},
		{command: "npm ci", hosts: "npm.example", rules: "allow: ['execute_command(npm ci)']\ndeny: ['any host(npm.example)']", verdict: permission.Deny},
		{command: "ls", hosts: "npm.example", verdict: permission.Allow},
		{command: "curl https://one.example/x", verdict: permission.Allow, boxed: true},
		{command: "npm ci; echo x > " + r.outside + "/new", hosts: "npm.example", verdict: permission.Ask},
		{command: "npm ci; cat " + r.outside + "/secret", hosts: "npm.example", verdict: permission.Ask},
	} {
		p := r.withBox()
		p.Rules = []permission.Rules{rules(t, c.rules)}
		var hosts []string
		if c.hosts != "" {
			hosts = strings.Fields(c.hosts)
		}
		args, err := json.Marshal(map[string]any{"command": c.command, "hosts": hosts})
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Decide(t.Context(), boxedTool, tool.Call{Args: args})
		if err != nil {
			t.Fatal(err)
		}
		if d.Verdict != c.verdict || d.Boxed != c.boxed || d.Boxed && d.Allowed || c.boxed && strings.Join(d.Grant, " ") != c.grant {
			t.Errorf("%s to %s with %q: %v, boxed %v, grants %q: %v", c.command, c.hosts, c.rules, d.Verdict, d.Boxed, d.Grant, d.Reasons)
		}
		if c.boxed && (len(d.Hosts) != len(hosts) || d.Verdict == permission.Ask && !strings.Contains(d.Does, "in the box, which reaches "+d.Hosts[0])) {
			t.Errorf("%s to %s with %q: hosts %q, it %s", c.command, c.hosts, c.rules, d.Hosts, d.Does)
		}
		permit := &tool.Permit{Allowed: d.Allowed, Boxed: d.Boxed, Hosts: d.Hosts}
		if a := permit.Answer(nil); a.Boxed != d.Boxed || a.Allowed == d.Boxed || len(a.Hosts) != len(d.Hosts) {
			t.Errorf("%s to %s with %q: the answer permits %+v", c.command, c.hosts, c.rules, a)
		}
	}
}

// What rules deny or ask about, a command in the box does not change either, whichever way it takes.
func TestRulesKeepFilesFromTheBox(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.withBox()
	p.Rules = []permission.Rules{rules(t, "deny: ['any write(**/fixed.txt)', 'any write(locked/**)', 'fs_write(tool.txt)']\nask: ['any write(asked.txt)']\nallow: ['any write(**)']")}
	for name, want := range map[string]string{
		"fixed.txt": "is denied by the rule any write(**/fixed.txt)", "sub/FIXED.txt": "is denied", "locked/a/b": "is denied", "asked.txt": "is asked about by the rule any write(asked.txt)",
		"free.txt": "", "sub": "", "tool.txt": "",
	} {
		if got := p.BoxReason(filepath.Join(r.dir, filepath.FromSlash(name)), ""); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s %s, want %q", name, got, want)
		}
	}
}

// groupLine matches the line that begins a group of commands.
var groupLine = regexp.MustCompile(`^\[[a-z]+\]$`)

func TestEverydayCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := newRoom(t)
	for _, args := range [][]string{{"init", "-q"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = r.dir
		if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
			t.Fatal(err)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	asked := map[bool]map[string]int{false: {}, true: {}}
	total, group := 0, ""
	questions, without := 0, 0
	p, plain := r.withBox(), r.policy
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case groupLine.MatchString(line):
			group = line
			continue
		}
		total++
		command, network := strings.CutPrefix(line, "network ")
		command = strings.ReplaceAll(command, `\n`, "\n")
		if network {
			questions++ // the box stops it, and a person decides
		} else if d := decideCommand(t, p, command); d.Verdict != permission.Allow {
			t.Logf("%s %s: %v", group, command, d.Reasons)
			questions++
			asked[true][group]++
		}
		if d := decideCommand(t, plain, command); d.Verdict != permission.Allow {
			without++
			asked[false][group]++
		}
	}
	t.Logf("%d commands: %d questions with the box (%v), %d without (%v)", total, questions, asked[true], without, asked[false])
	if total < 300 || questions > 15 || asked[true]["[read]"] > 0 {
		t.Errorf("%d of %d commands ask", questions, total)
	}
}
