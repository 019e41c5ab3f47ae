package team

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// A crew is a state whose agents are ended by hand. It keeps the entries that have
// changed it, as the log does.
type crew struct {
	*state
	most    int
	entries []entry
	began   map[string]int // how often a task was started
	seen    map[string]bool
}

func newCrew(most int) *crew {
	c := &crew{most: most, began: map[string]int{}, seen: map[string]bool{}}
	c.state = c.blank()
	return c
}

func (c *crew) blank() *state {
	return newState(map[string]string{"worker": ""}, map[string]Spawn{"": {Max: c.most, Depth: 1}})
}

func (c *crew) apply(e entry) outcome {
	out := c.checkRules(e)
	e.Queued = e.Op == opSpawn && c.isFull(e.By)
	if !out.refused {
		out = c.state.applyEntry(e)
	}
	if !out.refused {
		c.entries = append(c.entries, e)
	}
	return out
}

// crash makes the state of its entries again, as another process does.
func (c *crew) crash(t *testing.T) {
	t.Helper()
	again := c.blank()
	for _, e := range c.entries {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var read entry
		if err := json.Unmarshal(b, &read); err != nil {
			t.Fatal(err)
		}
		if out := again.applyEntry(read); out.refused {
			t.Fatalf("an entry of the log is refused: %+v, %+v", read, out.result)
		}
	}
	if is, was := fmt.Sprint(again.picture()), fmt.Sprint(c.state.picture()); is != was {
		t.Fatalf("after a crash the state is\n%s, want\n%s", is, was)
	}
	c.state = again
}

// picture is all that can be seen of a state.
func (s *state) picture() (lines []string) {
	for _, m := range s.childrenOf(lead) {
		lines = append(lines, fmt.Sprintf("%+v", *m))
	}
	if q := s.queues[lead]; q != nil {
		for _, t := range q.tasks {
			b, _ := json.Marshal(t)
			lines = append(lines, string(b))
		}
	}
	return lines
}

// look counts what has started since it was last called, and finds which agents run.
func (c *crew) look(t *testing.T) (ids []string) {
	t.Helper()
	for _, m := range c.childrenOf(lead) {
		if m.status != running {
			continue
		}
		ids = append(ids, m.id)
		if !c.seen[m.id] {
			c.seen[m.id] = true
			c.began[m.task]++
		}
	}
	if len(ids) > c.most {
		t.Fatalf("%d agents run", len(ids))
	}
	return ids
}

// finish has something happen to one of those who run: it ends well or not, or is
// cancelled, or its task is settled by hand.
func (c *crew) finish(t *testing.T, rng *rand.Rand, broken map[string]bool) bool {
	ids := c.look(t)
	if len(ids) == 0 {
		return false
	}
	m := c.agents[ids[rng.IntN(len(ids))]]
	task := m.task
	end := entry{Op: opEnd, ID: m.id, Key: "end " + m.id}
	switch rng.IntN(12) {
	case 0, 1:
		end.Error = "no luck"
		broken[task] = true
		c.apply(end)
	case 2:
		broken[task] = true
		c.apply(entry{Op: opCancel, By: lead, ID: m.id, Key: "cancel " + m.id})
	case 3: // what the agent comes to after that changes nothing
		broken[task] = true
		c.apply(entry{Op: opFail, By: lead, ID: task, Key: "fail " + task})
		c.apply(end)
	case 4:
		c.apply(entry{Op: opComplete, By: lead, ID: task, Key: "complete " + task})
		end.Error = "too late"
		c.apply(end)
	default:
		c.apply(end)
	}
	if rng.IntN(2) == 0 {
		c.apply(entry{Op: opCollect, By: lead, ID: m.id, Key: "collect " + m.id})
	}
	if rng.IntN(4) == 0 {
		c.crash(t)
	}
	return true
}

// Twenty tasks with dependencies of all kinds, done, failed and cancelled in any
// order, with processes that die in between: every task that can be done is started
// and done exactly once, and no other.
func TestQueueDoesAllThatCanBeDone(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c, needs, broken := newCrew(1+rng.IntN(4)), map[string][]string{}, map[string]bool{}
		for i := 1; i <= 20; i++ {
			id := strconv.Itoa(i)
			in := newTask{Subject: id, Agent: "worker", Prompt: id}
			for range rng.IntN(4) {
				on := 1 + rng.IntN(i+1) // itself and one that does not exist, too
				if in.BlockedBy = append(in.BlockedBy, "task_"+strconv.Itoa(on)); on < i {
					needs[id] = append(needs[id], strconv.Itoa(on))
				}
			}
			c.apply(entry{Op: opCreate, By: lead, Key: "create " + id, Task: &in})
			for rng.IntN(3) == 0 && c.finish(t, rng, broken) {
			}
		}
		for c.finish(t, rng, broken) {
		}
		c.crash(t)
		for i := 1; i <= 20; i++ {
			id := strconv.Itoa(i)
			want, status := 1, taskCompleted
			for _, on := range needs[id] {
				if c.queues[lead].findTask(on).Status != taskCompleted {
					want, status = 0, taskBlocked
				}
			}
			if broken[id] {
				status = taskFailed
			}
			got := c.queues[lead].findTask(id)
			if kinds[got.Status]++; got.Status != status || c.began[id] != want {
				t.Errorf("seed %d: task %s is %s and was begun %d times, want %s and %d; it needs %v", seed, id, got.Status, c.began[id], status, want, needs[id])
			}
		}
	}
	for _, status := range []string{taskCompleted, taskFailed, taskBlocked} {
		if kinds[status] < 500 {
			t.Errorf("only %d tasks of 10000 are %s in the end", kinds[status], status)
		}
	}
}

