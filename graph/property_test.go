package graph_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

// property checks a property of random graphs: the same ones each time, unless
// the command line sets -rapid.seed.
func property(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": "40", "rapid.nofailfile": "true"} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	rapid.Check(t, prop)
}

// shuffled is an Executor that runs the tasks of each step in an order of its
// own, one at a time.
type shuffled struct{ seed uint64 }

func (s shuffled) Execute(n, _ int, task func(int)) {
	for _, i := range rand.New(rand.NewPCG(s.seed, uint64(n))).Perm(n) {
		task(i)
	}
}

type backward struct{}

func (backward) Execute(n, _ int, task func(int)) {
	for i := n - 1; i >= 0; i-- {
		task(i)
	}
}

// A play is one run of a sketch, over as many drives as it takes.
type play struct {
	t      *rapid.T
	w      *world
	g      *graph.Graph
	runner graph.Runner
	run    string
	ahead  []graph.Answer
	single bool // questions are answered one at a time

	drives  int
	asked   []graph.Question
	answers []graph.Answer // for the next drive
}

func newPlay(t *rapid.T, s sketch, store journal.Store) *play {
	w := newWorld()
	g, err := w.build(s)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return &play{t: t, w: w, g: g, run: "r", runner: graph.Runner{Graph: g, Store: store, Clock: &graphtest.Clock{}, Executor: sequential{}}}
}

// end is what must be the same however a run came to its end.
type end struct {
	Status graph.Status
	Value  any
	State  map[string]any
}

func endOf(res graph.Result) end {
	e := end{Status: res.Status, Value: res.Value, State: map[string]any{}}
	for _, k := range res.State.Keys() {
		e.State[k], _ = res.State.Value(k)
	}
	return e
}

// recorded tells the world which effects the journal holds.
func (p *play) recorded() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.now = map[string]int{}
	for e, err := range history.Entries(p.t.Context(), p.runner.Store, "t") {
		if err != nil {
			p.t.Fatal(err)
		}
		if e.Kind == journal.KindEffect {
			p.w.frozen[p.run+"/"+e.Path+strings.ReplaceAll(e.ID, "\x00", "/")] = true
		}
	}
}

// to drives the run to its end, or returns false where the store has crashed.
func (p *play) to() (graph.Result, bool) {
	for range 300 {
		if res, ended := p.once(); ended {
			return res, true
		}
		if c, ok := p.runner.Store.(*graphtest.Crash); ok && c.HasCrashed() {
			return graph.Result{}, false
		}
	}
	p.t.Fatal("it never ends")
	return graph.Result{}, false
}

// once is one drive, with answers to what the last one asked.
func (p *play) once() (res graph.Result, ended bool) {
	p.drives++
	p.recorded()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	var pause chan struct{}
	if p.w.trip = cancel; p.drives%2 == 0 {
		pause = make(chan struct{})
		p.w.trip = func() { close(pause) }
	}
	res, err := p.drive(ctx, pause)
	if len(p.w.repeats) > 0 {
		p.t.Fatalf("recorded effects happened again: %q", p.w.repeats)
	}
	switch p.answers = nil; {
	case errors.Is(err, graphtest.ErrCrash):
	case res.Status == graph.Waiting:
		p.asked = append(p.asked, res.Questions...)
		for _, q := range res.Questions {
			if !p.single || p.answers == nil {
				p.answers = append(p.answers, answerTo(q))
			}
		}
	case res.Status == graph.Failed && errors.Is(err, errFlaky), res.Status == graph.Canceled, res.Status == graph.Paused:
	case err != nil:
		p.t.Fatalf("drive %d: %v", p.drives, err)
	default:
		return res, true
	}
	return res, false
}

// drive continues the run, or starts it where the thread does not have it.
func (p *play) drive(ctx context.Context, pause chan struct{}) (graph.Result, error) {
	if s, err := history.Inspect(ctx, p.runner.Store, "t", 0); err == nil && s.Run == p.run {
		return p.runner.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: p.answers, Pause: pause})
	}
	return p.runner.Invoke(ctx, graph.Input{Thread: "t", Run: p.run, Ahead: p.ahead, Pause: pause,
		Set: []graph.Write{rLog.Set([]string{"input"}), rItem.Set(0)}})
}

func (p *play) finish() graph.Result {
	res, ok := p.to()
	if !ok {
		p.t.Fatal("the store has crashed")
	}
	return res
}

