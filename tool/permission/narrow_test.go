package permission_test

import (
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// A rule that a person has changed is saved only if it allows nothing more than what was offered.
func TestCheckNarrowed(t *testing.T) {
	r := newRoom(t)
	if err := os.Symlink(r.outside, filepath.Join(r.dir, "src", "away")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		granted, rule string
		narrower      bool
	}{
		{"execute_command(go vet ./...)", "execute_command(go vet ./...)", true},
		{"execute_command(go vet ./...)", "execute_command(go vet *)", false},
		{"execute_command(go vet ./...)", "execute_command(go *)", false},
		{"execute_command(go vet ./...)", "execute_command", false},
		{"execute_command(go vet ./...)", "execute_command(go vet ./... -x)", false},
		{"execute_command(go vet ./...)", "*(go vet ./...)", false},
		{"execute_command(go vet ./...)", "any command(go vet ./...)", false},
		{"execute_command(make)", "execute_command(make *)", false},
		{"execute_command(go vet *)", "execute_command(go vet ./...)", true},
		{"execute_command(go vet *)", "execute_command(go vet ./... *)", true},
		{"execute_command(go vet *)", "execute_command(go *)", false},
		{"note", "note", true},
		{"note", "note(kind=draft)", true},
		{"note", "note*", false},
		{"note", "*", false},
		{"note", "other", false},
		{"mcp_invoke_x(tool=create)", "mcp_invoke_x(tool=create, project=web)", true},
		{"mcp_invoke_x(tool=create)", "mcp_invoke_x(project=web)", false},
		{"mcp_invoke_x(tool=create)", "mcp_invoke_x(tool=*)", false},
		{"mcp_invoke_x(tool=create)", "mcp_invoke_x", false},
		{"fetch(example.com)", "fetch(https://example.com/docs/*)", true},
		{"fetch(example.com)", "fetch(https://example.com.evil.example/*)", false},
		{"fetch(example.com)", "fetch(https://example.com*)", false},
		{"fetch(example.com)", "fetch(*.example.com)", false},
		{"fetch(example.com)", "fetch(*)", false},
		{"fs_write(a.txt)", "fs_write(a.txt)", true},
		{"fs_write(a.txt)", "fs_write(b.txt)", false},
		{"fs_write(a.txt)", "fs_write(*.txt)", false},
		{"fs_write(src/**)", "fs_write(src/deep/*.go)", true},
		{"fs_write(src/**)", "fs_write(src/b.go)", true},
		{"fs_write(src/**)", "fs_write(src/../a.txt)", false},
		{"fs_write(src/**)", `fs_write(src/\.\./a.txt)`, false},
		{"fs_write(src/**)", "fs_write(src*/b.go)", false},
		{"fs_write(src/**)", "fs_write({src,.}/**)", false},
		{"fs_write(src/**)", "fs_write(src/away/**)", false},
		{"fs_write(src/**)", "fs_write(**)", false},
		{"any write(src/**)", "any write(src/deep/**)", true},
		{"any write(src/**)", "any read(src/deep/**)", false},
		{"any write(src/**)", "any write", false},
		{"fs_write(a.txt)", "fs_write(", false},
	} {
		err := r.policy.CheckNarrowed([]string{c.granted}, []string{c.rule})
		if (err == nil) != c.narrower {
			t.Errorf("%s instead of %s: %v", c.rule, c.granted, err)
		}
	}
	if err := r.policy.CheckNarrowed([]string{"a", "b"}, []string{"b(x=1)", "a"}); err != nil {
		t.Errorf("several rules: %v", err)
	}
}

// A decision names what the call does, which part asks and why, and the files that a command removes.
func TestPartsOfADecision(t *testing.T) {
	r := newRoom(t)
	for _, name := range []string{"build/x", "build/y", "build/deep/z"} {
		testfile.WriteFile(t, filepath.Join(r.dir, name), "")
	}
	r.policy.Rules = []permission.Rules{rules(t, "ask:\n  - execute_command(go vet *)\n")}
	d := decide(t, r.policy, shellTool, args(t, "command", "ls && go vet ./... && rm -rf build a.txt nothing"))
	if d.Does != "run a command" || d.Command != "ls && go vet ./... && rm -rf build a.txt nothing" || len(d.Parts) != 2 {
		t.Fatalf("%+v", d)
	}
	if p := d.Parts[0]; p.Text != "go vet ./..." || p.Rule != "execute_command(go vet *) (rules.yaml:2:5)" {
		t.Errorf("%+v", p)
	}
	if p := d.Parts[1]; p.Text != "rm -rf build a.txt nothing" || p.Detail != "build/ (3 files), a.txt" || p.Rule != "" {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct {
		does string
		d    permission.Decision
	}{
		{"change ../x", decide(t, r.policy, fileTool("fs_write", true), args(t, "path", "../x"))},
		{"read ../x", decide(t, r.policy, fileTool("fs_read", false), args(t, "path", "../x"))},
	} {
		if c.d.Does != c.does || c.d.Command != "" {
			t.Errorf("%q, want %q", c.d.Does, c.does)
		}
	}
}
