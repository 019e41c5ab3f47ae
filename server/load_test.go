package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
)

// fanGraph asks a model for each of four topics at the same time.
const fanGraph = `
name: fan
start: each
nodes:
  each: {type: map, over: "{{topics}}", as: topic, branch: write, output_key: text, collect_into: texts, next: done}
  write: {type: llm, prompt: "About {{topic}}", state_updates: {text: "{{output}}"}}
  done: {type: end, output: "{{texts}}"}
`

// startModel starts a model that answers slowly, word by word, when release is closed.
func startModel(t *testing.T, release <-chan struct{}) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, word := range []string{"one ", "two ", "three"} {
			if i == 1 {
				select {
				case <-release:
				case <-r.Context().Done():
					return
				}
			}
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
		}
		_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// 200 runs at once, with five subscribers each, of which one never reads: all runs end, and nothing of them is left.
func TestManyRunsLeaveNothing(t *testing.T) {
	const (
		many    = 200
		readers = 5
	)
	w := newWorld(t)
	release := make(chan struct{})
	model := startModel(t, release)
	w.write(filepath.Join(w.home, ".config", "raddle", "config.yaml"), "model: slow:m\nclients:\n- {type: openai-compatible, name: slow, api_base: "+model.URL+"/v1, models: [{name: m}]}\n")
	w.write(filepath.Join(w.home, ".config", "raddle", "agents", "fan", "graph.yaml"), strings.Replace(fanGraph, "start: each", "start: each\ninitial_state: {topics: [a, b]}", 1))
	p, err := app.Open(app.Options{Work: w.work, Environ: []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "NO_PROXY=*"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	before := runtime.NumGoroutine()
	s, err := New(p, Options{MaxRuns: many})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range many {
		run := start(t, s, "fan")
		for i := range readers {
			sub, err := s.Subscribe(t.Context(), run, SubscribeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				ended := false
				for ev, err := range sub.Events() {
					if err != nil {
						t.Error(err)
					}
					if i == 0 {
						return
					}
					_, ended = ev.Body.(graph.RunEnded)
				}
				if !ended {
					t.Errorf("run %s: the end was not seen", run)
				}
			})
		}
	}
	if driven, queued := s.CountDrives(); driven != many || queued != 0 {
		t.Errorf("%d runs are driven, %d wait", driven, queued)
	}
	close(release)
	all.Wait()
	counts, err := s.CountRuns(t.Context())
	for end := time.Now().Add(time.Minute); counts["done"] != many && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		counts, err = s.CountRuns(t.Context())
	}
	if err != nil || counts["done"] != many {
		t.Errorf("runs by status: %v (%v)", counts, err)
	}
	w.shut(s)
	if n := len(s.feeds.feeds) + len(s.drives); n > 0 {
		t.Errorf("%d feeds and drives are left", n)
	}
	model.Close() // with the connections that are kept for reuse
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before+20 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before+20 {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}
