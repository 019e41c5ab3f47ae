//go:build unix

package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/pgtest"
)

// A fleet is several services with homes of their own on one store.
type fleet struct {
	*world
	store string
}

// storeVar names the store of a server that is another process.
const storeVar = "RADDLE_TEST_STORE"

// workerTests are the tests of workers, which every store with a queue must pass.
var workerTests = map[string]func(t *testing.T, f *fleet){
	"Adoption": testAdoption,
	"NoWorker": testNoWorker,
	"Handover": testHandover,
	"Share":    testShare,
	"GivenUp":  testGivenUp,
	"Answer":   testAnswerOfACommand,

	"AnswerThenChanged": testAnswerThenChanged,
	"StoppedElsewhere":  testStoppedElsewhere,
	"LostJobIsStopped":  testLostJobIsStopped,
	"OwnRunsOnly":       testOwnRunsOnly,
	"DrainKeepsWishes":  testDrainKeepsWishes,
	"Attempts":          testAttempts,

	"Waking":            testWaking,
	"WakingOfTheKilled": testWakingOfTheKilled,
}

func TestWorkers(t *testing.T) { testFileFleets(t, workerTests) }

func TestExtraWorkers(t *testing.T) { testServerFleets(t, workerTests) }

// testFileFleets runs tests, each with a store in a file of its own.
func testFileFleets(t *testing.T, tests map[string]func(t *testing.T, f *fleet)) {
	t.Parallel()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newFileFleet(t))
		})
	}
}

// testServerFleets runs tests, each with a database of its own.
func testServerFleets(t *testing.T, tests map[string]func(t *testing.T, f *fleet)) {
	t.Parallel()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &fleet{newWorld(t), pgtest.NewDatabase(t)})
		})
	}
}

// newFileFleet returns a fleet whose store is a file.
func newFileFleet(t *testing.T) *fleet {
	return &fleet{newWorld(t), "sqlite:" + filepath.Join(t.TempDir(), "runs.db")}
}

// openAt opens a process on the store.
func (f *fleet) openAt() *app.Process {
	f.t.Helper()
	environ := []string{"HOME=" + f.home, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false", "RADDLE_STORE=" + f.store, "XDG_STATE_HOME=" + f.t.TempDir()}
	p, err := app.Open(app.Options{Work: f.work, Environ: environ})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = p.Close() })
	return p
}

