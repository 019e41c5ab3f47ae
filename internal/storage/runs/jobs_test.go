package runs

import (
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A run is queued while a server has its job and does not drive it yet, until it is given up.
func TestQueuedRun(t *testing.T) {
	a := newOutings(t)
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Fork(t.Context(), st, "run-1", 1, "run-x"); err != nil {
		t.Fatal(err)
	}
	q := QueueOf(st)
	expect := func(when, want string) {
		t.Helper()
		v, err := a.ReadView(t.Context(), "run-x")
		if err != nil {
			t.Fatal(err)
		}
		list, err := a.ListRuns(t.Context(), "run-x")
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		if v.Status != want || list[0].Status != want {
			t.Errorf("%s: %s, and %s in a list, want %s", when, v.Status, list[0].Status, want)
		}
	}
	expect("without a job", graph.Paused.String())
	job := journal.DriveJob{Thread: "run-x", Run: "run-x", Token: "a"}
	if err := q.PutJob(t.Context(), job, 0); err != nil {
		t.Fatal(err)
	}
	expect("between two servers", Queued)
	taken, err := q.TakeJobs(t.Context(), journal.Worker{ID: "w", Places: 1}, 1, time.Minute)
	if err != nil || len(taken) != 1 {
		t.Fatalf("%d jobs, %v", len(taken), err)
	}
	expect("with a server", Queued)
	if err := q.ReturnJob(t.Context(), "run-x", taken[0].Token, journal.Return{GiveUp: true}); err != nil {
		t.Fatal(err)
	}
	expect("given up", GivenUp)
}