func journalOf(t interface {
	Fatal(...any)
	Context() context.Context
}, s journal.Store, thread string) (recs []journal.Record) {
	for r, err := range s.Read(t.Context(), thread, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.Sum = 0 // as before there were checksums: a change of a record need not make another
		recs = append(recs, r)
	}
	return recs
}

func same(t *rapid.T, want, got graph.Result, format string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(endOf(want), endOf(got)); diff != "" {
		t.Fatalf(format+":\n%s", append(args, diff)...)
	}
}

var durabilities = []graph.Durability{graph.EveryEffect, graph.EveryEffect, graph.EveryStep, graph.QuestionsOnly}

// A run that crashes and is resumed, over and over, ends as one that was left
// alone, and no recorded effect happens again.
func TestARunThatCrashesEndsLikeOneThatDoesNot(t *testing.T) {
	property(t, func(t *rapid.T) {
		s := sketches(where{depth: 2}).Draw(t, "graph")
		count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
		whole := newPlay(t, s, count)
		whole.w.calm = true
		want := whole.finish()
		whole.run = "q"
		next := whole.finish()
		for range 4 {
			p := newPlay(t, s, nil)
			p.w.calm = rapid.Bool().Draw(t, "calm")
			p.single = rapid.Bool().Draw(t, "single")
			p.runner.Durability = rapid.SampledFrom(durabilities).Draw(t, "durability")
			if rapid.Bool().Draw(t, "concurrent") {
				p.runner.Executor = nil
			}
			mem, crashes := journal.NewMemory(), 0
			for range rapid.IntRange(1, 4).Draw(t, "crashes") {
				p.runner.Store = &graphtest.Crash{Store: mem, Limit: rapid.IntRange(0, count.RecordCount()).Draw(t, "limit"), Lost: rapid.Bool().Draw(t, "lost")}
				p.w.left = rapid.IntRange(0, 10).Draw(t, "trip")
				got, ended := p.to()
				if ended && p.run == "q" {
					break
				}
				if ended {
					same(t, want, got, "after %d crashes", crashes)
					p.run = "q"
					continue
				}
				crashes++
			}
			p.runner.Store = mem
			if p.run == "r" {
				same(t, want, p.finish(), "after %d crashes", crashes)
			}
			p.run = "q"
			same(t, next, p.finish(), "the second run, after %d crashes", crashes)
			if again := p.w.more(whole.w); again > crashes && p.runner.Executor != nil && p.w.calm && p.runner.Durability == graph.EveryEffect && !s.hasty() {
				t.Fatalf("%d effects happened again after %d crashes", again, crashes)
			}
		}
	})
}

// more counts the effects that happened more often than once, and checks that the
// same ones happened as in another world.
func (w *world) more(other *world) (again int) {
	for k, n := range w.hits {
		if other.hits[k] != 1 {
			return 1 << 20
		}
		again += n - 1
	}
	return again
}

// Every prefix of a journal, opened as if the process had died there, leads to
// the same end, and every tool can read it.
func TestEveryPrefixOfARandomJournalLeadsToTheSameEnd(t *testing.T) {
	property(t, func(t *rapid.T) {
		s := sketches(where{depth: 3}).Draw(t, "graph")
		whole := newPlay(t, s, journal.NewMemory())
		whole.w.calm = true
		want := whole.finish()
		recs := journalOf(t, whole.runner.Store, "t")
		for n := range recs {
			part := journal.NewMemory()
			if err := part.Append(t.Context(), "t", 0, recs[:n]); err != nil {
				t.Fatal(err)
			}
			readable(t, part, n)
			if n%7 != len(recs)%7 {
				continue
			}
			p := newPlay(t, s, part)
			p.w.calm, p.runner.Executor = n%2 == 0, nil
			for k := range whole.w.failed { // the world continues
				p.w.failed[k] = true
			}
			same(t, want, p.finish(), "after %d of %d records", n, len(recs))
		}
	})
}

