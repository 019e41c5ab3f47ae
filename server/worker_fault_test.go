//go:build unix

package server

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// A run whose agent is another one by the time a server takes it, after a command has recorded an answer, is tried
// again later: the server works on.
func testAnswerThenChanged(t *testing.T, f *fleet) {
	back := f.join(Options{})
	run := start(t, back, "ask")
	other := start(t, back, "ask")
	for _, id := range []string{run, other} {
		f.await(back, id, graph.Waiting.String(), leaseTTL)
	}
	command := f.openAt()
	prepared, err := command.ResumeRun(t.Context(), run, app.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(f.home, ".config", "raddle", "agents", "ask", "graph.yaml")
	f.write(agent, "name: [broken\n")
	ctx, served := runs.WithServers(t.Context(), command.Runs, prepared.Thread, prepared.ID)
	answers := []graph.Answer{{Value: "Ada"}}
	if _, err := app.RecordChange(ctx, command, app.RunChange{Run: prepared, Answers: answers}); err != nil || !served {
		t.Fatal(served, err)
	}
	prepared.Close()
	if strings.HasPrefix(f.store, "postgres") { // it keeps the files of the agent for other machines
		f.await(back, run, "done", leaseTTL)
		return
	}
	for job := f.awaitJob(back, run); job.Reasons == ""; job = f.awaitJob(back, run) {
		f.pause()
	}
	if job := f.awaitJob(back, run); job.Attempts != 1 || job.GivenUp {
		t.Errorf("after one attempt the job is %+v", job)
	}
	f.write(agent, askGraph)
	if _, err := back.AnswerRun(t.Context(), AnswerRequest{Run: other, Answers: answers}); err != nil {
		t.Fatal(err)
	}
	f.await(back, other, "done", leaseTTL) // the server works
	if err := back.ResumeRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	f.await(back, run, "done", leaseTTL)
}

// awaitJob waits until there is a job of a run, and returns it.
func (f *fleet) awaitJob(s *Service, run string) journal.DriveJob {
	f.t.Helper()
	for end := time.Now().Add(leaseTTL); ; f.pause() {
		for _, job := range f.jobs(s) {
			if job.Run == run {
				return job
			}
		}
		if time.Now().After(end) {
			f.t.Fatalf("there is no job of run %s", run)
		}
	}
}

// pause lets other processes and goroutines work: nothing reports when they change the store.
func (f *fleet) pause() { time.Sleep(20 * time.Millisecond) }

// A run that waits for a place, and that a person has continued and stopped elsewhere meanwhile, stays stopped.
func testStoppedElsewhere(t *testing.T, f *fleet) {
	s := f.join(Options{MaxRuns: 1})
	working := start(t, s, "wait")
	f.awaitEffects(1)
	queued := start(t, s, "ask")
	command := f.openAt()
	prepared, err := command.ResumeRun(t.Context(), queued, app.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pause := make(chan struct{})
	close(pause)
	res, err := prepared.Drive(t.Context(), app.Driver{Topics: graph.TopicRun, Pause: pause})
	prepared.Close()
	if err != nil || res.Status != graph.Paused {
		t.Fatal(res.Status, err)
	}
	f.letGo()
	f.await(s, working, "done", leaseTTL)
	last := start(t, s, "ask") // its place comes after that of the stopped run
	f.await(s, last, graph.Waiting.String(), leaseTTL)
	if st, err := s.ReadState(t.Context(), queued); err != nil || st.Status != graph.Paused.String() {
		t.Errorf("the run is %+v (%v)", st, err)
	}
}

// A drive that has lost its job, because it was renewed too late, still ends it as a person wants: what a person
// pauses stays paused.
func testLostJobIsStopped(t *testing.T, f *fleet) {
	s := f.join(Options{MaxRuns: 1})
	run := start(t, s, "wait")
	f.awaitEffects(1)
	lost := journal.DriveJob{Thread: f.awaitJob(s, run).Thread, Run: run, Token: "another"}
	if err := s.worker.queue.PutJob(t.Context(), lost, 0); err != nil { // as another worker leaves it that found the run busy
		t.Fatal(err)
	}
	if err := s.PauseRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	f.letGo()
	f.await(s, run, graph.Paused.String(), leaseTTL)
	if left := f.jobs(s); len(left) > 0 {
		t.Errorf("jobs remain: %+v", left)
	}
}

// A service that continues only what it has started itself, as in the Studio, is no server on which others may count.
// It tries its own runs again.
func testOwnRunsOnly(t *testing.T, f *fleet) {
	own, err := New(f.openAt(), Options{MaxRuns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.shut(own) })
	run := start(t, own, "wait")
	f.awaitEffects(1)
	command := f.openAt()
	if _, served := runs.WithServers(t.Context(), command.Runs, run, run); served {
		t.Error("it counts as a server that takes runs")
	}
	queued := start(t, own, "ask")
	h := own.worker.heldOf(queued)
	if h == nil {
		t.Fatal("it does not hold a run that waits for a place")
	}
	own.dequeueRun(queued)
	own.worker.fail(queued, &runs.BusyError{})
	f.letGo()
	f.await(own, run, "done", leaseTTL)
	f.await(own, queued, graph.Waiting.String(), leaseTTL)
}

// What a person has stopped is not continued because the server ends afterwards, and a run that has ended leaves no
// job.
func testDrainKeepsWishes(t *testing.T, f *fleet) {
	s := f.join(Options{MaxRuns: 2})
	paused := start(t, s, "wait")
	f.awaitEffects(1)
	if err := s.PauseRun(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	s.worker.drain()
	f.letGo()
	f.await(s, paused, graph.Paused.String(), leaseTTL)
	done := start(t, s, "wait")
	f.await(s, done, "done", leaseTTL)
	if left := f.jobs(s); len(left) > 0 {
		t.Errorf("jobs remain: %+v", left)
	}
}

// Only failures of a run count as attempts, and no longer when a step is finished.
func testAttempts(t *testing.T, f *fleet) {
	front := f.join(Options{NoWorker: true})
	run := start(t, front, "ask")
	back := openWorker(front, front.worker.queue)
	for _, c := range []struct {
		name     string
		err      error
		progress bool
		attempts int // at the next attempt
	}{
		{"busy", &runs.BusyError{}, false, 1},
		{"stopped", context.Canceled, false, 1},
		{"away", journal.MarkUnavailable(errors.New("away")), false, 1},
		{"failed", errors.New("it fell over"), false, 2},
		{"failed again", errors.New("it fell over"), false, 3},
		{"failed after a step", errors.New("it fell over"), true, 2},
	} {
		list := f.takeNow(back, run)
		h := &journal.Hold{Job: list, TTL: jobTTL}
		back.holds[run] = h
		if c.progress && !h.NoteProgress() {
			t.Errorf("%s: it does not say that earlier attempts counted", c.name)
		}
		if err := back.queue.RenewJobs(t.Context(), back.self, []journal.Renewal{h.Renewal()}, jobTTL); err != nil {
			t.Fatal(err)
		}
		back.fail(run, c.err)
		if job := f.awaitJob(front, run); job.Worker != "" || job.Attempts+1 != c.attempts {
			t.Errorf("%s: the job is %+v, want %d attempts at the next one", c.name, job, c.attempts)
		}
	}
}

// takeNow gives the job of a run to a worker, whenever it is due.
func (f *fleet) takeNow(w *worker, run string) journal.DriveJob {
	f.t.Helper()
	job := f.awaitJob(w.service, run)
	job.Attempts++
	job.Worker = w.self.ID
	job.Token += "+" // or the store would count by itself
	if err := w.queue.PutJob(f.t.Context(), job, jobTTL); err != nil {
		f.t.Fatal(err)
	}
	return job
}

// A run that waits for a place stays in the queue of its server if the store refuses to remove its job.
func TestStopWaitingFails(t *testing.T) {
	f := newFileFleet(t)
	s := f.join(Options{MaxRuns: 1})
	working := start(t, s, "wait")
	f.awaitEffects(1)
	queued := start(t, s, "ask")
	s.worker.queue = awayToFinish{s.worker.queue}
	if err := s.PauseRun(t.Context(), queued); err == nil {
		t.Error("the run is stopped, and its job remains")
	}
	f.letGo()
	f.await(s, working, "done", leaseTTL)
	f.await(s, queued, graph.Waiting.String(), leaseTTL)
}

// awayToFinish is a queue that is away when a job is finished.
type awayToFinish struct{ journal.Queue }

func (awayToFinish) FinishJob(context.Context, string, string) error {
	return journal.MarkUnavailable(errors.New("away"))
}
