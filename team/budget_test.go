package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/store/sqlite"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// perCall is what every call of a till costs, in tokens.
const perCall = 300

// A till counts what calls of models have cost that came to their end.
type till struct {
	mu          sync.Mutex
	made        int // by the model: what a crash has kept from the agent, too
	paid        int
	now, most   int // calls in progress
	begun, done int
}

// slow makes calls take a second, so that those that may overlap do.
func (x *till) slow(m llm.Model) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			x.mu.Lock()
			x.begun++
			x.now++
			x.most = max(x.most, x.now)
			x.mu.Unlock()
			defer func() {
				x.mu.Lock()
				x.now--
				x.mu.Unlock()
			}()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				yield(llm.Delta{}, context.Cause(ctx))
				return
			}
			m.Stream(ctx, r)(func(d llm.Delta, err error) bool {
				if d.Done != nil {
					d.Done.Usage = llm.Usage{Input: perCall - 20, Output: 20}
					x.mu.Lock()
					x.made += perCall
					x.mu.Unlock()
				}
				return yield(d, err)
			})
		}
	})
}

// counts sees the replies that were paid for.
func (x *till) counts(next llm.Model) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			next.Stream(ctx, r)(func(d llm.Delta, err error) bool {
				if err == nil && d.Done != nil {
					x.mu.Lock()
					x.paid += d.Done.Usage.Input + d.Done.Usage.Output
					x.done++
					x.mu.Unlock()
				}
				return yield(d, err)
			})
		}
	})
}

// eight is a lead and eight agents that work three rounds each, all at once.
func eight(x *till, b agent.Budget) team.Config {
	s := newStage()
	prompts := strings.Split("a b c d e f g h", " ")
	c := pair(s, one(prompts, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			var pairs []string
			for _, id := range ids(v) {
				pairs = append(pairs, collectCall(id)...)
			}
			return calls(v, pairs...)
		}
		return words("all is done")
	}), func(_ context.Context, v view) llm.Message {
		if v.round < 3 {
			return calls(v, "work", fmt.Sprintf(`{"for":%q,"round":%d}`, v.asked, v.round))
		}
		return words(v.asked + " is done")
	}, team.Spawn{Max: len(prompts)})
	outfit := func(a *agent.Config) {
		a.Model, a.Request.MaxTokens, a.AroundModel = x.slow(a.Model), 20, []agent.ModelMiddleware{x.counts}
	}
	m := c.Agents["explore"]
	outfit(&m.Agent)
	outfit(&c.Lead.Agent)
	m.Agent.Tools[0].Effect, c.Agents["explore"], c.Lead.Agent.Budget = tool.Idempotent, m, b
	return c
}

// wholeTurn is what the turn of eight costs: the lead's three calls, and four of each other.
const wholeTurn = (3 + 8*4) * perCall

// Eight agents side by side spend from the lead's budget: together they exceed it
// by one call at most, and no call is refused that it had room for.
func TestAgentsShareABudget(t *testing.T) {
	for name, k := range map[string]struct {
		budget agent.Budget
		most   int // tokens
	}{
		"tokens":          {agent.Budget{Tokens: 5000}, 5000 + perCall},
		"few tokens":      {agent.Budget{Tokens: 700}, 700 + perCall},
		"money":           {agent.Budget{Money: 0.5, Price: agent.Price{Input: 100, Output: 100}}, 5000 + perCall},
		"calls":           {agent.Budget{Calls: 11}, 11 * perCall},
		"calls of tools":  {agent.Budget{ToolCalls: 20}, wholeTurn},
		"enough":          {agent.Budget{Tokens: wholeTurn}, wholeTurn},
		"without a limit": {agent.Budget{}, wholeTurn},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &till{}
				r := &graph.Runner{Graph: compile(t, eight(x, k.budget)), Store: journal.NewMemory()}
				res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
				if x.paid > k.most {
					t.Errorf("%d tokens were spent, want %d at most", x.paid, k.most)
				}
				if k.most == wholeTurn && k.budget.ToolCalls == 0 {
					if err != nil || x.paid != wholeTurn || x.most < 2 {
						t.Errorf("%v, %d tokens of %d were spent, %d calls at once", err, x.paid, wholeTurn, x.most)
					}
					return
				}
				var over *agent.BudgetError
				if !errors.As(err, &over) || !over.Shared || over.Of != "lead" {
					t.Fatalf("%v, %v", res.Status, err)
				}
				if k.budget.ToolCalls == 0 && x.paid < k.most-2*perCall {
					t.Errorf("only %d tokens were spent of %d", x.paid, k.most)
				}
				// With more, all continue where they were: nothing is done again.
				r.Graph = compile(t, eight(x, agent.Budget{Tokens: 2 * wholeTurn}))
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
				if err != nil || agent.LastResponse(res.State) != "all is done" {
					t.Fatalf("%v, %v, %q", res.Status, err, agent.LastResponse(res.State))
				}
				if got := agent.Spent.Get(res.State); got.Calls != wholeTurn/perCall || got.Usage.Input+got.Usage.Output != x.paid || x.paid != wholeTurn {
					t.Errorf("the turn has cost %+v, %d tokens were paid, want %d", got, x.paid, wholeTurn)
				}
			})
		})
	}
}

