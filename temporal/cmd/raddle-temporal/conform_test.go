//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/temporal"
)

// An example is a run that needs no provider, with answers given ahead.
type example struct {
	agent, prompt string
	answers       []graph.Answer
	want          []string // what it leaves when one process drives it
}

const randomGraphs = 36

// listExamples returns runs of the examples, and of random graphs that it writes below dir.
func listExamples(t testing.TB, dir string) []*example {
	t.Helper()
	list := []*example{
		{agent: "./examples/hello", prompt: "Ada"},
		{agent: "./examples/triage", answers: []graph.Answer{{ID: "page", Value: "yes"}, {ID: "note", Value: "Since 09:40."}}},
		{agent: "./examples/triage", answers: []graph.Answer{{ID: "page", Value: "no"}}},
		{agent: "./examples/map-reduce"},
		{agent: "./examples/research", prompt: "Why do warp threads break?"},
	}
	for seed := range randomGraphs {
		e := &example{agent: fmt.Sprintf("./random-%d", seed)}
		for node, answer := range testfile.WriteRandomGraph(t, filepath.Join(dir, e.agent), uint64(seed)) {
			e.answers = append(e.answers, graph.Answer{ID: node, Value: answer})
		}
		slices.SortFunc(e.answers, func(a, b graph.Answer) int { return strings.Compare(a.ID, b.ID) })
		list = append(list, e)
	}
	return list
}

// startExample records the start of an example, in the store of a process.
func startExample(t testing.TB, p *app.Process, e *example) *app.Run {
	t.Helper()
	run, err := p.StartRun(app.Request{Agent: e.agent, Prompt: e.prompt})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.RecordChange(context.Background(), p, app.RunChange{Run: run, Answers: e.answers}); err != nil {
		t.Fatal(err)
	}
	return run
}

// describeRun returns the state of a run and the records of its journal, without what says who drove it, sorted: what happens at the same
// time is recorded in any order.
func describeRun(t testing.TB, p *app.Process, id string) []string {
	t.Helper()
	d, err := p.Runs.ReadRunDetail(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{fmt.Sprintf("status %s, result %v", d.Snapshot.Status, d.Snapshot.Result)}
	for _, v := range d.Snapshot.Values {
		lines = append(lines, fmt.Sprintf("value %s = %q", v.Key, v.Parts))
	}
	_, entries, err := p.Runs.ReadHistory(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch e.Kind {
		case journal.KindClaim, journal.KindSnapshot, journal.KindEnd, journal.KindIntent:
			continue
		}
		lines = append(lines, strings.ReplaceAll(fmt.Sprintf("%v %s %s %s", e.Kind, e.Path, e.What, e.ID), id, "RUN"))
	}
	slices.Sort(lines)
	return lines
}

// countRepeated returns how many effects a journal has more than once.
func countRepeated(t testing.TB, p *app.Process, id string) (n int) {
	t.Helper()
	_, entries, err := p.Runs.ReadHistory(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if e.Kind != journal.KindEffect {
			continue
		}
		if key := e.Path + " " + e.ID; seen[key] {
			n++
		} else {
			seen[key] = true
		}
	}
	return n
}

// newExamples returns a cluster with a copy of the examples and random graphs.
func newExamples(t testing.TB) (c *cluster, list []*example) {
	t.Helper()
	c = newCluster(t, nil)
	if err := os.CopyFS(filepath.Join(c.work, "examples"), os.DirFS(filepath.Join(testneed.FindRoot(), "examples"))); err != nil {
		t.Fatal(err)
	}
	p, err := app.Open(app.Options{Environ: c.environ("alone"), Work: c.work, Store: "memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	list = listExamples(t, c.work)
	for _, e := range list {
		run := startExample(t, p, e)
		if res, err := run.Drive(t.Context(), app.Driver{}); err != nil || res.Status != graph.Done {
			t.Fatalf("%s: %s, %v", e.agent, res.Status, err)
		}
		run.Close()
		e.want = describeRun(t, p, run.ID)
	}
	return c, list
}

// start gives a run of an example to the workers.
func (c *cluster) start(e *example) (id string) {
	c.t.Helper()
	run := startExample(c.t, c.process, e)
	defer run.Close()
	if err := temporal.Start(context.Background(), c.client, run, temporal.Order{Queue: defaultQueue}); err != nil {
		c.t.Fatal(err)
	}
	return run.ID
}

// Three workers leave the same states and journals as one process, also when workers are killed all the time.
func TestExtraConformance(t *testing.T) {
	t.Parallel() // with the others that measure no time
	c, examples := newExamples(t)
	workers := []*workerProcess{c.startWorker("a"), c.startWorker("b"), c.startWorker("c")}
	compare := func(ids []string) {
		t.Helper()
		for i, id := range ids {
			e := examples[i]
			c.awaitStatus(id, "done")
			if got := describeRun(t, c.process, id); !slices.Equal(got, e.want) {
				t.Errorf("%s differs from the run of one process:\n%q\nwant:\n%q", e.agent, got, e.want)
			}
			if n := countRepeated(t, c.process, id); n > 0 {
				t.Errorf("run %s has recorded %d effects twice", id, n)
			}
		}
	}
	var ids []string
	for _, e := range examples {
		ids = append(ids, c.start(e))
	}
	compare(ids)

	ids = nil
	const between = 8 // runs are started between two kills
	for n, e := range examples {
		ids = append(ids, c.start(e))
		if n%between == between-1 {
			victim := n / between % len(workers)
			c.signal(workers[victim], syscall.SIGKILL)
			_ = workers[victim].cmd.Wait()
			workers[victim] = c.startWorker(fmt.Sprintf("after-%d", n))
		}
	}
	compare(ids)
}

// BenchmarkExtraRuns drives runs of five steps, each a reply of a transcript. All services are on this machine.
func BenchmarkExtraRuns(b *testing.B) {
	var g strings.Builder
	g.WriteString("name: five\nmodel: script:transcript.yaml\nstart: n1\nnodes:\n")
	for n := 1; n <= 5; n++ {
		fmt.Fprintf(&g, "  n%d: {type: llm, prompt: hello, next: n%d}\n", n, n+1)
	}
	g.WriteString("  n6: {type: end, output: done}\n")
	c := newCluster(b, map[string]string{"five/graph.yaml": g.String(), "five/transcript.yaml": "- {match: hello, text: hi, repeat: true}\n"})
	c.startWorker("a")
	drive := func() {
		run, err := c.process.StartRun(app.Request{Agent: "./five"})
		if err != nil {
			b.Error(err)
			return
		}
		defer run.Close()
		if _, err := app.RecordChange(context.Background(), c.process, app.RunChange{Run: run}); err != nil {
			b.Error(err)
			return
		}
		if err := temporal.Start(context.Background(), c.client, run, temporal.Order{Queue: defaultQueue}); err != nil {
			b.Error(err)
			return
		}
		if err := c.client.GetWorkflow(context.Background(), run.ID, "").Get(context.Background(), nil); err != nil {
			b.Error(err)
		}
	}
	drive() // the caches are warm
	b.ResetTimer()
	start := time.Now()
	var ended sync.WaitGroup
	places := make(chan struct{}, 16)
	for range b.N {
		places <- struct{}{}
		ended.Go(func() {
			drive()
			<-places
		})
	}
	ended.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "runs/s")
}