// readable reads a thread of n records with everything that reads threads.
func readable(t *rapid.T, s journal.Store, n int) {
	ctx, entries := t.Context(), 0
	for _, err := range history.Entries(ctx, s, "t") {
		if entries++; err != nil {
			t.Fatalf("History of %d records: %v", n, err)
		}
	}
	if entries != n {
		t.Fatalf("History of %d records has %d entries", n, entries)
	}
	snap, err := history.Inspect(ctx, s, "t", 0)
	if (err != nil) != (n == 0) {
		t.Fatalf("Inspect of %d records: %v", n, err)
	}
	for info, err := range s.Threads(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		i, err := history.Describe(info)
		if err != nil || i.Status != snap.Status || i.Run != snap.Run || i.Graph != snap.Graph || !i.Started.Equal(snap.Started) {
			t.Fatalf("Describe of %d records: %+v, %v; Inspect: %+v", n, i, err, snap.RunInfo)
		}
		if i.Status == graph.Waiting && len(i.Questions) != len(snap.Questions) {
			t.Fatalf("Describe of %d records has questions %v, Inspect %v", n, i.Questions, snap.Questions)
		}
		for k := range i.Questions {
			if a, b := i.Questions[k], snap.Questions[k]; a.ID != b.ID || a.Prompt != b.Prompt {
				t.Fatalf("Describe of %d records has question %v, Inspect %v", n, a, b)
			}
		}
	}
}

// facts are the records of a journal without their order and its snapshots. The
// breaks of children are listed in the order in which they were met.
func facts(s sketch, recs []journal.Record) []string {
	breaks := s.has(func(p piece) bool { return p.Kind == "break" })
	var fs []string
	for _, r := range recs {
		if r.Kind != journal.KindSnapshot && !(breaks && r.Kind == journal.KindEnd) {
			fs = append(fs, fmt.Sprintf("%v %q %q", r.Kind, r.Head, r.Data))
		}
	}
	slices.Sort(fs)
	return fs
}

// The order in which an executor runs tasks changes nothing but the order of
// records.
func TestTheOrderOfExecutionChangesNothing(t *testing.T) {
	property(t, func(t *rapid.T) {
		s := sketches(where{depth: 2}).Draw(t, "graph")
		seed := rapid.Uint64().Draw(t, "seed")
		var want graph.Result
		var asked []graph.Question
		var records []string
		for i, exec := range []graph.Executor{sequential{}, backward{}, shuffled{seed}, nil} {
			p := newPlay(t, s, journal.NewMemory())
			p.w.calm, p.runner.Executor = true, exec
			got := p.finish()
			fs := facts(s, journalOf(t, p.runner.Store, "t"))
			if i == 0 {
				want, asked, records = got, p.asked, fs
				continue
			}
			same(t, want, got, "executor %T", exec)
			if diff := cmp.Diff(asked, p.asked); diff != "" && !s.hasty() {
				t.Fatalf("executor %T: other questions\n%s", exec, diff)
			}
			if diff := cmp.Diff(records, fs); diff != "" && !s.hasty() {
				t.Fatalf("executor %T: other records\n%s", exec, diff)
			}
		}
	})
}

// Answers given ahead, to any of the questions, lead to the same end.
func TestAnswersGivenAheadChangeNothing(t *testing.T) {
	property(t, func(t *rapid.T) {
		s := sketches(where{depth: 2}).Draw(t, "graph")
		whole := newPlay(t, s, journal.NewMemory())
		whole.w.calm = true
		want := whole.finish()
		p := newPlay(t, s, nil)
		p.w.calm = true
		seen := map[string]bool{}
		for _, q := range whole.asked {
			if !seen[q.ID] && rapid.Bool().Draw(t, q.ID) {
				p.ahead = append(p.ahead, answerTo(q))
			}
			seen[q.ID] = true
		}
		mem := journal.NewMemory()
		p.runner.Store = &graphtest.Crash{Store: mem, Limit: rapid.IntRange(1, 100).Draw(t, "limit"), Lost: rapid.Bool().Draw(t, "lost")}
		_, _ = p.to()
		p.runner.Store = mem
		same(t, want, p.finish(), "%d answers given ahead", len(p.ahead))
		for _, q := range p.asked {
			if slices.ContainsFunc(p.ahead, func(a graph.Answer) bool { return a.ID == q.ID }) {
				t.Fatalf("%s was asked although its answer was given ahead", q.ID)
			}
		}
	})
}

