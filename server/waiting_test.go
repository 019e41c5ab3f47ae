//go:build unix

package server

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// napGraph waits between two effects.
const napGraph = `
name: nap
start: first
nodes:
  first: {type: script, script: ../ask/first.sh, next: nap}
  nap: {type: wait, for: 1s, next: last}
  last: {type: script, script: ../ask/last.sh, next: done}
  done: {type: end, output: rested}
`

// checkFired checks that the timers of a run have fired once each, and not before their time.
func (f *fleet) checkFired(s *Service, run string) {
	f.t.Helper()
	thread, entries, err := s.process.Runs.ReadHistory(f.t.Context(), run)
	if err != nil {
		f.t.Fatal(err)
	}
	asked := 0
	fired := 0
	for _, e := range entries {
		switch e.Kind {
		case journal.KindQuestion:
			asked++
		case journal.KindAnswer:
			fired++
			st, err := s.process.Runs.OpenStore()
			if err != nil {
				f.t.Fatal(err)
			}
			before, err := history.Inspect(f.t.Context(), st, thread, e.Seq-1)
			if err != nil || len(before.Timers) != 1 || e.Time.Before(before.Timers[0].Due) {
				f.t.Errorf("a timer of run %s has fired at %v, and its time is %+v (%v)", run, e.Time, before.Timers, err)
			}
		}
	}
	if asked != 1 || fired != 1 {
		f.t.Errorf("run %s has %d timers, and %d have fired", run, asked, fired)
	}
}

// Servers of one store continue runs that wait for a time when it has come: each once, and none too early.
func testWaking(t *testing.T, f *fleet) {
	f.write(filepath.Join(f.home, ".config", "raddle", "agents", "nap", "graph.yaml"), napGraph)
	one := f.join(Options{MaxRuns: 1})
	f.join(Options{MaxRuns: 1})
	var list []string
	for range 4 {
		list = append(list, start(t, one, "nap"))
	}
	waited := false
	for end := time.Now().Add(twoLeases); !waited && time.Now().Before(end); f.pause() {
		st, err := one.ReadState(t.Context(), list[0])
		if err != nil || st.Final {
			t.Fatalf("it is %+v (%v)", st, err)
		}
		waited = st.Status == graph.Waiting.String() && !st.Due.IsZero() && len(st.Questions) == 0
	}
	if !waited {
		t.Error("the run does not wait for its time")
	}
	for _, run := range list {
		if st := f.await(one, run, "done", twoLeases); st.Output != "rested" {
			t.Errorf("it is %+v", st)
		}
		f.checkFired(one, run)
	}
	if n := len(f.effects()); n != 2*len(list) {
		t.Errorf("there are %d effects of %d runs", n, len(list))
	}
	for end := time.Now().Add(leaseTTL); len(f.jobs(one)) > 0; f.pause() {
		if time.Now().After(end) {
			t.Fatalf("jobs remain: %+v", f.jobs(one))
		}
	}
}

// A server that has parked a run is killed before the time comes: another one continues it then.
func testWakingOfTheKilled(t *testing.T, f *fleet) {
	agent := filepath.Join(f.home, ".config", "raddle", "agents", "kill")
	f.write(filepath.Join(agent, "graph.yaml"), strings.Replace(killGraph, `{type: input, question: Who?, state_updates: {who: "{{input}}"}, next: last}`, "{type: wait, for: 2s, next: last}", 1))
	f.write(filepath.Join(agent, "step.sh"), "echo '{}'\n")
	cmd := startKilled(f.world, "one", storeVar+"="+f.store)
	watch := f.join(Options{NoWorker: true})
	run := ""
	for end := time.Now().Add(leaseTTL); run == ""; f.pause() {
		list, err := watch.process.Runs.ListRuns(t.Context(), "")
		if err != nil || time.Now().After(end) {
			t.Fatalf("no run waits: %+v (%v)", list, err)
		}
		if len(list) > 0 && list[0].Status == graph.Waiting.String() && !list[0].Due.IsZero() {
			run = list[0].Run
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if job := f.awaitJob(watch, run); job.Worker != "" || job.GivenUp {
		t.Fatalf("the job is %+v", job)
	}
	f.join(Options{})
	f.await(watch, run, "done", twoLeases)
	f.checkFired(watch, run)
	f.checkKilledOn(watch.process, 1)
}
