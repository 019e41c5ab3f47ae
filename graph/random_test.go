package graph_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/testneed"
)

// A sketch is a random graph as plain data: pieces in a row, each with one way in
// and one way out. Building it twice gives the same graph.
type sketch struct {
	Pieces  []piece
	Halt    bool   // it ends with a Halt, which may find other paths still on their way
	Broken  bool   // it ends with a node that always fails
	Open    bool   // no key is declared
	Fast    bool   // a failure cancels the siblings
	Cap     int    // of tasks at once
	Shuffle uint64 // of the declarations
}

// hasty reports whether failures cancel siblings anywhere: then the order in which tasks run
// decides which of them are cancelled.
func (s sketch) hasty() bool {
	return s.Fast || s.has(func(p piece) bool { return p.Child != nil && p.Child.Fast })
}

// has reports whether a piece is anywhere in the sketch.
func (s sketch) has(it func(piece) bool) bool {
	var in func(ps []piece) bool
	in = func(ps []piece) bool {
		return slices.ContainsFunc(ps, func(p piece) bool { return it(p) || in(p.Body) || p.Child != nil && in(p.Child.Pieces) })
	}
	return in(s.Pieces)
}

// A piece is some nodes of a sketch; Kind says which.
type piece struct {
	Kind  string
	Acts  []act
	Arms  [][]act // paths of a fan, one act a node
	Body  []piece
	N     int
	Child *sketch
	In    bool // the child gets writes
	Under bool // the child inherits
	Run   bool // the child is called by a Run
}

// An act is one thing that a node does.
type act struct {
	Kind string
	N    int
}

// siblingActs are the acts of nodes that have siblings, loneActs those of all others.
var (
	siblingActs = []string{"effect", "effect", "keyed", "pair", "ask", "ask", "number", "askboth", "emit", "log", "log", "sum", "tag", "chain", "most", "trim", "large"}
	loneActs    = append(slices.Clone(siblingActs), "last", "last", "bag")
)

func acts(among []string, most int) *rapid.Generator[[]act] {
	one := rapid.Custom(func(t *rapid.T) act {
		return act{Kind: rapid.SampledFrom(among).Draw(t, "act"), N: rapid.IntRange(0, 3).Draw(t, "n")}
	})
	return rapid.SliceOfN(one, 0, most)
}

// where says what may be drawn: how deep children may still be, and whether a
// failure would be routed.
type where struct {
	depth  int
	routed bool
}

func sketches(w where) *rapid.Generator[sketch] {
	return rapid.Custom(func(t *rapid.T) sketch {
		s := sketch{Open: rapid.Bool().Draw(t, "open"), Fast: rapid.Bool().Draw(t, "fast"), Cap: rapid.IntRange(0, 2).Draw(t, "cap"),
			Shuffle: rapid.Uint64Range(0, 9).Draw(t, "shuffle"), Halt: rapid.IntRange(0, 2).Draw(t, "halt") == 0}
		s.Pieces = rapid.SliceOfN(pieces(w), 1, 2+w.depth/2).Draw(t, "pieces")
		return s
	})
}

func pieces(w where) *rapid.Generator[piece] {
	kinds := []string{"step", "break", "fan", "side", "send", "loop", "handled", "retried"}
	if !w.routed {
		kinds = append(kinds, "flaky")
	}
	if w.depth > 0 {
		kinds = append(kinds, "child", "child", "sendchild", "brokenchild")
	}
	return rapid.Custom(func(t *rapid.T) piece {
		p := piece{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), N: rapid.IntRange(1, 3).Draw(t, "n")}
		if p.Kind == "sendchild" {
			p.Acts = acts(siblingActs, 3).Draw(t, "acts")
		} else {
			p.Acts = acts(loneActs, 4).Draw(t, "acts")
		}
		below := where{depth: w.depth - 1, routed: w.routed}
		switch p.Kind {
		case "fan", "side":
			p.Arms = rapid.SliceOfN(acts(siblingActs, 2), 2, 3).Draw(t, "arms")
		case "loop":
			p.Body = rapid.SliceOfN(pieces(where{depth: min(w.depth, 1), routed: w.routed}), 0, 1).Draw(t, "body")
		case "send":
			p.Arms = [][]act{acts(siblingActs, 3).Draw(t, "worker")}
		case "brokenchild":
			below.routed = true
		}
		if strings.HasSuffix(p.Kind, "child") {
			s := sketches(below).Draw(t, "child")
			s.Broken = p.Kind == "brokenchild"
			p.Child, p.In, p.Under, p.Run = &s, rapid.Bool().Draw(t, "in"), rapid.Bool().Draw(t, "under"), rapid.Bool().Draw(t, "run")
		}
		return p
	})
}

