package permission_test

import (
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// Started in a home directory, raddle asks before a call reads or changes what programs keep there:
// keys, passwords, settings, and files that run when a shell starts.
func TestHomeAsWorkspace(t *testing.T) {
	r := newRoom(t)
	for _, name := range []string{".ssh/id_ed25519", ".aws/credentials", ".bashrc", ".config/app/settings.toml", "work/.env", "notes.txt"} {
		testfile.WriteFile(t, filepath.Join(r.dir, name), "x")
	}
	read, write := fileTool("fs_cat", false), fileTool("fs_write", true)
	inHome := r.policy
	inHome.Home = r.dir
	project := inHome
	project.Home = filepath.Dir(r.dir)
	hidden := inHome // a workspace in a hidden directory of the home directory
	hidden.Workspace = filepath.Join(r.dir, ".config")
	for _, c := range []struct {
		path                string
		read, write         permission.Verdict // in the home directory
		readElse, writeElse permission.Verdict // in a project with these names
	}{
		{"notes.txt", permission.Allow, permission.Allow, permission.Allow, permission.Allow},
		{"work/.env", permission.Allow, permission.Allow, permission.Allow, permission.Allow},
		{".ssh/id_ed25519", permission.Ask, permission.Ask, permission.Allow, permission.Allow},
		{".ssh/new", permission.Ask, permission.Ask, permission.Allow, permission.Allow},
		{"work/../.ssh/id_ed25519", permission.Ask, permission.Ask, permission.Allow, permission.Allow},
		{".aws", permission.Ask, permission.Ask, permission.Allow, permission.Allow},
		{".config/app/settings.toml", permission.Ask, permission.Ask, permission.Allow, permission.Allow},
		{".bashrc", permission.Ask, permission.Ask, permission.Allow, permission.Ask},
		{".zshenv", permission.Ask, permission.Ask, permission.Allow, permission.Ask},
		{".gitconfig", permission.Ask, permission.Ask, permission.Allow, permission.Ask},
		{"sub/.profile", permission.Allow, permission.Ask, permission.Allow, permission.Ask},
		{".", permission.Ask, permission.Ask, permission.Allow, permission.Ask}, // with everything below it
	} {
		for _, each := range []struct {
			name        string
			policy      permission.Policy
			read, write permission.Verdict
		}{{"home", inHome, c.read, c.write}, {"project", project, c.readElse, c.writeElse}} {
			if d := decide(t, each.policy, read, args(t, "path", c.path)); d.Verdict != each.read {
				t.Errorf("%s: reading %s: %v %q", each.name, c.path, d.Verdict, d.Reasons)
			}
			if d := decide(t, each.policy, write, args(t, "path", c.path)); d.Verdict != each.write {
				t.Errorf("%s: writing %s: %v %q", each.name, c.path, d.Verdict, d.Reasons)
			}
		}
	}
	if d := decide(t, hidden, write, args(t, "path", "app/settings.toml")); d.Verdict != permission.Allow {
		t.Errorf("a workspace that is hidden: %v %q", d.Verdict, d.Reasons)
	}

	for command, want := range map[string]permission.Verdict{
		"ls -la":                     permission.Allow,
		"cat notes.txt work/.env":    permission.Allow,
		"grep -r x work":             permission.Allow,
		"cat .ssh/id_ed25519":        permission.Ask,
		"cat ~/.aws/credentials":     permission.Ask,
		"cd .ssh && cat id_ed25519":  permission.Ask,
		"grep -r x .":                permission.Ask,
		"ls -R":                      permission.Ask, // the names of keys
		"ls -lR":                     permission.Ask,
		"find . -name '*.txt'":       permission.Ask,
		"find . -name id":            permission.Ask,
		"find work -name '*.txt'":    permission.Allow,
		"find . -maxdepth 1":         permission.Allow,
		"du -a":                      permission.Ask,
		"du -ah":                     permission.Ask,
		"tree -aL2":                  permission.Ask,
		"grep -rn PRIVATE":           permission.Ask,
		"cd work && grep -rn x":      permission.Ask, // it may still be in the home directory
		"find .ssh -name '*.txt'":    permission.Ask,
		"echo hack >> .bashrc":       permission.Ask,
		"cat work/../.ssh/id_e*":     permission.Ask,
		"diff notes.txt .ssh/id_rsa": permission.Ask,
	} {
		if d := decide(t, inHome, shellTool, args(t, "command", command)); d.Verdict != want {
			t.Errorf("%s: %v %q", command, d.Verdict, d.Reasons)
		}
	}
	if d := decide(t, inHome, read, args(t, "path", ".ssh/id_ed25519")); len(d.Reasons) != 1 ||
		d.Reasons[0] != ".ssh/id_ed25519 is hidden in your home directory, where programs keep keys and settings" || !d.Lasting || len(d.Grant) != 1 {
		t.Errorf("%+v", d)
	}

	// A rule or an answer allows what it names.
	inHome.Rules = []permission.Rules{rules(t, "allow: [any read(~/.config/**)]")}
	if d := decide(t, inHome, read, args(t, "path", ".config/app/settings.toml")); d.Verdict != permission.Allow {
		t.Errorf("allowed by a rule: %v %q", d.Verdict, d.Reasons)
	}
	inHome.Mode = permission.ModePlan
	if d := decide(t, inHome, read, args(t, "path", ".ssh/new")); d.Verdict != permission.Ask {
		t.Errorf("in the mode plan: %v %q", d.Verdict, d.Reasons)
	}

	// Tools that search leave these files out, except those that a rule allows.
	isHidden := inHome.HiddenFilter("fs_grep")
	for path, want := range map[string]bool{".ssh": true, ".bashrc": true, ".config": false, ".config/app": false, "work": false, "work/.env": false} {
		if got := isHidden(filepath.Join(r.dir, path)); got != want {
			t.Errorf("%s is left out: %v", path, got)
		}
	}
}
