//go:build unix

package api

import (
	"net/http"
	"strings"
	"testing"

	"raddle.dev/server"
)

// countRecords returns how many records the journals of all runs have, and how many runs there are.
func (w *world) countRecords() (records, runs int) {
	w.Helper()
	st, err := w.service.Process().Runs.OpenStore()
	if err != nil {
		w.Fatal(err)
	}
	for t, err := range st.Threads(w.Context(), "") {
		if err != nil {
			w.Fatal(err)
		}
		records, runs = records+int(t.Head), runs+1
	}
	return records, runs
}

// Each operation that changes something, with each single scope: either it is refused and nothing has changed, or it is done and says so.
func TestScopesBeforeEffects(t *testing.T) {
	w := newWorld(t)
	for _, op := range []struct{ path, body, accept string }{
		{"/runs", `{"agent":"ask"}`, ""},
		{"/runs?wait=10s", `{"agent":"ask"}`, ""},
		{"/runs", `{"agent":"ask"}`, "text/event-stream"},
		{"/runs/RUN/answers", `{"answers":[{"value":"Ada"}]}`, ""},
		{"/runs/RUN/cancel", "", ""},
		{"/runs/RUN/resume", "", ""},
		{"/runs/RUN/edit", `{"state":{"who":"Bob"}}`, ""},
		{"/runs/RUN/fork", `{}`, ""},
		{"/runs/RUN/breaks", `{"breaks":[{"node":"ask"}]}`, ""},
	} {
		for _, scope := range server.Scopes {
			w.caller = nil
			run := w.ask()
			records, runs := w.countRecords()
			w.caller = &server.Caller{Name: "one", Scopes: []server.Scope{scope}}
			res := w.send(http.MethodPost, strings.ReplaceAll(op.path, "RUN", run), op.body, "Accept: "+op.accept)
			_ = res.Body.Close()
			after, runsAfter := w.countRecords()
			done := res.StatusCode < 300
			if !done && (after != records || runsAfter != runs) {
				t.Errorf("%s with %s: %d, and %d records and %d runs more", op.path, scope, res.StatusCode, after-records, runsAfter-runs)
			}
			if !done && res.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s: %d", op.path, scope, res.StatusCode)
			}
		}
	}
}

// A token that may only start gets the id of the run, and nothing else of it.
func TestStartWithoutRead(t *testing.T) {
	w := newWorld(t)
	w.caller = &server.Caller{Name: "st", Scopes: []server.Scope{server.ScopeStart}}
	if got := w.get(http.StatusCreated, http.MethodPost, "/runs", `{"agent":"ask"}`); len(got) != 1 || got["run"] == "" {
		t.Errorf("%v", got)
	}
}

// An idempotency key without any text is refused, and starts nothing.
func TestEmptyKey(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"", "  "} {
		w.refuse(http.StatusUnprocessableEntity, "invalid-request", http.MethodPost, "/runs", `{"agent":"ask"}`, "Idempotency-Key: "+key)
	}
	if _, runs := w.countRecords(); runs != 0 {
		t.Errorf("%d runs were started", runs)
	}
}

// With little room on the disk no run starts, and what is open can be answered.
func TestLowDisk(t *testing.T) {
	w := newWorld(t)
	run := w.ask()
	w.service.Process().Config.MinFreeDisk = 1 << 60
	res := w.send(http.MethodPost, "/runs", `{"agent":"ask"}`)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a start: %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	w.refuse(http.StatusServiceUnavailable, "disk-low", http.MethodPost, "/runs", `{"agent":"ask"}`)
	w.refuse(http.StatusServiceUnavailable, "disk-low", http.MethodPost, "/runs/"+run+"/fork", `{}`)
	w.get(http.StatusOK, http.MethodPost, "/runs/"+run+"/answers", `{"answers":[{"value":"Ada"}]}`)
}