// The keys of every sketch, root or child.
var (
	rLog   = graph.Append[string]("log")
	rSum   = graph.Sum[int64]("sum")
	rTags  = graph.Merge[string, int]("tags")
	rMost  = graph.Max[int]("most")
	rLast  = graph.Last[string]("last")
	rItem  = graph.Last[int]("item")
	rBag   = graph.Dyn("bag")
	rLoops = graph.Merge[string, int]("loops")
	rChain = graph.Fold("chain", func(old string, present bool, upd string) (string, error) {
		return digestOf(old, present, upd), nil
	})
	rKeys = []graph.AnyKey{rLog, rSum, rTags, rMost, rLast, rItem, rBag, rLoops, rChain}
)

func digestOf(parts ...any) string {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, parts...)
	return fmt.Sprintf("%x", h.Sum64())
}

// A world is what the nodes of one sketch act on, across all drives.
type world struct {
	calm bool   // nodes use no goroutines
	trip func() // called when some effects of a drive have happened
	left int    // effects until then

	mu      sync.Mutex
	hits    map[string]int      // effects that happened, by identity
	now     map[string]int      // those of this drive
	frozen  map[string]bool     // those that were recorded before this drive
	failed  map[string]bool     // tasks that have failed once
	wrote   map[string][]string // keys that the mapping of a child writes, by node
	repeats []string            // effects that were recorded and happened again
	names   int
}

func newWorld() *world {
	return &world{hits: map[string]int{}, now: map[string]int{}, frozen: map[string]bool{}, failed: map[string]bool{}, wrote: map[string][]string{}}
}

func (w *world) happens(ctx context.Context) {
	k := graph.EffectKey(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits[k]++
	if w.left--; w.left == 0 {
		w.trip()
	}
	if w.now[k]++; w.frozen[k] || w.now[k] > 1 {
		w.repeats = append(w.repeats, k)
	}
}

var errFlaky = errors.New("it will work the next time")

// wrote is what nodes emit before they return: the keys of their writes.
type wrote []string

// builder makes the nodes of one graph of a sketch.
type builder struct {
	w   *world
	def graph.Def
}

func (w *world) build(s sketch) (*graph.Graph, error) {
	w.names++
	b := &builder{w: w, def: graph.Def{Name: fmt.Sprint("g", w.names), Keys: rKeys, FailFast: s.Fast, Concurrency: s.Cap}}
	if s.Open {
		b.def.Keys, b.def.Open = nil, func(name string) graph.AnyKey {
			i := slices.IndexFunc(rKeys, func(k graph.AnyKey) bool { return k.Name() == name })
			if i < 0 {
				return nil
			}
			return rKeys[i]
		}
	}
	last := graph.End
	switch {
	case s.Broken:
		last = b.node("broken", graph.Node{Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{}, errors.New("it never works")
		}}, graph.End)
	case s.Halt:
		last = b.node("halt", graph.Node{Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: digestOf(glance(s))}}, nil
		}}, graph.End)
	}
	entry, err := b.row(s.Pieces, last)
	if err != nil {
		return nil, err
	}
	b.def.Start = []string{entry}
	r := rand.New(rand.NewPCG(s.Shuffle, 0))
	r.Shuffle(len(b.def.Nodes), func(i, j int) { b.def.Nodes[i], b.def.Nodes[j] = b.def.Nodes[j], b.def.Nodes[i] })
	return graph.Compile(b.def)
}

func (b *builder) node(kind string, n graph.Node, next ...string) string {
	b.w.names++
	n.Name = fmt.Sprint(kind, b.w.names)
	b.def.Nodes = append(b.def.Nodes, n)
	if next != nil {
		b.def.Edges = append(b.def.Edges, edge(n.Name, next...))
	}
	return n.Name
}

func (b *builder) row(ps []piece, next string) (entry string, err error) {
	for _, p := range slices.Backward(ps) {
		if next, err = b.piece(p, next); err != nil {
			return "", err
		}
	}
	return next, nil
}

