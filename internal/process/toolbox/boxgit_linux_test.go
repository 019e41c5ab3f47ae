package toolbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/proc"
	"raddle.dev/tool/permission"
)

// TestGitInBox does with git what a session of work does.
func TestGitInBox(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	base := t.TempDir()
	workspace, private := filepath.Join(base, "work"), filepath.Join(base, "private")
	for _, dir := range []string{workspace, private} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	policy := &permission.Policy{Workspace: workspace}
	b, err := box.New(box.Spec{Workspace: workspace, Private: private, Protected: policy.BoxReason})
	if errors.Is(err, box.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(script string, held int) {
		t.Helper()
		stay, err := b.EnterBox(t.Context(), proc.Command{Path: "bash", Args: []string{"-ec", script}, Dir: workspace, Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + base, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := proc.Run(t.Context(), stay.Command)
		if err != nil {
			t.Fatalf("%s: %v %s", script, err, res.Stderr)
		}
		o, err := stay.LeaveBox(nil)
		if err != nil || len(o.Held) != held {
			t.Errorf("%s: held %v, %v", script, o.Held, err)
		}
	}
	run(`git init -q -b main .; echo a > a; git add a; git commit -qm a`, 0)
	run(`git checkout -q -b topic; echo b > b; git add b; git commit -qm b; echo c >> b; git stash -q; git stash pop -q; git checkout -q b; git checkout -q main; git merge -q topic; git branch -d topic; git gc -q; git fsck`, 0)
	run(`git worktree add -q wt; cd wt; echo d > d; git add d; git commit -qm d`, 0)
	run(`cd wt; git status --short; echo e > e; git add e; git commit -qm e`, 0)
	run(`git clone -q "file://$PWD" copy; cd copy; git log --oneline | grep a; git checkout -q -b x; git rebase -q main`, 0)
	run(`git -C copy config core.fsmonitor ./evil; git init -q other; git -C other config alias.x '!x'`, 2)
	run(`git log --oneline wt --; git -C copy status; ! git -C copy config core.fsmonitor`, 0)
}
