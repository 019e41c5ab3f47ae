//go:build unix

package api

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestTimeline reads a run moment by moment: the places of the picture, one record with all that it says, and the picture at a record.
func TestTimeline(t *testing.T) {
	w := newWorld(t)
	run := w.ask()
	items := w.get(200, "GET", "/runs/"+run+"/timeline", "")["items"].([]any)
	var lines []string
	var question float64
	for _, item := range items {
		m := item.(map[string]any)
		lines = append(lines, fmt.Sprintf("%v at %v", m["kind"], m["place"]))
		if m["kind"] == "question" {
			question = m["record"].(float64)
		}
	}
	if got := strings.Join(lines, "; "); !strings.HasPrefix(got, "start at <nil>") || !strings.Contains(got, "question at ask") || !strings.HasSuffix(got, "end at <nil>") {
		t.Errorf("timeline: %s", got)
	}
	after := w.get(200, "GET", fmt.Sprintf("/runs/%s/timeline?after=%v", run, question), "")["items"].([]any)
	if len(after) != 1 || after[0].(map[string]any)["status"] != "waiting" {
		t.Errorf("after the question: %v", after)
	}
	detail := w.get(200, "GET", fmt.Sprintf("/runs/%s/records/%v", run, question), "")
	if q := detail["question"].(map[string]any); q["id"] != "ask" {
		t.Errorf("the record of the question: %v", detail)
	}
	w.get(404, "GET", "/runs/"+run+"/records/9999", "")
	picture := func(query string) string {
		res := w.send("GET", "/runs/"+run+"/picture.svg?"+query, "")
		text, err := io.ReadAll(res.Body)
		if err != nil || res.Header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(string(text), `data-node="ask"`) {
			t.Errorf("picture?%s: %v %s %s", query, err, res.Header, text)
		}
		return string(text)
	}
	if now, plain := picture(""), picture("plain=true"); !strings.Contains(now, "waits") || strings.Contains(plain, "waits") {
		t.Error("only the picture of the run says that a node waits")
	}
	if first := picture("at=1"); strings.Contains(first, "waits") {
		t.Error("at its first record, nothing waits")
	}
}