// Leaving the loop at any event and continuing ends like a run whose events were
// all read, and the events keep their rules.
func TestLeavingAtAnyEventChangesNothing(t *testing.T) {
	property(t, func(t *rapid.T) {
		s := sketches(where{depth: 2}).Draw(t, "graph")
		whole := newPlay(t, s, journal.NewMemory())
		want := whole.finish()
		p := newPlay(t, s, journal.NewMemory())
		p.runner.Executor = nil
		for range 5 {
			leave := rapid.Int64Range(1, 40).Draw(t, "leave")
			p.recorded()
			events := p.runner.Run(t.Context(), graph.Input{Thread: "t", Run: "r", Topics: graph.AllTopics, Set: []graph.Write{rLog.Set([]string{"input"}), rItem.Set(0)}})
			if _, err := history.Inspect(t.Context(), p.runner.Store, "t", 0); err == nil {
				events = p.runner.Resume(t.Context(), graph.Resume{Thread: "t", Topics: graph.AllTopics})
			}
			for e := range events {
				if e.Seq == leave {
					break
				}
			}
		}
		same(t, want, p.finish(), "left at some events")
		if p.w.more(whole.w) != 0 && !s.hasty() {
			t.Fatal("effects happened again, or others")
		}
	})
}

// A reading checks the rules of the events of one run.
type reading struct {
	t      *rapid.T
	w      *world
	wrote  map[string][]string // keys, by path and task
	done   map[string][]string // tasks of the unfinished step, by path and step
	ended  int
	result graph.Result
}

func (r *reading) drive(events func(func(graph.Event, error) bool)) {
	var seq int64
	r.ended = 0
	for e, err := range events {
		if err != nil {
			if r.ended != 1 {
				r.t.Fatalf("an error before RunEnded: %v", err)
			}
			continue
		}
		if seq++; e.Seq != seq {
			r.t.Fatalf("event %d is numbered %d", seq, e.Seq)
		}
		if r.ended > 0 {
			r.t.Fatalf("%T after RunEnded", e.Body)
		}
		if _, err := e.MarshalJSON(); err != nil {
			r.t.Fatal(err)
		}
		r.event(e)
	}
	if r.ended != 1 {
		r.t.Fatalf("%d times RunEnded", r.ended)
	}
}

func (r *reading) event(e graph.Event) {
	id, step := e.Path+"|"+e.Task, fmt.Sprint(e.Path, "|", e.Step)
	switch b := e.Body.(type) {
	case graph.RunStarted:
		r.done = map[string][]string{}
	case graph.TaskStarted:
		delete(r.wrote, id)
	case graph.ValueEmitted:
		if keys, ok := b.Value.(wrote); ok {
			r.wrote[id] = keys
		}
	case graph.TaskDone:
		if b.Failed {
			delete(r.wrote, id)
		}
		if r.done[step] = append(r.done[step], id); r.w.wrote[e.Node] != nil && b.Err == nil {
			r.wrote[id] = r.w.wrote[e.Node]
		}
	case graph.StepCommitted:
		want := map[string]bool{}
		for _, id := range r.done[step] {
			for _, k := range r.wrote[id] {
				want[k] = true
			}
		}
		delete(r.done, step)
		for _, k := range b.Keys {
			if !want[k] {
				r.t.Fatalf("%s step %d: %q is listed twice, or was not written", e.Path, e.Step, k)
			}
			delete(want, k)
		}
		if len(want) > 0 {
			r.t.Fatalf("%s step %d: written keys are not listed: %v", e.Path, e.Step, want)
		}
	case graph.RunEnded:
		r.ended++
		r.result = b.Result
	}
}

func TestEventsKeepTheirRules(t *testing.T) {
	property(t, func(t *rapid.T) {
		p := newPlay(t, sketches(where{depth: 2}).Draw(t, "graph"), journal.NewMemory())
		if rapid.Bool().Draw(t, "concurrent") {
			p.runner.Executor = nil
		}
		r := &reading{t: t, w: p.w, wrote: map[string][]string{}}
		r.drive(p.runner.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics}))
		for range 300 {
			switch res := r.result; res.Status {
			case graph.Done:
				return
			case graph.Waiting, graph.Failed, graph.Paused:
				in := graph.Resume{Thread: "t", Topics: graph.AllTopics}
				for _, q := range res.Questions {
					in.Answers = append(in.Answers, answerTo(q))
				}
				r.drive(p.runner.Resume(t.Context(), in))
			default:
				t.Fatalf("%v, %v", res.Status, res.Err)
			}
		}
		t.Fatal("it never ends")
	})
}