func (b *builder) piece(p piece, next string) (entry string, err error) {
	switch p.Kind {
	case "step", "break":
		breaks := p.Kind == "break"
		return b.node("step", graph.Node{Run: b.w.run(p.Acts, nil), BreakBefore: breaks && p.N != 1, BreakAfter: breaks && p.N != 2}, next), nil
	case "fan":
		var lasts, firsts []string
		for _, arm := range p.Arms {
			last := b.node("last", graph.Node{Run: b.w.run(arm, nil)})
			first := last
			if len(arm) > 1 { // a longer path: the sources of the join finish in different steps
				first = b.node("first", graph.Node{Run: b.w.run(arm[:1], nil)}, last)
			}
			lasts, firsts = append(lasts, last), append(firsts, first)
		}
		b.def.Edges = append(b.def.Edges, graph.Edge{From: lasts, To: []string{b.node("join", graph.Node{Run: b.w.run(p.Acts, nil)}, next)}})
		return b.node("fan", graph.Node{Run: b.w.run(p.Acts, nil)}, firsts...), nil
	case "side":
		to := []string{next}
		for _, arm := range p.Arms {
			to = append(to, b.node("side", graph.Node{Run: b.w.run(arm, nil)}, b.node("leaf", graph.Node{Run: b.w.run(arm, nil)}, graph.End)))
		}
		return b.node("fork", graph.Node{Run: b.w.run(p.Acts, nil)}, to...), nil
	case "loop":
		return b.loop(p, next)
	case "send", "sendchild":
		return b.send(p, next)
	case "child", "brokenchild":
		return b.child(p, next)
	}
	return b.failing(p, next), nil
}

func (b *builder) loop(p piece, next string) (string, error) {
	tail := b.node("tail", graph.Node{Run: b.w.run(p.Acts, nil)})
	body, err := b.row(p.Body, tail)
	if err != nil {
		return "", err
	}
	var head string
	head = b.node("head", graph.Node{Run: b.w.run(nil, func(_ *visit, s graph.State) (graph.Update, error) {
		return graph.Put(rLoops.Set(map[string]int{head: rLoops.Get(s)[head] + 1})), nil
	})}, body)
	b.def.Edges = append(b.def.Edges, graph.Edge{From: []string{tail}, Cases: map[string]string{"again": head, "out": next}, Pick: func(s graph.State) ([]string, error) {
		if rLoops.Get(s)[head]%p.N != 0 {
			return []string{"again"}, nil
		}
		return []string{"out"}, nil
	}})
	return head, nil
}

func (b *builder) send(p piece, next string) (string, error) {
	gather := b.node("gather", graph.Node{Run: b.w.run(p.Acts, nil)}, next)
	var worker string
	if p.Child != nil {
		var err error
		if worker, err = b.child(p, gather); err != nil {
			return "", err
		}
	} else {
		worker = b.node("work", graph.Node{Run: b.w.run(p.Arms[0], nil)}, gather)
	}
	split := graph.Node{Routes: []string{worker}, Run: b.w.run(nil, func(v *visit, s graph.State) (graph.Update, error) {
		u := graph.Put(rSum.Set(1))
		for i := range p.N {
			u.Send = append(u.Send, graph.Send{To: worker, Overlay: []graph.Write{rItem.Set(i + 1), rLog.Set([]string{"private " + strings.Repeat("p", 10*i)}), rSum.Set(int64(i))}})
		}
		return u, nil
	})}
	if p.N == 2 { // and one task that sees no overlay
		return b.node("split", split, worker), nil
	}
	return b.node("split", split), nil
}

// failing are the nodes that fail before they work, or permanently.
func (b *builder) failing(p piece, next string) string {
	w := b.w
	switch p.Kind {
	case "retried":
		return b.node("retried", graph.Node{Retry: graph.Retry{Attempts: p.N + 1, Delay: 1000}, Run: w.run(p.Acts, func(v *visit, _ graph.State) (graph.Update, error) {
			if graph.Attempt(v.ctx) <= p.N {
				return graph.Put(rLog.Set([]string{"an attempt that failed"})), errors.New("not yet")
			}
			return graph.Update{}, nil
		})}, next)
	case "flaky":
		return b.node("flaky", graph.Node{Run: w.run(p.Acts, func(v *visit, _ graph.State) (graph.Update, error) {
			return graph.Update{}, w.fails(v.ctx)
		})}, next)
	}
	handler := b.node("handler", graph.Node{Run: w.run(nil, func(v *visit, _ graph.State) (graph.Update, error) {
		return graph.Put(rLog.Set([]string{graph.Cause(v.ctx)})), nil
	})}, next)
	return b.node("handled", graph.Node{OnError: handler, Retry: graph.Retry{Attempts: p.N}, Run: w.run(p.Acts, func(*visit, graph.State) (graph.Update, error) {
		return graph.Put(rSum.Set(1000)), errors.New("it never works")
	})}, graph.End)
}

