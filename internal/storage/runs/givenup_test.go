package runs

import (
	"testing"
	"time"

	"raddle.dev/graph/journal"
)

// A run is queued from the moment a server has it until it is given up or has ended, whichever server drives it.
func TestQueuedRun(t *testing.T) {
	a := newOutings(t)
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	q := QueueOf(st)
	v, err := a.ReadView(t.Context(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want bool) {
		t.Helper()
		if got, err := v.IsQueued(t.Context()); err != nil || got != want {
			t.Errorf("%s: queued %t, %v, want %t", when, got, err, want)
		}
	}
	expect("without a job", false)
	job := journal.DriveJob{Thread: "run-1", Run: "run-1", Token: "a"}
	if err := q.PutJob(t.Context(), job, 0); err != nil {
		t.Fatal(err)
	}
	expect("between two servers", true)
	taken, err := q.TakeJobs(t.Context(), journal.Worker{ID: "w", Places: 1}, 1, time.Minute)
	if err != nil || len(taken) != 1 {
		t.Fatalf("%d jobs, %v", len(taken), err)
	}
	expect("with a server", true)
	if err := q.ReturnJob(t.Context(), "run-1", taken[0].Token, journal.Return{GiveUp: true}); err != nil {
		t.Fatal(err)
	}
	expect("given up", false)
}
