package permission_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// A room is a workspace with an agent's directory beside it.
type room struct {
	dir, agent, outside string
	policy              permission.Policy
}

func newRoom(t testing.TB) room {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := room{dir: filepath.Join(base, "work"), agent: filepath.Join(base, "agent"), outside: filepath.Join(base, "outside")}
	for _, dir := range []string{filepath.Join(r.dir, "src", "deep"), filepath.Join(r.dir, ".git"), filepath.Join(r.dir, "feigned", "objects"), r.agent, r.outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		filepath.Join(r.dir, "a.txt"): "a", filepath.Join(r.dir, "src", "b.go"): "b", filepath.Join(r.outside, "secret"): "s",
		filepath.Join(r.dir, "permissions.yaml"): "",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": r.outside, "secret": filepath.Join(r.outside, "secret"), "in": "src", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	r.policy = permission.Policy{
		Workspace: r.dir, Home: filepath.Join(base, "home"), Readable: []string{r.agent},
		Guarded: []string{filepath.Join(r.dir, "permissions.yaml")},
	}
	return r
}

// shellTool runs what it is given.
var shellTool = tool.Tool{Name: "execute_command", Touches: func(args json.RawMessage) (tool.Touch, error) {
	var a struct{ Command string }
	err := json.Unmarshal(args, &a)
	return tool.Touch{Commands: []string{a.Command}}, err
}}

func fileTool(name string, write bool) tool.Tool {
	return tool.Tool{Name: name, Touches: func(args json.RawMessage) (tool.Touch, error) {
		var a struct{ Path string }
		if err := json.Unmarshal(args, &a); err != nil {
			return tool.Touch{}, err
		}
		if a.Path == "" {
			return tool.Touch{}, errors.New("path is missing")
		}
		if write {
			return tool.Touch{Writes: []string{a.Path}}, nil
		}
		return tool.Touch{Reads: []string{a.Path}}, nil
	}}
}

func args(t testing.TB, pairs ...string) tool.Call {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Call{Args: text}
}

func call(args json.RawMessage) tool.Call { return tool.Call{Args: args} }