// fails fails the first time in the world that a task gets here.
func (w *world) fails(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := graph.TaskPath(ctx); !w.failed[k] {
		w.failed[k] = true
		return errFlaky
	}
	return nil
}

func (b *builder) child(p piece, next string) (string, error) {
	g, err := b.w.build(*p.Child)
	if err != nil {
		return "", err
	}
	n := graph.Node{Graph: g, Inherit: p.Under, Retry: graph.Retry{Attempts: p.N}}
	if p.Child.Broken {
		n.OnError = b.node("handler", graph.Node{Run: b.w.run(p.Acts, nil)}, next)
	}
	given := func(s graph.State) []graph.Write {
		if !p.In {
			return nil
		}
		return []graph.Write{rLast.Set("given " + digestOf(glance(s))), rLog.Set([]string{"given"}), rSum.Set(7)}
	}
	taken := func(c graph.Child) graph.Update {
		return graph.Put(rLog.Set([]string{fmt.Sprint("child: ", c.Value, " ", digestOf(glance(c.State)))}), rSum.Set(rSum.Get(c.State)%1000))
	}
	if !p.Run {
		n.In = func(s graph.State) ([]graph.Write, error) { return given(s), nil }
		n.Out = func(_ graph.State, c graph.Child) (graph.Update, error) { return taken(c), nil }
		name := b.node("sub", n, next)
		b.w.wrote[name] = []string{"log", "sum"}
		return name, nil
	}
	n.Run = b.w.run(p.Acts, func(v *visit, s graph.State) (graph.Update, error) {
		c, err := graph.Call(v.ctx, given(s)...)
		if err == nil && p.N > 1 && graph.Attempt(v.ctx) == 1 {
			err = errors.New("not yet")
		}
		if err != nil {
			return graph.Update{}, err
		}
		return taken(c), nil
	})
	return b.node("call", n, next), nil
}

// glance is all that a node sees of a state.
func glance(s graph.State) []any {
	bag, _ := rBag.Lookup(s)
	return []any{rLog.Get(s), rSum.Get(s), rTags.Get(s), rMost.Get(s), rLast.Get(s), rItem.Get(s), bag, rLoops.Get(s), rChain.Get(s)}
}

// A visit is one attempt of one node.
type visit struct {
	w      *world
	ctx    context.Context
	seen   string // a digest of all that the node has seen
	writes []graph.Write
}

// run is a body: its acts, then finish, whose writes come last.
func (w *world) run(as []act, finish func(*visit, graph.State) (graph.Update, error)) graph.Func {
	return func(ctx context.Context, s graph.State) (u graph.Update, err error) {
		v := &visit{w: w, ctx: ctx, seen: digestOf(glance(s), graph.TaskPath(ctx), graph.Visit(ctx), graph.Cause(ctx))}
		_ = append(rLog.Get(s), "clobbered") // must not be visible elsewhere
		for i, a := range as {
			if err := v.act(a, i); err != nil {
				return graph.Update{}, err
			}
		}
		if finish != nil {
			if u, err = finish(v, s); err != nil {
				return u, err
			}
		}
		u.Writes = append(v.writes, u.Writes...)
		var keys wrote
		for _, wr := range u.Writes {
			keys = append(keys, wr.Key())
		}
		graph.Emit(ctx, keys)
		return u, nil
	}
}

func (v *visit) see(x any) { v.seen = digestOf(v.seen, x) }

