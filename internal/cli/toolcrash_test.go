//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// fiveTools is an agent whose five tools record that they have run.
const fiveTools = `
-- five/config.yaml --
name: Five
model: script:transcript.yaml
-- five/transcript.yaml --
- match: go
  turn: 1
  tool_calls: [{name: look, args: {}}, {name: put, args: {}}, {name: send, args: {}}, {name: pay, args: {}}, {name: peek, args: {}}]
- match: go
  turn: 2
  text: all done
-- five/tools.sh --
set -e
note() { echo "$1 $RADDLE_IDEMPOTENCY_KEY" >>ran; echo "did $1" >>"$LLM_OUTPUT"; }
# @cmd Looks.
# raddle: read-only
look() { note look; }
# @cmd Puts.
# raddle: idempotent
put() { note put; }
# @cmd Sends.
send() { note send; }
# @cmd Pays.
pay() { note pay; }
# @cmd Looks again.
# raddle: read-only
peek() { note peek; }
`

// outcomes lists the tools whose outcome a run's journal holds.
func (w *workplace) outcomes(run string) map[string]bool {
	w.t.Helper()
	r := w.run("runs", "history", run, "--output", "json")
	var lines []struct{ Kind, What string }
	if err := json.Unmarshal([]byte(r.out), &lines); err != nil {
		w.t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	held := map[string]bool{}
	for _, l := range lines {
		if _, name, ok := strings.Cut(l.What, "tool "); ok && l.Kind == "effect" {
			name, _, _ = strings.Cut(name, ".")
			name, _, _ = strings.Cut(name, ":")
			name, _, _ = strings.Cut(name, " ")
			held[name] = true
		}
	}
	return held
}

// ran counts how often each tool has run, and with how many keys.
func (w *workplace) ran() (times map[string]int, keys map[string]map[string]bool) {
	times, keys = map[string]int{}, map[string]map[string]bool{}
	for line := range strings.Lines(w.read("ran")) {
		name, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		if times[name]++; keys[name] == nil {
			keys[name] = map[string]bool{}
		}
		keys[name][key] = true
	}
	return times, keys
}

// Killed with SIGKILL after any event and resumed, a run with five calls ends as
// if nothing had happened: no call with a recorded outcome runs again, a call that was
// declared harmless runs again with its key, and for the others a person is asked.
func TestKilledBetweenCalls(t *testing.T) {
	t.Parallel()
	needBash(t)
	for n, more := 1, true; more; n++ {
		more = t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorkplace(t, fiveTools)
			if !w.killAt(n, "run", "./five", "go") {
				more = false
				return
			}
			runs := w.runs()
			if len(runs) != 1 {
				t.Fatalf("runs %v", runs)
			}
			before, _ := w.ran()
			held := w.outcomes(runs[0].Run)
			r := w.run("resume", "-q", runs[0].Run, "--answer", "skip", "--answer", "skip")
			if over := strings.Contains(r.err, "is over (done)"); !over && (r.code != 0 || r.out != "all done\n") {
				t.Fatalf("resumed: exit code %d, %q, %s", r.code, r.out, r.err)
			}
			after, keys := w.ran()
			for _, name := range []string{"look", "put", "send", "pay", "peek"} {
				harmless := name != "send" && name != "pay"
				switch {
				case held[name] && after[name] != before[name]:
					t.Errorf("the outcome of %s was recorded, and it ran again", name)
				case !harmless && after[name] > 1 || after[name] > 2:
					t.Errorf("%s ran %d times", name, after[name])
				case harmless && after[name] == 0:
					t.Errorf("%s never ran", name)
				case after[name] > 0 && (len(keys[name]) != 1 || keys[name][""]):
					t.Errorf("%s ran with the keys %v", name, keys[name])
				}
			}
		}) && more
	}
}
