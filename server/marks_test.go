package server

import (
	"context"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// takeOver lets another service take up a run, which marks it, in the middle of what a test does. It returns the id of the mark.
func takeOver(w *faultWorld, run string) string {
	w.t.Helper()
	id, err := w.service.files.addMark(run)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// lockAs takes the lock of a run, as another process does that is about to drive it.
func lockAs(w *faultWorld, run string) *runs.Lock {
	w.t.Helper()
	st, err := w.service.process.Runs.OpenStore()
	if err != nil {
		w.t.Fatal(err)
	}
	lock, err := st.LockRun(run)
	if err != nil {
		w.t.Fatal(err)
	}
	return lock
}

// Wherever a service is done with a run, it leaves the mark of another service that has taken the run up meanwhile.
func TestMarksOfOthersStay(t *testing.T) {
	for name, step := range map[string]func(w *faultWorld) (run, theirs string){
		"the end of a drive": func(w *faultWorld) (run, theirs string) {
			run = start(w.t, w.service, "wait")
			d := w.service.findDrive(run)
			theirs = takeOver(w, run)
			w.letGo()
			<-d.done
			return run, theirs
		},
		"after the run was released": func(w *faultWorld) (run, theirs string) {
			run = startWaiting(w)
			w.service.mu.Lock()
			d := w.service.addDrive(run)
			w.service.mu.Unlock()
			theirs = takeOver(w, run)
			w.service.endDrive(d)
			return run, theirs
		},
		"a run of the queue that is taken": func(w *faultWorld) (run, theirs string) {
			run = startWaiting(w)
			lock := lockAs(w, run)
			defer lock.Release()
			theirs = takeOver(w, run)
			w.service.enqueueRun(run)
			for w.service.isActive(run) {
				time.Sleep(time.Millisecond)
			}
			return run, theirs
		},
		"a look": func(w *faultWorld) (run, theirs string) {
			run = startWaiting(w)
			d, err := w.service.findRun(w.t.Context(), run)
			if err != nil {
				w.t.Fatal(err)
			}
			old := takeOver(w, run)
			theirs = takeOver(w, run)
			if released, err := releaseMark(w.service, d, mark{ID: old}); !released || err != nil {
				w.t.Fatal(released, err)
			}
			return run, theirs
		},
		"a look while the run is taken": func(w *faultWorld) (run, theirs string) {
			run = startWaiting(w)
			theirs = takeOver(w, run)
			d, err := w.service.findRun(w.t.Context(), run)
			if err != nil {
				w.t.Fatal(err)
			}
			lock := lockAs(w, run)
			defer lock.Release()
			if released, err := releaseMark(w.service, d, mark{ID: theirs}); released || err != nil {
				w.t.Fatal(released, err)
			}
			return run, theirs
		},
		"a pause of what is in the queue": func(w *faultWorld) (run, theirs string) {
			run = startWaiting(w)
			theirs = takeOver(w, run)
			lock := lockAs(w, run)
			defer lock.Release()
			w.service.mu.Lock()
			w.service.waiting = []string{run}
			w.service.mu.Unlock()
			if err := w.service.PauseRun(w.t.Context(), run); err == nil {
				w.t.Error("a run that another process drives is paused")
			}
			return run, theirs
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.serve(Options{})
			defer w.close()
			run, theirs := step(w)
			if m, ok := w.service.files.readMark(run); !ok || m.ID != theirs {
				t.Errorf("the mark is %+v (%t); want %s", m, ok, theirs)
			}
		})
	}
}

// A service that ends notes it in the mark also if the run got its mark after that; and it makes no mark for a run that has stopped.
func TestPendingNotes(t *testing.T) {
	f, err := openStateFiles(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.notePending("r"); err != nil || f.hasMark("r") {
		t.Errorf("a run without a mark has one: %v", err)
	}
	id, err := f.addMark("r")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.notePending("r"); err != nil {
			t.Fatal(err)
		}
		if m, ok := f.readMark("r"); !ok || m != (mark{ID: id, Pending: true}) {
			t.Errorf("%+v, %t", m, ok)
		}
	}
	f.removeMark("r", id)
	if f.hasMark("r") {
		t.Error("the mark remains")
	}
	w := newFaultWorld(t)
	s := w.serve(Options{})
	run := start(t, s, "wait")
	w.awaitEffects(1)
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	if _, err := s.files.addMark(run); err != nil { // as a drive that Close has seen before
		t.Fatal(err)
	}
	id, _ = func() (string, bool) { m, ok := s.files.readMark(run); return m.ID, ok }()
	d := s.findDrive(run)
	d.requestPause()
	w.letGo()
	<-d.done
	if m, ok := s.files.readMark(run); !ok || m != (mark{ID: id, Pending: true}) {
		t.Errorf("after the drive: %+v, %t", m, ok)
	}
	w.close()
}

// A run has one drive at a time: a caller that has prepared it waits for a drive that is about to find out that the run is taken.
func TestOneDriveOfARun(t *testing.T) {
	for _, places := range []int{1, 2} {
		w := newFaultWorld(t)
		s := w.serve(Options{MaxRuns: places})
		run := startWaiting(w)
		prepared, err := s.takeRun(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		other := s.addDrive(run)
		s.mu.Unlock()
		left, leave := context.WithCancel(t.Context())
		leave()
		if d, err := s.reservePlace(left, run); d != nil || err == nil {
			t.Errorf("there is a second drive: %v, %v", d, err)
		}
		confirmed := make(chan error)
		go func() {
			_, err := s.launchRun(t.Context(), launch{run: prepared, answers: []graph.Answer{{Value: "Ada"}}})
			confirmed <- err
		}()
		go s.resumeQueued(other)
		if err := <-confirmed; err != nil {
			t.Fatal(err)
		}
		if d := w.settle(run); d.Status != graph.Done.String() {
			t.Errorf("it is %s", d.Status)
		}
		if driven, queued := s.CountDrives(); driven+queued > 0 {
			t.Errorf("%d are driven, %d wait", driven, queued)
		}
		w.close()
	}
}

// A run that is put in the queue while a drive of it ends is driven again after that.
func TestQueuedWhileADriveEnds(t *testing.T) {
	w := newFaultWorld(t)
	s := w.serve(Options{})
	defer w.close()
	run := startWaiting(w)
	s.mu.Lock()
	ending := s.addDrive(run)
	s.mu.Unlock()
	prepared, err := s.process.ResumeRun(t.Context(), run, app.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.recordOnly(t.Context(), launch{run: prepared, answers: []graph.Answer{{Value: "Ada"}}}); err != nil {
		t.Fatal(err)
	}
	takeOver(w, run)
	prepared.Close()
	s.enqueueRun(run)
	s.endDrive(ending)
	if st, err := s.WaitRun(t.Context(), run); err != nil || st.Status != graph.Done.String() {
		t.Errorf("%+v, %v", st, err)
	}
}

// What a request has brought is recorded also if its caller leaves.
func TestCallersThatLeave(t *testing.T) {
	w := newFaultWorld(t)
	s := w.serve(Options{MaxRuns: 1})
	run := startWaiting(w)
	occupy(w)
	left, leave := context.WithCancel(callAs(t, "ann"))
	leave()
	for name, l := range map[string]func() (launch, error){
		"answer": func() (launch, error) {
			prepared, err := s.process.ResumeRun(t.Context(), run, app.ResumeOptions{})
			return launch{run: prepared, answers: []graph.Answer{{Value: "Ada"}}}, err
		},
		"start": func() (launch, error) {
			prepared, err := s.process.StartRun(app.Request{Agent: "confirm", Prompt: "p"})
			return launch{run: prepared}, err
		},
	} {
		given, err := l()
		if err != nil {
			t.Fatal(err)
		}
		if at, err := s.launchRun(left, given); err != nil || at.At == 0 {
			t.Errorf("%s: at %v, %v", name, at, err)
		}
	}
	w.letGo()
	w.close()
}

// Answers are given to the drive of a run as soon as it has started, also if it was only being prepared when they came.
func TestAnswerDuringPreparation(t *testing.T) {
	w := newWorld(t)
	dir := w.home + "/.config/raddle/agents/both"
	w.write(dir+"/graph.yaml", bothGraph)
	w.write(dir+"/split.sh", "echo '{}'\n")
	s := w.serve(Options{})
	run := start(t, s, "both")
	w.awaitEffects(2)
	for asked := false; !asked; {
		st, err := s.ReadState(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		asked = len(st.Questions) > 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Close(ctx)
	next := w.serve(Options{})
	next.mu.Lock()
	d := next.addDrive(run) // which is only being prepared
	next.mu.Unlock()
	answered := make(chan error)
	go func() {
		_, err := next.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: "interview/ask", Value: "Eve"}}})
		answered <- err
	}()
	if _, err := next.files.addMark(run); err != nil {
		t.Fatal(err)
	}
	go next.resumeQueued(d)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if next.findDrive(run) != d {
		t.Error("the answer came after the drive, whose other branch works and does not end")
	}
	w.letGo()
	wait(t, next, run, "done")
}
