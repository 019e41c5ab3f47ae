package server

import (
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/internal/process/app"
)

// A run whose drive ended with an error of the store keeps its mark, and the service continues it when the store is back.
func TestStoreIsBack(t *testing.T) {
	w := newFaultWorld(t)
	s := w.serve(Options{})
	defer w.close()
	run, err := s.StartRun(t.Context(), StartRequest{Agent: "wait", Prompt: "p"})
	if err != nil {
		t.Fatal(err)
	}
	d := s.findDrive(run)
	w.failing.Arm(graphtest.Refused, 1, 1<<30)
	w.write(filepath.Join(w.work, "go"), "")
	<-d.done
	if !s.files.hasMark(run) {
		t.Fatal("the mark is gone, and the journal has no end")
	}
	w.failing.Arm(graphtest.StoreFault{}, 0, 0)
	if d := w.settle(run); d.Status != graph.Done.String() {
		t.Errorf("it is %s", d.Status)
	}
	if s.files.hasMark(run) {
		t.Error("the mark of a run that is done remains")
	}
}

// What other processes do with a run that has a mark: the service continues it when that process was a service that ended, and leaves it alone
// if someone has stopped it.
func TestMarkedElsewhere(t *testing.T) {
	for _, drained := range []bool{false, true} {
		w := newFaultWorld(t)
		s := w.serve(Options{})
		run, err := s.process.StartRun(app.Request{Agent: "wait", Prompt: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.files.addMark(run.ID); err != nil {
			t.Fatal(err)
		}
		s.recovery.elsewhere[run.ID] = true
		if _, err := app.RecordChange(t.Context(), s.process, app.RunChange{Run: run}); err != nil {
			t.Fatal(err)
		}
		run.Close()
		if drained {
			if err := s.files.notePending(run.ID); err != nil {
				t.Fatal(err)
			}
		}
		again, err := s.recovery.canContinue(t.Context(), run.ID)
		if err != nil || again != drained || s.files.hasMark(run.ID) != drained {
			t.Errorf("drained %t: it is continued: %t (%v)", drained, again, err)
		}
		w.close()
	}
}

// A run that cannot be continued is tried more and more rarely.
func TestObstacles(t *testing.T) {
	w := newFaultWorld(t)
	s := w.serve(Options{})
	defer w.close()
	run := startWaiting(w)
	if _, err := s.files.addMark(run); err != nil {
		t.Fatal(err)
	}
	s.recovery.noteFailure(run, errDraining)
	if s.recovery.isDue(run) {
		t.Error("it is tried again at once")
	}
	first := s.recovery.failed[run].delay
	s.recovery.noteFailure(run, errDraining)
	if s.recovery.failed[run].delay <= first {
		t.Error("the attempts do not become rarer")
	}
	for range 20 {
		s.recovery.noteFailure(run, errDraining)
	}
	if s.recovery.failed[run].delay != maxBackoff {
		t.Errorf("the longest pause is %v", s.recovery.failed[run].delay)
	}
}

// Files that were being written at a kill are removed by the next service.
func TestPartsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	f, err := openStateFiles(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, d := range []string{f.drives, f.breaks} {
		path := filepath.Join(d, "run"+partSuffix)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		left = append(left, path)
	}
	if _, err := openStateFiles(dir, "x"); err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s remains", path)
		}
	}
}

// besideGraph asks in one branch while another works.
const besideGraph = `
name: beside
start: a
nodes:
  a: {type: script, script: a.sh, next: [b, c]}
  b: {type: script, script: a.sh, state_updates: {b: yes}, next: work}
  c: {type: script, script: a.sh, state_updates: {c: yes}, next: ask}
  work: {type: script, script: work.sh, timeout: 60, state_updates: {worked: yes}, next: done}
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "Hello {{who}}"}
`

// A run that was killed with an open question next to a working branch continues that branch, and waits then.
func TestQuestionBesideWork(t *testing.T) {
	w := newFaultWorld(t)
	dir := filepath.Join(w.home, ".config", "raddle", "agents", "beside")
	w.write(filepath.Join(dir, "graph.yaml"), besideGraph)
	w.write(filepath.Join(dir, "a.sh"), "echo '{}'\n")
	w.write(filepath.Join(dir, "work.sh"), "while [ ! -e "+filepath.Join(w.work, "go")+" ]; do sleep 0.02; done\necho '{}'\n")
	s := w.serve(Options{})
	defer func() { w.close() }()
	run, err := s.StartRun(t.Context(), StartRequest{Agent: "beside", Prompt: "p"})
	if err != nil {
		t.Fatal(err)
	}
	for asked := false; !asked; {
		st, err := s.ReadState(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		asked = len(st.Questions) > 0
	}
	d := s.findDrive(run)
	w.failing.Arm(graphtest.Refused, 1, 1<<30) // the drive can record nothing more, as after a kill
	w.write(filepath.Join(w.work, "go"), "")
	<-d.done
	w.failing.Arm(graphtest.StoreFault{}, 0, 0)
	state := w.settle(run)
	if state.Status != graph.Waiting.String() || len(state.Snapshot.Questions) != 1 {
		t.Fatalf("it is %s with %d questions", state.Status, len(state.Snapshot.Questions))
	}
	for range 3 {
		s.recovery.look(t.Context())
	}
	if again, err := s.findRun(t.Context(), run); err != nil || again.Snapshot.Head != state.Snapshot.Head {
		t.Errorf("a run that only waits is driven again (%v)", err)
	}
	if _, err := s.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "Ada"}}}); err != nil {
		t.Fatal(err)
	}
	if d := w.settle(run); d.Status != graph.Done.String() {
		t.Errorf("it is %s", d.Status)
	}
}
