//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/temporal"
)

// holder writes one, holds until a file is there, and writes two.
var holder = map[string]string{
	"holder/graph.yaml": `
name: holder
start: one
nodes:
  one: {type: script, script: one.sh, next: hold}
  hold: {type: script, script: hold.sh, next: two}
  two: {type: script, script: two.sh, next: end}
  end: {type: end, output: done}
`,
	"holder/one.sh":  "echo one >>log\necho '{}'\n",
	"holder/hold.sh": "echo hold >>log\necho $$ >pid\nwhile [ ! -e go ]; do sleep 0.02; done\necho '{}'\n",
	"holder/two.sh":  "echo two >>log\necho '{}'\n",
}

// count returns how often a word is in a list.
func count(list []string, word string) (n int) {
	for _, w := range list {
		if w == word {
			n++
		}
	}
	return n
}

// A worker is killed; another one continues its run, and repeats only what was in flight.
func TestExtraKillOfAWorker(t *testing.T) {
	c := newCluster(t, holder)
	a, b := c.startWorker("a"), c.startWorker("b")
	id := c.run("run", "./holder")
	c.await("the run holds", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 1 })
	by, _ := c.driver(id, a, b)
	killed := time.Now()
	c.signal(by, syscall.SIGKILL)
	c.await("the other worker continues", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 2 })
	took := time.Since(killed)
	t.Logf("SIGKILL to the next worker: %v", took.Round(time.Millisecond))
	if took > 3*time.Second {
		t.Errorf("the next worker continued after %v", took)
	}
	c.create("go")
	c.awaitStatus(id, "done")
	if got := c.lines("log"); !slices.Equal(got, []string{"one", "hold", "hold", "two"}) {
		t.Errorf("the nodes ran as %q", got)
	}
	c.awaitState(id, "completed")
	c.saveHistory(id, "killed-worker")
}

// A frozen worker is fenced: when it wakes up, it can record nothing.
func TestExtraFrozenWorker(t *testing.T) {
	c := newCluster(t, holder)
	a, b := c.startWorker("a"), c.startWorker("b")
	id := c.run("run", "./holder")
	c.await("the run holds", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 1 })
	by, _ := c.driver(id, a, b)
	frozen := time.Now()
	c.signal(by, syscall.SIGSTOP)
	c.await("the other worker continues", 30*time.Second, func() bool { return count(c.lines("log"), "hold") == 2 })
	t.Logf("SIGSTOP to the next worker: %v", time.Since(frozen).Round(time.Millisecond))
	c.create("go")
	c.awaitStatus(id, "done")
	head := c.readRun(id).Snapshot.Head
	c.signal(by, syscall.SIGCONT)
	c.signal(by, syscall.SIGTERM)
	if err := by.cmd.Wait(); err != nil { // its drives have ended
		t.Errorf("the worker ended with %v", err)
	}
	if d := c.readRun(id); d.Info.Status != "done" || d.Snapshot.Head != head {
		t.Errorf("the worker that was frozen wrote: the run is %s, and its journal has %d records instead of %d", d.Info.Status, d.Snapshot.Head, head)
	}
	if got := c.lines("log"); !slices.Equal(got, []string{"one", "hold", "hold", "two"}) {
		t.Errorf("the nodes ran as %q", got)
	}
}

// A worker that gets SIGTERM ends its step, and another one continues at once.
func TestExtraWorkerEnds(t *testing.T) {
	c := newCluster(t, holder)
	a, b := c.startWorker("a"), c.startWorker("b")
	id := c.run("run", "./holder")
	c.await("the run holds", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 1 })
	by, _ := c.driver(id, a, b)
	c.signal(by, syscall.SIGTERM)
	c.await("the worker ends", 5*time.Second, func() bool { return strings.Contains(readFile(by.log), "the worker ends") })
	c.create("go")
	released := time.Now()
	c.awaitStatus(id, "done")
	t.Logf("end of the step to the end of the run on the other worker: %v", time.Since(released).Round(time.Millisecond))
	if err := by.cmd.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
	c.awaitState(id, "completed")
	c.saveHistory(id, "ended-worker")
	if got := c.lines("log"); !slices.Equal(got, []string{"one", "hold", "two"}) {
		t.Errorf("the nodes ran as %q", got)
	}
}

// A cancelled run ends permanently, and so do the processes that it started.
func TestExtraCancel(t *testing.T) {
	c := newCluster(t, holder)
	c.startWorker("a")
	id := c.run("run", "./holder")
	c.await("the run holds", 20*time.Second, func() bool { return len(c.lines("pid")) == 1 })
	pid, err := strconv.Atoi(c.lines("pid")[0])
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	c.run("cancel", id)
	c.await("the script has ended", 10*time.Second, func() bool { return syscall.Kill(pid, 0) != nil })
	t.Logf("cancel to the end of the script: %v", time.Since(asked).Round(time.Millisecond))
	c.awaitStatus(id, "abandoned")
	c.awaitState(id, "canceled")
	c.saveHistory(id, "cancelled-drive")
	for _, command := range []string{"cancel", "resume"} {
		refused := c.command("client", command, id)
		out, _ := refused.CombinedOutput()
		if refused.ProcessState.ExitCode() != 8 || !strings.Contains(string(out), "is over (abandoned)") {
			t.Errorf("%s of a run that has ended: exit code %d\n%s", command, refused.ProcessState.ExitCode(), out)
		}
	}
	if got := c.lines("log"); !slices.Equal(got, []string{"one", "hold"}) {
		t.Errorf("the nodes ran as %q", got)
	}
}

