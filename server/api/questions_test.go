//go:build unix

package api

import (
	"fmt"
	"slices"
	"testing"

	"raddle.dev/server/servertest"
)

// The pages of open questions have each question once, those of the run that waits longest first, also if a page ends
// between two questions of a run.
func TestPagesOfQuestions(t *testing.T) {
	home := servertest.NewHome(t, map[string]string{"two/graph.yaml": `
name: two
start: fork
nodes:
  fork: {type: script, script: fork.sh, next: [a, b]}
  a: {type: script, script: fork.sh, state_updates: {}, next: left}
  b: {type: script, script: fork.sh, state_updates: {}, next: right}
  left: {type: input, question: Left?, state_updates: {l: "{{input}}"}, next: join}
  right: {type: input, question: Right?, state_updates: {r: "{{input}}"}, next: join}
  join: {type: script, script: fork.sh, next: done}
  done: {type: end, output: "{{l}} {{r}}"}
`, "two/fork.sh": "echo '{}'\n"})
	w := serveHome(t, home)
	var want []string
	for range 3 {
		run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "two"}`)["run"].(string)
		want = append(want, run+" left", run+" right")
	}
	for size := 1; size <= 7; size++ {
		var got []string
		for cursor := ""; ; {
			page := w.get(200, "GET", fmt.Sprintf("/questions?limit=%d&cursor=%s", size, cursor), "")
			items := page["items"].([]any)
			if len(items) > size {
				t.Fatalf("a page of %d has %d questions", size, len(items))
			}
			for _, i := range items {
				q := i.(map[string]any)
				got = append(got, q["run"].(string)+" "+q["question"].(map[string]any)["id"].(string))
			}
			next, more := page["next_cursor"].(string)
			if !more {
				break
			}
			cursor = next
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d, the questions are %v, want %v", size, got, want)
		}
	}
	w.refuse(400, "wrong-cursor", "GET", "/questions?cursor=eA", "")
}