// A process that continues knows what the one that was killed has spent, at whatever
// record that was.
func TestSharedBudgetAfterACrash(t *testing.T) {
	budget := agent.Budget{Tokens: 4000}
	run := func(t *testing.T, x *till, store journal.Store) (err error) {
		synctest.Test(t, func(t *testing.T) {
			r := &graph.Runner{Graph: compile(t, eight(x, budget)), Store: store}
			_, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
			if errors.Is(err, journal.ErrNoThread) {
				_, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			}
		})
		return err
	}
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	var over *agent.BudgetError
	if err := run(t, &till{}, count); !errors.As(err, &over) {
		t.Fatal(err)
	}
	for limit := range count.RecordCount() {
		x, store := &till{}, &graphtest.Crash{Store: journal.NewMemory(), Limit: limit}
		if err := run(t, x, store); !errors.As(err, &over) && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		known := x.paid
		if err := run(t, x, store.Store); !errors.As(err, &over) {
			t.Fatalf("crash after %d records: resumed: %v", limit, err)
		}
		if x.paid > budget.Tokens+perCall || x.made < budget.Tokens {
			t.Errorf("crash after %d records: %d tokens were spent before and %d after it, of %d, want %d to %d", limit, known, x.paid-known, x.made, budget.Tokens, budget.Tokens+perCall)
		}
	}
}

// An agent that has used up a budget of its own, for itself and the agents that are
// its tools, has failed: the others continue.
func TestOwnBudgetIsNotShared(t *testing.T) {
	s := newStage()
	helper, err := agent.Config{Model: s.model("helper", func(context.Context, view) llm.Message { return words("helped") })}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	c := pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			return calls(v, collectCall(ids(v)[0])...)
		}
		return words(v.last())
	}), func(_ context.Context, v view) llm.Message {
		return calls(v, "helper", `{"request":"x"}`, "helper", `{"request":"y"}`)
	}, team.Spawn{})
	c.Lead.Agent.Budget = agent.Budget{Calls: 100}
	m := c.Agents["explore"]
	m.Agent.Name, m.Agent.Budget = "explorer", agent.Budget{Calls: 2}
	m.Agent.Agents = []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper"}, Graph: helper}}
	c.Agents["explore"] = m
	res := invoke(t, c)
	if got := agent.LastResponse(res.State); !strings.Contains(got, `"status":"failed"`) || !strings.Contains(got, "the budget of explorer and the agents below it for calls is used up: 2 of 2") {
		t.Error(got)
	}
	if n, _ := s.total(); n != 3+1+1 {
		t.Errorf("%d requests: %v", n, s.requests)
	}
}

// A plan is twenty tasks with dependencies; some fail.
type plan struct {
	needs  [20][]int
	doomed [20]bool
}

func newPlan(seed uint64) (p plan) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range p.needs {
		for range rng.IntN(3) {
			if i > 0 {
				p.needs[i] = append(p.needs[i], rng.IntN(i))
			}
		}
		p.doomed[i] = rng.IntN(8) == 0
	}
	return p
}

// done reports whether a task can be done, and started.
func (p *plan) done(i int) (done, begun bool) {
	for _, on := range p.needs[i] {
		if ok, _ := p.done(on); !ok {
			return false, false
		}
	}
	return !p.doomed[i], true
}