func (v *visit) act(a act, i int) error {
	switch a.Kind {
	case "effect", "keyed", "large", "pair":
		return v.effects(a, i)
	case "ask", "number", "askboth":
		return v.asks(a, i)
	case "emit":
		graph.Emit(v.ctx, v.seen)
	case "log":
		v.writes = append(v.writes, rLog.Set([]string{graph.TaskPath(v.ctx), v.seen}[:1+a.N%2]))
	case "sum":
		v.writes = append(v.writes, rSum.Set(int64(a.N)))
	case "tag":
		v.writes = append(v.writes, rTags.Set(map[string]int{v.seen[:1]: a.N}))
	case "chain":
		v.writes = append(v.writes, rChain.Set(v.seen))
	case "most":
		v.writes = append(v.writes, rMost.Set(a.N*10+len(v.seen)))
	case "trim":
		v.writes = append(v.writes, rLog.Reset([]string{"trimmed " + v.seen}), rLog.Set([]string{"and on"}))
	case "last":
		v.writes = append(v.writes, rLast.Set(v.seen))
	case "bag":
		v.writes = append(v.writes, rBag.Set([]any{nil, map[string]any{"n": int64(1) << 60, "b": []byte(v.seen)}, 1.5, a.N}[a.N%4]))
	}
	return nil
}

func (v *visit) effects(a act, i int) error {
	name, key := fmt.Sprint("effect ", a.N%2), ""
	if a.Kind == "keyed" {
		key = fmt.Sprint(i)
	}
	one := func(name string) (string, error) {
		return graph.DoEffect(v.ctx, graph.Effect{Name: name, Key: key}, func(ctx context.Context) (string, error) {
			v.w.happens(ctx)
			_, path, _ := strings.Cut(graph.EffectKey(ctx), "/") // without the branch: a fork gets the same
			out := "<" + digestOf(path) + ">"
			if a.Kind == "large" {
				out += strings.Repeat("x", 8000*(a.N+1))
			}
			return out, nil
		})
	}
	if a.Kind != "pair" {
		out, err := one(name)
		v.see(out)
		if a.Kind == "large" && a.N == 3 {
			v.writes = append(v.writes, rLog.Set([]string{out}))
		}
		return err
	}
	l, r, err := v.both(func() (string, error) { return one("left") }, func() (string, error) { return one("right") })
	v.see(l + r)
	return err
}

// both runs two functions, concurrently unless the world is calm.
func (v *visit) both(left, right func() (string, error)) (l, r string, err error) {
	var errL, errR error
	if v.w.calm {
		l, errL = left()
		r, errR = right()
	} else {
		var wg sync.WaitGroup
		wg.Go(func() { l, errL = left() })
		wg.Go(func() { r, errR = right() })
		wg.Wait()
	}
	return l, r, stdcmp.Or(errL, errR)
}

func (v *visit) asks(a act, i int) error {
	text := func(name string) (string, error) {
		return graph.Interrupt[string](v.ctx, graph.Ask{Name: name, Prompt: fmt.Sprint(graph.TaskPath(v.ctx), " ", i, name), Data: a.N})
	}
	switch a.Kind {
	case "number":
		n, err := graph.Interrupt[int](v.ctx, graph.Ask{Prompt: graph.TaskPath(v.ctx)})
		v.see(n)
		return err
	case "askboth":
		l, r, err := v.both(func() (string, error) { return text("left") }, func() (string, error) { return text("right") })
		v.see(l + r)
		return err
	}
	s, err := text([]string{"", "name"}[a.N%2])
	v.see(s)
	return err
}

// answerTo is what a question gets, whichever is asked first.
func answerTo(q graph.Question) graph.Answer {
	if q.Type == "number" {
		return graph.Answer{ID: q.ID, Value: len(q.Prompt)}
	}
	return graph.Answer{ID: q.ID, Value: "re " + q.Prompt}
}

// traveller does things at random to the threads of one store.
type traveller struct {
	*testing.T
	rnd     *rand.Rand
	st      journal.Store
	r       *graph.Runner
	threads []string
	did     []string // for messages
}

func (w *traveller) note(format string, args ...any) {
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

func (w *traveller) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v: %v", w.did, err)
	}
}