// A journal in a file is the one in memory, and may be continued by another
// process: each drive opens the file again.
func TestAFileHoldsTheSameJournalAsMemory(t *testing.T) {
	place, n := t.TempDir(), 0
	property(t, func(t *rapid.T) {
		if n++; n > 8 {
			return // files are slow
		}
		s := sketches(where{depth: 2}).Draw(t, "graph")
		whole := newPlay(t, s, journal.NewMemory())
		whole.w.calm = true
		want := whole.finish()
		p := newPlay(t, s, nil)
		p.w.calm = true
		path := filepath.Join(place, fmt.Sprint(n, ".db"))
		for range 300 {
			file, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			p.runner.Store = file
			got, ended := p.once()
			if ended {
				same(t, want, got, "a file")
				if diff := cmp.Diff(facts(s, journalOf(t, whole.runner.Store, "t")), facts(s, journalOf(t, file, "t"))); diff != "" && !s.hasty() {
					t.Fatal(diff)
				}
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			if ended {
				return
			}
		}
		t.Fatal("it never ends")
	})
}

// A step begins when all tasks of the one before it are done. Branches that are
// graphs of their own do not wait for each other.
func TestAStepWaitsForItsSlowestTask(t *testing.T) {
	for _, children := range []bool{false, true} {
		settled(t, func(t *testing.T) {
			begun := time.Now()
			var at time.Duration
			slow := func(context.Context, graph.State) (graph.Update, error) {
				time.Sleep(200 * time.Millisecond)
				return graph.Update{}, nil
			}
			next := func(context.Context, graph.State) (graph.Update, error) {
				at = time.Since(begun)
				return graph.Update{}, nil
			}
			d := graph.Def{Name: "g", Start: []string{"slow", "fast"}, Nodes: []graph.Node{{Name: "slow", Run: slow}, {Name: "fast", Run: idle}, {Name: "next", Run: next}},
				Edges: []graph.Edge{edge("slow", graph.End), edge("fast", "next"), edge("next", graph.End)}}
			want := 200 * time.Millisecond
			if children {
				want = 0
				d.Start[1], d.Edges = "branch", []graph.Edge{edge("slow", graph.End), edge("branch", graph.End)}
				branch := graph.Def{Name: "branch", Start: []string{"fast"}, Nodes: slices.Clone(d.Nodes[1:]), Edges: []graph.Edge{edge("fast", "next"), edge("next", graph.End)}}
				d.Nodes = append(d.Nodes[:1], graph.Node{Name: "branch", Graph: compile(t, branch)})
			}
			res, err := start(t, kept(compile(t, d)))
			if is(t, graph.Done, res, err); at != want || time.Since(begun) != 200*time.Millisecond {
				t.Errorf("in graphs of their own %v: next began after %v, want %v", children, at, want)
			}
		})
	}
}

// Twelve chunks are scored, the four best are worked on side by side, and what
// they made is put together once, in order.
func TestMapReduce(t *testing.T) {
	type chunk struct{ N, Score int }
	chunks, mine := graph.Append[chunk]("chunks"), graph.Last[chunk]("mine")
	var c tally
	g := compile(t, graph.Def{Name: "mapreduce", Keys: append(slices.Clone(all), chunks, mine), Start: []string{"cut"}, Nodes: []graph.Node{
		{Name: "cut", Run: func(context.Context, graph.State) (graph.Update, error) {
			var cs []chunk
			for i := range 12 {
				cs = append(cs, chunk{N: i, Score: i * 5 % 12})
			}
			return graph.Put(chunks.Set(cs)), nil
		}},
		{Name: "best", Routes: []string{"work"}, Run: func(_ context.Context, s graph.State) (u graph.Update, _ error) {
			best := slices.SortedFunc(slices.Values(chunks.Get(s)), func(a, b chunk) int { return stdcmp.Compare(b.Score, a.Score) })[:4]
			for _, b := range best {
				u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{mine.Set(b)}})
			}
			return u, nil
		}},
		{Name: "work", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			c.add("work")
			return graph.Put(list.Set([]string{fmt.Sprint(mine.Get(s).Score)})), nil
		}},
		{Name: "reduce", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			c.add("reduce")
			return graph.Put(only.Set(strings.Join(list.Get(s), "+"))), nil
		}},
	}, Edges: []graph.Edge{edge("cut", "best"), edge("work", "reduce"), edge("reduce", graph.End)}})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); only.Get(res.State) != "11+10+9+8" || c.of("work") != 4 || c.of("reduce") != 1 || len(chunks.Get(res.State)) != 12 {
		t.Errorf("%s; %d workers, reduced %d times", only.Get(res.State), c.of("work"), c.of("reduce"))
	}
	if _, present := mine.Lookup(res.State); present {
		t.Error("an overlay has reached the state")
	}
}