// join starts a service with a state directory of its own, which the end of the test closes.
func (f *fleet) join(o Options) *Service {
	f.t.Helper()
	o.Recover = true
	s, err := New(f.openAt(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { f.shut(s) })
	return s
}

// await waits until a run has a status, as another process sees it.
func (f *fleet) await(s *Service, run, status string, limit time.Duration) *RunState {
	f.t.Helper()
	for end := time.Now().Add(limit); ; f.pause() {
		st, err := s.ReadState(f.t.Context(), run)
		if err == nil && st.Status == status {
			return st
		}
		if time.Now().After(end) {
			f.t.Fatalf("after %v run %s is %+v (%v), want %s", limit, run, st, err, status)
		}
	}
}

// jobs returns the jobs of the store.
func (f *fleet) jobs(s *Service) []journal.DriveJob {
	f.t.Helper()
	list, err := s.worker.queue.ListJobs(f.t.Context(), false)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// twoLeases is how long a run may be left alone after its server was killed.
const twoLeases = 2 * leaseTTL

// A server is killed in the middle of runs; another one, with files of its own, ends them within two leases, and
// repeats nothing that was recorded.
func testAdoption(t *testing.T, f *fleet) {
	agent := filepath.Join(f.home, ".config", "raddle", "agents", "kill")
	f.write(filepath.Join(agent, "graph.yaml"), killGraph)
	f.write(filepath.Join(agent, "step.sh"), "sleep 0.03\necho '{}'\n")
	cmd := startKilled(f.world, "one", storeVar+"="+f.store)
	other := f.join(Options{MaxRuns: 3})
	for n := 0; n < 2; f.pause() {
		n = f.countAgent(other, "kill")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	killed := time.Now()
	other.worker.shareWork(t.Context()) // its process has ended, so its runs are not waited for
	for _, job := range f.jobs(other) {
		if job.Worker != "" && job.Worker != other.worker.self.ID && time.Until(job.Due) > 0 {
			t.Errorf("a run of the killed server waits: %+v", job)
		}
	}
	list, err := other.process.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for i := range list {
		st, err := other.ReadState(t.Context(), list[i].Run)
		for ; err == nil && !st.Final && st.Status != graph.Waiting.String(); st, err = other.ReadState(t.Context(), list[i].Run) {
			if time.Since(killed) > twoLeases {
				t.Fatalf("after %v run %s is %s", time.Since(killed), st.Run, st.Status)
			}
			f.pause()
		}
		if err != nil {
			t.Fatal(err)
		}
		if st.Status == graph.Waiting.String() {
			if _, err := other.AnswerRun(t.Context(), AnswerRequest{Run: st.Run, Answers: []graph.Answer{{Value: "Ada"}}}); err != nil {
				t.Fatal(err)
			}
			f.await(other, st.Run, "done", twoLeases)
		}
	}
	f.checkKilledOn(other.process, len(list))
	if left := f.jobs(other); len(left) > 0 {
		t.Errorf("jobs remain: %+v", left)
	}
}

// A server that drives nothing records starts and answers, and another one continues the runs at once.
func testNoWorker(t *testing.T, f *fleet) {
	front := f.join(Options{NoWorker: true})
	run := start(t, front, "ask")
	if st := f.await(front, run, runs.Queued, leaseTTL); st.Final {
		t.Fatalf("it is %+v", st)
	}
	if n := len(f.effects()); n > 0 {
		t.Errorf("a server that drives nothing has made %d effects", n)
	}
	sub, err := front.Subscribe(t.Context(), run, SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	followed := make(chan []string)
	go func() {
		var kinds []string
		for ev, err := range sub.Events() {
			if err != nil {
				kinds = append(kinds, err.Error())
			}
			kinds = append(kinds, fmt.Sprintf("%T", ev.Body))
		}
		followed <- kinds
	}()
	stopped := start(t, front, "ask")
	if err := front.PauseRun(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	back := f.join(Options{})
	f.await(front, run, graph.Waiting.String(), leaseTTL)
	if _, err := front.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "Ada"}}}); err != nil {
		t.Fatal(err)
	}
	if st := f.await(front, run, "done", leaseTTL); st.Output != "Hello Ada" {
		t.Errorf("it is %+v", st)
	}
	if got := strings.Join(f.effects(), " "); got != "first last" {
		t.Errorf("the effects are %s", got)
	}
	if st, err := back.ReadState(t.Context(), stopped); err != nil || st.Status != graph.Paused.String() {
		t.Errorf("a run that was stopped before it began is %+v (%v)", st, err)
	}
	if left := f.jobs(front); len(left) > 0 {
		t.Errorf("jobs remain: %+v", left)
	}
	kinds := <-followed // through all its servers, and the question
	if n := len(kinds); n == 0 || kinds[0] != "graph.RunStarted" || kinds[n-1] != "graph.RunEnded" || !slices.Contains(kinds, "graph.QuestionAnswered") {
		t.Errorf("who follows the run sees %q", kinds)
	}
}

// An answer that a command records, which then ends, lets a server continue the run. Without a server the run waits for
// someone who resumes it.
func testAnswerOfACommand(t *testing.T, f *fleet) {
	back := f.join(Options{})
	list := []string{start(t, back, "ask"), start(t, back, "ask")}
	for _, run := range list {
		f.await(back, run, graph.Waiting.String(), leaseTTL)
	}
	command := f.openAt()
	answer := func(id string) (served bool) {
		run, err := command.ResumeRun(t.Context(), id, app.ResumeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		ctx, served := runs.WithServers(t.Context(), command.Runs, run.Thread, run.ID)
		if _, err := app.RecordChange(ctx, command, app.RunChange{Run: run, Answers: []graph.Answer{{Value: "Ada"}}}); err != nil {
			t.Fatal(err)
		}
		return served
	}
	if !answer(list[0]) {
		t.Error("no server is seen")
	}
	f.await(back, list[0], "done", leaseTTL)
	f.shut(back)
	if answer(list[1]) {
		t.Error("a server is seen that has ended")
	}
	if st, err := back.ReadState(t.Context(), list[1]); err != nil || st.Status != graph.Paused.String() {
		t.Errorf("it is %+v (%v)", st, err)
	}
}

// A server that ends hands its runs to one that works at the same time, also those that wait for a place.
func testHandover(t *testing.T, f *fleet) {
	before := f.join(Options{MaxRuns: 1})
	list := []string{start(t, before, "wait"), start(t, before, "ask"), start(t, before, "ask")}
	f.awaitEffects(1)
	next := f.join(Options{MaxRuns: 2})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := before.Close(ctx); err != nil {
		t.Fatal(err)
	}
	f.letGo()
	f.await(next, list[0], "done", twoLeases)
	f.await(next, list[1], graph.Waiting.String(), twoLeases)
	f.await(next, list[2], graph.Waiting.String(), twoLeases)
	if left := f.jobs(next); len(left) > 0 {
		t.Errorf("jobs remain: %+v", left)
	}
}

// Runs that wait for a place of one server go to another that has places.
func testShare(t *testing.T, f *fleet) {
	full := f.join(Options{MaxRuns: 1})
	working := start(t, full, "wait")
	f.awaitEffects(1)
	queued := start(t, full, "ask")
	f.join(Options{MaxRuns: 1})
	f.await(full, queued, graph.Waiting.String(), twoLeases)
	f.letGo()
	f.await(full, working, "done", twoLeases)
}

// A run that cannot be continued is given up with its reasons, and someone who continues it begins to count again.
func testGivenUp(t *testing.T, f *fleet) {
	front := f.join(Options{NoWorker: true})
	broken := start(t, front, "ask")
	lost := start(t, front, "wait")
	for _, job := range f.jobs(front) {
		job.Token = "tried"
		job.Attempts = maxAttempts
		if job.Run == broken {
			job.Run = "nosuch"
			job.Attempts-- // the next one is the last
		}
		if err := front.worker.queue.PutJob(t.Context(), job, 0); err != nil {
			t.Fatal(err)
		}
	}
	back := f.join(Options{})
	st := f.await(back, broken, runs.GivenUp, leaseTTL)
	if !strings.Contains(st.Error, "nosuch") {
		t.Errorf("the reason is %q", st.Error)
	}
	f.await(back, lost, runs.GivenUp, leaseTTL)
	list, err := back.process.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) != 2 {
		t.Fatalf("the runs are %+v (%v)", list, err)
	}
	for i := range list {
		d, err := back.process.Runs.ReadRunDetail(t.Context(), list[i].Run)
		if err != nil {
			t.Fatal(err)
		}
		if d.Status != runs.GivenUp || d.Run == broken && d.Reason == "" || list[i].Status != d.Status || list[i].Reason != d.Reason {
			t.Errorf("a list says %s (%s), the details %s (%s)", list[i].Status, list[i].Reason, d.Status, d.Reason)
		}
	}
	if len(f.effects()) > 0 {
		t.Errorf("the effects are %v", f.effects())
	}
	for _, run := range []string{broken, lost} {
		if err := front.ResumeRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	f.letGo()
	f.await(front, broken, graph.Waiting.String(), leaseTTL)
	f.await(front, lost, "done", leaseTTL)
}

// Runs that an older program has left with marks in files are continued.
func TestMarksBecomeJobs(t *testing.T) {
	f := newFileFleet(t)
	front := f.join(Options{NoWorker: true})
	run := start(t, front, "ask")
	for _, job := range f.jobs(front) {
		if err := front.worker.queue.FinishJob(t.Context(), job.Thread, job.Token); err != nil {
			t.Fatal(err)
		}
	}
	p := f.openAt()
	files, err := openStateFiles(filepath.Join(p.Dirs.State, "serve"), p.Runs.StoreURL())
	if err != nil {
		t.Fatal(err)
	}
	for _, marked := range []string{run, "20200101-000000-gone"} {
		if _, err := files.addMark(marked); err != nil {
			t.Fatal(err)
		}
	}
	back, err := New(p, Options{Recover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.shut(back)
	f.await(back, run, graph.Waiting.String(), leaseTTL)
	if left, err := files.listMarks(); err != nil || len(left) > 0 {
		t.Errorf("marks of %v remain (%v)", left, err)
	}
}
