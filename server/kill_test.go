//go:build unix

package server

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// killGraph has work in all states: scripts, a fan-out, and a question.
const killGraph = `
name: kill
start: first
nodes:
  first: {type: script, script: step.sh, next: [left, right]}
  left: {type: script, script: step.sh, state_updates: {l: x}, next: ask}
  right: {type: script, script: step.sh, state_updates: {r: x}, next: ask}
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: last}
  last: {type: script, script: step.sh, next: done}
  done: {type: end, output: "Hello {{who}}"}
`

// countKills returns how often servers are killed, which is also the number of runs that they start.
func countKills() int {
	if n, err := strconv.Atoi(os.Getenv("RADDLE_KILLS")); err == nil {
		return n
	}
	return 12
}

// The variables that make the test binary a server: the directory of its world, and its name.
const (
	killWorld = "RADDLE_TEST_KILL_WORLD"
	killName  = "RADDLE_TEST_KILL_NAME"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killWorld); dir != "" {
		if err := serveKilled(dir, os.Getenv(killName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveKilled starts runs, each once however often it is called, answers their questions, and returns when all have ended. Servers with other names
// start other runs in the same store.
func serveKilled(dir, name string) error {
	ctx := context.Background()
	p, err := app.Open(app.Options{Work: dir, Environ: []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "RADDLE_STORE=" + os.Getenv(storeVar)}})
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if name == ticksName {
		tickTTL = time.Second // a killed server is not waited for long
	}
	s, err := New(p, Options{MaxRuns: 3, Recover: true, Log: slog.New(slog.NewTextHandler(log, nil).WithAttrs([]slog.Attr{slog.String("server", name)}))})
	if err != nil {
		return err
	}
	if name == ticksName {
		return serveTicks(ctx, s)
	}
	for i := range countKills() {
		run, err := s.StartRun(ctx, StartRequest{Agent: "kill", Prompt: "x", Key: name + strconv.Itoa(i)})
		if err != nil {
			return err
		}
		for {
			st, err := s.WaitRun(ctx, run)
			if err != nil {
				return err
			}
			if st.Final {
				break
			}
			if st.Status != graph.Waiting.String() { // its server was killed: who finds it first continues it
				time.Sleep(pollInterval)
				continue
			}
			_, err = s.AnswerRun(ctx, AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "Ada"}}})
			if err != nil && !is[*runs.BusyError](err) && !is[*runs.EndedError](err) && !is[*graph.AnswerError](err) { // another server looks at it, or the answer of before the kill counts
				return err
			}
		}
	}
	return s.Close(ctx)
}

// startKilled starts a server of the world w.
func startKilled(w *world, name string, environ ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killWorld+"="+w.work, killName+"="+name)
	cmd.Env = append(cmd.Env, environ...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd
}

// newKillWorld returns a world with the agent of kill tests.
func newKillWorld(t *testing.T) *world {
	w := newWorld(t)
	agent := filepath.Join(w.home, ".config", "raddle", "agents", "kill")
	w.write(filepath.Join(agent, "graph.yaml"), killGraph)
	w.write(filepath.Join(agent, "step.sh"), "sleep 0.03\necho '{}'\n")
	return w
}

// checkKilled checks that all runs have ended, as many as there should be, with each effect once.
func (w *world) checkKilled(want int) {
	t := w.t
	t.Helper()
	w.checkKilledOn(w.open(), want)
}

// checkKilledOn is checkKilled with the store of a process.
func (w *world) checkKilledOn(p *app.Process, want int) {
	t := w.t
	t.Helper()
	list, err := p.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) != want {
		t.Errorf("%d runs were started, want %d (%v)", len(list), want, err)
	}
	for i := range list {
		if list[i].Status != "done" {
			t.Errorf("run %s: %s", list[i].Run, list[i].Status)
		}
		_, entries, err := p.Runs.ReadHistory(t.Context(), list[i].Run)
		seen := map[string]int64{}
		for _, e := range entries {
			if before, twice := seen[e.Path+e.ID]; e.Kind == journal.KindEffect && twice {
				t.Errorf("run %s: records %d and %d are results of one effect", list[i].Run, e.Seq, before)
			}
			if e.Kind == journal.KindEffect {
				seen[e.Path+e.ID] = e.Seq
			}
		}
		if err != nil || len(seen) != 4 {
			t.Errorf("run %s has %d effects (%v)", list[i].Run, len(seen), err)
		}
	}
}

// A server that is killed at random moments and started again ends every run as one that is not killed: nothing is lost, and
// nothing that was recorded happens twice. RADDLE_KILLS is the number of kills.
func TestKilledServers(t *testing.T) {
	w := newKillWorld(t)
	random := rand.New(rand.NewPCG(3, 4))
	started := time.Now()
	whole := 250 * time.Millisecond
	killed := 0
	for range countKills() {
		cmd := startKilled(w, "one")
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(whole))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			break // all runs have ended
		}
		if cmd.ProcessState.Exited() {
			log, _ := os.ReadFile(filepath.Join(w.work, "server.log"))
			t.Fatalf("after %v: %v\n%s", time.Since(started), err, log)
		}
		killed++
	}
	t.Logf("%d servers were killed", killed)
	if err := startKilled(w, "one").Wait(); err != nil {
		t.Fatal(err)
	}
	w.checkKilled(countKills())
}

