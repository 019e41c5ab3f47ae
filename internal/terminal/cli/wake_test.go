//go:build unix

package cli_test

import (
	"strings"
	"testing"
	"time"
)

// wakeAgents wait for a time: long, not at all long, and at a question that no one answers.
const wakeAgents = `
-- long/graph.yaml --
name: long
start: wait
nodes:
  wait: {type: wait, for: 3d, next: done}
  done: {type: end, output: "RESULT=rested"}
-- brief/graph.yaml --
name: brief
start: wait
nodes:
  wait: {type: wait, for: 1ms, next: done}
  done: {type: end, output: "RESULT=rested", exit_code: 70}
-- late/graph.yaml --
name: late
start: ask
nodes:
  ask: {type: approval, question: "Send it?", options: [yes, no], routes: {yes: sent, no: kept}, on_other: kept, deadline: 3s, on_deadline: {answer: no}}
  sent: {type: end, output: "RESULT=sent"}
  kept: {type: end, output: "RESULT=kept"}
`

// A run that waits for a time is parked: it says until when, and is not continued before. raddle wake continues those
// whose time has come, and asks nothing.
func TestWake(t *testing.T) {
	w := newWorkplace(t, wakeAgents)
	for _, agent := range []string{"./long", "./brief", "./late"} {
		if got := w.run("run", agent); got.code != 5 || !strings.Contains(got.err, "until 20") {
			t.Errorf("run %s: exit code %d, %s", agent, got.code, got.err)
		}
	}
	for end := time.Now().Add(patience); !strings.Contains(w.listed("inbox"), "(due)"); {
		if time.Now().After(end) {
			t.Fatal("the deadline does not come")
		}
	}
	list := w.runs()
	late, brief, long := list[0].Run, list[1].Run, list[2].Run
	if got := w.run("resume", long); got.code != 5 || !strings.Contains(got.err, "(in 3d)") {
		t.Errorf("resume before the time: exit code %d, %s", got.code, got.err)
	}
	if got := w.run("resume", late, "--answer", "yes"); got.code != 8 || !strings.Contains(got.err, "too late") || !strings.Contains(got.err, "raddle resume "+late) {
		t.Errorf("a late answer: exit code %d, %s", got.code, got.err)
	}
	for command, want := range map[string]string{"runs ls": "(in 3d)", "inbox": "(due)", "runs show " + long: "waits", "inbox --output json": `"due":`, "runs ls --output json": `"due":`} {
		if got := w.listed(strings.Fields(command)...); !strings.Contains(got, want) {
			t.Errorf("%s does not say %q: %s", command, want, got)
		}
	}
	if got := w.listed("wake"); strings.Count(got, "\n") != 2 || !strings.Contains(got, brief+"  brief  done") || !strings.Contains(got, late+"  late  done") {
		t.Errorf("wake says %s", got)
	}
	if got := w.listed("wake", "--output", "json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("nothing is due, and wake says %s", got)
	}
	if got := w.run("resume", late); got.out != "RESULT=kept\n" {
		t.Errorf("the answer of the deadline was not taken: %s", got.out)
	}
	if got := w.listed("runs", "history", late); !strings.Contains(got, "no one has answered before the deadline") {
		t.Errorf("the history is %s", got)
	}
	if got := w.listed("runs", "history", long); !strings.Contains(got, "wait: waits until 20") {
		t.Errorf("the history is %s", got)
	}
}
