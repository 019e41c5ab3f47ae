package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// countedAgent is a map whose script writes its item to a file each time that it runs. It fails for items that are in the directory bad.
const countedAgent = `
-- counted/graph.yaml --
name: counted
initial_state: {words: [loom, warp, weft, reed]}
start: each
nodes:
  each: {type: map, over: "{{words}}", as: word, branch: measure, collect_into: all, max_concurrency: 1, on_failure: WORD, next: done}
  measure: {type: script, script: measure.sh}
  done: {type: end, output: "{{all}}"}
-- counted/measure.sh --
word=$(sed 's/.*"word":"\([a-z]*\)".*/\1/' <<< "$GRAPH_STATE")
echo "$word" >> calls
test -e "bad/$word" && { echo "no $word" >&2; exit 1; }
echo "{\"output\": \"$word\"}"
-- bad/warp --
-- bad/reed --
`

// takeCalls returns the items for which the script has run since the last time, sorted.
func (w *workplace) takeCalls() []string {
	w.t.Helper()
	path := filepath.Join(w.dir, "calls")
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		w.t.Fatal(err)
	}
	return slices.Sorted(slices.Values(strings.Fields(string(text))))
}

// The failed items of a map, and nothing else, run again, as long as there are some: those that stopped the run in the run itself, others in copies.
func TestResumeOnlyFailed(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "sed")
	for word, want := range map[string][3]string{
		"stop":    {"", "", `["loom","warp","weft","reed"]`},
		"skip":    {`["loom","weft"]`, `["loom","warp","weft"]`, `["loom","warp","weft","reed"]`},
		"collect": {`["loom",{"error":`, `["loom","warp","weft",{"error":`, `["loom","warp","weft","reed"]`},
	} {
		w := newWorkplace(t, strings.ReplaceAll(countedAgent, "WORD", word))
		code := 0
		if word == "stop" {
			code = 1
		}
		step := func(args []string, exit int, output string, calls ...string) result {
			t.Helper()
			r := w.run(args...)
			if got := w.takeCalls(); r.code != exit || !strings.HasPrefix(r.out, output) || !slices.Equal(got, calls) {
				t.Errorf("%s: %q: exit code %d, calls %v, want %v\n%s%s", word, args, r.code, got, calls, r.out, r.err)
			}
			return r
		}
		again := []string{"resume", "last", "--only-failed"}
		step([]string{"run", "./counted"}, code, want[0], "loom", "reed", "warp", "weft")
		if word != "stop" {
			w.checkFailures(word)
		}
		w.remove("bad/warp")
		step(again, code, want[1], "reed", "warp")
		w.remove("bad/reed")
		r := step(again, 0, want[2], "reed")
		if copied := strings.Contains(r.err, "is a copy of"); copied != (word != "stop") {
			t.Errorf("%s: stderr\n%s", word, r.err)
		}
		r = step(again, 8, "")
		if !strings.Contains(r.err, "has no failed items of a map that could be repeated") {
			t.Errorf("%s: stderr\n%s", word, r.err)
		}
	}
}

// checkFailures compares the failures that the journal of the newest run has with those of the map.
func (w *workplace) checkFailures(word string) {
	w.t.Helper()
	var run struct {
		Failures []struct {
			At          int64
			Node, Error string
		}
	}
	r := w.run("runs", "show", "last", "--output", "json")
	if err := json.Unmarshal([]byte(r.out), &run); err != nil {
		w.t.Fatal(err)
	}
	if f := run.Failures; len(f) != 2 || f[0].Node != "each/measure[2]" || f[1].Node != "each/measure[4]" || f[0].At == 0 || !strings.HasSuffix(f[1].Error, "failed with exit code 1:\nno reed") {
		w.t.Errorf("%s: failures %+v", word, f)
	}
	if text := w.run("runs", "show", "last").out; !strings.Contains(text, "each/measure[2]: Script") {
		w.t.Errorf("%s: runs show says\n%s", word, text)
	}
}

func (w *workplace) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}