// queued is a lead that makes the tasks and waits until none is running.
func (p *plan) queued(s *stage) team.Config {
	leads := func(_ context.Context, v view) llm.Message {
		var pairs []string
		if v.round == 0 {
			for i, needs := range p.needs {
				by := []string{}
				for _, on := range needs {
					by = append(by, fmt.Sprint("task_", on+1))
				}
				args, _ := json.Marshal(map[string]any{"subject": fmt.Sprint(i), "agent": "explore", "prompt": fmt.Sprint(i), "blocked_by": by})
				pairs = append(pairs, "agent__task_create", string(args))
			}
			return calls(v, pairs...)
		}
		if v.round%2 == 1 {
			return calls(v, "agent__task_list", "{}")
		}
		var list struct {
			Tasks []struct{ Status, AgentID string }
		}
		_ = json.Unmarshal([]byte(strings.ReplaceAll(v.last(), "agent_id", "agentid")), &list)
		for _, t := range list.Tasks {
			if t.Status == "in_progress" {
				return calls(v, collectCall(t.AgentID)...)
			}
		}
		return words(v.last())
	}
	works := func(_ context.Context, v view) llm.Message {
		var i int
		_, _ = fmt.Sscan(v.asked, &i)
		if v.round == 0 || p.doomed[i] {
			return calls(v, "work", fmt.Sprintf(`{"task":%q,"round":%d}`, v.asked, v.round))
		}
		return words("done")
	}
	c := pair(s, leads, works, team.Spawn{Max: 3})
	c.Lead.Agent.MaxIterations = 1000
	m := c.Agents["explore"]
	m.Agent.MaxIterations = 2
	c.Agents["explore"] = m
	return c
}

// Twenty tasks with random dependencies, through a crash at any record: every task
// that can be done is done once, those that fail fail, and what needs these stays.
func TestQueueThroughCrashes(t *testing.T) {
	for seed := range uint64(4) {
		p := newPlan(seed)
		count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
		if _, _, err := finish(t, &graph.Runner{Graph: compile(t, p.queued(newStage())), Store: count}); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		for range 6 {
			s, st := newStage(), journal.Store(journal.NewMemory())
			g := compile(t, p.queued(s))
			limit, doubts := rng.IntN(count.RecordCount()), 0
			for died := true; died; limit = rng.IntN(count.RecordCount()) { // and again, while it continues
				_, n, err := finish(t, &graph.Runner{Graph: g, Store: &graphtest.Crash{Store: st, Limit: limit}})
				if died = errors.Is(err, graphtest.ErrCrash); err != nil && !died {
					t.Fatal(err)
				}
				doubts += n
			}
			res, _, err := finish(t, &graph.Runner{Graph: g, Store: st})
			if err != nil || res.Status != graph.Done {
				t.Fatal(res.Status, err)
			}
			var list struct{ Tasks []struct{ ID, Status string } }
			if err := json.Unmarshal([]byte(agent.LastResponse(res.State)), &list); err != nil || len(list.Tasks) != 20 {
				t.Fatal(err, agent.LastResponse(res.State))
			}
			for i, task := range list.Tasks {
				want := "blocked"
				if done, begun := p.done(i); done {
					want = "completed"
				} else if begun {
					want = "failed"
				}
				if task.Status != want {
					t.Errorf("seed %d: task %s is %s, want %s", seed, task.ID, task.Status, want)
				}
			}
			again := 0
			for i := range p.needs {
				_, begun := p.done(i)
				n := s.calls[fmt.Sprintf(`{"task":"%d","round":0}`, i)]
				if again += max(0, n-1); begun != (n > 0) {
					t.Errorf("seed %d: task %d was worked on %d times", seed, i, n)
				}
			}
			if again > doubts {
				t.Errorf("seed %d: %d tasks were done again, %d of them with a word", seed, again, doubts)
			}
		}
	}
}

