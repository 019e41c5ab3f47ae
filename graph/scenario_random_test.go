package graph_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"pgregory.net/rapid"

	"raddle.dev/graph"
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

// hasty reports whether failures cancel siblings anywhere: then the order in which
// tasks run decides which of them run in vain.
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

// beside are the acts of nodes that have siblings, alone those of all others.
var (
	beside = []string{"effect", "effect", "keyed", "pair", "ask", "ask", "number", "askboth", "emit", "log", "log", "sum", "tag", "chain", "most", "trim", "large"}
	alone  = append(slices.Clone(beside), "last", "last", "bag")
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
			p.Acts = acts(beside, 3).Draw(t, "acts")
		} else {
			p.Acts = acts(alone, 4).Draw(t, "acts")
		}
		below := where{depth: w.depth - 1, routed: w.routed}
		switch p.Kind {
		case "fan", "side":
			p.Arms = rapid.SliceOfN(acts(beside, 2), 2, 3).Draw(t, "arms")
		case "loop":
			p.Body = rapid.SliceOfN(pieces(where{depth: min(w.depth, 1), routed: w.routed}), 0, 1).Draw(t, "body")
		case "send":
			p.Arms = [][]act{acts(beside, 3).Draw(t, "worker")}
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
			out := "<" + digestOf(graph.EffectKey(ctx)) + ">"
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
	return l, r, cmp.Or(errL, errR)
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
