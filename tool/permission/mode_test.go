package permission_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// modeCall is a kind of call, and the verdicts on it in the modes plan, ask and edits.
type modeCall struct {
	kind             string
	tool             tool.Tool
	call             tool.Call
	plan, ask, edits permission.Verdict
}

// listModeCalls returns a call of each kind of tool.
func listModeCalls(t *testing.T, r room) []modeCall {
	const allow, asks, deny = permission.Allow, permission.Ask, permission.Deny
	plain := func(name string, e tool.Effect) tool.Tool { return tool.Tool{Name: name, Effect: e} }
	touching := func(name string, e tool.Effect, touch tool.Touch) tool.Tool {
		return tool.Tool{Name: name, Effect: e, Touches: func(json.RawMessage) (tool.Touch, error) { return touch, nil }}
	}
	return []modeCall{
		{"read in the workspace", fileTool("fs_read", false), args(t, "path", "a.txt"), allow, allow, allow},
		{"read outside", fileTool("fs_read", false), args(t, "path", filepath.Join(r.outside, "secret")), asks, asks, asks},
		{"write in the workspace", fileTool("fs_write", true), args(t, "path", "a.txt"), deny, asks, allow},
		{"write outside", fileTool("fs_write", true), args(t, "path", filepath.Join(r.outside, "x")), deny, asks, asks},
		{"write to what runs later", fileTool("fs_write", true), args(t, "path", ".git/config"), deny, asks, asks},
		{"command that only reads", shellTool, args(t, "command", "ls -l && git status"), allow, allow, allow},
		{"command that reads a file of the workspace", shellTool, args(t, "command", "cat a.txt | grep a"), allow, allow, allow},
		{"command that reads outside", shellTool, args(t, "command", "cat /etc/passwd"), asks, asks, asks},
		{"harmless command that writes", shellTool, args(t, "command", "echo x > a.txt"), deny, asks, allow},
		{"harmless command with nothing written", shellTool, args(t, "command", "ls > /dev/null"), allow, allow, allow},
		{"unknown command", shellTool, args(t, "command", "go test ./..."), deny, asks, asks},
		{"unknown command behind a harmless one", shellTool, args(t, "command", "true && make"), deny, asks, asks},
		{"command that only the shell knows", shellTool, args(t, "command", "$x"), deny, asks, asks},
		{"page of the web", touching("fetch", tool.ReadOnly, tool.Touch{Network: []string{"example.com"}}), args(t), asks, asks, asks},
		{"message to a host", touching("post", tool.Undeclared, tool.Touch{Network: []string{"example.com"}}), args(t), deny, asks, asks},
		{"server's tool that only reads", touching("mcp_x", tool.ReadOnly, tool.Touch{}), args(t), allow, allow, allow},
		{"server's tool of another kind", touching("mcp_y", tool.Undeclared, tool.Touch{Unknown: "may change something"}), args(t), deny, asks, asks},
		{"server's dangerous tool", touching("mcp_z", tool.Dangerous, tool.Touch{Unknown: "may destroy something"}), args(t), deny, asks, asks},
		{"server's tool that reads, through a function that calls any", touching("mcp_invoke_x", tool.Undeclared, tool.Touch{Network: []string{"example.com"}, Passed: &tool.PassedCall{Tool: "mcp_x"}}), args(t), asks, asks, asks},
		{"own script that only reads", plain("trusted_read", tool.ReadOnly), args(t), allow, allow, allow},
		{"own script", plain("trusted", tool.Undeclared), args(t), deny, asks, allow},
		{"own dangerous script", plain("trusted_danger", tool.Dangerous), args(t), deny, asks, asks},
		{"foreign script", plain("foreign", tool.Undeclared), args(t), deny, asks, asks},
		{"question to the user", plain("user__ask", tool.ReadOnly), args(t), allow, allow, allow},
		{"spawned agent", touching("agent__spawn", tool.Idempotent, tool.Touch{}), args(t), allow, allow, allow},
	}
}

func TestModes(t *testing.T) {
	r := newRoom(t)
	r.policy.Trusted = func(name string) bool { return strings.HasPrefix(name, "trusted") }
	for _, c := range listModeCalls(t, r) {
		for mode, want := range map[permission.Mode]permission.Verdict{permission.ModePlan: c.plan, permission.ModeAsk: c.ask, permission.ModeEdits: c.edits, "": c.edits} {
			p := r.policy
			p.Mode = mode
			d := decide(t, p, c.tool, c.call)
			if d.Verdict != want {
				t.Errorf("%s, mode %q: %v (%q), want %v", c.kind, mode, d.Verdict, d.Reasons, want)
			}
			if d.Verdict == permission.Deny && (!strings.Contains(d.Model, "mode plan") || !strings.Contains(d.Model, "end your turn with a plan")) {
				t.Errorf("%s: the model reads %q", c.kind, d.Model)
			}
		}
	}
}

