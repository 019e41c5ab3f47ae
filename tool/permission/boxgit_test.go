package permission

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBoxReason(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	workspace := filepath.Join(base, "w")
	for _, dir := range []string{".git/worktrees/x", ".git/refs/x", ".git/modules/lib", "evil"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(workspace, ".git", "config"), []byte("[core]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../evil", filepath.Join(workspace, ".git", "modules", "link")); err != nil {
		t.Fatal(err)
	}
	const plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
	remote := func(address string) string {
		return plain + "[remote \"origin\"]\n\turl = " + address + "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
	}
	for _, test := range []struct {
		path, text string
		free       bool
	}{
		{"a.txt", "x", true},
		{".git/HEAD", "x", true}, {".git/index", "x", true}, {".git/objects/aa/bb", "x", true}, {".git/refs/heads/config", "x", true}, {".git/worktrees/x/HEAD", "x", true}, {".git/worktrees/x/index", "x", true},
		{".git/config", plain, false}, {".git/hooks/pre-commit", "x", false}, {".git/hooks/pre-commit.sample", "x", true}, {".GIT/config", plain + "[alias]\n\tx = !x\n", false}, {".git/info/attributes", "x", false},
		{".git/modules/lib/config", plain, true}, {".git/modules/lib/config", plain + "\tfsmonitor = x\n", false}, {".git/worktrees/y/commondir", "../..\n", true}, {".git/worktrees/y/commondir", "../../../evil\n", false},
		{".git/worktrees/y/gitdir", workspace + "/y/.git\n", true}, {".git/worktrees/y/gitdir", "/elsewhere/.git\n", false}, {".git/worktrees/y/config.worktree", plain, false},
		{"new/.git/config", plain, true}, {"new/.git/config", remote("https://example.com/x.git"), true}, {"new/.git/config", remote("git@example.com:x/y.git"), true}, {"new/.git/config", remote("/srv/x.git"), true},
		{"new/.git/config", remote("ext::sh -c x"), false}, {"new/.git/config", remote("ssh://-oProxyCommand=x/y"), false}, {"new/.git/config", remote("-x"), false}, {"new/.git/config", plain + "\tsshCommand = x\n", false},
		{"new/.git/config", plain + "[include]\n\tpath = x\n", false}, {"new/.git/config", "[core] fsmonitor = x\n", false}, {"new/.git/config", "[core]\n\tbare = false \\\n fsmonitor\n", false}, {"new/.git/config", "[remote \"x\"]\n\tuploadpack = x\n", false},
		{"new/.git/config", "[remote \"x\"]\n\turl = https://e/x\n\tvcs = x\n", false}, {"new/.git/config", "[core]\n\tbare\n", false}, {"new/.git/config", "[user]\n\tname = A B\n\temail = a@b\n", true}, {"new/.git/config", "[branch \"x\"]\n\tmergeoptions = x\n", false},
		{"y/.git", "gitdir: " + workspace + "/.git/worktrees/x\n", true}, {"y/.git", "gitdir: ../.git/modules/lib\n", true}, {"y/.git", "gitdir: ../evil\n", false}, {"y/.git", "gitdir: ../.git/refs/x\n", false}, {"y/.git", "gitdir: ../.git/modules/link\n", false}, {"y/.git", "gitdir: /elsewhere/.git/worktrees/x\n", false},
		{"y/.git", "gitdir: ../.git\n", false}, {".vscode/tasks.json", "x", false}, {".VSCode/tasks.json", "x", false}, {".vscode/node_modules/tasks.json", "x", false}, {".claude/commands/venv/x.md", "x", false}, {"sub/AGENTS.md", "x", false}, {"sub/agents.MD", "x", false},
		{"node_modules/x/index.js", "x", true}, {".github/workflows/ci.yml", "x", false}, {".mcp.json", "x", false},
	} {
		made := filepath.Join(base, "made")
		if err := os.WriteFile(made, []byte(test.text), 0o644); err != nil {
			t.Fatal(err)
		}
		p := Policy{Workspace: workspace}
		if why := p.BoxReason(filepath.Join(workspace, test.path), made); (why == "") != test.free {
			t.Errorf("%s with %q: %q", test.path, test.text, why)
		}
	}
	p := Policy{Workspace: workspace}
	link := filepath.Join(base, "link")
	if err := os.Symlink("../../evil", link); err != nil {
		t.Fatal(err)
	}
	if p.BoxReason(filepath.Join(workspace, ".git", "modules", "evil"), link) == "" || p.BoxReason(filepath.Join(workspace, "link"), link) != "" {
		t.Error("links in a repository are not held back, or others are")
	}
	if p.BoxReason(filepath.Join(workspace, "new", ".git", "config"), "") == "" {
		t.Error("the settings of a repository may be removed")
	}
}