// step forks a thread at a point that is left of it, edits one without changing
// what comes out, prunes one, or answers a question.
func (w *traveller) step() {
	thread := w.threads[w.rnd.IntN(len(w.threads))]
	recs := records(w, w.st, thread)
	switch w.rnd.IntN(5) {
	case 0, 1:
		at, into := recs[w.rnd.IntN(len(recs))].Seq, fmt.Sprint("t", len(w.threads))
		w.note("fork %s at %d into %s", thread, at, into)
		w.check(history.Fork(w.Context(), w.st, thread, at, into))
		w.threads = append(w.threads, into)
	case 2:
		w.note("edit %s", thread)
		_, err := w.r.Edit(w.Context(), thread, hits.Set(0), notes.Set(nil))
		w.check(err)
	case 3:
		keep := w.rnd.IntN(len(recs) + 1)
		w.note("prune %s to %d", thread, keep)
		_, err := history.Prune(w.Context(), w.st, thread, history.Keep{Records: keep})
		w.check(err)
	case 4:
		s, err := history.Inspect(w.Context(), w.st, thread, 0)
		w.check(err)
		in := graph.Resume{Thread: thread}
		if len(s.Questions) > 0 {
			in.Answers = []graph.Answer{answer(s.Questions[w.rnd.IntN(len(s.Questions))])}
		}
		if s.Status.Final() {
			return
		}
		w.note("resume %s with %d answers", thread, len(in.Answers))
		_, err = w.r.InvokeResume(w.Context(), in)
		w.check(err)
	}
}

// Whatever is forked, edited, pruned, answered and resumed in whatever order: every
// thread reaches the end that an undisturbed run reaches, and can be blamed.
func TestTravelAtRandom(t *testing.T) {
	const steps = 25
	seeds := uint64(12)
	if testneed.Soaks() {
		seeds = 40
	}
	e := newEverything(t)
	want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: journal.NewMemory()}, true))
	for seed := range seeds {
		w := &traveller{T: t, rnd: rand.New(rand.NewPCG(seed, 1)), st: journal.NewMemory(), threads: []string{"t0"}}
		if seed%8 == 0 {
			w.st = openSQLite(t)
		}
		w.r = &graph.Runner{Graph: e.g, Store: w.st}
		in := graph.Input{Thread: "t0"}
		if seed%2 == 1 { // some of the questions are answered before they are asked
			in.Ahead = []graph.Answer{{ID: "work[2]", Value: len("work[2]")}, {ID: "sub[1]/two#2", Value: "re sub[1]/two#2"}}
		}
		_, err := w.r.Invoke(t.Context(), in)
		w.check(err)
		for range steps {
			w.step()
		}
		for _, thread := range w.threads {
			if diff := cmp.Diff(want, outcome(resumed(t, w.r, thread))); diff != "" {
				t.Fatalf("seed %d, thread %s, after %v:\n%s", seed, thread, w.did, diff)
			}
			_, err := history.Blame(t.Context(), w.st, thread, "notes")
			w.check(err)
		}
		_, err = history.Lineage(t.Context(), w.st, "")
		w.check(err)
	}
}

// A snapshot in the middle of a step keeps which answers given ahead it used.
func TestForkBehindASnapshotGivesAnswersBack(t *testing.T) {
	ctx := t.Context()
	st := journal.NewMemory()
	g := compile(t, graph.Def{Name: "two", Keys: []graph.AnyKey{lines}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			one, err := graph.Interrupt[string](ctx, graph.Ask{Name: "one", Prompt: "one?"})
			if err != nil {
				return graph.Update{}, err
			}
			two, err := graph.Interrupt[string](ctx, graph.Ask{Name: "two", Prompt: "two?"})
			return graph.Put(lines.Set([]string{one, two})), err
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r := &graph.Runner{Graph: g, Store: st}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t", Ahead: []graph.Answer{{Value: "first"}}})
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("%v, %v", res.Status, err)
	}
	pruned(t, st, "t", history.Keep{})
	fork(t, st, "t", 0, "u")
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "u"})
	if err != nil || len(res.Questions) != 1 || res.Questions[0].ID != "a#2" {
		t.Fatalf("%+v, %v", res.Questions, err)
	}
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "u", Answers: []graph.Answer{{ID: "a#2", Value: "second"}}})
	if diff := cmp.Diff([]string{"first", "second"}, lines.Get(res.State)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// pack and unpack are a journal as one text for the fuzzer: records that do not
// fit are left out.
func pack(recs []journal.Record) (b []byte) {
	for _, r := range recs {
		b = append(b, byte(r.Kind))
		b = binary.AppendUvarint(b, uint64(r.Time))
		for _, part := range [][]byte{r.Head, r.Data} {
			b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
		}
	}
	return b
}

func unpack(b []byte) (recs []journal.Record) {
	part := func() []byte {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			b = nil
			return nil
		}
		p := b[k : k+int(n)]
		b = b[k+int(n):]
		return p
	}
	for len(b) > 0 {
		r := journal.Record{Kind: journal.Kind(b[0])}
		at, k := binary.Uvarint(b[1:])
		if k <= 0 {
			break
		}
		b = b[1+k:]
		r.Time = int64(at)
		r.Head, r.Data = part(), part()
		recs = append(recs, r)
	}
	return recs
}

