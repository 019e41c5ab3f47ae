//go:build unix

package builtin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// jobDir names, in the environment of a copy of the test binary, the directory of records with which it starts a command.
const jobDir = "RADDLE_JOB_TEST_DIR"

// TestMain starts a command with the records of a directory, says so, and waits to be killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(jobDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	h := builtin.Host{Workspace: dir, Env: os.Environ(), Jobs: &builtin.Jobs{Dir: filepath.Join(dir, "jobs")}}
	start, _ := builtin.Lookup("command_start", h)
	args, _ := json.Marshal(object{"command": os.Getenv("COMMAND"), "until": "ready\n"})
	r, err := start.Run(context.Background(), tool.Call{Key: "first", Args: args})
	fmt.Println(r.Text(), err)
	select {}
}

// report is what the model reads about a background command.
type report struct {
	Job, State, Output, Note, Command string
	Failed                            string `json:"tool_call_error"`
	Jobs                              []report
}

// jobs returns a host with background commands, which end with the test.
func jobs(t *testing.T) builtin.Host {
	t.Helper()
	testneed.RequirePrograms(t, "bash", "mkfifo")
	h := place(t, nil)
	h.Jobs = &builtin.Jobs{Dir: t.TempDir()}
	t.Cleanup(func() { h.Jobs.Close() })
	return h
}

func ask(t *testing.T, h builtin.Host, name string, args object) report {
	t.Helper()
	return askAs(t, h, "", name, args)
}

// askAs makes a call with a key.
func askAs(t *testing.T, h builtin.Host, key, name string, args object) (r report) {
	t.Helper()
	result, err := lookup(t, h, name).Run(t.Context(), tool.Call{Key: key, Args: raw(t, args)})
	if err != nil {
		return report{Failed: err.Error()}
	}
	if err := json.Unmarshal([]byte(result.Text()), &r); err != nil {
		t.Fatalf("%s: %v: %s", name, err, result.Text())
	}
	return r
}

func TestBackgroundCommand(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	r := ask(t, h, "command_start", object{"command": "echo ready; echo and >&2; read -r line; echo got $line; cat; exit 3", "input": true, "until": "and\n"})
	if r.Job != "job-1" || !strings.HasPrefix(r.State, "running for") || !strings.Contains(r.Output, "and\n") {
		t.Fatalf("start: %+v", r)
	}
	if !strings.Contains(r.Output, "ready\n") { // the two outputs are two pipes
		r = ask(t, h, "command_output", object{"job": "job-1", "until": "ready\n"})
	}
	if !strings.Contains(r.Output, "ready\n") {
		t.Errorf("the first line: %+v", r)
	}
	if r = ask(t, h, "command_output", object{"job": "job-1"}); r.Output != "" {
		t.Errorf("the same output again: %+v", r)
	}
	if r = ask(t, h, "command_input", object{"job": "job-1", "text": "first", "until": "got"}); !strings.Contains(r.Output, "got") || r.Note != "" {
		t.Errorf("input: %+v", r)
	}
	if r = ask(t, h, "command_input", object{"job": "job-1", "text": "rest", "end": true, "wait": 20}); !strings.HasSuffix(r.Output, "rest\n") || r.State != "exited with code 3" {
		t.Errorf("the end of the input: %+v", r)
	}
	if r = ask(t, h, "command_input", object{"job": "job-1", "text": "late"}); r.Failed != "job-1 reads nothing any more: it exited with code 3" {
		t.Errorf("input after the end: %+v", r)
	}
	if r = ask(t, h, "command_stop", object{"job": "job-1"}); r.State != "exited with code 3" {
		t.Errorf("stop after the end: %+v", r)
	}
}

// A command without an input reads the end of one, so that rg and cat do not wait for ever.
func TestBackgroundCommandHasNoInput(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	if r := ask(t, h, "command_start", object{"command": "cat; echo over; read -r x < <(sleep 60)", "until": "over"}); r.Output != "over\n" {
		t.Errorf("%+v", r)
	}
	if r := ask(t, h, "command_input", object{"job": "job-1", "text": "x"}); r.Failed != "job-1 has no input: start it with input: true" {
		t.Errorf("%+v", r)
	}
}

