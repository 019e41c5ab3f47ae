//go:build linux && (amd64 || arm64)

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// boxedJobs is an agent that starts commands in the background which nothing but the box lets run.
const boxedJobs = `
-- home/.ssh/id --
SECRET-KEY
-- here/a.txt --
one
-- here/build.sh --
cat ~/.ssh/id
echo two >> a.txt
mkdir -p .git/hooks out
echo x > .git/hooks/pre-commit
echo built > out/app
touch ~/new
(setsid sleep 98763 &) > /dev/null 2>&1
echo built
until [ -e $TMPDIR/go ]; do sleep 0.05; done
echo over
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
inject_user_instructions: false
global_tools: [execute_command, command_start, command_output, command_input, command_stop]
-- dev/transcript.yaml --
- {match: build, turn: 1, tool_calls: [{name: command_start, args: {command: "bash build.sh", until: built}}]}
- {match: build, turn: 2, tool_calls: [{name: execute_command, args: {command: "X=1; cat a.txt; ls out; echo apart; echo s >> s.txt; touch $TMPDIR/go"}}]}
- {match: build, turn: 3, tool_calls: [{name: command_output, args: {job: job-1, wait: 20}}]}
- {match: build, turn: 4, text: "RESULT={{outcome.-3}}|{{outcome.-2}}|{{outcome.-1}}"}
- {match: stop, turn: 1, tool_calls: [{name: command_start, args: {command: "bash build.sh", until: built}}]}
- {match: stop, turn: 2, tool_calls: [{name: command_stop, args: {job: job-1}}]}
- {match: stop, turn: 3, text: "RESULT={{outcome.-1}}"}
- {match: leave, turn: 1, tool_calls: [{name: command_start, args: {command: "bash build.sh", until: built}}]}
- {match: leave, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: serve, turn: 1, tool_calls: [{name: command_start, args: {command: "make it", outside_box: true}}]}
- {match: serve, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: reach, turn: 1, tool_calls: [{name: command_start, args: {command: "make it", hosts: "one.example"}}]}
- {match: reach, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: hang, turn: 1, tool_calls: [{name: command_start, args: {command: "echo half > half.txt; setsid sleep 98764 & echo up; sleep 98764", until: up}}]}
- {match: hang, turn: 2, tool_calls: [{name: execute_command, args: {command: "X=1; sleep 98764; true"}}]}
- {match: hang, turn: 3, tool_calls: [{name: command_output, args: {}}]}
- {match: hang, turn: 4, text: "RESULT={{outcome.-1}}"}
`

// A command in the background runs in the box where execute_command would: what it wrote is in the workspace when it has ended, but for what is protected.
func TestJobInTheBox(t *testing.T) {
	t.Parallel()
	w := unpackBoxed(t, boxedJobs)
	out, err := w.command("run", "--headless", "../dev", "build").CombinedOutput()
	_, text, _ := strings.Cut(string(out), "RESULT=")
	parts := strings.Split(text, "|")
	if err != nil || len(parts) < 3 {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(parts[0], "running for") || !strings.Contains(parts[0], "It runs in a box") || strings.Contains(parts[0], "SECRET") {
		t.Errorf("start: %s", parts[0])
	}
	if !strings.Contains(parts[1], "one") || !strings.Contains(parts[1], "apart") || strings.Contains(parts[1], "two") || strings.Contains(parts[1], "app") {
		t.Errorf("another command meanwhile: %s", parts[1])
	}
	if last := parts[2]; !strings.Contains(last, "exited with code 0") || !strings.Contains(last, ".git/hooks/pre-commit git reads programs and places from it") {
		t.Errorf("the end: %s", last)
	}
	if data, _ := os.ReadFile(filepath.Join(w.dir, "a.txt")); string(data) != "one\ntwo\n" || !w.exists("out/app") || !w.exists("s.txt") || w.exists(".git/hooks/pre-commit") || w.exists("../home/new") {
		t.Errorf("the workspace is wrong, and a.txt is %q", data)
	}
	if runsCommand("98763") {
		t.Error("a process of the command is left")
	}
	r := w.run("runs", "show", "last", "--why")
	if !strings.Contains(r.out, "allowed in the box: bash build.sh runs in the box") {
		t.Errorf("%s%s", r.out, r.err)
	}
}

// A command that is stopped, and one that is ended with the run, leave in the workspace what they wrote.
func TestJobInTheBoxIsStopped(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{"stop", "leave"} {
		w := unpackBoxed(t, boxedJobs)
		out, err := w.command("run", "--headless", "../dev", prompt).CombinedOutput()
		if err != nil || !w.exists("out/app") || w.exists(".git/hooks/pre-commit") || prompt == "stop" && !strings.Contains(string(out), "was stopped") {
			t.Errorf("%s: %v: %s", prompt, err, out)
		}
	}
}

// Outside of the box, and to a host that no rule allows, a command in the background asks as execute_command does.
func TestJobOutsideTheBoxAsks(t *testing.T) {
	t.Parallel()
	w := unpackBoxed(t, boxedJobs)
	for _, prompt := range []string{"serve", "reach"} {
		out, err := w.command("run", "--headless", "../dev", prompt).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "needs the consent of a person") || strings.Contains(string(out), "job-1") {
			t.Errorf("%s: %v: %s", prompt, err, out)
		}
	}
	if out, err := w.command("run", "--headless", "--no-box", "../dev", "build").CombinedOutput(); err != nil || strings.Contains(string(out), "job-1\",\"state") || w.exists("out") {
		t.Errorf("without a box: %v: %s", err, out)
	}
}

// If raddle is killed while a command lives in the box, nothing of it is in the workspace, no process is left, and the next process says how it ended.
func TestJobInTheBoxIsKilled(t *testing.T) {
	t.Parallel()
	w := unpackBoxed(t, boxedJobs)
	cmd := w.command("run", "--headless", "../dev", "hang")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	half := filepath.Join(w.dir, "..", ".state", "raddle", "boxes", "*", "*", "*", "upper", "half.txt")
	await(t, "the command has written", func() bool { found, _ := filepath.Glob(half); return len(found) == 1 })
	await(t, "the second command runs", func() bool { return runsCommand("X=1; sleep 98764; true") })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	await(t, "all processes have ended", func() bool { return !runsCommand("98764") })
	if w.exists("half.txt") {
		t.Error("the workspace has a half of what the command does")
	}
	out, err := w.command("resume", "last", "--in-doubt", "skip").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ended when raddle was stopped") || w.exists("half.txt") || runsCommand("98764") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = w.command("run", "--headless", "../dev", "stop").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if found, _ := filepath.Glob(half); len(found) > 0 {
		t.Errorf("the layer is left: %v", found)
	}
}