// realJournals are journals with every kind of record, cut in different places.
func realJournals(t testing.TB) (all [][]journal.Record) {
	e := newEverything(t)
	mem := journal.NewMemory()
	r := &graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}
	e.finish(t, r, true)
	recs := journalOf(t, mem, "t")
	for n := 1; n < len(recs); n += 6 {
		all = append(all, recs[:n])
	}
	fork(t, mem, "t", int64(len(recs)/2), "fork")
	forked := journalOf(t, mem, "fork")
	if _, err := history.Prune(t.Context(), mem, "t", history.Keep{}); err != nil {
		t.Fatal(err)
	}
	return append(all, recs, forked, journalOf(t, mem, "t"), faultyJournal(t), chosenJournal(t, e.g, recs))
}

// faultyJournal is one of effects that fail and of steps that cannot be applied.
func faultyJournal(t testing.TB) []journal.Record {
	tries := 0
	pay := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		n, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: graph.DoubtAsk}, func(context.Context) (int, error) {
			if tries++; tries < 3 {
				return 0, errors.New("not yet")
			}
			return tries, nil
		})
		return graph.Put(only.Reset(fmt.Sprint(n))), err
	}
	g := compile(t, graph.Def{Name: "faulty", Keys: all, Start: []string{"a", "b"}, Nodes: []graph.Node{{Name: "a", Run: pay, Retry: graph.Retry{Attempts: 2}}, {Name: "b", Run: writes(only.Reset("b"))}},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}})
	r := kept(g)
	_, _ = start(t, r)
	_, _ = resume(t, r)
	return journalOf(t, r.Store, thread)
}

// chosenJournal is a part of one, with an edit that says what runs next.
func chosenJournal(t testing.TB, g *graph.Graph, recs []journal.Record) []journal.Record {
	mem := journal.NewMemory()
	if err := mem.Append(t.Context(), "t", 0, recs[:len(recs)/2]); err != nil {
		t.Fatal(err)
	}
	if _, err := (&graph.Runner{Graph: g, Store: mem}).EditNext(t.Context(), "t", g.Structure().Start); err != nil {
		t.Fatal(err)
	}
	return journalOf(t, mem, "t")
}

// The journals that damage is tried on have every kind of record.
func TestRealJournalsHaveEveryKind(t *testing.T) {
	found := map[journal.Kind]bool{}
	for _, recs := range realJournals(t) {
		for _, r := range recs {
			found[r.Kind] = true
		}
	}
	for k := journal.KindStart; !strings.Contains(k.String(), "unknown"); k++ {
		if !found[k] {
			t.Errorf("none of them has a %s record", k)
		}
	}
}

// judge gives a journal to everything that reads one. Errors are welcome; panics,
// endless work and memory beyond all proportion are not.
func judge(t *testing.T, g *graph.Graph, recs []journal.Record) {
	ctx, size := t.Context(), 0
	for _, r := range recs {
		size += len(r.Head) + len(r.Data) + 256
	}
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	mem := journal.NewMemory()
	if err := mem.Append(ctx, "t", 0, recs); err != nil {
		t.Fatal(err)
	}
	for _, err := range history.Entries(ctx, mem, "t") {
		if err != nil {
			break
		}
	}
	for info := range mem.Threads(ctx, "") {
		_, _ = history.Describe(info)
	}
	for _, err := range history.Checkpoints(ctx, mem, "t") {
		if err != nil {
			break
		}
	}
	half := int64(len(recs)/2 + 1)
	_, _ = history.Blame(ctx, mem, "t", "notes")
	_, _ = history.Diff(ctx, mem, journal.Point{Thread: "t", Seq: half}, journal.Point{Thread: "t"})
	_ = history.Fork(ctx, mem, "t", half, "fork")
	_, _ = history.Lineage(ctx, mem, "")
	var answers []graph.Answer
	if s, err := history.Inspect(ctx, mem, "t", 0); err == nil {
		for _, q := range s.Questions {
			answers = append(answers, answer(q))
		}
	}
	_, _ = history.Inspect(ctx, mem, "t", half)
	for _, as := range [][]graph.Answer{nil, answers} {
		r := &graph.Runner{Graph: g, Store: &dying{Store: mem, left: 200}, Executor: sequential{}}
		if res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: as, AcceptChanges: true}); err == nil && res.Status == 0 {
			t.Errorf("no error, and status %v", res.Status)
		}
	}
	_, _ = (&graph.Runner{Graph: g, Store: &dying{Store: mem, left: 200}, Executor: sequential{}}).Invoke(ctx, graph.Input{Thread: "t"})
	runtime.ReadMemStats(&is)
	if used := is.TotalAlloc - was.TotalAlloc; used > 64<<20+uint64(2000*size) {
		t.Errorf("%d MB were allocated for a journal of %d bytes", used>>20, size)
	}
}

