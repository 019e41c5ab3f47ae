package gateway

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"raddle.dev/server"
)

// readyWait is how long the store may take to answer.
const readyWait = 5 * time.Second

// serveReady says whether the server takes requests: its store can be read and written, and it does not end.
func (g *Gateway) serveReady(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", server.RetryAfter)
	if g.service.IsDraining() {
		writeProblem(w, http.StatusServiceUnavailable, "draining", "the server is shutting down")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	if err := server.CheckStore(ctx, g.service); err != nil {
		writeProblem(w, http.StatusServiceUnavailable, "store-unavailable", "the store of runs cannot be written, or does not answer")
		return
	}
	w.Header().Del("Retry-After")
	writeText(w, http.StatusOK, "ready\n")
}

// runCounts are the numbers of runs by their status. A count of a store whose index is not complete lists all of it, so
// that it counts for nine times as long as it took: however often metrics are read, listing takes a tenth of the time
// at most. It is safe for concurrent use.
type runCounts struct {
	mu       sync.Mutex
	byStatus map[string]int
	took     time.Duration
	until    time.Time // the end of the time for which byStatus counts
}

// countRuns returns the numbers of runs, which list counts if the last ones are too old, and how long the count took.
// The caller must not change the map.
func (c *runCounts) countRuns(ctx context.Context, list func(context.Context) (map[string]int, error)) (map[string]int, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Before(c.until) {
		return c.byStatus, c.took, nil
	}
	byStatus, err := list(ctx)
	if err != nil {
		return nil, 0, err
	}
	c.byStatus = byStatus
	c.took = time.Since(began)
	c.until = began.Add(10 * c.took)
	return c.byStatus, c.took, nil
}

// serveMetrics writes what the server has counted, in the text format of Prometheus.
func (g *Gateway) serveMetrics(w http.ResponseWriter, r *http.Request) {
	s := g.service
	if err := s.RequireScope(r.Context(), server.ScopeRead); err != nil {
		writeProblem(w, http.StatusForbidden, "missing-scope", err.Error())
		return
	}
	byStatus, took, err := g.counts.countRuns(r.Context(), s.CountRuns)
	if err != nil {
		writeProblem(w, http.StatusServiceUnavailable, "store-unavailable", "the store of runs does not answer")
		return
	}
	load, err := s.ReadLoad(r.Context())
	if err != nil {
		writeProblem(w, http.StatusServiceUnavailable, "store-unavailable", "the store of runs does not answer")
		return
	}
	var b bytes.Buffer
	head := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP raddle_%s %s\n# TYPE raddle_%s %s\n", name, help, name, kind)
	}
	value := func(name, kind, help string, v any) {
		head(name, kind, help)
		fmt.Fprintf(&b, "raddle_%s %v\n", name, v)
	}
	head("runs", "gauge", "Runs in the store by status, when raddle counted them last.")
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		fmt.Fprintf(&b, "raddle_runs{status=%q} %d\n", status, byStatus[status])
	}
	driven, queued := s.CountDrives()
	t := s.Totals()
	value("drives", "gauge", "Runs that this server drives.", driven)
	value("queue", "gauge", "Runs that wait for a place.", queued)
	value("drives_started_total", "counter", "Drives that this server has started.", t.Started.Load())
	value("drives_failed_total", "counter", "Drives that have failed.", t.Failed.Load())
	value("questions_total", "counter", "Questions that runs have asked.", t.Questions.Load())
	value("model_calls_total", "counter", "Replies of models.", t.ModelCalls.Load())
	head("tokens_total", "counter", "Tokens of model calls.")
	fmt.Fprintf(&b, "raddle_tokens_total{type=\"input\"} %d\nraddle_tokens_total{type=\"output\"} %d\n", t.InputTokens.Load(), t.OutputTokens.Load())
	value("cost_dollars_total", "counter", "Cost of model calls whose price is known.", s.Totals().CostDollars())
	value("tool_calls_total", "counter", "Calls of tools.", t.ToolCalls.Load())
	value("tool_errors_total", "counter", "Calls of tools that failed.", t.ToolErrors.Load())
	value("store_list_seconds", "gauge", "Time that the store took when raddle counted the runs last.", took.Seconds())
	value("queue_lag_seconds", "gauge", "For how long the run has waited for a server, among those of the store, that has waited longest.", load.Lag.Seconds())
	value("wait_seconds", "gauge", "For how long the run has waited for an answer that has waited longest.", load.Wait.Seconds())
	value("given_up", "gauge", "Runs that no server tries again.", load.GivenUp)
	m := s.Meter()
	head("queue_wait_seconds", "histogram", "Time until this server took runs that were due.")
	m.Queue.WriteText(&b, "raddle_queue_wait_seconds", "")
	head("store_append_seconds", "histogram", "Time that the store took to append records of this process.")
	m.Appends.WriteText(&b, "raddle_store_append_seconds", "")
	head("model_call_seconds", "histogram", "Time of replies of models, with what was tried again.")
	m.Models.WriteText(&b, "raddle_model_call_seconds", "model")
	head("tool_call_seconds", "histogram", "Time of calls of tools.")
	m.Tools.WriteText(&b, "raddle_tool_call_seconds", "tool")
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}
