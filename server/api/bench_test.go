//go:build unix

package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"raddle.dev/internal/process/app"
	"raddle.dev/server"
)

// writeFanGraph returns a graph that asks a model about four topics at the same time, a hundred times in sequence.
func writeFanGraph() string {
	graph := "name: fan\nstart: e0\ninitial_state: {topics: [a, b, c, d]}\nlimits: {max_steps: 1000}\nnodes:\n"
	for i := range 100 {
		graph += fmt.Sprintf("  e%d: {type: map, over: '{{topics}}', as: topic, branch: w%d, output_key: text, collect_into: texts, next: e%d}\n", i, i, i+1)
		graph += fmt.Sprintf("  w%d: {type: llm, prompt: 'About {{topic}}', state_updates: {text: '{{output}}'}}\n", i)
	}
	return graph + "  e100: {type: end}\n"
}

// serveSlowModel answers as a slow model does: five words a second, for two seconds.
func serveSlowModel(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 10 {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n")
		w.(http.Flusher).Flush()
	}
	_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
}

// BenchmarkListRuns lists runs over HTTP while 200 runs ask a slow model about four topics each at the same time, and reports what 99 of 100 requests
// do not exceed.
func BenchmarkListRuns(b *testing.B) {
	dir := b.TempDir()
	model := httptest.NewServer(http.HandlerFunc(serveSlowModel))
	defer model.Close()
	settings := filepath.Join(dir, "home", ".config", "raddle")
	if err := os.MkdirAll(filepath.Join(settings, "agents", "fan"), 0o700); err != nil {
		b.Fatal(err)
	}
	for path, text := range map[string]string{
		"config.yaml": "model: slow:m\nclients:\n- {type: openai-compatible, name: slow, api_base: " + model.URL + "/v1, models: [{name: m}]}\n",
		filepath.Join("agents", "fan", "graph.yaml"): writeFanGraph(),
	} {
		if err := os.WriteFile(filepath.Join(settings, path), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	p, err := app.Open(app.Options{Work: dir, Environ: []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "NO_PROXY=*"}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	s, err := server.New(p, server.Options{MaxRuns: 200})
	if err != nil {
		b.Fatal(err)
	}
	web := httptest.NewServer(NewHandler(s))
	defer web.Close()
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the runs do not end by themselves
		_ = s.Close(ctx)
	}()
	for range 200 {
		if _, err := s.StartRun(b.Context(), server.StartRequest{Agent: "fan"}); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		res, err := http.Get(web.URL + prefix + "/runs")
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(res.Status, err)
		}
		took = append(took, time.Since(began))
		time.Sleep(20 * time.Millisecond) // a page that looks often, and not the load itself
	}
	if driven, _ := s.CountDrives(); driven != 200 {
		b.Errorf("%d runs work at the end", driven)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}
