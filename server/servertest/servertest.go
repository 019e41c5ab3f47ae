// Package servertest is for the tests of the protocols: a home directory with agents, a service that runs them, and a
// web server for a handler with a caller.
package servertest

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"raddle.dev/internal/process/app"
	"raddle.dev/server"
)

// A Home is a home directory with agents, and a directory to work in.
type Home struct {
	Dir     string
	Work    string
	Timeout time.Duration // how long runs may take to stop at the end; 0: 20 s

	t *testing.T
}

// NewHome makes a home directory. agents are the texts of files, by their paths below the agents directory.
func NewHome(t *testing.T, agents map[string]string) *Home {
	t.Helper()
	dir := t.TempDir()
	h := &Home{Dir: filepath.Join(dir, "home"), Work: filepath.Join(dir, "work"), t: t}
	for path, text := range agents {
		h.Write(path, text)
	}
	if err := os.MkdirAll(h.Work, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// Write writes a file below the agents directory. A script can be executed.
func (h *Home) Write(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.Dir, ".config", "raddle", "agents", filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

// Serve is ServeWith without options.
func (h *Home) Serve() (s *server.Service, stop func()) {
	h.t.Helper()
	return h.ServeWith(server.Options{})
}

// ServeWith starts a service in a process of its own. stop ends both, and so does the end of the test.
func (h *Home) ServeWith(o server.Options) (s *server.Service, stop func()) {
	h.t.Helper()
	p, err := app.Open(app.Options{Work: h.Work, Environ: []string{"HOME=" + h.Dir, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"}})
	if err != nil {
		h.t.Fatal(err)
	}
	if s, err = server.New(p, o); err != nil {
		h.t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(h.Timeout, 20*time.Second))
		defer cancel()
		if err := s.Close(ctx); err != nil {
			h.t.Error(err)
		}
		if err := p.Close(); err != nil {
			h.t.Error(err)
		}
	}
	h.t.Cleanup(stop)
	return s, stop
}

// Listen returns the address of a web server for a handler. Each request has the caller that callerOf returns; nil:
// none.
func Listen(t *testing.T, handler http.Handler, callerOf func() *server.Caller) string {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := callerOf(); c != nil {
			r = r.WithContext(server.WithCaller(r.Context(), *c))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.CloseClientConnections() // of streams whose reader has left
		web.Close()
	})
	return web.URL
}
