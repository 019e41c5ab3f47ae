package server

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// confirmGraph asks at once, and ends with the answer.
const confirmGraph = `
name: confirm
start: ask
nodes:
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "Hello {{who}}"}
`

// A faultWorld is a service whose store fails when a test says so. What the store holds outlives the service.
type faultWorld struct {
	*world
	inside  *keptStore
	failing *graphtest.Failing
	service *Service
}

// keptStore stays open when a process closes it.
type keptStore struct{ *journal.Memory }

func (keptStore) Close() error { return nil }

func newFaultWorld(t *testing.T) *faultWorld {
	w := &faultWorld{world: newWorld(t), inside: &keptStore{journal.NewMemory()}}
	w.write(filepath.Join(w.home, ".config", "raddle", "agents", "confirm", "graph.yaml"), confirmGraph)
	return w
}

// serve starts a service, which continues what the one before has left.
func (w *faultWorld) serve(o Options) *Service {
	w.t.Helper()
	w.failing = &graphtest.Failing{Store: w.inside}
	p := w.open()
	if err := p.Runs.AttachStore(w.failing); err != nil {
		w.t.Fatal(err)
	}
	o.Recover = true
	s, err := New(p, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.service = s
	return s
}

// close ends the service.
func (w *faultWorld) close() {
	w.t.Helper()
	w.failing.Arm(graphtest.StoreFault{}, 0, 0)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := w.service.Close(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// settle waits until a run has ended or waits, with the looks of the service in between.
func (w *faultWorld) settle(run string) *runs.Detail {
	w.t.Helper()
	for range 500 {
		w.endLease(run)
		w.service.recovery.look(w.t.Context())
		st, err := w.service.WaitRun(w.t.Context(), run)
		if err != nil {
			w.t.Fatal(err)
		}
		if st.Final || st.asks || !w.service.files.hasMark(run) && !w.service.isActive(run) {
			d, err := w.service.findRun(w.t.Context(), run)
			if err != nil {
				w.t.Fatal(err)
			}
			return d
		}
	}
	w.t.Fatalf("run %s neither ends nor waits", run)
	return nil
}

// endLease ends the lease of a run that the service does not drive, as its time does.
func (w *faultWorld) endLease(run string) {
	w.t.Helper()
	l, err := w.inside.ReadLease(w.t.Context(), run)
	if err == nil && l.Owner != "" && !w.service.isActive(run) {
		err = w.inside.ReleaseLease(w.t.Context(), run, l.Owner)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A given is something that a service confirms, and how to see in the journal that it is there.
type given struct {
	name    string
	options Options
	prepare func(w *faultWorld) (run string)
	do      func(w *faultWorld, run string) (string, error)
	there   func(d *runs.Detail) bool
}

// startWaiting starts a run that waits.
func startWaiting(w *faultWorld) string {
	w.t.Helper()
	run, err := w.service.StartRun(w.t.Context(), StartRequest{Agent: "confirm", Prompt: "p"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle(run)
	return run
}

// occupy takes the only place of a service with a run that works until the service ends.
func occupy(w *faultWorld) {
	w.t.Helper()
	if _, err := w.service.StartRun(w.t.Context(), StartRequest{Agent: "wait", Prompt: "p"}); err != nil {
		w.t.Fatal(err)
	}
}

func answered(d *runs.Detail) bool { return d.Status == graph.Done.String() }

var givens = []given{
	{name: "start", prepare: func(*faultWorld) string { return "" }, there: func(d *runs.Detail) bool { return d != nil },
		do: func(w *faultWorld, _ string) (string, error) {
			return w.service.StartRun(w.t.Context(), StartRequest{Agent: "confirm", Prompt: "p", Key: "k"})
		}},
	{name: "queued start", options: Options{MaxRuns: 1}, prepare: func(w *faultWorld) string { occupy(w); return "" }, there: func(d *runs.Detail) bool { return d != nil },
		do: func(w *faultWorld, _ string) (string, error) {
			return w.service.StartRun(w.t.Context(), StartRequest{Agent: "confirm", Prompt: "p", Key: "k"})
		}},
	{name: "answer", prepare: startWaiting, there: answered, do: answerAda},
	{name: "queued answer", options: Options{MaxRuns: 1}, prepare: func(w *faultWorld) string { run := startWaiting(w); occupy(w); return run }, there: answered, do: answerAda},
	{name: "cancel", prepare: startWaiting, there: func(d *runs.Detail) bool { return d.Status == graph.Abandoned.String() },
		do: func(w *faultWorld, run string) (string, error) { return run, w.service.CancelRun(w.t.Context(), run) }},
	{name: "edit", prepare: startWaiting, there: func(d *runs.Detail) bool {
		for _, v := range d.Snapshot.Values {
			if v.Key == "who" {
				return true
			}
		}
		return false
	}, do: func(w *faultWorld, run string) (string, error) {
		_, err := app.RecordChange(w.t.Context(), w.service.process, app.RunChange{ID: run, Set: []app.Setting{{Key: "who", Value: "Bob"}}})
		return run, err
	}},
	{name: "continue of a run from elsewhere", prepare: startForeign, there: decided(runs.OriginContinue), do: decide(runs.OriginContinue)},
	{name: "accepted run from elsewhere", prepare: startForeign, there: decided(runs.OriginAccept), do: decide(runs.OriginAccept)},
	{name: "refused run from elsewhere", prepare: startForeign, there: decided(runs.OriginNo), do: decide(runs.OriginNo)},
	{name: "queued continue of a run from elsewhere", options: Options{MaxRuns: 1}, there: decided(runs.OriginContinue), do: decide(runs.OriginContinue),
		prepare: func(w *faultWorld) string { run := startForeign(w); occupy(w); return run }},
}

func answerAda(w *faultWorld, run string) (string, error) {
	_, err := w.service.AnswerRun(w.t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "Ada"}}})
	return run, err
}

// At each write of the store and for each way to fail: what was confirmed is there after a restart, an error of the store is reported as one, and
// what failed can be given again without being there twice.
func TestConfirmedMeansStored(t *testing.T) {
	for _, g := range givens {
		for _, fault := range graphtest.StoreFaults {
			t.Run(g.name+"/"+fault.Name, func(t *testing.T) {
				t.Parallel()
				for n := 1; ; n++ {
					if hit := confirmWithFault(t, &g, fault, n); !hit {
						if n == 1 {
							t.Error("nothing was written")
						}
						return
					}
				}
			})
		}
	}
}

// confirmWithFault gives something to a service whose store fails at one write.
func confirmWithFault(t *testing.T, g *given, fault graphtest.StoreFault, n int) (hit bool) {
	w := newFaultWorld(t)
	w.serve(g.options)
	run := g.prepare(w)
	w.failing.Arm(fault, n, n)
	run, err := g.do(w, run)
	hit = w.failing.Hits() > 0
	if err != nil && fault.Err != nil && hit && !failure.IsUnavailable(err) {
		t.Errorf("write %d: %v is not told as an error of the store", n, err)
	}
	w.write(filepath.Join(w.work, "go"), "")
	w.close()
	w.serve(Options{})
	defer w.close()
	if err != nil {
		for busy := true; busy; busy = is[*runs.BusyError](err) { // until the lease has ended that no one could release
			if run != "" {
				w.endLease(run)
			}
			run, err = g.do(w, run)
		}
		if err != nil && !errors.As(err, new(*runs.AnsweredError)) && !errors.As(err, new(*runs.EndedError)) {
			t.Fatalf("write %d: it cannot be given again: %v", n, err)
		}
	}
	if d := w.settle(run); !g.there(d) {
		t.Errorf("write %d: it was confirmed, and is not there: run %s is %s", n, run, d.Status)
	}
	list, err := w.service.process.Runs.ListRuns(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := range list {
		if list[i].Agent == "confirm" {
			seen++
		}
	}
	if seen != 1 {
		t.Errorf("write %d: there are %d runs", n, seen)
	}
	return hit
}

// Errors of the store are of the kind unavailable, and nothing else is.
func TestStoreErrorsAreUnavailable(t *testing.T) {
	w := newFaultWorld(t)
	s := w.serve(Options{})
	defer w.close()
	w.failing.Arm(graphtest.Refused, 1, 1<<30)
	_, err := s.StartRun(t.Context(), StartRequest{Agent: "confirm", Prompt: "p"})
	if !failure.IsUnavailable(err) {
		t.Errorf("a start: %v", err)
	}
	if err := CheckStore(t.Context(), s); !failure.IsUnavailable(err) {
		t.Errorf("the store counts as one that can be written: %v", err)
	}
	w.failing.Arm(graphtest.StoreFault{}, 0, 0)
	if _, err := s.AnswerRun(t.Context(), AnswerRequest{Run: "nosuch", Answers: []graph.Answer{{Value: "x"}}}); err == nil || failure.IsUnavailable(err) {
		t.Errorf("a run that does not exist: %v", err)
	}
	st, err := s.process.Runs.OpenStore()
	if err == nil {
		err = journal.Append(t.Context(), st, "x", 0, journal.Record{Kind: journal.KindStart})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.health.until = time.Time{}
	if err := CheckStore(t.Context(), s); err != nil {
		t.Errorf("after the store is back: %v", err)
	}
}

// An answer that a service has recorded and not continued is continued by the next one, also if the lease of the first has outlived it and looks
// like that of another process.
func TestAnswerUnderALeaseOfTheDead(t *testing.T) {
	w := newFaultWorld(t)
	w.serve(Options{MaxRuns: 1})
	run := startWaiting(w)
	occupy(w)
	if _, err := answerAda(w, run); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(w.work, "go"), "")
	w.close()
	l, err := w.inside.AcquireLease(t.Context(), run, "the dead", "", time.Hour)
	if err != nil || l.Owner != "the dead" {
		t.Fatal(l, err)
	}
	w.serve(Options{})
	defer w.close()
	for d := w.service.findDrive(run); d != nil; d = w.service.findDrive(run) { // it finds that the run is taken
		<-d.done
	}
	w.service.recovery.look(t.Context())
	driven, err := runs.IsDriven(t.Context(), w.service.process.Runs, run)
	if err != nil || !driven || !w.service.files.hasMark(run) {
		t.Fatal("the run is free: ", driven, err)
	}
	if d := w.settle(run); !answered(d) {
		t.Errorf("the answer is not continued: the run is %s", d.Status)
	}
}
