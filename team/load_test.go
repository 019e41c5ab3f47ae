package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/llm"
	"raddle.dev/store/sqlite"
	"raddle.dev/team"
)

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
		count := &graphtest.Crash{Store: graph.NewMemory(), Limit: -1}
		if _, _, err := finish(t, &graph.Runner{Graph: compile(t, p.queued(newStage())), Store: count}); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		for range 6 {
			s, st := newStage(), graph.Store(graph.NewMemory())
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
	graph.Store
	bytes, snapshots int64
}

func (w *weighed) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
	for _, r := range recs {
		if r.Kind == graph.KindSnapshot { // one after many records, of all there is: it falls in one half or the other
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
