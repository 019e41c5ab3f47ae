package graph_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
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

func newPlay(t *rapid.T, s sketch, store graph.Store) *play {
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
	for e, err := range graph.History(p.t.Context(), p.runner.Store, "t") {
		if err != nil {
			p.t.Fatal(err)
		}
		if e.Kind == graph.KindEffect {
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
	if s, err := graph.Inspect(ctx, p.runner.Store, "t", 0); err == nil && s.Run == p.run {
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
}, s graph.Store, thread string) (recs []graph.Record) {
	for r, err := range s.Read(t.Context(), thread, graph.Range{}) {
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
		count := &graphtest.Crash{Store: graph.NewMemory(), Limit: -1}
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
			mem, crashes := graph.NewMemory(), 0
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
		whole := newPlay(t, s, graph.NewMemory())
		whole.w.calm = true
		want := whole.finish()
		recs := journalOf(t, whole.runner.Store, "t")
		for n := range recs {
			part := graph.NewMemory()
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
func readable(t *rapid.T, s graph.Store, n int) {
	ctx, entries := t.Context(), 0
	for _, err := range graph.History(ctx, s, "t") {
		if entries++; err != nil {
			t.Fatalf("History of %d records: %v", n, err)
		}
	}
	if entries != n {
		t.Fatalf("History of %d records has %d entries", n, entries)
	}
	snap, err := graph.Inspect(ctx, s, "t", 0)
	if (err != nil) != (n == 0) {
		t.Fatalf("Inspect of %d records: %v", n, err)
	}
	for info, err := range s.Threads(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		i, err := graph.Describe(info)
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
func facts(s sketch, recs []graph.Record) []string {
	breaks := s.has(func(p piece) bool { return p.Kind == "break" })
	var fs []string
	for _, r := range recs {
		if r.Kind != graph.KindSnapshot && !(breaks && r.Kind == graph.KindEnd) {
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
			p := newPlay(t, s, graph.NewMemory())
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
		whole := newPlay(t, s, graph.NewMemory())
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
		mem := graph.NewMemory()
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
		whole := newPlay(t, s, graph.NewMemory())
		want := whole.finish()
		p := newPlay(t, s, graph.NewMemory())
		p.runner.Executor = nil
		for range 5 {
			leave := rapid.Int64Range(1, 40).Draw(t, "leave")
			p.recorded()
			events := p.runner.Run(t.Context(), graph.Input{Thread: "t", Run: "r", Topics: graph.AllTopics, Set: []graph.Write{rLog.Set([]string{"input"}), rItem.Set(0)}})
			if _, err := graph.Inspect(t.Context(), p.runner.Store, "t", 0); err == nil {
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
		p := newPlay(t, sketches(where{depth: 2}).Draw(t, "graph"), graph.NewMemory())
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
		whole := newPlay(t, s, graph.NewMemory())
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