// What a command has started ends with it, also what ignores SIGTERM and has left the group.
func TestStopEndsEverything(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "setsid", "python3")
	h := jobs(t)
	pipe := filepath.Join(h.Workspace, "alive")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f, err := os.Open(pipe) // its end is that of the last writer
		if err == nil {
			bufio.NewReader(f).ReadString(0)
			f.Close()
		}
	}()
	const child = `exec python3 -c 'import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print("ready", flush=True); signal.pause()'`
	r := ask(t, h, "command_start", object{"command": "exec 3>alive; setsid bash -c '" + strings.ReplaceAll(child, "'", `'\''`) + "' & wait", "until": "ready\n"})
	if r.Output != "ready\n" {
		t.Fatalf("%+v", r)
	}
	if r = ask(t, h, "command_stop", object{"job": "job-1"}); r.State != "was stopped" {
		t.Errorf("%+v", r)
	}
	<-ended
}

// A command that ends at once is no running one, and one that cannot be started is none.
func TestBackgroundCommandEndsAtOnce(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	for command, want := range map[string]string{"exit 4": "exited with code 4", "kill -9 $$": "was ended by SIGKILL", "true": "exited with code 0"} {
		if r := ask(t, h, "command_start", object{"command": command, "wait": 20}); r.State != want {
			t.Errorf("%s: %+v", command, r)
		}
	}
	if r := ask(t, h, "command_start", object{"command": "sleep 60", "timeout": 1, "wait": 20}); r.State != "was ended at its limit of 1s" {
		t.Errorf("%+v", r)
	}
	none := h
	none.Env, none.Jobs = []string{"PATH=" + t.TempDir()}, &builtin.Jobs{Dir: t.TempDir()}
	if r := ask(t, none, "command_start", object{"command": "ls"}); !strings.HasPrefix(r.Failed, "Unable to run sh") {
		t.Errorf("%+v", r)
	}
	if list := none.Jobs.List(""); len(list) != 0 {
		t.Errorf("a command that was not started is listed: %+v", list)
	}
}

// A model that has lost the handle, such as by a summary of the conversation, finds it again. Handles of other runs are unknown.
func TestHandlesAreThoseOfTheRun(t *testing.T) {
	t.Parallel()
	type thread struct{}
	h := jobs(t)
	h.Jobs.Thread = func(ctx context.Context) string { name, _ := ctx.Value(thread{}).(string); return name }
	ask(t, h, "command_start", object{"command": "sleep 60", "wait": 0})
	if r := ask(t, h, "command_output", object{}); len(r.Jobs) != 1 || r.Jobs[0].Job != "job-1" || r.Jobs[0].Command != "sleep 60" {
		t.Errorf("%+v", r)
	}
	other := context.WithValue(t.Context(), thread{}, "other")
	for name, args := range map[string]object{"command_output": {"job": "job-1"}, "command_stop": {"job": "job-1"}, "command_input": {"job": "job-1", "text": "x"}} {
		if _, err := lookup(t, h, name).Run(other, tool.Call{Args: raw(t, args)}); err == nil || !strings.HasPrefix(err.Error(), "there is no job-1") {
			t.Errorf("%s of another run: %v", name, err)
		}
	}
	if r := ask(t, h, "command_stop", object{"job": "../../x"}); r.Failed != "there is no ../../x in this run, only job-1" {
		t.Errorf("%+v", r)
	}
	if list := h.Jobs.List(""); len(list) != 1 || !list[0].Running {
		t.Errorf("%+v", list)
	}
	h.Jobs.EndThread("")
	if list := h.Jobs.List(""); len(list) != 1 || list[0].Running || list[0].State != "was ended with the run" {
		t.Errorf("%+v", list)
	}
}