// A mode loosens no rule, and the mode plan no answer and no rule that allows.
func TestModesAndRules(t *testing.T) {
	r := newRoom(t)
	r.policy.Trusted = func(name string) bool { return strings.HasPrefix(name, "trusted") }
	calls := listModeCalls(t, r)
	for _, c := range []struct {
		rules string
		least permission.Verdict
	}{{`deny: ["*"]`, permission.Deny}, {`ask: ["*"]`, permission.Ask}} {
		p := r.policy
		p.Rules = []permission.Rules{rules(t, c.rules)}
		for _, p.Mode = range []permission.Mode{permission.ModePlan, permission.ModeAsk, permission.ModeEdits} {
			for _, each := range calls {
				if d := decide(t, p, each.tool, each.call); d.Verdict < c.least {
					t.Errorf("%s, mode %s, rules %s: %v", each.kind, p.Mode, c.rules, d.Verdict)
				}
			}
		}
	}
	p := r.policy
	p.Rules = []permission.Rules{rules(t, `allow: ["*", "any write(**)", "any command(*)"]`)}
	p.Granted = p.Rules[0].Allow
	p.Mode = permission.ModePlan
	for _, each := range calls {
		if d := decide(t, p, each.tool, each.call); (d.Verdict == permission.Deny) != (each.plan == permission.Deny) {
			t.Errorf("%s with a rule that allows all, mode plan: %v", each.kind, d.Verdict)
		}
	}
	p.Mode = permission.ModeAsk
	if d := decide(t, p, fileTool("fs_write", true), args(t, "path", "a.txt")); d.Verdict != permission.Allow {
		t.Errorf("a write that a rule allows, mode ask: %v %q", d.Verdict, d.Reasons)
	}
}

// The mode box decides as the mode edits, and denies what that asks about. Only with a person at a terminal a call asks that wants out of the box.
func TestModeBox(t *testing.T) {
	r := newRoom(t)
	r.policy.Trusted = func(name string) bool { return strings.HasPrefix(name, "trusted") }
	for _, rule := range []string{"{}", `ask: ["*"]`, `deny: ["*"]`, `allow: ["*"]`} {
		for _, person := range []bool{false, true} {
			edits := r.withBox()
			edits.Rules = []permission.Rules{rules(t, rule)}
			box := edits
			box.Mode, box.Person = permission.ModeBox, person
			for _, c := range listModeCalls(t, r) {
				was, is := decide(t, edits, c.tool, c.call), decide(t, box, c.tool, c.call)
				want := was.Verdict
				if want == permission.Ask {
					want = permission.Deny
				}
				if is.Verdict != want || is.Boxed != was.Boxed || len(is.Grant) > 0 && want == permission.Deny {
					t.Errorf("%s, rules %s: %v in the mode edits, %v in the mode box: %v", c.kind, rule, was.Verdict, is.Verdict, is.Reasons)
				}
				if was.Verdict == permission.Ask && (!strings.Contains(is.Model, "no person is asked") || strings.Contains(is.Model, "; nothing asks")) {
					t.Errorf("%s: the model reads %q", c.kind, is.Model)
				}
			}
		}
	}
	out := args(t, "command", "make", "outside_box", "true")
	for person, want := range map[bool]permission.Verdict{false: permission.Deny, true: permission.Ask} {
		p := r.withBox()
		p.Mode, p.Person = permission.ModeBox, person
		if d := decide(t, p, boxedTool, out); d.Verdict != want {
			t.Errorf("a call that wants out of the box, with a person %t: %v", person, d.Verdict)
		}
	}
	for person, want := range map[bool]permission.Verdict{false: permission.Deny, true: permission.Ask} {
		p := r.withBox()
		p.Mode, p.Person = permission.ModeBox, person
		hosts := tool.Call{Args: []byte(`{"command": "make", "hosts": ["one.example"]}`)}
		if d := decide(t, p, boxedTool, hosts); d.Verdict != want || person && !d.Boxed {
			t.Errorf("a call that names hosts, with a person %t: %v, boxed %t", person, d.Verdict, d.Boxed)
		}
		mixed := tool.Call{Args: []byte(`{"command": "make; echo x > ` + r.outside + `/new", "hosts": ["one.example"]}`)}
		if d := decide(t, p, boxedTool, mixed); d.Verdict != permission.Deny {
			t.Errorf("a call that names hosts and writes elsewhere, with a person %t: %v", person, d.Verdict)
		}
	}
	p := r.policy // no box holds
	p.Mode = permission.ModeBox
	if d := decide(t, p, boxedTool, args(t, "command", "make")); d.Verdict != permission.Deny {
		t.Errorf("an unknown command without a box: %v", d.Verdict)
	}
}

