//go:build unix

package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/server/servertest"
)

// newLettersWorld has an agent that splits a list, asks a model about each item, and about the key of its environment.
func newLettersWorld(t *testing.T) *world {
	return serveHome(t, servertest.NewHome(t, map[string]string{
		"letters/graph.yaml": `
name: letters
model: script:transcript.yaml
start: split
nodes:
  split: {type: script, script: split.sh, next: each}
  each: {type: map, over: "{{letters}}", as: letter, branch: one, output_key: word, collect_into: words, next: sum}
  one: {type: llm, instructions: Answer in one word., prompt: "A word with {{letter}} for {{token}}", state_updates: {word: "{{output}}"}}
  sum: {type: script, script: sum.sh, next: done}
  done: {type: end, output: "{{total}}"}
`,
		"letters/split.sh":        "echo '{\"letters\": [\"a\", \"b\", \"c\"], \"token\": \"hunter2hunter2\"}'\n",
		"letters/sum.sh":          "echo '{\"total\": 3}'\n",
		"letters/transcript.yaml": "- {match: A word, text: ant, usage: {input: 9, output: 1}, repeat: true}\n",
		"letters/.env":            "SECRET=hunter2hunter2\n",
	}))
}

// records returns the numbers of the records of a run whose effect is of a kind.
func (w *world) records(run, effect string) (list []float64) {
	w.Helper()
	for _, item := range w.get(200, "GET", "/runs/"+run+"/timeline", "")["items"].([]any) {
		if m := item.(map[string]any); m["effect"] == effect {
			list = append(list, m["record"].(float64))
		}
	}
	return list
}

// count returns how many moments of a run are wanted.
func (w *world) count(run string, wanted func(m map[string]any) bool) (n int) {
	w.Helper()
	for _, item := range w.get(200, "GET", "/runs/"+run+"/timeline", "")["items"].([]any) {
		if wanted(item.(map[string]any)) {
			n++
		}
	}
	return n
}

// TestInspect shows what a script has written, and what was asked of a model: its prompt as it was sent, without secrets.
func TestInspect(t *testing.T) {
	w := newLettersWorld(t)
	run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "letters"}`)["run"].(string)
	scripts, replies := w.records(run, "script"), w.records(run, "reply")
	if len(scripts) != 2 || len(replies) != 3 {
		t.Fatalf("scripts %v, replies %v", scripts, replies)
	}
	detail := w.get(200, "GET", fmt.Sprintf("/runs/%s/records/%v", run, scripts[1]), "")
	if detail["output"] != `{"total": 3}` {
		t.Errorf("the output of a script: %v", detail)
	}
	if n := w.count(run, func(m map[string]any) bool { return m["tasks"] == 3.0 && m["place"] == "each" }); n != 1 {
		t.Errorf("%d moments start the 3 tasks of the map", n)
	}
	var prompts []string
	for _, at := range replies {
		r := w.get(200, "GET", fmt.Sprintf("/runs/%s/records/%v/request", run, at), "")
		if r["instructions"] != "Answer in one word." || r["model"] != "script:transcript.yaml" {
			t.Errorf("the request of record %v: %v", at, r)
		}
		prompts = append(prompts, r["prompt"].(string))
	}
	slices.Sort(prompts)
	for i, letter := range []string{"a", "b", "c"} {
		if !strings.HasPrefix(prompts[i], "A word with "+letter+" for ") || strings.Contains(prompts[i], "hunter2") {
			t.Errorf("prompts: %q", prompts)
		}
	}
	w.refuse(409, "stale", "GET", fmt.Sprintf("/runs/%s/records/%v/request", run, scripts[0]), "")
	w.refuse(404, "unknown-run", "GET", "/runs/nothing/records/1/request", "")
}

// TestBreaks stops a copy of a run before and after nodes, and continues it; a run that has ended and nodes that are not there are refused.
func TestBreaks(t *testing.T) {
	w := newLettersWorld(t)
	run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "letters"}`)["run"].(string)
	const before = `{"breaks": [{"node": "sum"}, {"node": "one", "after": true}]}`
	w.refuse(409, "stale", "POST", "/runs/"+run+"/breaks", before)
	w.refuse(400, "usage", "POST", "/runs/"+run+"/fork", `{"at": 1, "breaks": [{"node": "nothing"}]}`)
	copied := "/runs/" + w.get(201, "POST", "/runs/"+run+"/fork", `{"at": 1, "breaks": [{"node": "one", "after": true}, {"node": "sum"}, {"node": "sum"}], "start": true}`)["run"].(string)
	stops := func(path, reached, missing string) {
		t.Helper()
		st, err := w.service.WaitRun(t.Context(), strings.TrimPrefix(copied, "/runs/"))
		if err != nil || st.Status != "paused" {
			t.Fatalf("%s: %+v, %v", path, st, err)
		}
		state := w.get(200, "GET", copied+"/state", "")["state"].(map[string]any)
		if state[reached] == nil || state[missing] != nil {
			t.Errorf("%s: the state has %v", path, state)
		}
	}
	stops("after each/one", "letters", "words")
	if got := jsonText(t, w.get(200, "GET", copied+"/breaks", "")["breaks"]); got != `[{"after":true,"node":"each/one","place":"one"},{"node":"sum","place":"sum"}]` {
		t.Errorf("breaks: %s", got)
	}
	w.get(200, "POST", copied+"/resume", "")
	stops("before sum", "words", "total")
	if got := jsonText(t, w.get(200, "POST", copied+"/breaks", `{"breaks": []}`)["breaks"]); got != "[]" {
		t.Errorf("no breaks: %s", got)
	}
	w.get(200, "POST", copied+"/breaks", `{"breaks": [{"node": "done"}]}`)
	w.get(200, "POST", copied+"/resume", "")
	stops("before done", "total", "nothing")
	w.get(200, "POST", copied+"/resume", "")
	if st, err := w.service.WaitRun(t.Context(), strings.TrimPrefix(copied, "/runs/")); err != nil || st.Status != "done" || st.Output != "3" {
		t.Errorf("%+v, %v", st, err)
	}
	if got := jsonText(t, w.get(200, "GET", copied+"/breaks", "")["breaks"]); got != "[]" {
		t.Errorf("after the end: %s", got)
	}
}

