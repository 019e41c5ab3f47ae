package permission_test

import (
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/tool/permission"
)

// Files that run later without being named are not written unasked: not by a tool
// of files, not by a shell command that a rule allows, and not under a rule with a
// wildcard. A rule that names the place allows it.
func TestWritesOfCodeAsk(t *testing.T) {
	r := newRoom(t)
	for name, text := range map[string]string{
		"py/pyvenv.cfg": "", "flow/graph.yaml": "", "bot/config.yaml": "", "bot/tools.sh": "", "site/config.yaml": "", "plain/x": "",
		"kit/.venv/x": "", "kit/hooks": "", "shared/lib.sh": "",
	} {
		put(t, filepath.Join(r.dir, name), text)
	}
	r.policy.Code = []string{filepath.Join(r.dir, "shared")}
	write, open := fileTool("fs_write", true), "allow: [fs_write, execute_command(*), any write(**)]"
	for _, c := range []struct {
		path string
		want permission.Verdict
	}{
		{".venv/lib/python3.11/site-packages/x.pth", permission.Ask},
		{".VENV/bin/python", permission.Ask}, // some file systems do not tell cases apart
		{"venv/bin/python", permission.Ask},
		{"sub/node_modules/.bin/tsx", permission.Ask},
		{"node_modules", permission.Ask},
		{".git/hooks/pre-commit", permission.Ask},
		{".git/config", permission.Ask},
		{".husky/pre-commit", permission.Ask},
		{"__pycache__/helper.cpython-311.pyc", permission.Ask},
		{"py/bin/anything", permission.Ask},
		{"elsewhere/pyvenv.cfg", permission.Ask},
		{".raddle/permissions.yaml", permission.Ask},
		{".raddle/notes", permission.Ask},
		{"deep/mcp.json", permission.Ask},
		{"deep/graph.yaml", permission.Ask},
		{".envrc", permission.Ask},
		{"flow/scripts/x.py", permission.Ask},
		{"flow/notes.txt", permission.Allow}, // of an agent that was not named: its data
		{"bot/tools.sh", permission.Ask},
		{"bot/config.yaml", permission.Ask},
		{"bot/lib/x.sh", permission.Ask},
		{"site/config.yaml", permission.Allow}, // of other programs
		{"site/tools.py", permission.Ask},      // makes it an agent
		{"shared/lib.sh", permission.Ask},
		{"shared/new", permission.Ask},
		{"plain/x.sh", permission.Allow},
		{".env", permission.Allow},
		{"conftest.py", permission.Allow},
		{"node_modules.txt", permission.Allow},
	} {
		p := r.policy
		if d := decide(t, p, write, args(t, "path", c.path)); d.Verdict != c.want {
			t.Errorf("fs_write %s: %v %q, want %v", c.path, d.Verdict, d.Reasons, c.want)
		}
		p.Rules = []permission.Rules{rules(t, open)}
		if d := decide(t, p, write, args(t, "path", c.path)); d.Verdict != c.want {
			t.Errorf("fs_write %s, with a wildcard: %v %q, want %v", c.path, d.Verdict, d.Reasons, c.want)
		}
		for _, command := range []string{"echo x > ", "echo x >> ", "tee ", "cp a.txt ", "mv a.txt ", "ln -s a.txt ", "cp -t ", "install a.txt ", "sed -i s/a/b/ ", "dd if=a.txt of=", "sort a.txt -o ",
			"sort --output=", "curl -o ", "wget -O", "rm ", "touch ", "rsync a.txt "} {
			if d := decide(t, p, shellTool, args(t, "command", command+c.path)); d.Verdict != c.want {
				t.Errorf("%s%s: %v %q, want %v", command, c.path, d.Verdict, d.Reasons, c.want)
			}
		}
		p.Rules = []permission.Rules{rules(t, "allow: [\"fs_write("+c.path+")\"]")}
		if d := decide(t, p, write, args(t, "path", c.path)); d.Verdict != permission.Allow {
			t.Errorf("fs_write %s, with a rule that names it: %v %q", c.path, d.Verdict, d.Reasons)
		}
	}
	p := r.policy
	p.Rules = []permission.Rules{rules(t, open)}
	for command, want := range map[string]permission.Verdict{
		"cd src && echo x > .venv/pyvenv.x":     permission.Ask,
		"cp -r kit/.venv .":                     permission.Ask,
		"cp -r kit/. .":                         permission.Ask,
		"cp -r kit/hooks .git":                  permission.Ask,
		"mv kit/.venv ./":                       permission.Ask,
		"cp -r plain other":                     permission.Allow,
		"git config core.hooksPath x":           permission.Ask,
		"git -C sub config alias.x '!touch y'":  permission.Ask,
		"git config --get user.name":            permission.Allow,
		"git init --template=plain":             permission.Ask,
		"git commit -m x":                       permission.Allow,
		"sed s/a/b/ .git/config":                permission.Allow,
		"mkdir -p node_modules/x":               permission.Ask,
		"tar -xf a.tar -C .venv":                permission.Ask,
		"bash -c 'echo x > .venv/bin/python'":   permission.Ask,
		"find . -exec cp {} .venv/bin/python +": permission.Ask,
	} {
		if d := decide(t, p, shellTool, args(t, "command", command)); d.Verdict != want {
			t.Errorf("%s: %v %q, want %v", command, d.Verdict, d.Reasons, want)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
