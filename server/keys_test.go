package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
)

// countAgent returns how many runs of an agent there are.
func (w *world) countAgent(s *Service, agent string) (n int) {
	w.t.Helper()
	list, err := s.process.Runs.ListRuns(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list {
		if list[i].Agent == agent {
			n++
		}
	}
	return n
}

// A key means one run: whether the callers wait or leave, come at once or later, to one service or to two that share their files.
func TestKeyMeansOneRun(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	request := StartRequest{Agent: "wait", Prompt: "x", Key: "k"}
	for name, call := range map[string]func(t *testing.T, a, b *Service){
		"one caller": func(t *testing.T, a, _ *Service) { _, _ = a.StartRun(t.Context(), request) },
		"callers that have left": func(_ *testing.T, a, b *Service) {
			for range 10 {
				_, _ = a.StartRun(left, request)
				_, _ = b.StartRun(left, request)
			}
		},
		"callers of two services at once": func(t *testing.T, a, b *Service) {
			var all sync.WaitGroup
			for _, s := range []*Service{a, b, a, b} {
				all.Go(func() { _, _ = s.StartRun(t.Context(), request) })
			}
			all.Wait()
		},
		"callers that leave while others wait": func(t *testing.T, a, b *Service) {
			var all sync.WaitGroup
			for i, s := range []*Service{a, b, a, b} {
				ctx := t.Context()
				if i < 2 {
					ctx = left
				}
				all.Go(func() { _, _ = s.StartRun(ctx, request) })
			}
			all.Wait()
		},
	} {
		for _, places := range []int{1, 4} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.t = t
				a, b := w.serve(Options{MaxRuns: places}), w.serve(Options{MaxRuns: places})
				if places == 1 { // the start is recorded, and waits for a place
					start(t, a, "wait")
					start(t, b, "wait")
				}
				before := w.countAgent(a, "wait")
				call(t, a, b)
				run, err := a.StartRun(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				if again, err := b.StartRun(t.Context(), request); err != nil || again != run {
					t.Errorf("the other service has %s for the run %s, %v", again, run, err)
				}
				if n := w.countAgent(a, "wait") - before; n != 1 {
					t.Errorf("the key has started %d runs", n)
				}
				w.letGo()
			})
		}
	}
}

// A server that was killed between a key and the start of its run has started nothing: the next request starts that run.
func TestKeyWithoutStart(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	other := w.serve(Options{})
	defer w.letGo()
	request := StartRequest{Agent: "wait", Prompt: "x", Key: "k"}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	id := graph.NewID(time.Now())
	left := keyEntry{Run: id, Thread: id, Request: hashText(text)}
	if _, err := s.keys.AddValue(t.Context(), hashText([]byte("k")), left, keyLife); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Service{other, s} {
		if run, err := s.StartRun(t.Context(), request); err != nil || run != id {
			t.Errorf("%s for %s, %v", run, id, err)
		}
	}
	request.Prompt = "y"
	if _, err := s.StartRun(t.Context(), request); !is[*KeyReusedError](err) {
		t.Errorf("another request with the key: %v", err)
	}
	if n := w.countAgent(s, "wait"); n != 1 {
		t.Errorf("the key has started %d runs", n)
	}
	if _, ok, err := s.keys.ReadValue(t.Context(), hashText([]byte("other"))); ok || err != nil {
		t.Error(ok, err)
	}
}

// A request with a known key needs no room: it starts nothing.
func TestKnownKeyNeedsNoRoom(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	defer w.letGo()
	full := errors.New("no start is left")
	caller := Caller{Name: "ann", Scopes: Scopes}
	request := StartRequest{Agent: "wait", Prompt: "x", Key: "k"}
	run, err := s.StartRun(WithCaller(t.Context(), caller), request)
	if err != nil {
		t.Fatal(err)
	}
	caller.TakeStart = func() error { return full }
	s.process.Config.MinFreeDisk = 1 << 62
	if again, err := s.StartRun(WithCaller(t.Context(), caller), request); err != nil || again != run {
		t.Errorf("%s for %s, %v", again, run, err)
	}
	request.Key = "other"
	if _, err := s.StartRun(WithCaller(t.Context(), caller), request); !failure.IsUnavailable(err) {
		t.Errorf("without room: %v", err)
	}
	s.process.Config.MinFreeDisk = -1
	if _, err := s.StartRun(WithCaller(t.Context(), caller), request); !errors.Is(err, full) {
		t.Errorf("without a start left: %v", err)
	}
}

// However many starts a full disk refuses, the log has a line a minute.
func TestFullDiskIsLoggedOnce(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	s := w.serve(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.process.Config.MinFreeDisk = 1 << 62
	for range 20 {
		if _, err := s.StartRun(t.Context(), StartRequest{Agent: "wait"}); !errors.As(err, new(*DiskLowError)) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "the disk is almost full"); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
}