// told is the result of an entry as JSON.
func (c *crew) told(e entry) string {
	e.By = lead
	b, _ := json.Marshal(c.apply(e).result)
	return string(b)
}

func TestQueueByHand(t *testing.T) {
	c := newCrew(1)
	create := func(subject string, by ...string) string {
		return c.told(entry{Op: opCreate, Key: subject, Task: &newTask{Subject: subject, Description: "d", BlockedBy: by}})
	}
	for i, step := range []struct{ got, want string }{
		{create("one"), `{"status":"ok","task_id":"1"}`},
		{create("two", "1", "task_1", "2", "9"), `{"status":"ok","task_id":"2","warnings":["A task cannot depend on itself","Dependency task '9' does not exist"]}`},
		{c.told(entry{Op: opCreate, Key: "x", Task: &newTask{Subject: "three", BlockedBy: []string{"2"}, Agent: "worker", Prompt: "p"}}), `{"status":"ok","task_id":"3","auto_dispatch":true}`},
		{c.told(entry{Op: opComplete, ID: "2"}), `{"status":"error","message":"Task '2' is blocked by: 1"}`},
		{c.told(entry{Op: opComplete, ID: "1"}), `{"status":"ok","task_id":"1","newly_runnable":[{"id":"2","subject":"two","description":"d","agent":null}]}`},
		{c.told(entry{Op: opComplete, ID: "1"}), `{"status":"ok","task_id":"1","newly_runnable":[]}`},
		{create("four", "1"), `{"status":"ok","task_id":"4"}`},
		{c.told(entry{Op: opComplete, ID: "12"}), `{"status":"error","message":"Task '12' not found"}`},
		{c.told(entry{Op: opFail, ID: "4"}), `{"status":"ok","task_id":"4","blocked_dependents":[],"message":"Task '4' marked as failed. 0 dependent task(s) will remain blocked."}`},
		{create("five", "4"), `{"status":"ok","task_id":"5","warnings":["Dependency task '4' has failed: this task will remain blocked"]}`},
		{c.told(entry{Op: opFail, ID: "1"}), `{"status":"error","message":"Task '1' is completed and cannot fail any more."}`},
		{c.told(entry{Op: opComplete, ID: "4"}), `{"status":"error","message":"Task '4' has failed and cannot be completed. Create a new one."}`},
	} {
		if step.got != step.want {
			t.Errorf("step %d: %s, want %s", i, step.got, step.want)
		}
	}
	if got := c.told(entry{Op: opComplete, ID: "2", Key: "k"}); !strings.Contains(got, `"auto_dispatched":[{"status":"ok","id":"agent_worker_`) {
		t.Error(got)
	}
	three := c.queues[lead].findTask("task_3")
	if three.Status != taskInProgress || *three.Owner != "auto:worker" || three.AgentID == "" {
		t.Errorf("%+v", three)
	}
	if c.told(entry{Op: opCancel, ID: three.AgentID}); three.Status != taskFailed {
		t.Errorf("its agent was cancelled, and the task is %s", three.Status)
	}
}

// The same entries give the same state: ids, order, everything a journal is read
// back for.
func TestStateIsMadeOfItsEntries(t *testing.T) {
	list := func() string {
		c, out := newCrew(2), ""
		for i := range 12 {
			e := entry{Op: opSpawn, Key: fmt.Sprint("k", i), Agent: "worker", Text: "p"}
			if i%3 == 2 {
				e = entry{Op: opEnd, ID: c.childrenOf(lead)[0].id, Key: "end"}
				out += c.told(e) + c.told(entry{Op: opCollect, ID: c.childrenOf(lead)[0].id})
				continue
			}
			out += c.told(e)
		}
		return out
	}
	if a, b := list(), list(); a != b || !strings.Contains(a, "It waits for a place: 2/2 agents run.") {
		t.Errorf("%s\n%s", a, b)
	}
}

// An agent that is cancelled may be in the middle of a call: it changes nothing,
// and may spawn no agent.
func TestCallsOfACancelledAgent(t *testing.T) {
	s := newState(map[string]string{"helper": ""}, map[string]Spawn{"": {Max: 4, Depth: 3}, "helper": {Max: 4, Depth: 3}})
	m := s.addMember(lead, "helper", "help", "k")
	if out := s.applyEntry(entry{Op: opCancel, By: lead, ID: m.id}); out.refused {
		t.Fatal(out.result)
	}
	ops := []op{opSpawn, opCollect, opCancel, opCreate, opComplete, opFail, opSend, opInbox, opEscalate, opReply, opGiveUp}
	for _, o := range ops {
		e := entry{Op: o, By: m.id, ID: "1", Agent: "helper", Text: "x", Task: &newTask{Subject: "x", Agent: "helper", Prompt: "x"}}
		if out := s.checkRules(e); out.refused {
			t.Errorf("%s has no reason of its own: %v", o, out.result)
		}
		if out := s.applyEntry(e); !out.refused {
			t.Errorf("%s was done: %v", o, out.result)
		}
	}
	if r := s.spawnRule(m.id); r.Max != 0 || r.Only == nil || len(s.childrenOf(m.id)) != 0 {
		t.Errorf("it may still spawn: %+v", r)
	}
}