// Events outside Topics are not built: a run that reports only questions
// allocates what a run without a reader does, whatever its length.
func TestUnheardEventsCostNothing(t *testing.T) {
	g := chainOf(t, 200)
	r := &graph.Runner{Graph: g}
	none := testing.AllocsPerRun(20, func() {
		if _, err := r.Invoke(context.Background(), graph.Input{Run: "r"}); err != nil {
			t.Error(err)
		}
	})
	heard := func(topics graph.Topic) float64 {
		return testing.AllocsPerRun(20, func() {
			for _, err := range r.Run(context.Background(), graph.Input{Run: "r", Topics: topics}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	if few := heard(graph.TopicQuestion); few > none+40 {
		t.Errorf("%v allocations with a reader of questions, %v without", few, none)
	}
	if many := heard(graph.TopicTask | graph.TopicStep); many < none+200 {
		t.Errorf("%v allocations with a reader of tasks and steps: nothing is proved", many)
	}
}

// The reader hears of a node's start while the node runs, not afterwards.
func TestAStartIsReportedBeforeTheEnd(t *testing.T) {
	for _, topics := range []graph.Topic{graph.TopicTask, graph.AllTopics} {
		for n := 1; n <= 3; n++ {
			settled(t, func(t *testing.T) {
				told := make(chan string, n)
				var nodes []graph.Node
				for i := range n {
					nodes = append(nodes, graph.Node{Name: fmt.Sprint("n", i), Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
						select {
						case <-told:
							return graph.Update{}, nil
						case <-time.After(time.Minute):
							return graph.Update{}, errors.New("it is unknown")
						}
					}})
				}
				for e, err := range kept(parallel(t, nodes...)).Run(t.Context(), graph.Input{Topics: topics}) {
					if err != nil {
						t.Fatal(err)
					}
					if _, ok := e.Body.(graph.TaskStarted); ok {
						told <- e.Node
					}
				}
			})
		}
	}
}

// Tasks of a Send that fail run again, all of them and each with its overlay.
func TestSendsThatFailedRunAgain(t *testing.T) {
	var c tally
	worker := graph.Node{Name: "work", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		if c.add("work") <= 3 {
			return graph.Update{}, errors.New("down")
		}
		return work.Run(ctx, s)
	}}
	d := graph.Def{Name: "g", Keys: all, Start: []string{"split"}, Nodes: []graph.Node{sends(3), work, say("gather")}, Edges: []graph.Edge{edge("work", "gather"), edge("gather", graph.End)}}
	want, err := start(t, kept(compile(t, d)))
	is(t, graph.Done, want, err)
	d.Nodes[1] = worker
	r := kept(compile(t, d))
	res, err := start(t, r)
	is(t, graph.Failed, res, err)
	res, err = resume(t, r)
	if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), list.Get(want.State)) || c.of("work") != 6 {
		t.Errorf("%v, want %v; %d calls", list.Get(res.State), list.Get(want.State), c.of("work"))
	}
}

// Graphs that share their keys share nothing else: not hooks, not nodes.
func TestGraphsThatShareKeysAreStrangers(t *testing.T) {
	var c tally
	hook := graph.Hooks{Before: func(_ context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
		c.add(i.Graph)
		return graph.Setup{}, nil
	}}
	def := func(name string, hooks ...graph.Hooks) graph.Def {
		return graph.Def{Name: name, Keys: all, Hooks: hooks, Start: []string{"a"}, Nodes: []graph.Node{say("a")}, Edges: []graph.Edge{edge("a", graph.End)}}
	}
	for _, g := range []*graph.Graph{compile(t, def("watched", hook)), compile(t, def("plain"))} {
		res, err := start(t, kept(g))
		is(t, graph.Done, res, err)
	}
	if c.of("watched") != 1 || c.of("plain") != 0 {
		t.Errorf("the hook of one graph was called %d times for it and %d times for the other", c.of("watched"), c.of("plain"))
	}
}