// TestBreaksOfCalledGraph stops a run at a node of a graph that it calls, and at one inside of its map. The breaks are still there when the
// service was started again.
func TestBreaksOfCalledGraph(t *testing.T) {
	home := servertest.NewHome(t, map[string]string{
		"outer/graph.yaml": `
name: outer
start: ask
nodes:
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: call}
  call: {type: agent, agent: inner, prompt: "{{who}}", state_updates: {got: "{{output}}"}, next: done}
  done: {type: end, output: "{{got}}"}
`,
		"inner/graph.yaml": `
name: inner
initial_state: {letters: [a, b]}
start: each
nodes:
  each: {type: map, over: "{{letters}}", as: letter, branch: one, output_key: word, collect_into: words, next: sum}
  one: {type: script, script: one.sh, state_updates: {word: "{{output}}"}}
  sum: {type: end, output: "{{words}}"}
`,
		"inner/one.sh": "echo '{\"word\": \"w\"}'\n",
	})
	w := serveHome(t, home)
	run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "outer"}`)["run"].(string)
	path := "/runs/" + run
	w.refuse(400, "usage", "POST", path+"/breaks", `{"breaks": [{"node": "call/none"}]}`)
	want := `[{"after":true,"node":"call/each/one","place":"call/one"},{"node":"call/sum","place":"call/sum"}]`
	if got := jsonText(t, w.get(200, "POST", path+"/breaks", `{"breaks": [{"node": "call/sum"}, {"node": "call/one", "after": true}]}`)["breaks"]); got != want {
		t.Errorf("breaks: %s", got)
	}
	if err := w.service.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w = serveHome(t, home)
	if got := jsonText(t, w.get(200, "GET", path+"/breaks", "")["breaks"]); got != want {
		t.Errorf("breaks after the service was started again: %s", got)
	}
	w.get(200, "POST", path+"/answers", `{"answers": [{"value": "x"}]}`)
	for _, at := range []string{"after call/one", "before call/sum"} {
		st, err := w.service.WaitRun(t.Context(), run)
		if err != nil || st.Status != "paused" {
			t.Fatalf("%s: %+v, %v", at, st, err)
		}
		w.get(200, "POST", path+"/resume", "")
	}
	if st, err := w.service.WaitRun(t.Context(), run); err != nil || st.Status != "done" {
		t.Errorf("%+v, %v", st, err)
	}
	if got := jsonText(t, w.get(200, "GET", path+"/breaks", "")["breaks"]); got != "[]" {
		t.Errorf("after the end: %s", got)
	}
	run = w.get(201, "POST", "/runs?wait=60s", `{"agent": "outer"}`)["run"].(string)
	w.get(200, "POST", "/runs/"+run+"/breaks", `{"breaks": [{"node": "done"}]}`)
	if _, err := w.service.Process().Runs.CancelRun(t.Context(), run); err != nil { // as raddle runs cancel does, in another process
		t.Fatal(err)
	}
	if got := jsonText(t, w.get(200, "GET", "/runs/"+run+"/breaks", "")["breaks"]); got != "[]" {
		t.Errorf("after the end elsewhere: %s", got)
	}
}

// TestUsage shows what a run took, with the words of the complete view.
func TestUsage(t *testing.T) {
	w := newLettersWorld(t)
	path := "/runs/" + w.get(201, "POST", "/runs?wait=60s", `{"agent": "letters"}`)["run"].(string)
	usage, view := w.get(200, "GET", path+"/usage", ""), w.get(200, "GET", path, "")
	if usage["calls"] != 3.0 || usage["input_tokens"] != 27.0 || usage["active_seconds"] != view["active_seconds"] || usage["active_seconds"] == 0.0 {
		t.Errorf("%v, the view has %v and %v", usage, view["usage"], view["active_seconds"])
	}
	w.refuse(404, "unknown-run", "GET", "/runs/nothing/usage", "")
}
