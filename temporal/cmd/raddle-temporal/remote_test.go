//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/runs"
)

// farm has an agent whose node runs another agent on the queue gpu, and a map that does so for each item.
var farm = map[string]string{
	"farm/graph.yaml": `
name: farm
start: fetch
nodes:
  fetch: {type: agent, agent: farm/far, prompt: "{{initial_prompt}}", queue: gpu, state_updates: {fetched: "<{{output}}>"}, next: list}
  list: {type: script, script: list.sh, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: far, queue: gpu, max_concurrency: 2, collect_into: all, next: count}
  far: {type: agent, agent: farm/far, prompt: "item {{item}}"}
  count: {type: map, over: "{{items}}", as: item, branch: size, queue: gpu, output_key: size, collect_into: sizes, next: end}
  size: {type: script, script: size.sh}
  end: {type: end, output: "{{fetched}} {{all}} {{sizes}}"}
`,
	"farm/list.sh":        "echo '{\"items\": [\"a\", \"bb\", \"ccc\"]}'\n",
	"farm/size.sh":        "echo size >>log\nprintf '{\"size\": %d}\\n' $(printf '%s' \"$GRAPH_STATE\" | sed 's/.*\"item\":\"\\([a-z]*\\)\".*/\\1/' | tr -d '\\n' | wc -c)\n",
	"farm/far/graph.yaml": "name: far\nstart: work\nnodes:\n  work: {type: script, script: work.sh, next: end}\n  end: {type: end, output: \"{{made}}\"}\n",
	"farm/far/work.sh":    "case \"$GRAPH_STATE\" in *hold*) echo hold >>log; echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done;; *) echo work >>log;; esac\necho '{\"made\": \"done\"}'\n",
}

// childOf returns the run that the nth open question of a run waits for.
func (c *cluster) childOf(id string, nth int) string {
	c.t.Helper()
	var child string
	c.await("the run has a child", 20*time.Second, func() bool {
		d := c.readRun(id)
		if len(d.Snapshot.Questions) <= nth {
			return false
		}
		call, ok := graph.RemoteCallOf(&d.Snapshot.Questions[nth])
		child = call.Run
		return ok
	})
	return child
}

