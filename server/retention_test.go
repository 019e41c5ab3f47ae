package server

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"raddle.dev/internal/base/failure"
)

// Runs that are older than the configuration keeps them are removed; runs that wait, and younger ones, stay.
func TestRetention(t *testing.T) {
	w := newWorld(t)
	first := w.serve(Options{})
	old := start(t, first, "wait")
	w.letGo()
	wait(t, first, old, "done")
	open := start(t, first, "ask")
	wait(t, first, open, "waiting")
	w.shut(first)
	s := w.serve(Options{})
	list := func() (ids []string) {
		runs, err := s.process.Runs.ListRuns(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			ids = append(ids, r.Run)
		}
		return ids
	}
	s.process.Config.Retention.Done, s.process.Config.Retention.Failed = time.Hour, 1
	removeOldRuns(t.Context(), s)
	if ids := list(); len(ids) != 2 {
		t.Errorf("a young run was removed: %q", ids)
	}
	w.write(filepath.Join(w.home, ".config", "raddle", "config.yaml"), "retention_done: 1ns\n")
	w.serve(Options{RemoveOld: true})
	for end := time.Now().Add(20 * time.Second); len(list()) > 1 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	if ids := list(); !slices.Equal(ids, []string{open}) {
		t.Errorf("%q are left, want %s", ids, open)
	}
	if _, err := s.ReadState(t.Context(), old); !errors.As(err, new(*failure.Error)) {
		t.Errorf("%v", err)
	}
}
