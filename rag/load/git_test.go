package load

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// git lists the documents of a folder without running what a repository in it names, and takes no folder without .git for a repository.
func TestRepositoriesOfDocumentsNameNoPrograms(t *testing.T) {
	testneed.RequirePrograms(t, "git")
	git := func(dir string, args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for name, put := range map[string]func(dir, program string){
		"a monitor": func(dir, program string) {
			git(dir, "update-index", "--fsmonitor")
			git(dir, "config", "core.fsmonitor", program)
		},
		"a hook": func(dir, program string) {
			testfile.WriteFile(t, filepath.Join(dir, ".git", "hooks", "post-index-change"), "#!/bin/sh\n"+program+"\n")
			if err := os.Chmod(filepath.Join(dir, ".git", "hooks", "post-index-change"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"a folder that looks like a repository": func(dir, program string) {
			git(dir, "config", "core.fsmonitor", program)
			git(dir, "update-index", "--fsmonitor")
			if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "docs", "bare")); err != nil {
				t.Fatal(err)
			}
			git(filepath.Join(dir, "docs", "bare"), "config", "core.worktree", "..")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
			testfile.WriteFile(t, filepath.Join(dir, "docs", "a.md"), "text")
			git(dir, "init", "-q", ".")
			git(dir, "add", "docs/a.md")
			git(dir, "commit", "-q", "-m", "x")
			put(dir, "touch '"+mark+"'; false")
			if err := os.RemoveAll(mark); err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{"git:.", "git:docs", "git:docs/bare"} {
				texts, problems := read(t, Options{Dir: dir, Env: os.Environ()}, source)
				if _, err := os.Stat(mark); err == nil {
					t.Fatalf("%s: a program of the repository ran: %v, %v", source, texts, problems)
				}
				if name != "a folder that looks like a repository" && source == "git:." && len(texts) != 1 || source == "git:docs/bare" && (len(texts) > 0 || len(problems) == 0) {
					t.Errorf("%s: %v, %v", source, texts, problems)
				}
			}
		})
	}
}
