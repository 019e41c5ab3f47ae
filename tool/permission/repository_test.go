package permission_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/base/gitrepo"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool/permission"
)

// gitLooks are the commands of git that only read, as people write them.
var gitLooks = []string{"git status", "git status -s", "git diff", "git diff HEAD~1", "git log -p -1", "git log --oneline", "git show", "git show HEAD:a.bin", "git blame a.txt", "git grep -n x",
	"git ls-files -m", "git describe --always --dirty", "git stash list", "git --no-pager diff", "git shortlog -s HEAD", "git cat-file -p HEAD", "git branch -a", "git rev-parse HEAD"}

// A gitLayout is a directory in which git finds a repository that names programs.
type gitLayout struct {
	name  string
	sub   string                              // where the repository is seen, relative to the workspace
	build func(t *testing.T, ws, mark string) // the program that must not run creates the file mark
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// makeRepository makes a repository with two commits and changes that are not committed.
func makeRepository(t *testing.T, dir string) {
	t.Helper()
	testfile.WriteFile(t, filepath.Join(dir, "a.txt"), "x 1\n")
	testfile.WriteFile(t, filepath.Join(dir, "a.bin"), "x 1\n")
	runGit(t, dir, "init", "-q", "-b", "main", ".")
	for i := range 2 {
		testfile.WriteFile(t, filepath.Join(dir, "a.txt"), fmt.Sprintf("x %d\n", i+2))
		testfile.WriteFile(t, filepath.Join(dir, "a.bin"), fmt.Sprintf("x %d\n", i+2))
		runGit(t, dir, "add", ".")
		runGit(t, dir, "commit", "-q", "-m", "c")
	}
	testfile.WriteFile(t, filepath.Join(dir, "a.txt"), "x changed\n")
	testfile.WriteFile(t, filepath.Join(dir, "a.bin"), "x changed\n")
}

// hostile returns a configuration in which every look of git runs a program.
func hostile(mark string) string {
	program := `"touch '` + mark + `'; false"`
	return "[core]\n\tfsmonitor = " + program + "\n[diff]\n\texternal = " + program + "\n[diff \"x\"]\n\ttextconv = " + program + "\n\tcommand = " + program +
		"\n[filter \"x\"]\n\tclean = " + program + "\n\tprocess = " + program + "\n"
}

func appendFile(t *testing.T, path, text string) {
	t.Helper()
	old, _ := os.ReadFile(path)
	testfile.WriteFile(t, path, string(old)+text)
}

const hostileAttributes = "* diff=x filter=x\n"

// plainLayouts are repositories that a configuration, a file .git or a working tree makes dangerous.
func plainLayouts() []gitLayout {
	return []gitLayout{
		{"all in .git/config", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			appendFile(t, filepath.Join(ws, ".git/config"), hostile(mark))
			testfile.WriteFile(t, filepath.Join(ws, ".gitattributes"), hostileAttributes)
		}},
		{"a repository in a directory", "sub", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			makeRepository(t, filepath.Join(ws, "sub"))
			appendFile(t, filepath.Join(ws, "sub/.git/config"), hostile(mark))
		}},
		{"a file .git", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			rename(t, filepath.Join(ws, ".git"), filepath.Join(ws, "g"))
			testfile.WriteFile(t, filepath.Join(ws, ".git"), "gitdir: g\n")
			appendFile(t, filepath.Join(ws, "g/config"), hostile(mark))
		}},
		{"a file .git that leads out", "sub", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			other := filepath.Join(filepath.Dir(ws), "other")
			makeRepository(t, other)
			testfile.WriteFile(t, filepath.Join(ws, "sub/.git"), "gitdir: "+filepath.Join(other, ".git")+"\n")
		}},
		{"a link .git that leads out", "sub", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			other := filepath.Join(filepath.Dir(ws), "other")
			makeRepository(t, other)
			testfile.WriteFile(t, filepath.Join(ws, "sub/x"), "")
			symlink(t, filepath.Join(other, ".git"), filepath.Join(ws, "sub/.git"))
		}},
		{"a working tree elsewhere", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "config", "core.worktree", filepath.Dir(ws)+"/outside")
			testfile.WriteFile(t, filepath.Join(filepath.Dir(ws), "outside/x"), "")
		}},
	}
}