// leaseTTL is how long the lease of a drive counts that was killed, and behindMost how long a run may stay behind then: until the next look of a
// server, with some time for its work.
const (
	leaseTTL   = 15 * time.Second
	behindMost = leaseTTL + lookInterval + 10*time.Second
)

// Two servers on one store and one state directory are killed at random moments, and each is started again: both end all of their runs, soon
// after the last kill, and nothing happens twice.
func TestTwoKilledServers(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	random := rand.New(rand.NewPCG(5, 6))
	names := []string{"one", "two"}
	ended := make([]chan error, len(names))
	servers := make([]*exec.Cmd, len(names))
	launch := func(i int) {
		servers[i], ended[i] = startKilled(w, names[i]), make(chan error, 1)
		go func(cmd *exec.Cmd, end chan<- error) { end <- cmd.Wait() }(servers[i], ended[i])
	}
	for i := range names {
		launch(i)
	}
	for range countKills() {
		i := random.IntN(len(names))
		select {
		case err := <-ended[i]:
			if err != nil {
				log, _ := os.ReadFile(filepath.Join(w.work, "server.log"))
				t.Fatalf("server %s: %v\n%s", names[i], err, log)
			}
			ended[i] <- nil // all of its runs have ended: now it ends those of the other
			continue
		case <-time.After(time.Duration(random.Int64N(int64(300 * time.Millisecond)))):
		}
		_ = servers[i].Process.Kill()
		<-ended[i]
		launch(i)
	}
	limit := time.After(behindMost + time.Minute) // the work of all runs takes some time too
	for i := range names {
		select {
		case err := <-ended[i]:
			if err != nil {
				t.Errorf("server %s: %v", names[i], err)
			}
		case <-limit:
			_ = servers[i].Process.Kill()
			t.Fatalf("server %s does not end", names[i])
		}
	}
	w.checkKilled(2 * countKills())
}

// The runs of a server that is killed and does not come back are continued by another one of the same state directory, within the time of a lease
// and one look.
func TestKilledForGood(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	other := w.serve(Options{MaxRuns: 3, Recover: true})
	cmd := startKilled(w, "one")
	for n := 0; n == 0; time.Sleep(time.Millisecond) {
		n = w.countAgent(other, "kill")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	killed := time.Now()
	for behind := true; behind; time.Sleep(pollInterval) {
		behind = false
		list, err := other.process.Runs.ListRuns(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			behind = behind || list[i].Status != graph.Waiting.String() && list[i].Status != graph.Done.String()
		}
		if time.Since(killed) > behindMost {
			t.Fatalf("after %s the runs are %+v", time.Since(killed), list)
		}
	}
}

// A server that ends while the next one works already leaves it all of its runs: those that worked and those that waited for a place.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.serve(Options{MaxRuns: 2, Recover: true})
	var list []string
	for range 4 {
		list = append(list, start(t, before, "wait"))
	}
	list = append(list, start(t, before, "ask"))
	w.awaitEffects(2)
	next := w.serve(Options{MaxRuns: 2, Recover: true})
	for next.isActive(list[0]) || next.isActive(list[1]) { // until it has seen that another process drives them
		time.Sleep(time.Millisecond)
	}
	next.recovery.look(t.Context())
	own := start(t, next, "wait")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := before.Close(ctx); err != nil {
		t.Fatal(err)
	}
	w.letGo()
	ended := time.Now()
	for i, run := range append(list, own) {
		want := graph.Done.String()
		if i == 4 {
			want = graph.Waiting.String()
		}
		for st := (&RunState{}); st.Status != want; time.Sleep(pollInterval / 10) {
			var err error
			if st, err = next.ReadState(t.Context(), run); err != nil || time.Since(ended) > behindMost {
				t.Fatalf("after %s run %d is %+v, %v", time.Since(ended), i, st, err)
			}
		}
	}
	for driven := 1; driven > 0; time.Sleep(pollInterval / 10) {
		driven, _ = next.CountDrives()
	}
	if left, err := next.files.listMarks(); err != nil || len(left) > 0 {
		t.Errorf("marks of %v remain (%v)", left, err)
	}
}

// An outage of the store of some seconds ends no run: each drive waits, or the next look continues the run, and nothing happens twice.
func TestOutage(t *testing.T) {
	t.Parallel()
	for _, fault := range graphtest.StoreFaults {
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			s := w.serve(Options{MaxRuns: 4})
			defer func() { w.close() }()
			waiting := startWaiting(w)
			working := start(t, s, "wait")
			w.awaitEffects(1)
			w.failing.Arm(fault, 1, 1<<30)
			w.letGo()
			for end := time.Now().Add(outage); time.Now().Before(end); time.Sleep(outage / 10) {
				s.recovery.look(t.Context())
			}
			w.failing.Arm(graphtest.StoreFault{}, 0, 0)
			for _, run := range []string{waiting, working} {
				d := w.settle(run)
				if want := map[string]string{waiting: "waiting", working: "done"}[run]; d.Status != want {
					t.Errorf("it is %s, want %s", d.Status, want)
				}
			}
			if n := len(w.effects()); n != 1 && journal.IsUnavailable(fault.Err) { // otherwise the drive ends, and what its script did is not recorded
				t.Errorf("its script has started %d times", n)
			}
		})
	}
}

// outage is how long the store is away in tests.
const outage = 6 * time.Second