// What the mode ask asks about can be allowed for the run and always, by the narrowest rule.
func TestModeAskGrants(t *testing.T) {
	r := newRoom(t)
	r.policy.Mode = permission.ModeAsk
	d := decide(t, r.policy, fileTool("fs_write", true), args(t, "path", "a.txt"))
	if len(d.Grant) != 1 || d.Grant[0] != "fs_write(a.txt)" || !d.Lasting {
		t.Fatalf("grant %q, lasting %v", d.Grant, d.Lasting)
	}
	rule, err := permission.ParseRule(d.Grant[0])
	if err != nil {
		t.Fatal(err)
	}
	r.policy.Granted = []permission.Rule{rule}
	if d := decide(t, r.policy, fileTool("fs_write", true), args(t, "path", "a.txt")); d.Verdict != permission.Allow {
		t.Errorf("the same file after the grant: %v", d.Verdict)
	}
	if d := decide(t, r.policy, fileTool("fs_write", true), args(t, "path", "src/b.go")); d.Verdict != permission.Ask {
		t.Errorf("another file after the grant: %v", d.Verdict)
	}
}

// What a mode says about all calls of a tool.
func TestDecideToolInModes(t *testing.T) {
	r := newRoom(t)
	write := fileTool("fs_write", true)
	write.Schema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	read := fileTool("fs_read", false)
	read.Schema = write.Schema
	for _, c := range []struct {
		mode    permission.Mode
		tool    tool.Tool
		verdict permission.Verdict
		known   bool
	}{
		{permission.ModePlan, write, permission.Deny, true},
		{permission.ModeAsk, write, permission.Ask, true},
		{permission.ModeEdits, write, permission.Allow, false},
		{permission.ModePlan, read, permission.Allow, false},
		{permission.ModeAsk, read, permission.Allow, false},
		{permission.ModePlan, shellTool, permission.Allow, false},
		{permission.ModePlan, tool.Tool{Name: "s"}, permission.Deny, true},
		{permission.ModeAsk, tool.Tool{Name: "s"}, permission.Ask, true},
	} {
		r.policy.Mode = c.mode
		if v, known := r.policy.DecideTool(c.tool); v != c.verdict || known != c.known {
			t.Errorf("mode %s, %s: %v (known %v), want %v (%v)", c.mode, c.tool.Name, v, known, c.verdict, c.known)
		}
	}
}

func TestModeSwitch(t *testing.T) {
	var none *permission.ModeSwitch
	if none.Mode() != permission.ModeEdits || (&permission.ModeSwitch{}).Mode() != permission.ModeEdits {
		t.Error("an unset switch is not in the mode edits")
	}
	s := permission.NewModeSwitch(permission.ModePlan)
	for _, m := range []permission.Mode{permission.ModePlan, permission.ModeBox, permission.ModeAsk} {
		if m != permission.ModePlan {
			s.SetMode(m)
		}
		if s.Mode() != m {
			t.Errorf("the mode is %q, want %q", s.Mode(), m)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 300 {
				s.SetMode(s.Mode().Next())
			}
		})
	}
	all.Wait()
	if _, ok := permission.ParseMode(string(s.Mode())); !ok {
		t.Errorf("the mode is %q", s.Mode())
	}
	for name, want := range map[string]bool{"plan": true, "ask": true, "edits": true, "box": true, "": true, "all": false, "Plan": false} {
		if m, ok := permission.ParseMode(name); ok != want || ok && name != "" && string(m) != name || name == "" && m != permission.ModeEdits {
			t.Errorf("ParseMode(%q): %q, %v", name, m, ok)
		}
	}
	if got := permission.ModePlan.Next().Next().Next().Next(); got != permission.ModePlan {
		t.Errorf("four times the next mode of plan is %s", got)
	}
}