// asker asks, and writes the time, six times.
func asker() map[string]string {
	var g strings.Builder
	g.WriteString("name: asker\nstart: ask1\nnodes:\n")
	for n := 1; n <= 6; n++ {
		fmt.Fprintf(&g, "  ask%d: {type: input, question: \"Well?\", next: work%d}\n  work%d: {type: script, script: work.sh, next: ask%d}\n", n, n, n, n+1)
	}
	g.WriteString("  ask7: {type: end, output: done}\n")
	return map[string]string{"asker/graph.yaml": g.String(), "asker/work.sh": "date +%s%N >>log\necho '{}'\n"}
}

// A parked run holds no worker, and continues soon after its answer, which another process records.
func TestExtraAnswer(t *testing.T) {
	c := newCluster(t, asker())
	w := c.startWorker("a")
	id := c.run("run", "./asker", "--user", "zoe@example.org")
	var best time.Duration
	for n := 1; n <= 5; n++ {
		c.awaitStatus(id, "waiting")
		if n == 3 { // a worker that starts while the run is parked
			c.signal(w, syscall.SIGKILL)
			w = c.startWorker("b")
		}
		c.run("resume", id, "--answer", "yes")
		c.await("the run continues", 20*time.Second, func() bool { return len(c.lines("log")) == n })
		answer, err := c.process.Runs.ReadStory(context.Background(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		nanos, err := strconv.ParseInt(c.lines("log")[n-1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Unix(0, nanos).Sub(lastAnswer(answer))
		t.Logf("answer %d to the next step: %v", n, took.Round(time.Millisecond))
		if n == 1 || took < best {
			best = took
		}
	}
	if best > 200*time.Millisecond {
		t.Errorf("the next step came %v after the answer", best)
	}
	c.awaitStatus(id, "waiting")
	described, err := c.client.DescribeWorkflowExecution(context.Background(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	if key := described.GetWorkflowExecutionInfo().GetPriority().GetFairnessKey(); len(key) != 32 || strings.Contains(described.String(), "zoe") {
		t.Errorf("the user has the key %q in Temporal", key)
	}
	if err := temporal.Start(context.Background(), c.client, &app.Run{ID: id, Record: &runs.Record{}}, temporal.Order{Queue: defaultQueue}); err == nil {
		t.Error("a second workflow of the run was started")
	}
	var list []temporal.Listed
	c.await("ls shows what the run waits for", 10*time.Second, func() bool {
		if err := json.Unmarshal([]byte(c.run("ls", "--output", "json")), &list); err != nil {
			t.Fatal(err)
		}
		return len(list) == 1 && list[0].Run == id && list[0].Agent == "asker" && list[0].Status == "waiting" && len(list[0].Waiting) == 1
	})
	c.run("cancel", id)
	c.awaitStatus(id, "abandoned")
	c.awaitState(id, "canceled")
	c.saveHistory(id, "answered-and-cancelled")
}

// The database is killed while a worker drives a run, and comes back: the run continues, and nothing that was recorded is repeated.
func TestExtraStoreIsGone(t *testing.T) {
	t.Parallel() // with the others that measure no time
	db := pgtest.Start(t)
	c := newClusterOn(t, db.NewDatabase(t), holder)
	w := c.startWorker("a")
	id := c.run("run", "./holder")
	c.await("the run holds", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 1 })
	db.Kill(t)
	c.create("go") // the script ends, and its result cannot be recorded
	c.await("the worker waits for the database", 30*time.Second, func() bool { return strings.Contains(readFile(w.log), "the store is not available") })
	db.Restart(t)
	c.awaitStatus(id, "done")
	c.awaitState(id, "completed")
	if got := c.lines("log"); count(got, "one") != 1 || count(got, "two") != 1 {
		t.Errorf("the nodes ran as %q", got)
	}
}

// A run that another process started and drives gets a workflow. That waits until the process has finished it.
func TestExtraAnotherProcess(t *testing.T) {
	t.Parallel() // with the others that measure no time
	c := newCluster(t, holder)
	w := c.startWorker("a")
	run, err := c.process.StartRun(app.Request{Agent: "./holder"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	drive := make(chan error, 1)
	go func() {
		_, err := run.Drive(context.Background(), app.Driver{})
		drive <- err
	}()
	c.await("the run holds", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 1 })
	c.run("resume", run.ID)
	c.await("the worker has looked", 20*time.Second, func() bool {
		d, err := c.client.DescribeWorkflowExecution(context.Background(), run.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return d.GetWorkflowExecutionInfo().GetHistoryLength() > 9
	})
	c.create("go")
	if err := <-drive; err != nil {
		t.Errorf("the process that drove the run was disturbed: %v", err)
	}
	c.awaitState(run.ID, "completed")
	if got := c.lines("log"); !slices.Equal(got, []string{"one", "hold", "two"}) {
		t.Errorf("the nodes ran as %q; the worker wrote:\n%s", got, readFile(w.log))
	}
}