// bareLayouts are directories without .git that git takes for repositories.
func bareLayouts() []gitLayout {
	return []gitLayout{
		{"a bare repository with executable files", "d", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			d := filepath.Join(ws, "d")
			testfile.WriteFile(t, filepath.Join(d, "HEAD"), "ref: refs/heads/main\n")
			testfile.WriteFile(t, filepath.Join(d, "config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"touch '"+mark+"'; false\"\n")
			for _, name := range []string{"objects", "refs"} {
				testfile.WriteFile(t, filepath.Join(d, name), "#!/bin/sh\n")
				if err := os.Chmod(filepath.Join(d, name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			runGit(t, ws, "add", ".")
			runGit(t, ws, "commit", "-q", "-m", "d")
		}},
		{"a bare repository with commondir", "d", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "clone", "-q", "--bare", ".", "e")
			d := filepath.Join(ws, "d")
			testfile.WriteFile(t, filepath.Join(d, "HEAD"), "ref: refs/heads/main\n")
			testfile.WriteFile(t, filepath.Join(d, "commondir"), "../e\n")
			appendFile(t, filepath.Join(ws, "e/config"), hostile(mark))
			testfile.WriteFile(t, filepath.Join(ws, "e/info/attributes"), "* diff=x\n")
		}},
		{"a bare repository", "bare.git", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "clone", "-q", "--bare", ".", "bare.git")
			appendFile(t, filepath.Join(ws, "bare.git/config"), hostile(mark))
		}},
		{"a link to a bare repository", "l", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "clone", "-q", "--bare", ".", "bare.git")
			appendFile(t, filepath.Join(ws, "bare.git/config"), hostile(mark))
			symlink(t, "bare.git", filepath.Join(ws, "l"))
		}},
	}
}

// nestedLayouts are repositories whose settings come from other files than .git/config, or belong to a part of the working tree.
func nestedLayouts() []gitLayout {
	return []gitLayout{
		{"inside .git", ".git", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			appendFile(t, filepath.Join(ws, ".git/config"), hostile(mark))
		}},
		{"a linked working tree", "tree", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "worktree", "add", "-q", "tree")
			appendFile(t, filepath.Join(ws, ".git/config"), hostile(mark))
			testfile.WriteFile(t, filepath.Join(ws, "tree/a.txt"), "x changed\n")
		}},
		{"config.worktree", "tree", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "worktree", "add", "-q", "tree")
			runGit(t, ws, "config", "extensions.worktreeConfig", "true")
			testfile.WriteFile(t, filepath.Join(ws, ".git/worktrees/tree/config.worktree"), hostile(mark))
		}},
		{"an included file", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "config", "include.path", "../settings")
			testfile.WriteFile(t, filepath.Join(ws, "settings"), hostile(mark))
		}},
		{"an included file under a condition", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "config", "includeIf.onbranch:main.path", "../settings")
			testfile.WriteFile(t, filepath.Join(ws, "settings"), hostile(mark))
		}},
		{"a submodule", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			makeRepository(t, filepath.Join(filepath.Dir(ws), "other"))
			runGit(t, ws, "submodule", "add", "-q", filepath.Join(filepath.Dir(ws), "other"), "sub")
			appendFile(t, filepath.Join(ws, ".git/modules/sub/config"), hostile(mark))
			testfile.WriteFile(t, filepath.Join(ws, ".git/modules/sub/info/attributes"), hostileAttributes)
			testfile.WriteFile(t, filepath.Join(ws, "sub/a.txt"), "x changed\n")
		}},
		{"an embedded repository that is in the index", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			makeRepository(t, filepath.Join(ws, "sub"))
			runGit(t, ws, "add", "sub")
			appendFile(t, filepath.Join(ws, "sub/.git/config"), hostile(mark))
		}},
		{"a hook", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			addHook(t, filepath.Join(ws, ".git/hooks/post-index-change"), mark)
		}},
		{"a hook elsewhere", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "config", "core.hooksPath", "hooks")
			addHook(t, filepath.Join(ws, "hooks/post-index-change"), mark)
		}},
		{"a partial clone", ".", func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			runGit(t, ws, "config", "remote.origin.url", ".")
			runGit(t, ws, "config", "remote.origin.promisor", "true")
			runGit(t, ws, "config", "remote.origin.uploadpack", "touch '"+mark+"'; false")
			runGit(t, ws, "config", "extensions.partialClone", "origin")
		}},
	}
}