// A node with a queue runs its agent on the workers of that queue. The parent's worker and the child's are killed, one after the other; the
// parent ends like a run of one process.
func TestExtraRemoteChildren(t *testing.T) {
	t.Parallel() // with the others that measure no time
	c := newCluster(t, farm)
	p, err := app.Open(app.Options{Environ: c.environ("alone"), Work: c.work, Store: "memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	alone, err := p.StartRun(app.Request{Agent: "./farm", Prompt: "no h-o-l-d"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := alone.Drive(t.Context(), app.Driver{})
	if err != nil || want.Status != graph.Done {
		t.Fatalf("%s: %v: %+v", want.Status, err, want.Questions)
	}
	ran := len(c.lines("log"))

	parents := c.startWorker("parents")
	far, other := c.startWorker("far", "--queue", "gpu"), c.startWorker("other", "--queue", "gpu")
	id := c.run("run", "./farm", "hold")
	child := c.childOf(id, 0)
	c.await("the child holds", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 1 })
	c.awaitStatus(id, "waiting") // no worker is held
	c.signal(parents, syscall.SIGKILL)
	by, _ := c.driver(child, far, other)
	killed := time.Now()
	c.signal(by, syscall.SIGKILL)
	c.await("the other worker continues the child", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 2 })
	t.Logf("SIGKILL to the next worker: %v", time.Since(killed).Round(time.Millisecond))
	c.create("go")
	c.awaitStatus(child, "done")
	c.startWorker("parents-2")
	c.awaitStatus(id, "done")
	c.awaitState(id, "completed")
	c.saveHistory(id, "parent")
	c.saveHistory(child, "child")

	got := c.readRun(id)
	if fmt.Sprint(got.Snapshot.Result) != fmt.Sprint(want.Value) {
		t.Errorf("the result is %q, in one process %q", got.Snapshot.Result, want.Value)
	}
	if log := c.lines("log")[ran:]; count(log, "hold") != 2 || count(log, "work") != 3 || count(log, "size") != 3 {
		t.Errorf("the nodes ran as %q", log)
	}
	all, err := c.process.Runs.ListRuns(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	children := slices.DeleteFunc(slices.Clone(all), func(i runs.Info) bool { return i.Run == id })
	if len(children) != 7 {
		t.Errorf("there are %d runs besides the parent", len(children))
	}
	for _, i := range children {
		if d := c.readRun(i.Run); d.Status != "done" || d.Record.Parent == nil || d.Record.Parent.Run != id {
			t.Errorf("child %s: %s, %+v", i.Run, d.Status, d.Record.Parent)
		}
	}
	view, err := c.process.Runs.ReadView(t.Context(), got.Run)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := overview.DescribeRun(t.Context(), c.process, view)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(shown.Tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range children {
		if !strings.Contains(string(text), i.Run) {
			t.Errorf("the tree does not have child %s: %s", i.Run, text)
		}
	}
}

// A run that is cancelled ends the runs that it waits for, and their processes.
func TestExtraCancelReachesChildren(t *testing.T) {
	t.Parallel() // with the others that measure no time
	c := newCluster(t, farm)
	c.startWorker("a", "--queue", "default,gpu")
	id := c.run("run", "./farm", "hold")
	child := c.childOf(id, 0)
	c.await("the child holds", 20*time.Second, func() bool { return count(c.lines("log"), "hold") == 1 && len(c.lines("pid")) > 0 })
	pid := c.lines("pid")[0]
	c.run("cancel", id)
	c.awaitStatus(child, "abandoned")
	c.awaitStatus(id, "abandoned")
	c.awaitState(id, "canceled")
	c.awaitState(child, "canceled")
	c.await("the script is gone", 10*time.Second, func() bool { return !processLives(pid) })
}

// A run on a queue that fails, fails the node that waits for it, in the words of a run of one process.
func TestExtraRemoteFailure(t *testing.T) {
	files := map[string]string{"farm/far/work.sh": "echo work >>log\n[ -e good ] && echo '{\"made\": \"done\", \"list\": []}' || echo '{\"list\": \"none\"}'\n",
		"farm/far/graph.yaml": "name: far\nstart: work\nnodes:\n  work: {type: script, script: work.sh, next: all}\n  all: {type: map, over: \"{{list}}\", as: i, branch: one, collect_into: o, next: end}\n" +
			"  one: {type: script, script: work.sh}\n  end: {type: end, output: \"{{made}}\"}\n"}
	for name, text := range farm {
		if files[name] == "" {
			files[name] = text
		}
	}
	t.Parallel() // with the others that measure no time
	c := newCluster(t, files)
	p, err := app.Open(app.Options{Environ: c.environ("alone"), Work: c.work, Store: "memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	alone, err := p.StartRun(app.Request{Agent: "./farm", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := alone.Drive(t.Context(), app.Driver{}); err == nil {
		t.Fatalf("it does not fail in one process: %s, %+v", res.Status, res.Questions)
	}
	want, err := p.Runs.ReadRunDetail(t.Context(), alone.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.startWorker("a", "--queue", "default,gpu")
	id := c.run("run", "./farm", "x")
	c.awaitStatus(id, "failed")
	if got := c.readRun(id); got.Reason != want.Reason {
		t.Errorf("the reason is\n%s\nin one process\n%s", got.Reason, want.Reason)
	}
	c.awaitState(id, "failed")
	c.create("good") // the failed run is resumed: its child is another run
	c.run("resume", id)
	c.awaitStatus(id, "done")
	if fetches := count(c.lines("log"), "work"); fetches != 1+1+1+3 {
		t.Errorf("the child's node ran %d times", fetches)
	}
}

// processLives reports whether a process exists.
func processLives(pid string) bool {
	n := 0
	_, _ = fmt.Sscan(pid, &n)
	return syscall.Kill(n, 0) == nil
}

// A queue with a rate starts its runs one after the other; another queue of the same worker does not wait.
func TestExtraRate(t *testing.T) {
	t.Parallel() // with the others: more work makes it only slower
	c := newCluster(t, map[string]string{"now/graph.yaml": "name: now\nstart: end\nnodes:\n  end: {type: end, output: done}\n"})
	c.startWorker("a", "--queue", "slow,fast", "--rate", "slow=2")
	drive := func(queue string, runs int) time.Duration {
		var ids []string
		for range runs {
			ids = append(ids, c.run("run", "./now", "--queue", queue))
		}
		var first, last time.Time
		for _, id := range ids {
			c.awaitStatus(id, "done")
			if at := c.readRun(id).Updated; first.IsZero() || at.Before(first) {
				first = at
			}
			if at := c.readRun(id).Updated; at.After(last) {
				last = at
			}
		}
		return last.Sub(first)
	}
	const runs = 9
	slow := drive("slow", runs)
	fast := drive("fast", runs)
	t.Logf("the runs of the slow queue took %v, of the other one %v", slow.Round(time.Millisecond), fast.Round(time.Millisecond))
	if slow < 2*time.Second { // the first ones may come together
		t.Errorf("%d runs took %v, at 2 in a second", runs, slow)
	}
}
