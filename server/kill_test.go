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
	"raddle.dev/graph/journal"
	"raddle.dev/internal/app"
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

// killWorld is the variable that makes the test binary a server in the world of that directory.
const killWorld = "RADDLE_TEST_KILL_WORLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killWorld); dir != "" {
		if err := serveKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveKilled starts runs, each once however often it is called, answers their questions, and returns when all have ended.
func serveKilled(dir string) error {
	ctx := context.Background()
	p, err := app.Open(app.Options{Work: dir, Environ: []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s, err := New(p, Options{MaxRuns: 3, Recover: true, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		return err
	}
	for i := range countKills() {
		run, err := s.StartRun(ctx, StartRequest{Agent: "kill", Prompt: "x", Key: strconv.Itoa(i)})
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
			if st.Status != graph.Waiting.String() {
				return fmt.Errorf("run %s: %s: %s", run, st.Status, st.Error)
			}
			if _, err := s.AnswerRun(ctx, AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "Ada"}}}); err != nil {
				return err
			}
		}
	}
	return s.Close(ctx)
}

// A server that is killed at random moments and started again ends every run as one that is not killed: nothing is lost, and
// nothing that was recorded happens twice. RADDLE_KILLS is the number of kills.
func TestKilledServers(t *testing.T) {
	w := newWorld(t)
	agent := filepath.Join(w.home, ".config", "raddle", "agents", "kill")
	w.write(filepath.Join(agent, "graph.yaml"), killGraph)
	w.write(filepath.Join(agent, "step.sh"), "sleep 0.03\necho '{}'\n")
	random := rand.New(rand.NewPCG(3, 4))
	started := time.Now()
	child := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killWorld+"="+w.work)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	whole := 250 * time.Millisecond
	killed := 0
	for range countKills() {
		cmd := child()
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
	if err := child().Wait(); err != nil {
		t.Fatal(err)
	}
	p := w.open()
	list, err := p.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) != countKills() {
		t.Errorf("%d runs were started (%v)", len(list), err)
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