// gitLayouts are ways in which a repository comes with programs.
func gitLayouts() []gitLayout {
	list := slices.Concat(plainLayouts(), bareLayouts(), nestedLayouts())
	inConfig := func(keys ...string) func(t *testing.T, ws, mark string) {
		return func(t *testing.T, ws, mark string) {
			makeRepository(t, ws)
			for _, key := range keys {
				runGit(t, ws, "config", key, "touch '"+mark+"'; false")
			}
			testfile.WriteFile(t, filepath.Join(ws, ".git/info/attributes"), hostileAttributes)
		}
	}
	for _, key := range []string{"core.fsmonitor", "diff.external", "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.process", "filter.x.smudge", "core.pager", "pager.diff", "core.sshCommand",
		"gpg.program", "gpg.ssh.program", "alias.st", "core.editor", "credential.helper", "credential.https://example.com.helper", "merge.x.driver", "trailer.x.command", "trailer.x.cmd", "core.askPass",
		"interactive.diffFilter", "core.alternateRefsCommand", "sequence.editor", "difftool.x.cmd", "remote.origin.vcs", "uploadpack.packObjectsHook"} {
		list = append(list, gitLayout{key, ".", inConfig(key)})
	}
	return list
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func addHook(t *testing.T, path, mark string) {
	t.Helper()
	testfile.WriteFile(t, path, "#!/bin/sh\ntouch '"+mark+"'\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// newHome returns a workspace and a policy, and makes git read no configuration of the person who runs the test.
func newHome(t *testing.T) (ws string, p permission.Policy) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(base, "home"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(base, "home/.config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	ws = filepath.Join(base, "work")
	testfile.WriteFile(t, filepath.Join(ws, ".keep"), "")
	return ws, permission.Policy{Workspace: ws, Home: filepath.Join(base, "home")}
}

// No layout of a repository makes a command of git that only reads run a program without a question, in any mode; and git itself runs none in the environment
// of commands that no one allowed.
func TestRepositoriesNameNoPrograms(t *testing.T) {
	testneed.RequirePrograms(t, "git", "bash")
	for _, l := range gitLayouts() {
		t.Run(l.name, func(t *testing.T) {
			ws, p := newHome(t)
			mark := filepath.Join(filepath.Dir(ws), "mark")
			l.build(t, ws, mark)
			os.Remove(mark) // making it may have run a program
			decided := func(mode permission.Mode, text string) {
				p.Mode = mode
				d := decide(t, p, shellTool, args(t, "command", text))
				if d.Verdict == permission.Allow {
					t.Fatalf("mode %s: %q runs", mode, text)
				}
				if mode == permission.ModeEdits && len(d.Grant) > 0 && strings.Contains(strings.Join(d.Reasons, " "), "may run a program") {
					t.Errorf("%q may be allowed for longer than once: %q", text, d.Grant)
				}
			}
			for i, look := range gitLooks {
				rest := strings.TrimPrefix(look, "git ")
				spelled := []string{look, "ls; " + look + " | head -n 1", "bash -c '" + look + "'", "env " + look, "timeout 5 " + look}
				if l.sub != "." {
					spelled = []string{"cd " + l.sub + " && " + look, "git -C " + l.sub + " " + rest, "cd ./" + l.sub + "/; " + look, "(cd '" + l.sub + "'; " + look + ")", "git -C . -C " + l.sub + " " + rest,
						"cd " + l.sub + " && bash -c '" + look + "'", "pushd " + l.sub + " && " + look}
				}
				if i > 2 && strings.Contains(l.name, ".") && l.sub == "." {
					break // all layouts with one setting are alike
				}
				if i > 2 {
					spelled = spelled[i%len(spelled):][:1] // each look once more, and the first ones in each spelling
				}
				for _, text := range spelled {
					decided(permission.ModeEdits, text)
				}
				if i == 0 {
					decided(permission.ModePlan, spelled[0])
					decided(permission.ModeAsk, spelled[0])
				}
			}
		})
	}
}

// In the environment of commands that no one allowed, git asks no monitor, runs no hook and takes no directory without .git for a repository.
func TestHardenedEnvironment(t *testing.T) {
	testneed.RequirePrograms(t, "git", "bash")
	for _, l := range gitLayouts() {
		if !slices.Contains([]string{"core.fsmonitor", "a hook", "a hook elsewhere", "a bare repository with executable files", "a bare repository with commondir", "a bare repository", "a link to a bare repository"}, l.name) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			ws, _ := newHome(t)
			mark := filepath.Join(filepath.Dir(ws), "mark")
			l.build(t, ws, mark)
			run := func(env []string, touched time.Time) {
				os.Remove(mark)
				if err := os.Chtimes(filepath.Join(ws, ".keep"), touched, touched); err != nil { // git writes its index then, which runs a hook
					t.Fatal(err)
				}
				for _, look := range gitLooks {
					c := exec.Command("bash", "-c", "cd "+l.sub+" && "+look)
					c.Dir, c.Env = ws, env
					_ = c.Run() // git refuses some of them
				}
			}
			env := append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=somebody")
			run(gitrepo.HardenEnvironment(env), time.Unix(1e9, 0))
			if _, err := os.Stat(mark); err == nil {
				t.Error("a program ran")
			}
			if run(env, time.Unix(2e9, 0)); l.name != "a bare repository" && l.name != "a link to a bare repository" {
				if _, err := os.Stat(mark); err != nil {
					t.Error("the layout runs nothing anywhere: it tests nothing")
				}
			}
			c := exec.Command("git", "config", "user.name")
			c.Env = gitrepo.HardenEnvironment(env)
			if out, err := c.Output(); err != nil || string(out) != "somebody\n" {
				t.Errorf("the settings of the environment are lost: %q %v", out, err)
			}
		})
	}
}

// A repository that a person cloned does not ask, with the settings that git and common programs write, in a linked working tree, and with submodules.
func TestOrdinaryRepositoriesDoNotAsk(t *testing.T) {
	testneed.RequirePrograms(t, "git", "bash")
	ws, p := newHome(t)
	base := filepath.Dir(ws)
	testfile.WriteFile(t, filepath.Join(base, "home/.gitconfig"), "[core]\n\tpager = less -R\n\teditor = "+base+"/home/bin/ed\n[diff]\n\texternal = difft\n[alias]\n\tlg = log origin/main..HEAD\n[filter \"lfs\"]\n\tprocess = git-lfs filter-process\n[credential]\n\thelper = store\n")
	makeRepository(t, filepath.Join(base, "origin"))
	makeRepository(t, filepath.Join(base, "library"))
	os.RemoveAll(ws)
	runGit(t, base, "clone", "-q", "origin", "work")
	runGit(t, ws, "submodule", "add", "-q", filepath.Join(base, "library"), "lib")
	runGit(t, ws, "commit", "-q", "-m", "with a library")
	runGit(t, ws, "worktree", "add", "-q", filepath.Join(base, "tree"))
	for _, pair := range [][2]string{{"user.email", "a@example.com"}, {"core.hooksPath", ".husky/_"}, {"pull.rebase", "true"}, {"branch.main.vscode-merge-base", "origin/main"}, {"core.fsmonitor", "true"},
		{"remote.pushdefault", "origin"}, {"push.autoSetupRemote", "true"}, {"gc.auto", "0"}, {"pager.branch", "false"}, {"commit.gpgsign", "true"}, {"submodule.recurse", "true"}} {
		runGit(t, ws, "config", pair[0], pair[1])
	}
	testfile.WriteFile(t, filepath.Join(ws, "src/x.go"), "")
	for _, at := range []string{ws, filepath.Join(base, "tree")} {
		p.Workspace = at
		for _, look := range gitLooks {
			if d := decide(t, p, shellTool, args(t, "command", look)); d.Verdict != permission.Allow {
				t.Errorf("in %s: %q asks: %q", at, look, d.Reasons)
			}
		}
	}
	p.Workspace = ws
	for _, text := range []string{"cd src && git status", "git -C src log -p", "git -C lib diff", "cd lib && git show", "git config --local --list", "git config --local --get remote.origin.url", "git config --get-regexp --local branch"} {
		if d := decide(t, p, shellTool, args(t, "command", text)); d.Verdict != permission.Allow {
			t.Errorf("%q asks: %q", text, d.Reasons)
		}
	}
	p.Workspace = t.TempDir()
	if d := decide(t, p, shellTool, args(t, "command", "git status")); d.Verdict != permission.Allow {
		t.Errorf("without a repository: %q", d.Reasons)
	}
}

// What git config shows of the user, of the system or of any other file asks, and so does everything that names another repository.
func TestGitOutsideOfRepositoryAsks(t *testing.T) {
	testneed.RequirePrograms(t, "git")
	ws, p := newHome(t)
	makeRepository(t, ws)
	makeRepository(t, filepath.Join(filepath.Dir(ws), "other"))
	testfile.WriteFile(t, filepath.Join(ws, "settings"), "[user]\n\tname = x\n")
	for _, text := range []string{"git config --list", "git config -l", "git config -l --show-origin", "git config --global --list", "git config --system -l", "git config --get github.token", "git config --get-all github.token",
		"git config --get-regexp token", "git config --get-urlmatch http https://example.com", "git config github.token", "git config --list --file ~/.gitconfig", "git config -f ../x --list", "git config --local --includes --list",
		"git config --blob HEAD:x --list", "git config --local --global --list", "git config list", "git config get x.y", "git config --local --list --file=settings", "git config --lis",
		"git --git-dir ../other/.git log", "git --git-dir=../other/.git log", "git --work-tree=.. status", "git -c core.fsmonitor=x status", "git --config-env=core.fsmonitor=X status", "GIT_DIR=../other/.git git log",
		"env GIT_DIR=../other/.git git log", "export GIT_DIR=../other/.git; git log", "git -C ../other log", "cd ../other && git log", "cd missing && git log", "git -C missing log", "git -C $x log", "HOME=. git log",
		"XDG_CONFIG_HOME=. git log", "git --exec-path=. log", "git --bare log", "git --namespace=x log"} {
		if d := decide(t, p, shellTool, args(t, "command", text)); d.Verdict != permission.Ask {
			t.Errorf("%q: %v", text, d.Verdict)
		}
	}
}
