package permission_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool/permission"
)

// FuzzShell compares decisions with the shell itself: bash runs each text that is allowed, with
// test programs instead of all others. The program named danger leaves a mark when it runs; a text
// that is allowed must not run it.
func FuzzShell(f *testing.F) {
	for _, text := range append(lines(readOnlyRule), lines(asking)...) {
		f.Add(text)
	}
	testneed.RequirePrograms(f, "bash")
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Fatal(err)
	}
	r := newRoom(f)
	mark := filepath.Join(r.outside, "mark")
	programs := stage(f, bash, mark)
	// marks runs a text, and reports whether danger ran.
	marks := func(t testing.TB, text string) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		// A restricted shell opens no file for writing and leaves its directory
		// and its PATH alone, should a text be allowed by mistake.
		cmd := exec.CommandContext(ctx, bash, "-r", "-c", text)
		cmd.Dir, cmd.Env, cmd.WaitDelay = r.dir, []string{"PATH=" + programs}, time.Second
		_ = cmd.Run() // whether it succeeds does not matter
		return os.Remove(mark) == nil
	}
	for _, text := range []string{"ls && danger", "bash -c 'echo $(danger)'", "echo x | xargs danger"} {
		if !marks(f, text) {
			f.Fatalf("%q leaves no mark: this test would find nothing", text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		args, err := json.Marshal(map[string]string{"command": text})
		if err != nil {
			t.Skip("this is no text")
		}
		d, err := r.policy.Decide(t.Context(), shellTool, call(args))
		if err != nil {
			t.Fatal(err)
		}
		if d.Verdict != permission.Allow || !mentions(text, "danger") {
			return
		}
		if marks(t, text) {
			t.Errorf("%q is allowed, and runs danger", text)
		}
	})
}

// mentions reports whether a word may come out of a text, whatever is quoted.
func mentions(text, word string) bool {
	bare := strings.NewReplacer(`\`, "", `"`, "", "'", "", "\n", "", "$", "").Replace(text)
	return strings.Contains(bare, word)
}

// stage makes a directory of programs: danger leaves a mark, those that only run
// others are real, and the rest do nothing.
func stage(f *testing.F, bash, mark string) string {
	f.Helper()
	dir := f.TempDir()
	program := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!"+bash+"\n"+text+"\n"), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	program("danger", ": > "+mark)
	for _, name := range strings.Fields("ls cat head tail wc grep rg sort uniq sed git date diff sleep whoami jq tree awk make rm curl") {
		program(name, "exit 0")
	}
	for _, name := range strings.Fields("bash sh") {
		program(name, "exec "+bash+` -r "$@"`)
	}
	for _, name := range strings.Fields("env nohup nice timeout stdbuf setsid xargs find") {
		if path, err := exec.LookPath(name); err == nil {
			program(name, "exec "+path+` "$@"`)
		}
	}
	return dir
}

// FuzzRule checks that what is read as a rule can be used on anything.
func FuzzRule(f *testing.F) {
	for _, text := range []string{"a", "a(b)", "any write(**)", "any command(git 'a b' *)", `x(\*)`, "any host(https://*)", "a(b=c, d=*)", "x([)"} {
		f.Add(text, "ls a; $x")
	}
	r := newRoom(f)
	f.Fuzz(func(t *testing.T, text, command string) {
		rule, err := permission.ParseRule(text)
		if err != nil {
			return
		}
		args, err := json.Marshal(map[string]string{"command": command, "path": command})
		if err != nil {
			t.Skip("this is no text")
		}
		p := r.policy
		p.Rules = []permission.Rules{{Deny: []permission.Rule{rule}, Allow: []permission.Rule{rule}}}
		allowed := p
		allowed.Rules = []permission.Rules{{Allow: []permission.Rule{rule}}}
		strict, err := p.Decide(t.Context(), shellTool, call(args))
		if err != nil {
			t.Fatal(err)
		}
		mild, err := allowed.Decide(t.Context(), shellTool, call(args))
		if err != nil {
			t.Fatal(err)
		}
		if strict.Verdict < mild.Verdict {
			t.Errorf("%q makes %q milder as a rule that denies: %v, allows: %v", text, command, strict.Verdict, mild.Verdict)
		}
	})
}