// Five hundred agents, one after the other: what each adds to the journal and to
// memory is the same for the last as for the first.
func TestManyAgentsInFlatMemory(t *testing.T) {
	const many = 500
	file := filepath.Join(t.TempDir(), "runs.db")
	store, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // all is written
	count := &weighed{Store: store}
	var heap, bytes [3]int64 // at none, half and all
	measure := func(n int) {
		if n%(many/2) == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap[n*2/many], bytes[n*2/many] = int64(m.HeapAlloc), count.bytes
		}
	}
	s := newStage()
	n := 0
	leads := func(_ context.Context, v view) llm.Message {
		if strings.Contains(v.last(), "spawned as") {
			return calls(v, collectCall(v.field("id"))...)
		}
		measure(n)
		if n == many {
			return words("all done")
		}
		n++
		return calls(v, spawnCall(fmt.Sprint("task ", n))...)
	}
	c := pair(s, leads, func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			return calls(v, "work", fmt.Sprintf(`{"for":%q}`, v.asked))
		}
		return words("done " + strings.Repeat("x", 200))
	}, team.Spawn{})
	c.Lead.Agent.Window.Tokens = 6000 // what the lead sees of its conversation
	c.Lead.Agent.MaxIterations, c.Lead.Agent.Budget = 2*many+1, agent.Budget{Calls: 10 * many}
	res, err := (&graph.Runner{Graph: compile(t, c), Store: count, Durability: graph.EveryStep}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || agent.LastResponse(res.State) != "all done" {
		t.Fatal(res.Status, err)
	}
	t.Logf("journal: %d bytes an agent at first, %d later; heap: %d and %d", 2*(bytes[1]-bytes[0])/many, 2*(bytes[2]-bytes[1])/many, 2*(heap[1]-heap[0])/many, 2*(heap[2]-heap[1])/many)
	if first, then := bytes[1]-bytes[0], bytes[2]-bytes[1]; then > first*13/10 {
		t.Errorf("the first half of the agents took %d bytes of the journal, the second %d", first, then)
	}
	if count.snapshots > 2*count.bytes {
		t.Errorf("snapshots have %d bytes, more than twice the %d of the records", count.snapshots, count.bytes)
	}
	const most = 12 << 10 // bytes an agent: what the lead has said of it, and the log
	if grown := (heap[2] - heap[0]) / many; grown > most {
		t.Errorf("each agent leaves %d bytes in memory, want %d at most", grown, most)
	}
}

// weighed counts the bytes of a journal, snapshots apart.
type weighed struct {
	journal.Store
	bytes, snapshots int64
}

func (w *weighed) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	for _, r := range recs {
		if r.Kind == journal.KindSnapshot { // one after many records, of all there is: it falls in one half or the other
			w.snapshots += int64(len(r.Head) + len(r.Data))
			continue
		}
		w.bytes += int64(len(r.Head) + len(r.Data))
	}
	return w.Store.Append(ctx, thread, after, recs)
}

// How an agent has ended is reported as it was: failed where it failed and where its time
// was over, nothing of one that was cancelled; and its place is free.
func TestHowAgentsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		var told []string
		c := pair(s, func(_ context.Context, v view) llm.Message {
			switch v.round {
			case 0:
				return calls(v, append(append(spawnCall("fail"), spawnCall("hang")...), spawnCall("hang on")...)...)
			case 1:
				return calls(v, append(append(collectCall(ids(v)[0]), collectCall(ids(v)[1])...), "agent__cancel", fmt.Sprintf(`{"id":%q}`, ids(v)[2]))...)
			case 2:
				return calls(v, append(append(append(collectCall(ids(v)[2]), spawnCall("x")...), spawnCall("y")...), spawnCall("z")...)...)
			case 3:
				return calls(v, append(append(collectCall(ids(v)[3]), collectCall(ids(v)[4])...), collectCall(ids(v)[5])...)...)
			}
			told = v.results
			return words("ok")
		}, func(ctx context.Context, v view) llm.Message {
			if strings.HasPrefix(v.asked, "hang") {
				<-ctx.Done()
			}
			return words("fine")
		}, team.Spawn{Max: 3})
		m := c.Agents["explore"]
		m.Agent.Budget.Time = time.Minute
		m.Agent.Request.System = "s"
		m.Agent.System = func(st graph.State) (string, error) {
			if strings.Contains(fmt.Sprint(agent.History(st)), "fail") {
				return "", errors.New("no luck")
			}
			return "s", nil
		}
		c.Agents["explore"] = m
		began := time.Now()
		invoke(t, c)
		for i, want := range []string{"spawned as", "spawned as", "spawned as", `"status":"failed"`, `"status":"failed"`, "Cancelled agent 'explore'", "not found. Use agent__check",
			"spawned as", "spawned as", "spawned as", `"status":"completed"`, `"status":"completed"`, `"status":"completed"`} {
			if !strings.Contains(told[i], want) {
				t.Errorf("result %d is %s, want %s", i, told[i], want)
			}
		}
		for i, why := range map[int]string{3: "no luck", 4: "1m0s"} {
			for _, want := range []string{`"exit_status":"Failed(\"`, why, `"error":"`, `"output":""`} {
				if !strings.Contains(told[i], want) {
					t.Errorf("result %d is %s, want %s", i, told[i], want)
				}
			}
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}
