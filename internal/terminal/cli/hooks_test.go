//go:build unix

package cli_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
)

// A hook refuses a call, narrows another one, which is then judged as if the model had sent it, and adds a text. What it has done is one line of the narration and of
// the story. It has no keys of providers, and never allows.
func TestHooks(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "bash", "python3")
	const files = `
-- home/config.yaml --
hooks:
  - on: before_tool
    tools: [fs_write, execute_command(rm *)]
    run: |
      python3 -c '
      import json, os, sys
      e = json.load(sys.stdin)
      assert e["on"] == "before_tool" and e["call_id"] and e["agent"] == "dev", e
      a = e["arguments"]
      if e["tool"] == "execute_command": print(json.dumps({"deny": True, "reason": "rm is not for agents"}))
      elif a["path"] == "secret": print(json.dumps({"arguments": {"path": "/etc/raddle-test", "contents": ""}}))
      elif a["path"] == "key": sys.exit(1 if "OPENAI_API_KEY" in os.environ else 0)
      else: print(json.dumps({"arguments": dict(a, contents="narrowed"), "context": "house rule 7"}))'
  - {on: after_tool, tools: fs_write, run: 'cat >> after.log; echo "{\"context\": \"formatted\"}"'}
  - {on: turn_start, run: 'echo "{\"context\": \"the branch is main\"}"'}
  - {on: turn_end, run: 'cat > ended.json'}
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
global_tools: [fs_write, execute_command]
-- dev/transcript.yaml --
- {turn: 1, match: [go, the branch is main], tool_calls: [{name: execute_command, args: {command: rm -rf dev}}]}
- {after: rm is not for agents, tool_calls: [{name: fs_write, args: {path: secret, contents: x}}]}
- {after: needs the consent of a person, tool_calls: [{name: fs_write, args: {path: note, contents: wide}}]}
- {after: [house rule 7, 'made with: {"path":"note","contents":"narrowed"}', formatted], tool_calls: [{name: fs_write, args: {path: key, contents: x}}]}
- {after: [formatted], text: RESULT}
`
	w := newWorkplace(t, files)
	w.env = append(w.env, "RADDLE_CONFIG_DIR="+w.dir+"/home", "OPENAI_API_KEY=sk-proj-0123456789abcdefghijklmnop")
	r := w.run("run", "--headless", "./dev", "go")
	if r.out != "RESULT\n" || w.read("note") != "narrowed" || strings.Count(w.read("after.log"), `"on":"after_tool"`) != 2 || !strings.Contains(w.read("ended.json"), `"reply":"RESULT"`) {
		t.Fatalf("%q\n%s", r.out, r.err)
	}
	why := w.run("runs", "show", "last", "--why").out
	for _, line := range []string{"● execute_command rm -rf dev\n  denied: execute_command is not allowed by the hook ", "● fs_write /etc/raddle-test\n  asked, no one there: "} {
		if !strings.Contains(why, line) {
			t.Errorf("it does not say %q:\n%s", line, why)
		}
	}
	story := w.run("runs", "show", "last").out + w.run("runs", "history", "last").out
	for _, line := range []string{"denied the call of execute_command: rm is not for agents", "changed the arguments of the call of fs_write"} {
		if !strings.Contains(r.err, line) {
			t.Errorf("the narration does not say %q:\n%s", line, r.err)
		}
		if !strings.Contains(story, line) {
			t.Errorf("the story does not say %q:\n%s", line, story)
		}
	}
}

// A process that is killed in the middle of a hook: the resume runs a hook before a call again, and none after a call.
func TestKilledInHook(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "bash")
	const files = `
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
global_tools: [fs_write]
hooks:
  - {on: before_tool, run: 'cat > /dev/null; echo before >> log; echo "{\"context\": \"ctx\"}"; while [ -e hold-before ]; do sleep 0.02; done'}
  - {on: after_tool, run: 'cat > /dev/null; echo after >> log; while [ -e hold-after ]; do sleep 0.02; done'}
-- dev/transcript.yaml --
- {turn: 1, tool_calls: [{name: fs_write, args: {path: note, contents: x}}]}
- {after: ctx, text: RESULT}
`
	for point, want := range map[string]string{"before": "before\nbefore\nafter\n", "after": "before\nafter\n"} {
		w := newWorkplace(t, files)
		w.write("hold-"+point, "")
		cmd := w.command("run", "./dev", "go")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); !w.exists("log") || !strings.Contains(w.read("log"), point); <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the hook does not run")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if err := os.Remove(w.dir + "/hold-" + point); err != nil {
			t.Fatal(err)
		}
		r := w.run("resume", "last")
		if r.out != "RESULT\n" || w.read("log") != want {
			t.Errorf("killed %s the call: %q, the log is %q, want %q\n%s", point, r.out, w.read("log"), want, r.err)
		}
		if said := strings.Contains(r.err, "was cut off when the process ended"); said != (point == "after") {
			t.Errorf("killed %s the call, the resume says:\n%s", point, r.err)
		}
	}
}

// Hooks of a project run after consent to what the question shows. Until then, and after each change, raddle refuses the calls that they should have looked at.
func TestConsentToHooks(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "bash")
	const files = `
-- .raddle/hooks.yaml --
hooks:
  - {on: before_tool, tools: fs_write, run: 'bash "$RADDLE_HOOK_DIR/guard.sh"'}
-- .raddle/guard.sh --
echo looked >> log
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
global_tools: [fs_write]
-- dev/transcript.yaml --
- {turn: 1, tool_calls: [{name: fs_write, args: {path: note, contents: x}}]}
- {after: the hooks of .raddle need your consent, text: RESULT=refused.}
- {turn: 2, text: RESULT=made.}
`
	w := newWorkplace(t, files)
	if r := w.run("run", "-q", "--headless", "./dev", "go"); r.out != "RESULT=refused.\n" || w.exists("note") || w.exists("log") {
		t.Fatalf("without consent: %q\n%s", r.out, r.err)
	}
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "./dev", "go")
	s.await("raddle runs the hooks:")
	s.await("before_tool: bash")
	s.answer(down, enter) // "no" comes first
	s.ends(0, "RESULT=made.")
	if w.read("log") != "looked\n" {
		t.Errorf("the log is %q", w.read("log"))
	}
	w.write(".raddle/guard.sh", "echo other >> log")
	if r := w.run("run", "-q", "--headless", "./dev", "go"); r.out != "RESULT=refused.\n" || w.read("log") != "looked\n" {
		t.Errorf("after a change: %q\n%s", r.out, r.err)
	}
	w.write(".raddle/hooks.yaml", "hooks: [{on: before_tol, run: x}]")
	if r := w.run("run", "--headless", "./dev", "go"); r.code != 3 || !strings.Contains(r.err, ".raddle/hooks.yaml:1:14") || !strings.Contains(r.err, "did you mean before_tool?") {
		t.Errorf("with a wrong file: %d\n%s", r.code, r.err)
	}
}
