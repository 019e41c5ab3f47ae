//go:build unix

package api

import (
	"net/http"
	"testing"

	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

// Events over the API: sent to a run that waits, kept, listed, and refused.
func TestEventsOverTheAPI(t *testing.T) {
	const shop = "name: shop\nstart: pay\nnodes:\n  pay: {type: wait, event: paid, match: {order: '{{initial_prompt}}'}, state_updates: {how: '{{event.method}}'}, next: end}\n" +
		"  end: {type: end, output: 'paid by {{how}}'}\n"
	w := serveHome(t, servertest.NewHome(t, map[string]string{"shop/graph.yaml": shop}))
	run := w.get(http.StatusCreated, http.MethodPost, "/runs?wait=30s", `{"agent":"shop","prompt":"7"}`)["run"].(string)
	kept := w.get(http.StatusOK, http.MethodPost, "/events", `{"name":"paid","key":"a","data":{"order":8}}`)
	if kept["kept"] != true || len(kept["runs"].([]any)) != 0 {
		t.Errorf("an event that no run waits for: %v", kept)
	}
	const event = `{"name":"paid","key":"b","data":{"order":7,"method":"card"},"keep":"1d"}`
	sent := w.get(http.StatusOK, http.MethodPost, "/events", event)
	if runs := sent["runs"].([]any); len(runs) != 1 || runs[0] != run {
		t.Errorf("an event that the run waits for: %v", sent)
	}
	if again := w.get(http.StatusOK, http.MethodPost, "/events", event); again["again"] != true || len(again["runs"].([]any)) != 1 {
		t.Errorf("the event again: %v", again)
	}
	for body, status := range map[string]int{
		`{"name":" "}`:                              http.StatusBadRequest,
		`{"data":1}`:                                http.StatusUnprocessableEntity,
		`{"name":"paid","key":"b","data":1}`:        http.StatusBadRequest,
		`{"name":"paid","keep":"soon"}`:             http.StatusBadRequest,
		`{"name":"paid","keep":"900d"}`:             http.StatusBadRequest,
		`{"name":"paid","run":"1m8mnpg6brqt8xfsw"}`: http.StatusNotFound,
	} {
		res := w.send(http.MethodPost, "/events", body)
		_ = res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%s: %d, want %d", body, res.StatusCode, status)
		}
	}
	w.caller = &server.Caller{Name: "reader", Scopes: []server.Scope{server.ScopeRead}}
	for _, r := range []struct {
		method, body string
		want         int
	}{{http.MethodPost, event, http.StatusForbidden}, {http.MethodGet, "", http.StatusOK}} {
		res := w.send(r.method, "/events", r.body)
		_ = res.Body.Close()
		if res.StatusCode != r.want {
			t.Errorf("%s with the scope read: %d", r.method, res.StatusCode)
		}
	}
}