// A call that is repeated with its key starts and writes nothing again.
func TestRepeatedCallsDoNothingAgain(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	for range 2 {
		if r := askAs(t, h, "start", "command_start", object{"command": "echo x >> count; while read -r line; do echo got $line; done", "input": true, "wait": 0}); r.Job != "job-1" {
			t.Fatalf("%+v", r)
		}
		askAs(t, h, "input", "command_input", object{"job": "job-1", "text": "line", "wait": 0})
	}
	if r := askAs(t, h, "end", "command_input", object{"job": "job-1", "end": true, "wait": 20}); r.State != "exited with code 0" {
		t.Fatalf("%+v", r)
	}
	list := h.Jobs.List("")
	count, err := os.ReadFile(filepath.Join(h.Workspace, "count"))
	if err != nil || string(count) != "x\n" || len(list) != 1 {
		t.Errorf("%q, %v, %+v", count, err, list)
	}
	var record struct{ Output string }
	read(t, h, &record)
	if record.Output != "got line\n" {
		t.Errorf("it has printed %q", record.Output)
	}
}

// read reads the only record.
func read(t *testing.T, h builtin.Host, record any) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.Jobs.Dir, "*", "job-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("records: %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(text, record)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Output without an end keeps its beginning and its end, and says how much is between. A line that was not complete is returned again.
func TestBackgroundOutput(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	h.Limit = 1000
	h.Jobs.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	r := ask(t, h, "command_start", object{"command": `echo begin; seq 10000; echo hunter2; printf 'Pass\303'; read -r x; printf '\274word\n'; sleep 60`, "input": true, "until": "Pass"})
	if !strings.HasPrefix(r.Output, "begin\n1\n") || !strings.Contains(r.Output, " bytes left out ...]\n") || !strings.HasSuffix(r.Output, "hunter2\nPass\uFFFD") || len(r.Output) > 1100 {
		t.Fatalf("%d bytes: %q", len(r.Output), r.Output)
	}
	if r = ask(t, h, "command_input", object{"job": "job-1", "text": "go", "until": "word\n"}); r.Output != "Passüword\n" {
		t.Errorf("%+v", r)
	}
	h.Jobs.Close()
	var record struct{ Output, End string }
	if read(t, h, &record); !strings.HasSuffix(record.Output, "[redacted]\nPassüword\n") || record.End != "was ended with the run" {
		t.Errorf("%+v", record)
	}
}

// A call that is interrupted while it waits leaves the command alone.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	ctx, cancel := context.WithCancel(t.Context())
	call := tool.Call{Args: raw(t, object{"command": "echo shown; sleep 60", "wait": 60}), Output: func(string) { cancel() }}
	if _, err := lookup(t, h, "command_start").Run(ctx, call); err != context.Canceled {
		t.Fatalf("%v", err)
	}
	if list := h.Jobs.List(""); len(list) != 1 || !list[0].Running || list[0].Printed != "shown" {
		t.Errorf("%+v", list)
	}
}

