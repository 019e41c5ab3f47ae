package flow

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
)

// A wait node waits for an event whose data has members, and its state_updates read the data.
func TestWaitForEvent(t *testing.T) {
	r := newWaitRun(t, `
  first:
    type: wait
    event: "paid-{{day}}"
    match: {order: "{{when}}", kind: order}
    state_updates: {how: "{{event.method}} {{event.items[1]}}"}
    next: done
  done: {type: end, output: "{{how}}"}
`)
	res := r.start()
	w, ok := graph.EventWaitOf(&res.Questions[0])
	if !ok || w.Name != "paid-2000-01-05" || w.Match["order"] != "2h" || w.Match["kind"] != "order" {
		t.Fatalf("it waits for %+v", res.Questions)
	}
	r.ends("card 2.5", graph.Answer{ID: res.Questions[0].ID, Value: json.RawMessage(`{"method": "card", "items": [1, 2.50]}`)})
}

// What happens when the event has not come before the deadline.
func TestWaitForEventUntilDeadline(t *testing.T) {
	for on, want := range map[string]string{
		"on_deadline: late":             "late",
		"on_deadline: {answer: no one}": "no one",
		"":                              "",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newWaitRun(t, `
  first:
    type: wait
    event: paid
    deadline: "{{when}}"
    `+on+`
    state_updates: {how: "{{event}}"}
    next: done
  done: {type: end, output: "{{how}}"}
  late: {type: end, output: late}
`)
			if res := r.start(); time.Until(res.Due) != 2*time.Hour {
				t.Fatalf("due in %v", time.Until(res.Due))
			}
			time.Sleep(2 * time.Hour)
			if want != "" {
				r.ends(want)
				return
			}
			if _, err := r.resume(); err == nil || !strings.Contains(err.Error(), "deadline") {
				t.Errorf("%v", err)
			}
			res, err := r.resume() // it waits again
			if err != nil || len(res.Questions) != 1 {
				t.Fatalf("%v: %+v", err, res)
			}
			r.ends("again", graph.Answer{Value: "again", ID: res.Questions[0].ID})
		})
	}
}

// What a wait node cannot have.
func TestWaitForEventFaults(t *testing.T) {
	for fields, want := range map[string]string{
		"":                                 "missing field `for`",
		"event: a, for: 2h":                "the node has `for`, too",
		"event: a, until: 2030-01-01":      "the node has `until`, too",
		"for: 2h, match: {a: b}":           "only a node that waits for an `event` has it",
		"for: 2h, deadline: 2h":            "only a node that waits for an `event` has it",
		"event: ' '":                       "the name of the event is empty",
		"event: a, on_deadline: fail":      "there is no `deadline`",
		"event: [a]":                       "expected",
		"event: a, match: [b]":             "expected",
		"event: a, deadline: soon":         "invalid value",
		"event: a, match: {b: '{{gone}}'}": "",
	} {
		dir := t.TempDir()
		writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: first\nnodes:\n  first: {type: wait, next: done, "+fields+"}\n  done: {type: end, output: x}\n")
		_, err := Load(dir, Host{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(listMessages(err), want)) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

// listMessages returns an error with the messages of its findings.
func listMessages(err error) string {
	text := err.Error()
	if load, ok := errors.AsType[*LoadError](err); ok {
		for _, f := range load.Findings {
			text += "\n" + f.Message
		}
	}
	return text
}
