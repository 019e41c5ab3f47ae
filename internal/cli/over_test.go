package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

const ends = `
-- ends/graph.yaml --
name: ends
start: e
initial_state: {n: 3}
nodes:
  e: {type: end, output: "n is {{n}}", exit_code: 70}
`

// Resuming a run that is over prints its result once more, in every format.
func TestResumeOfARunThatIsOverHasTheResult(t *testing.T) {
	w := newWorkplace(t, ends)
	first := w.run("run", "-q", "./ends", "--output", "json")
	var want, got map[string]any
	if err := json.Unmarshal([]byte(first.out), &want); err != nil || first.code != 70 {
		t.Fatal(first, err)
	}
	run := want["run"].(string)
	again := w.run("resume", "-q", run, "--output", "json")
	if err := json.Unmarshal([]byte(again.out), &got); err != nil || again.code != 8 || !strings.Contains(again.err, "run "+run+" is over (done)") {
		t.Fatal(again, err)
	}
	if got["output"] != "n is 3" || strings.Count(again.out, "\n") != 1 {
		t.Errorf("%s", again.out)
	}
	if first.out != again.out {
		t.Errorf("%s\nis not what the run gave:\n%s", again.out, first.out)
	}
	stream := w.run("resume", "-q", run, "--output", "stream-json")
	var line struct {
		Kind, Run string
		Data      map[string]any
	}
	if err := json.Unmarshal([]byte(stream.out), &line); err != nil || stream.code != 8 || line.Kind != "result" || line.Run != run || line.Data["output"] != "n is 3" {
		t.Errorf("%+v, %v", stream, err)
	}
	if r := w.run("resume", "-q", run); r.code != 8 || r.out != "n is 3\n" {
		t.Errorf("%+v", r)
	}
}