// A value that contains itself, or is deeper than what is read back, is refused
// where it would be stored; what is accepted is read back.
func TestValuesThatContainThemselvesAreRefused(t *testing.T) {
	round := map[string]any{"n": 1}
	round["self"] = []any{round}
	nested := func(depth int) any {
		var v any = "end"
		for range depth {
			v = []any{v}
		}
		return v
	}
	bag := graph.Dyn("bag")
	def := graph.Def{Name: "g", Keys: []graph.AnyKey{bag}, Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}}
	for i, v := range []any{nested(10_000), nested(10_001), round} {
		fits := i == 0
		for _, run := range []graph.Func{writes(bag.Set(v)), func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: v}}, nil
		}} {
			def.Nodes = []graph.Node{{Name: "a", Run: run}}
			r := kept(compile(t, def))
			res, err := start(t, r)
			if !fits {
				if is(t, graph.Failed, res, err); !strings.Contains(err.Error(), "does it contain itself?") {
					t.Error(err)
				}
				continue
			}
			is(t, graph.Done, res, err)
			if _, err := r.State(t.Context(), thread, 0); err != nil {
				t.Error(err)
			}
		}
	}
}

// goroutine is the number of the calling goroutine.
func goroutine() string {
	var b [64]byte
	return strings.Fields(string(b[:runtime.Stack(b[:], false)]))[1]
}

// A quiet node runs on the reader's goroutine, and others do not.
func TestQuietNodesRunOnTheReadersGoroutine(t *testing.T) {
	settled(t, func(t *testing.T) {
		var at []string
		node := func(name string, quiet bool) graph.Node {
			return graph.Node{Name: name, Quiet: quiet, Run: func(context.Context, graph.State) (graph.Update, error) {
				at = append(at, goroutine())
				return graph.Update{}, nil
			}}
		}
		g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{node("a", true), node("b", false), node("c", true)},
			Edges: []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, res, err := collect(kept(g).Run(ctx, graph.Input{Topics: graph.AllTopics}))
		is(t, graph.Done, res, err)
		if here := goroutine(); at[0] != here || at[1] == here || at[2] != here {
			t.Errorf("the reader is %s, the nodes ran on %v", here, at)
		}
	})
}

// What a quiet node emits all the same is delivered when it has returned, however much
// it is, in its order and between the events of its task.
func TestWhatQuietNodesEmit(t *testing.T) {
	settled(t, func(t *testing.T) {
		const many = 1000
		emit := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			for i := range many {
				graph.Emit(ctx, i)
			}
			return graph.Update{}, nil
		}
		for _, siblings := range []int{0, 1} {
			nodes := []graph.Node{{Name: "a", Quiet: true, Run: emit}}
			for i := range siblings {
				nodes = append(nodes, graph.Node{Name: fmt.Sprint("b", i), Quiet: true, Run: emit})
			}
			next, started, done := map[string]int{}, 0, 0
			for e, err := range kept(parallel(t, nodes...)).Run(t.Context(), graph.Input{Topics: graph.AllTopics}) {
				if err != nil {
					t.Fatal(err)
				}
				switch b := e.Body.(type) {
				case graph.TaskStarted:
					started++
				case graph.ValueEmitted:
					if b.Value != next[e.Node] {
						t.Fatalf("%v, want %d", b.Value, next[e.Node])
					}
					next[e.Node]++
				case graph.TaskDone:
					if done++; next[e.Node] != many {
						t.Errorf("%d values of %s before its end", next[e.Node], e.Node)
					}
				}
			}
			if started != 1+siblings || done != 1+siblings {
				t.Errorf("%d tasks, %d ended", started, done)
			}
		}
	})
}

// A reader that leaves at the first value of a quiet node gets no other event, and the
// run is canceled behind the node.
func TestAReaderThatLeavesAQuietNode(t *testing.T) {
	settled(t, func(t *testing.T) {
		r := kept(parallel(t, graph.Node{Name: "a", Quiet: true, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			graph.Emit(ctx, 1)
			graph.Emit(ctx, 2)
			time.Sleep(time.Hour)
			return graph.Put(only.Set("a")), nil
		}}))
		for e := range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}) {
			if b, ok := e.Body.(graph.ValueEmitted); ok {
				if b.Value != 1 {
					t.Error(b.Value)
				}
				break
			}
		}
		if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != graph.Canceled {
			t.Error(s.Status, err)
		}
	})
}