func decide(t testing.TB, p permission.Policy, tl tool.Tool, c tool.Call) permission.Decision {
	t.Helper()
	d, err := p.Decide(tl, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func rules(t testing.TB, yaml string) permission.Rules {
	t.Helper()
	r, err := permission.LoadRules("rules.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFilesWithoutRules(t *testing.T) {
	r := newRoom(t)
	read, write := permission.Allow, permission.Allow
	const ask = permission.Ask
	for _, c := range []struct {
		path        string
		read, write permission.Verdict
	}{
		{"a.txt", read, write},
		{"new/er/file", read, write},
		{".", read, ask}, // the rules lie in it
		{r.dir + "/a.txt", read, write},
		{"src/../a.txt", read, write},
		{"in/b.go", read, write},
		{"in/../a.txt", read, write},
		{"../outside/secret", ask, ask},
		{"../work/a.txt", read, write},
		{"../workshop", ask, ask}, // begins like the workspace
		{"src/../../outside/new", ask, ask},
		{"out/secret", ask, ask},
		{"out/new/er", ask, ask},
		{"secret", ask, ask},
		{"in/../../outside", ask, ask},
		{"out/../a.txt", ask, ask}, // the system does not read it as a.txt
		{"loop/x", ask, ask},
		{"/etc/passwd", ask, ask},
		{r.agent + "/notes.md", read, ask},
		{".git/config", read, ask},
		{"src/.GIT/hooks/pre-commit", read, ask},
		{"permissions.yaml", read, ask},
		{"PERMISSIONS.yaml", read, ask},
	} {
		if got := decide(t, r.policy, fileTool("fs_cat", false), args(t, "path", c.path)); got.Verdict != c.read {
			t.Errorf("read %s: %v %q, want %v", c.path, got.Verdict, got.Reasons, c.read)
		}
		if got := decide(t, r.policy, fileTool("fs_write", true), args(t, "path", c.path)); got.Verdict != c.write {
			t.Errorf("write %s: %v %q, want %v", c.path, got.Verdict, got.Reasons, c.write)
		}
	}
}

func TestToolsWithoutRules(t *testing.T) {
	r := newRoom(t)
	r.policy.Trusted = func(name string) bool { return strings.HasPrefix(name, "own_") }
	nothing := func(json.RawMessage) (tool.Touch, error) { return tool.Touch{}, nil }
	hosts := func(json.RawMessage) (tool.Touch, error) { return tool.Touch{Network: []string{"example.com"}}, nil }
	for _, c := range []struct {
		tool tool.Tool
		want permission.Verdict
	}{
		{tool.Tool{Name: "own_script"}, permission.Allow},
		{tool.Tool{Name: "own_script", Effect: tool.Dangerous}, permission.Ask},
		{tool.Tool{Name: "served"}, permission.Ask},
		{tool.Tool{Name: "served", Effect: tool.Idempotent}, permission.Ask},
		{tool.Tool{Name: "served", Effect: tool.ReadOnly}, permission.Allow},
		{tool.Tool{Name: "clock", Touches: nothing}, permission.Allow},
		{tool.Tool{Name: "clock", Touches: nothing, Effect: tool.Dangerous}, permission.Ask},
		{tool.Tool{Name: "web", Touches: hosts, Effect: tool.ReadOnly}, permission.Ask},
		{tool.Tool{Name: "own_web", Touches: hosts}, permission.Ask},
	} {
		if got := decide(t, r.policy, c.tool, tool.Call{}); got.Verdict != c.want {
			t.Errorf("%s %q: %v %q, want %v", c.tool.Name, c.tool.Effect, got.Verdict, got.Reasons, c.want)
		}
	}
}

func TestRules(t *testing.T) {
	r := newRoom(t)
	fetch := tool.Tool{Name: "fetch", Effect: tool.ReadOnly, Touches: func(json.RawMessage) (tool.Touch, error) {
		return tool.Touch{Network: []string{"api.example.com"}}, nil
	}}
	served := tool.Tool{Name: "mcp_invoke_tracker"}
	sh := func(text string) tool.Call { return args(t, "command", text) }
	path := func(p string) tool.Call { return args(t, "path", p) }
	write, read := fileTool("fs_write", true), fileTool("fs_cat", false)
	const allow, ask, deny = permission.Allow, permission.Ask, permission.Deny
	for _, c := range []struct {
		rules string
		tool  tool.Tool
		call  tool.Call
		want  permission.Verdict
	}{
		{`allow: [execute_command]`, shellTool, sh("rm -rf /usr > /etc/x; $x"), allow},
		{`allow: [execute_command]`, shellTool, sh("rm -rf /"), ask},
		{`allow: [execute_*]`, shellTool, sh("make"), allow},
		{`allow: [fs_write]`, shellTool, sh("make"), ask},
		{`allow: ["execute_command(make *)"]`, shellTool, sh("make"), allow},
		{`allow: ["execute_command(make *)"]`, shellTool, sh("make -j4 all"), allow},
		{`allow: ["execute_command(make *)"]`, shellTool, sh("make all; rm x"), ask},
		{`allow: ["execute_command(make *)"]`, shellTool, sh("make $(rm x)"), ask},
		{`allow: ["execute_command(make *)"]`, shellTool, sh("FOO=1 make"), ask},
		{`allow: ["execute_command(FOO=* make)"]`, shellTool, sh("FOO=1 make"), allow},
		{`allow: ["execute_command(make *)"]`, shellTool, sh("./make"), ask},
		{`allow: ["execute_command(make *)"]`, shellTool, sh("make > /etc/x"), ask},
		{`allow: ["execute_command(make *)", "any write(/etc/*)"]`, shellTool, sh("make > /etc/x"), allow},
		{`allow: ["execute_command(make all)"]`, shellTool, sh("make all x"), ask},
		{`allow: ["execute_command(make all)"]`, shellTool, sh("make $x"), ask},
		{`allow: ["execute_command(make 'a b' \\*)"]`, shellTool, sh(`make "a b" '*'`), allow},
		{`allow: ["execute_command(make 'a b' \\*)"]`, shellTool, sh(`make "a b" z`), ask},
		{`allow: ["execute_command(*)"]`, shellTool, sh("$x y"), allow},
		{`allow: ["execute_command(*)"]`, shellTool, sh("fi"), allow},
		{`{allow: [execute_command], deny: ["any command(rm *)"]}`, shellTool, sh("make; /bin/rm -r x"), deny},
		{`{allow: [execute_command], deny: ["any command(rm *)"]}`, shellTool, sh("bash -c 'sudo -u x rm y'"), deny},
		{`{allow: [execute_command], deny: ["any command(rm *)"]}`, shellTool, sh("find . -type f -exec rm {} +"), deny},
		{`{allow: [execute_command], deny: ["any command(rm *)"]}`, shellTool, sh("ls | xargs -I{} rm {}"), deny},
		{`{allow: [execute_command], deny: ["any command(rm *)"]}`, shellTool, sh("A=b \\rm y"), deny},
		{`{allow: [execute_command], deny: ["any command(rm *)"]}`, shellTool, sh("$x y"), ask},
		{`{allow: [execute_command], deny: ["any command(rm *)"]}`, shellTool, sh("make"), allow},
		{`{allow: [execute_command], deny: ["any write(secret*)"]}`, shellTool, sh("cp a secrets"), deny},
		{`{allow: [execute_command], ask: ["execute_command(git push *)"]}`, shellTool, sh("git push"), ask},
		{`{allow: [execute_command], ask: ["execute_command(git push *)"]}`, shellTool, sh("git pull"), allow},
		{`deny: ["any read(**/.env)"]`, read, path("src/.env"), deny},
		{`deny: ["any read(**/.env)"]`, shellTool, sh("cat src/.env"), deny},
		{`deny: ["any read(src/**)"]`, shellTool, sh("cat < src/x"), deny},
		{`deny: ["any read(src/deep/x)"]`, read, path("src"), ask},
		{`deny: ["fs_cat(src/**)"]`, read, path("src"), deny},
		{`deny: ["fs_cat(in/**)"]`, read, path("src/b.go"), deny}, // the link is followed
		{`deny: ["fs_cat(src/*.go)"]`, read, path("in/b.go"), deny},
		{`allow: ["fs_cat(secret)"]`, read, path("secret"), allow},
		{`allow: ["fs_cat(out/*)"]`, read, path("../outside/secret"), allow},
		{`allow: ["fs_cat(sec*)"]`, read, path("secret"), ask}, // what a wildcard stands for is compared with where links lead
		{`allow: ["fs_write(/**)"]`, write, path("/etc/x"), allow},
		{`allow: ["fs_write(~/**)"]`, write, path(filepath.Join(r.policy.Home, "x")), allow},
		{`allow: [fs_write]`, write, path("/etc/x"), allow},
		{`allow: [fs_write]`, write, path(".git/config"), ask},
		{`allow: ["fs_write(**)"]`, write, path(".git/config"), ask},
		{`allow: ["fs_write(.git/*)"]`, write, path(".git/config"), allow},
		{`allow: ["fs_write(**)", "any write(/**)"]`, write, path("permissions.yaml"), ask},
		{`allow: ["fs_write(permissions.yaml)"]`, write, path("permissions.yaml"), allow},
		{`allow: ["fetch(*.example.com)"]`, fetch, tool.Call{}, allow},
		{`allow: ["any host(api.example.com)"]`, fetch, tool.Call{}, allow},
		{`allow: ["fetch(https://api.example.com/v1/*)"]`, fetch, args(t, "url", "HTTPS://api.example.com/v1/x"), allow},
		{`allow: ["fetch(https://api.example.com/v1/*)"]`, fetch, args(t, "url", "https://api.example.com/v1/../v2"), ask},
		{`allow: ["fetch(https://api.example.com/*)"]`, fetch, args(t, "url", "https://api.example.com@evil.net/x"), ask},
		{`{allow: [fetch], deny: ["any host(*.example.com)"]}`, fetch, tool.Call{}, deny},
		{`allow: ["mcp_invoke_tracker(tool=list_*, project=web)"]`, served, args(t, "tool", "list_x", "project", "web"), allow},
		{`allow: ["mcp_invoke_tracker(tool=list_*, project=web)"]`, served, args(t, "tool", "delete", "project", "web"), ask},
		{`{allow: [mcp_*], deny: ["mcp_invoke_tracker(tool=del*)"]}`, served, args(t, "tool", "delete"), deny},
		{`{allow: [mcp_*], deny: ["mcp_invoke_tracker(tool=del*)"]}`, served, args(t, "tool", "list"), allow},
		{`{allow: [mcp_invoke_tracker], ask: [mcp_invoke_tracker]}`, served, tool.Call{}, ask},
	} {
		p := r.policy
		p.Rules = []permission.Rules{rules(t, c.rules)}
		if got := decide(t, p, c.tool, c.call); got.Verdict != c.want {
			t.Errorf("%s\n  %s %s: %v %q, want %v", c.rules, c.tool.Name, c.call.Args, got.Verdict, got.Reasons, c.want)
		}
	}
}

// TestGrantsAllow checks that what a decision offers is enough, and not more
// than the call.
func TestGrantsAllow(t *testing.T) {
	r := newRoom(t)
	sh := func(text string) tool.Call { return args(t, "command", text) }
	write := fileTool("fs_write", true)
	for _, c := range []struct {
		tool        tool.Tool
		call, other tool.Call
	}{
		{shellTool, sh("npm install && npm test > ../log"), sh("npm install x")},
		{shellTool, sh("touch '*' \"a b\" '{'"), sh("touch x 'a b' '{'")},
		{shellTool, sh("bash -c 'make all'"), sh("bash -c 'make none'")},
		{shellTool, sh("cat /etc/hostname"), sh("cat /etc/hosts")},
		{write, args(t, "path", "/tmp/a[b]*"), args(t, "path", "/tmp/ab")},
		{write, args(t, "path", ".git/config"), args(t, "path", ".git/HEAD")},
		{write, args(t, "path", "permissions.yaml"), args(t, "path", ".git/HEAD")},
		{tool.Tool{Name: "served"}, tool.Call{}, tool.Call{}},
		{tool.Tool{Name: "served"}, args(t, "tool", "list"), args(t, "tool", "delete")},
	} {
		d := decide(t, r.policy, c.tool, c.call)
		if d.Verdict != permission.Ask || len(d.Grant) == 0 || !d.Lasting || !slices.Contains(d.Answers(), permission.Always) {
			t.Errorf("%s: %+v, want a lasting grant", c.call.Args, d)
			continue
		}
		for _, where := range []string{"granted", "allowed"} {
			p := r.policy
			for _, text := range d.Grant {
				rule, err := permission.ParseRule(text)
				if err != nil {
					t.Fatal(err)
				}
				if where == "granted" {
					p.Granted = append(p.Granted, rule)
				} else {
					p.Rules = append(p.Rules, permission.Rules{Allow: []permission.Rule{rule}})
				}
			}
			if got := decide(t, p, c.tool, c.call); got.Verdict != permission.Allow {
				t.Errorf("%s: %v %q though %s is %s", c.call.Args, got.Verdict, got.Reasons, d.Grant, where)
			}
			if got := decide(t, p, c.tool, c.other); c.other.Args != nil && got.Verdict == permission.Allow {
				t.Errorf("%s is allowed by the grant for %s: %s", c.other.Args, c.call.Args, d.Grant)
			}
		}
	}
}

func TestAnswersOnOffer(t *testing.T) {
	r := newRoom(t)
	p := r.policy
	p.Rules = []permission.Rules{rules(t, `ask: ["execute_command(git push)"]`)}
	for text, want := range map[string][]permission.Answer{
		"ls":       nil,
		"make":     {permission.Once, permission.Run, permission.Always, permission.No},
		"make $x":  {permission.Once, permission.No},
		"git push": {permission.Once, permission.Run, permission.No},
	} {
		if got := decide(t, p, shellTool, args(t, "command", text)).Answers(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	granted, err := permission.ParseRule("execute_command(git push)")
	if err != nil {
		t.Fatal(err)
	}
	p.Granted = []permission.Rule{granted}
	if got := decide(t, p, shellTool, args(t, "command", "git push")); got.Verdict != permission.Allow {
		t.Errorf("a grant does not beat a rule that asks: %+v", got)
	}
}

func TestDeniedIsToldToTheModel(t *testing.T) {
	r := newRoom(t)
	r.policy.Rules = []permission.Rules{rules(t, "deny:\n  - any command(rm *)\n")}
	d := decide(t, r.policy, shellTool, args(t, "command", "ls; rm -rf /"))
	want := "not permitted: rm -rf / is denied by the rule any command(rm *) (rules.yaml:2:5). Do not try the same in another form."
	if d.Model != want || d.Grant != nil {
		t.Errorf("got  %q %v\nwant %q", d.Model, d.Grant, want)
	}
}

func TestDecideRefusesWhatIsNoUse(t *testing.T) {
	r := newRoom(t)
	if _, err := r.policy.Decide(fileTool("fs_cat", false), tool.Call{Args: json.RawMessage(`{}`)}); err == nil || !strings.Contains(err.Error(), "fs_cat: path is missing") {
		t.Errorf("got %v", err)
	}
	r.policy.Workspace = "here"
	if _, err := r.policy.Decide(fileTool("fs_cat", false), args(t, "path", "x")); err == nil {
		t.Error("a relative workspace was taken")
	}
}

// TestOnlyReads: a command that reads may be repeated without a question, and one that
// writes, connects or cannot be understood may not.
func TestOnlyReads(t *testing.T) {
	r := newRoom(t)
	for text, want := range map[string]bool{
		"ls -la src":                      true,
		"cat a.txt | wc -l":               true,
		"grep -rn foo src; git status":    true,
		"cat /etc/hostname":               true, // whether it may run is asked elsewhere
		"echo hello > out.txt":            false,
		"ls 2>/dev/null":                  true,
		"rm a.txt":                        false,
		"touch b":                         false,
		"make test":                       false,
		"curl https://example.com":        false,
		"ls && ./deploy.sh":               false,
		"sed -i s/a/b/ a.txt":             false,
		"python3 -c 'print(1)'":           false,
		"cat a.txt | tee copy.txt":        false,
		"$x a.txt":                        false,
		"git commit -m x":                 false,
		"for f in *.txt; do cat $f; done": false,
		"if true; then rm a.txt; fi":      false,
	} {
		args, err := json.Marshal(map[string]string{"command": text})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.policy.OnlyReads(shellTool, args); got != want {
			t.Errorf("OnlyReads(%q) = %v, want %v", text, got, want)
		}
	}
	if r.policy.OnlyReads(tool.Tool{Name: "unknown"}, nil) {
		t.Error("a tool that does not say what it touches is taken for one that reads")
	}
}
