package server

import (
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runs"
)

// startForeign makes a run that waits one that came from elsewhere.
func startForeign(w *faultWorld) string {
	w.t.Helper()
	run := startWaiting(w)
	if err := foreign.Put(w.t.Context(), w.inside, run, foreign.Mark{From: "bug.raddle", At: time.Now()}); err != nil {
		w.t.Fatal(err)
	}
	return run
}

// decide answers the question about a run that came from elsewhere.
func decide(choice string) func(w *faultWorld, run string) (string, error) {
	return func(w *faultWorld, run string) (string, error) {
		_, err := w.service.AnswerRun(callAs(w.t, "ann"), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: runs.OriginQuestion, Value: choice}}})
		return run, err
	}
}

// decided reports whether what a person has decided about a run that came from elsewhere is recorded.
func decided(choice string) func(d *runs.Detail) bool {
	return func(d *runs.Detail) bool {
		m := d.Foreign
		if choice == runs.OriginNo {
			return m.Accepted == nil && m.Declined != nil && m.Declined.By == "ann" && d.Snapshot.Questions[0].ID == runs.OriginQuestion
		}
		return m.Accepted != nil && m.Accepted.Whole == (choice == runs.OriginAccept) && m.Accepted.By == "ann" && d.Snapshot.Questions[0].ID == "ask"
	}
}

// Each decision about a run that came from elsewhere is there when the service has confirmed it, whether the run is driven at once or waits for a
// place; and the answer says which questions are still open.
func TestForeignRunsAreDecided(t *testing.T) {
	for _, choice := range []string{runs.OriginContinue, runs.OriginAccept, runs.OriginNo} {
		for _, full := range []bool{false, true} {
			name := choice + "/free place"
			if full {
				name = choice + "/full queue"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newFaultWorld(t)
				s := w.serve(Options{MaxRuns: 1})
				run := startForeign(w)
				if full {
					occupy(w)
				}
				given, err := s.AnswerRun(callAs(t, "ann"), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: runs.OriginQuestion, Value: choice}}})
				if err != nil || len(given.Open) > 0 != (choice == runs.OriginNo) || given.At.At == 0 {
					t.Fatalf("%+v, %v", given, err)
				}
				mark, err := foreign.Find(t.Context(), w.inside, run)
				if err != nil || (mark.Accepted != nil) == (choice == runs.OriginNo) || (mark.Declined != nil) != (choice == runs.OriginNo) {
					t.Fatalf("when it is confirmed, the mark says %+v, %v", mark, err)
				}
				w.letGo()
				if d := w.settle(run); !decided(choice)(d) {
					t.Errorf("%+v, %v", d.Foreign, d.Snapshot.Questions)
				}
				_, err = decide(choice)(w, run)
				late, again := err.(*runs.AnsweredError)
				switch {
				case choice == runs.OriginNo && err != nil:
					t.Errorf("it cannot be answered again: %v", err)
				case choice != runs.OriginNo && (!again || late.Answer.By != "ann"):
					t.Errorf("a second decision: %v", err)
				}
				w.close()
			})
		}
	}
}