// mangle damages a journal in one of the ways that disks, programs and people do.
func mangle(r *rand.Rand, recs []journal.Record) []journal.Record {
	recs = slices.Clone(recs)
	i := r.IntN(len(recs))
	rec := &recs[i]
	rec.Head, rec.Data = bytes.Clone(rec.Head), bytes.Clone(rec.Data)
	part := &rec.Head
	if r.IntN(2) == 0 && len(rec.Data) > 0 {
		part = &rec.Data
	}
	at := r.IntN(len(*part) + 1)
	switch r.IntN(9) {
	case 0:
		*part = (*part)[:at]
	case 1:
		*part = append(*part, (*part)[at:]...)
	case 2, 3, 4:
		if at < len(*part) {
			(*part)[at] = byte(r.Uint32())
		}
	case 5: // a large number
		*part = slices.Insert(*part, at, binary.AppendUvarint(nil, r.Uint64()>>r.IntN(64))...)
	case 6:
		rec.Kind = journal.Kind(r.IntN(18))
	case 7:
		recs = append(slices.Clone(recs[:i]), recs[min(i+1+r.IntN(3), len(recs)):]...)
	case 8:
		j := r.IntN(len(recs))
		recs[i], recs[j] = recs[j], recs[i]
	}
	return recs
}

// A damaged journal is an error, or is read as something else that is well formed.
func TestDamagedJournalsAreErrors(t *testing.T) {
	e := newEverything(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, recs := range realJournals(t) {
		for range 40 {
			bad := recs
			for range 1 + r.IntN(3) {
				if bad = mangle(r, bad); len(bad) == 0 {
					break
				}
			}
			judge(t, e.g, bad)
		}
	}
}

// The name of no node is END, whatever a journal says.
func TestAJournalThatWouldRunEND(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"AND"}, Nodes: []graph.Node{{Name: "AND", Run: asks(nil)}}, Edges: []graph.Edge{edge("AND", graph.End)}})
	r := kept(g)
	_, _ = start(t, r)
	recs := journalOf(t, r.Store, thread)
	for i := range recs {
		recs[i].Head, recs[i].Data = bytes.ReplaceAll(recs[i].Head, []byte("AND"), []byte("END")), bytes.ReplaceAll(recs[i].Data, []byte("AND"), []byte("END"))
	}
	r.Store = journal.NewMemory()
	if err := r.Store.Append(t.Context(), thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r); err == nil || !strings.Contains(err.Error(), `"END"`) {
		t.Error(err)
	}
}

// A list that claims to be long takes no memory for it, however deep it lies.
func TestADamagedValueTakesNoMemory(t *testing.T) {
	const size = 50_000
	bag := graph.Dyn("bag")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{bag}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End)}})
	length := binary.AppendUvarint(nil, size)
	for _, nested := range []string{"l\x80\xa0\x01", "m\x80\xa0\x01\x00"} {
		r := kept(g)
		res, err := start(t, r, bag.Set(strings.Repeat(nested, size/4+1)[:size]))
		is(t, graph.Waiting, res, err)
		recs := journalOf(t, r.Store, thread)
		text := append([]byte{'s'}, length...)
		i := bytes.Index(recs[0].Data, text)
		if i < 0 {
			t.Fatal("the value is not where it was thought to be")
		}
		recs[0].Data[i] = 'l' // the text becomes a list of lists of lists
		judge(t, g, recs)
	}
}

func FuzzJournal(f *testing.F) {
	for _, recs := range realJournals(f) {
		f.Add(pack(recs))
	}
	e := newEverything(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if recs := unpack(b); len(b) < 1<<16 && len(recs) > 0 {
			judge(t, e.g, recs)
		}
	})
}
