// Package praddle runs the workloads on raddle, through its public API alone.
package praddle

import (
	"context"
	"fmt"
	"os"

	"peers/work"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/store/postgres"
	"raddle.dev/store/redis"
	"raddle.dev/store/sqlite"
)

// Peers are raddle without a reader, and with every event built and read.
func Peers() []work.Peer {
	return []work.Peer{peer{topics: 0}.named("raddle"), peer{topics: graph.AllTopics}.named("raddle-all")}
}

// peer is raddle with the topics that its consumer asks for.
type peer struct{ topics graph.Topic }

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

var (
	count   = graph.Last[int]("count")
	results = graph.Append[int]("results")
	history = graph.Append[message]("messages")
	docs    = graph.Last[[]any]("docs")
	answer  = graph.Last[string]("answer")
)

func (p peer) named(name string) work.Peer {
	return work.Peer{
		Name: name, Chain: p.chain, FanOut: p.fanOut, Loop: p.loop, Messages: p.messages, Ckpt: p.checkpoints,
		Short: func() (work.Run, error) { return p.chain(5) }, Interrupt: p.interrupt,
	}
}

func (p peer) run(r *graph.Runner, in graph.Input) (graph.Result, error) {
	if p.topics == 0 {
		return r.Invoke(context.Background(), in)
	}
	in.Topics = p.topics
	return last(r.Run(context.Background(), in))
}

func (p peer) resume(r *graph.Runner, in graph.Resume) (graph.Result, error) {
	if p.topics == 0 {
		return r.InvokeResume(context.Background(), in)
	}
	in.Topics = p.topics
	return last(r.Resume(context.Background(), in))
}

// last reads all events and returns the result in the last one.
func last(events func(func(graph.Event, error) bool)) (res graph.Result, err error) {
	for e, err := range events {
		if err != nil {
			return res, err
		}
		if b, ok := e.Body.(graph.RunEnded); ok {
			res = b.Result
		}
	}
	return res, nil
}

func step(_ context.Context, s graph.State) (graph.Update, error) {
	return graph.Put(count.Set(count.Get(s) + 1)), nil
}

// node is a node that emits nothing.
func node(name string, run graph.Func) graph.Node {
	return graph.Node{Name: name, Run: run, Quiet: true}
}

func edge(from string, to ...string) graph.Edge { return graph.Edge{From: []string{from}, To: to} }

// until leads from a node back to another for as long as the count is below n.
func until(n int, from, back string) graph.Edge {
	again, stop := []string{"again"}, []string{"stop"}
	return graph.Edge{From: []string{from}, Cases: map[string]string{"again": back, "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
		if count.Get(s) < n {
			return again, nil
		}
		return stop, nil
	}}
}

func (p peer) chain(n int) (work.Run, error) {
	d := graph.Def{Name: "chain", Keys: []graph.AnyKey{count}, Start: []string{"n0"}}
	for i := range n {
		name, next := fmt.Sprint("n", i), fmt.Sprint("n", i+1)
		if i == n-1 {
			next = graph.End
		}
		d.Nodes = append(d.Nodes, node(name, step))
		d.Edges = append(d.Edges, edge(name, next))
	}
	return p.counting(d, n)
}

func (p peer) loop(iters int) (work.Run, error) {
	return p.counting(graph.Def{Name: "loop", Keys: []graph.AnyKey{count}, Start: []string{"a"},
		Nodes: []graph.Node{node("a", step), node("b", step)},
		Edges: []graph.Edge{edge("a", "b"), until(2*iters, "b", "a")}}, 2*iters)
}

// counting runs a graph whose count must end at n.
func (p peer) counting(d graph.Def, n int) (work.Run, error) {
	g, err := graph.Compile(d)
	if err != nil {
		return nil, err
	}
	r := &graph.Runner{Graph: g}
	return func() error {
		res, err := p.run(r, graph.Input{})
		if err != nil {
			return err
		}
		return work.Want("count", count.Get(res.State), n)
	}, nil
}

func (p peer) fanOut(width int) (work.Run, error) {
	d := graph.Def{Name: "fan", Keys: []graph.AnyKey{count, results}, Start: []string{"start"}, Nodes: []graph.Node{node("start", step)}}
	join := graph.Edge{To: []string{"finish"}}
	for i := range width {
		name := fmt.Sprint("w", i)
		d.Nodes = append(d.Nodes, node(name, func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(results.Set([]int{i})), nil
		}))
		d.Edges, join.From = append(d.Edges, edge("start", name)), append(join.From, name)
	}
	d.Nodes = append(d.Nodes, node("finish", step))
	d.Edges = append(d.Edges, join, edge("finish", graph.End))
	g, err := graph.Compile(d)
	if err != nil {
		return nil, err
	}
	r := &graph.Runner{Graph: g}
	return func() error {
		res, err := p.run(r, graph.Input{})
		if err != nil {
			return err
		}
		if err := work.Want("results", len(results.Get(res.State)), width); err != nil {
			return err
		}
		return work.Want("count", count.Get(res.State), 2)
	}, nil
}