// After raddle was killed, what its commands had started is ended, the next process knows what has happened, and nothing is started again.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "setsid", "python3")
	h := jobs(t)
	h.Jobs.Dir = filepath.Join(h.Workspace, "jobs")
	alive := filepath.Join(h.Workspace, "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f, err := os.Open(alive)
		if err == nil {
			bufio.NewReader(f).ReadString(0)
			f.Close()
		}
	}()
	const command = `echo x >> count; exec 3>alive; setsid python3 -c 'import signal; print("server is ready", flush=True); signal.pause()' & wait`
	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), jobDir+"="+h.Workspace, "COMMAND="+command)
	out, err := first.StdoutPipe()
	if err == nil {
		err = first.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if !strings.Contains(line, "server is ready") {
		t.Fatalf("the first process: %s", line)
	}
	if r := ask(t, h, "command_output", object{"job": "job-1"}); !strings.HasPrefix(r.State, "belongs to another process of raddle") {
		t.Errorf("while the other process lives: %+v", r)
	}
	var record struct{ Output string }
	for deadline := time.Now().Add(20 * time.Second); !strings.HasSuffix(record.Output, "\n") && time.Now().Before(deadline); { // it is written a second after the output
		read(t, h, &record)
	}
	first.Process.Kill()
	first.Wait()

	const lost = "ended when raddle was stopped; it is not started again by itself"
	if r := askAs(t, h, "first", "command_start", object{"command": command}); r.Job != "job-1" || r.State != lost || r.Output != "server is ready\n" {
		t.Errorf("the repeated start: %+v", r)
	}
	<-ended
	if r := ask(t, h, "command_output", object{"job": "job-1"}); r.State != lost || r.Output != "server is ready\n" || r.Command != command {
		t.Errorf("%+v", r)
	}
	if r := ask(t, h, "command_input", object{"job": "job-1", "text": "x"}); r.Failed != "job-1 reads nothing any more: it "+lost {
		t.Errorf("%+v", r)
	}
	if r := ask(t, h, "command_stop", object{"job": "job-1"}); r.State != lost {
		t.Errorf("%+v", r)
	}
	if r := ask(t, h, "command_start", object{"command": "true", "wait": 20}); r.Job != "job-2" {
		t.Errorf("a handle is used again: %+v", r)
	}
	if count, err := os.ReadFile(filepath.Join(h.Workspace, "count")); err != nil || string(count) != "x\n" {
		t.Errorf("the command has run again: %q, %v", count, err)
	}
}

// A command in the background is judged like the same text of execute_command, by the rules for either.
func TestBackgroundIsJudgedLikeExecute(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	rules, err := permission.LoadRules("rules.yaml", []byte("allow: [execute_command(npm run *)]\ndeny: [execute_command(rm *), command_start(curl *)]"))
	if err != nil {
		t.Fatal(err)
	}
	policy := permission.Policy{Rules: []permission.Rules{rules}, Workspace: h.Workspace}
	for _, command := range []string{"ls", "npm run dev", "rm x", "python3 x.py", "sleep 301", "seq 99999999999", "echo $(rm x)", "jq -n 'def f: f; f'", "cat /etc/passwd", "", "if"} {
		call := tool.Call{Args: raw(t, object{"command": command})}
		want, wantErr := policy.Decide(t.Context(), lookup(t, h, "execute_command"), call)
		got, err := policy.Decide(t.Context(), lookup(t, h, "command_start"), call)
		if (err == nil) != (wantErr == nil) || got.Verdict != want.Verdict || fmt.Sprint(got.Reasons, got.Grant, got.Does, got.Allowed, got.Unasked) != fmt.Sprint(want.Reasons, want.Grant, want.Does, want.Allowed, want.Unasked) {
			t.Errorf("%s: %+v, want %+v", command, got, want)
		}
	}
	for name, want := range map[string]permission.Verdict{"command_input": permission.Ask, "command_output": permission.Allow, "command_stop": permission.Allow} {
		if d, err := policy.Decide(t.Context(), lookup(t, h, name), tool.Call{Args: raw(t, object{"job": "job-1", "text": "x"})}); err != nil || d.Verdict != want {
			t.Errorf("%s: %v %v, want %v", name, d.Verdict, err, want)
		}
	}
	if d, err := policy.Decide(t.Context(), lookup(t, h, "command_start"), tool.Call{Args: raw(t, object{"command": "curl x"})}); err != nil || d.Verdict != permission.Deny {
		t.Errorf("a rule about command_start: %v, %v", d.Verdict, err)
	}
}

// Each run has a limited number of commands.
func TestTooManyBackgroundCommands(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	for n := 1; ; n++ {
		r := ask(t, h, "command_start", object{"command": "sleep 60", "wait": 0})
		if r.Failed != "" {
			if n != 17 || !strings.Contains(r.Failed, "stop one with command_stop") {
				t.Errorf("%d: %+v", n, r)
			}
			return
		}
	}
}
