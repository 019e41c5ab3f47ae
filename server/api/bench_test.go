//go:build unix

package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"raddle.dev/internal/app"
	"raddle.dev/server"
)

// BenchmarkListRuns lists runs over HTTP while 200 runs write their journals, and reports what 99 of 100 requests do not exceed.
func BenchmarkListRuns(b *testing.B) {
	dir := b.TempDir()
	agent := filepath.Join(dir, "home", ".config", "raddle", "agents", "long")
	if err := os.MkdirAll(agent, 0o700); err != nil {
		b.Fatal(err)
	}
	graph := "name: long\nstart: n0\nnodes:\n"
	for i := range 60 {
		graph += fmt.Sprintf("  n%d: {type: script, script: step.sh, next: n%d}\n", i, i+1)
	}
	graph += "  n60: {type: end}\n"
	for name, text := range map[string]string{"graph.yaml": graph, "step.sh": "sleep 1\necho '{}'\n"} {
		if err := os.WriteFile(filepath.Join(agent, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	p, err := app.Open(app.Options{Work: dir, Environ: []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}})
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
	defer func() { _ = s.Close(b.Context()) }()
	for range 200 {
		if _, err := s.StartRun(b.Context(), server.StartRequest{Agent: "long"}); err != nil {
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
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