func (p peer) messages(e *work.Env, n int) (work.Run, error) {
	say := func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(history.Set([]message{{"assistant", work.Text}}), count.Set(count.Get(s)+1)), nil
	}
	return p.stored(e, say, n, nil, func(s graph.State) error { return work.Want("messages", len(history.Get(s)), n) })
}

func (p peer) checkpoints(e *work.Env, n, records int) (work.Run, error) {
	set := []graph.Write{docs.Set(work.DocMaps(records))}
	return p.stored(e, step, n, set, func(s graph.State) error {
		if err := work.Want("docs", len(docs.Get(s)), records); err != nil {
			return err
		}
		return work.Want("count", count.Get(s), n)
	})
}

// stored runs one node n times against a store, each run on a thread of its own.
func (p peer) stored(e *work.Env, f graph.Func, n int, set []graph.Write, check func(graph.State) error) (work.Run, error) {
	g, err := graph.Compile(graph.Def{Name: "stored", Keys: []graph.AnyKey{count, history, docs}, Start: []string{"a"},
		Nodes: []graph.Node{node("a", f)}, Edges: []graph.Edge{until(n, "a", "a")}})
	if err != nil {
		return nil, err
	}
	open := func() journal.Store { return nil }
	switch e.Saver {
	case work.Memory:
		open = func() journal.Store { return journal.NewMemory() }
	case work.SQLite:
		path := e.Path("raddle.db")
		st, err := sqlite.Open(path)
		if err != nil {
			return nil, err
		}
		e.OnClose(func() { _ = st.Close() }) // it empties the write-ahead log
		open = func() journal.Store { return st }
	case work.Postgres, work.Redis:
		st, err := openServer(e)
		if err != nil {
			return nil, err
		}
		open = func() journal.Store { return st }
	}
	return func() error {
		res, err := p.run(&graph.Runner{Graph: g, Store: open()}, graph.Input{Thread: work.ID("raddle"), Set: set})
		if err != nil {
			return err
		}
		return check(res.State)
	}, nil
}

func (p peer) interrupt() (work.Run, error) {
	g, err := graph.Compile(graph.Def{Name: "interrupt", Keys: []graph.AnyKey{count, answer}, Start: []string{"a"},
		Nodes: []graph.Node{node("a", step), node("ask", func(ctx context.Context, s graph.State) (graph.Update, error) {
			a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "go on?"})
			if err != nil {
				return graph.Update{}, err
			}
			return graph.Put(answer.Set(a)), nil
		}), node("b", step)},
		Edges: []graph.Edge{edge("a", "ask"), edge("ask", "b"), edge("b", graph.End)}})
	if err != nil {
		return nil, err
	}
	return func() error {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		res, err := p.run(r, graph.Input{Thread: "t"})
		if err != nil {
			return err
		}
		if err := work.Want("status", res.Status, graph.Waiting); err != nil {
			return err
		}
		res, err = p.resume(r, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "yes"}}})
		if err != nil {
			return err
		}
		if err := work.Want("answer", answer.Get(res.State), "yes"); err != nil {
			return err
		}
		return work.Want("count", count.Get(res.State), 2)
	}, nil
}

// openServer opens the store of a server, whose URL is in the environment.
func openServer(e *work.Env) (journal.Store, error) {
	if e.Saver == work.Redis {
		st, err := redis.Open(os.Getenv("RADDLE_BENCH_REDIS"))
		if err != nil {
			return nil, err
		}
		e.OnClose(func() { _ = st.Close() })
		return st, nil
	}
	st, err := postgres.Open(context.Background(), os.Getenv("RADDLE_BENCH_POSTGRES"))
	if err != nil {
		return nil, err
	}
	e.Size = func() (int64, error) { return st.Size(context.Background()) }
	e.OnClose(func() { _ = st.Close() })
	return st, nil
}

// Runs returns a function that makes a run of a number of steps and saves each of them.
func Runs(e *work.Env, steps int) (work.Run, error) {
	return peer{}.stored(e, step, steps, nil, countTo(steps))
}

func countTo(n int) func(graph.State) error {
	return func(s graph.State) error { return work.Want("count", count.Get(s), n) }
}
