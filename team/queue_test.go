package team

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A crew is a state whose agents are ended by hand.
type crew struct {
	*state
	begun map[string]int // how often a task was begun
}

func newCrew(most int) *crew {
	rules := map[string]Spawn{"": {Max: most, Depth: 1}}
	return &crew{newState(map[string]string{"worker": ""}, rules), map[string]int{}}
}

// look counts what has begun since it was last called, and finds who runs.
func (c *crew) look(t *testing.T, seen map[string]bool) (ids []string) {
	t.Helper()
	for _, m := range c.children(lead) {
		if m.status != running {
			continue
		}
		ids = append(ids, m.id)
		if !seen[m.id] {
			seen[m.id] = true
			c.begun[m.task]++
		}
	}
	if len(ids) > c.rules[""].Max {
		t.Fatalf("%d agents run", len(ids))
	}
	return ids
}

// Twenty tasks with dependencies of all kinds, done or failed in any order: every
// task that can be done is done exactly once, and no other.
func TestQueueDoesAllThatCanBeDone(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c, seen := newCrew(1+rng.IntN(4)), map[string]bool{}
		needs := map[string][]string{}
		broken := map[string]bool{}
		finish := func() bool {
			ids := c.look(t, seen)
			if len(ids) == 0 {
				return false
			}
			m := c.agents[ids[rng.IntN(len(ids))]]
			e := entry{Op: opEnd, ID: m.id, Key: "end " + m.id}
			if rng.IntN(6) == 0 {
				e.Error = "no luck"
				broken[m.task] = true
			}
			c.apply(e)
			if rng.IntN(2) == 0 {
				c.apply(entry{Op: opCollect, By: lead, ID: m.id})
			}
			return true
		}
		for i := 1; i <= 20; i++ {
			id := strconv.Itoa(i)
			in := newTask{Subject: id, Agent: "worker", Prompt: id}
			for range rng.IntN(4) {
				on := strconv.Itoa(1 + rng.IntN(i+1)) // itself and one that does not exist, too
				if in.BlockedBy = append(in.BlockedBy, "task_"+on); on < id || len(on) < len(id) {
					needs[id] = append(needs[id], on)
				}
			}
			needs[id] = slices.DeleteFunc(needs[id], func(on string) bool { n, _ := strconv.Atoi(on); return n >= i })
			c.apply(entry{Op: opCreate, By: lead, Key: "create " + id, Task: &in})
			for rng.IntN(3) == 0 && finish() {
			}
		}
		for finish() {
		}
		for i := 1; i <= 20; i++ {
			id := strconv.Itoa(i)
			want, status := 1, taskCompleted
			for _, on := range needs[id] {
				if c.queues[lead].find(on).Status != taskCompleted {
					want, status = 0, taskBlocked
				}
			}
			if broken[id] {
				status = taskFailed
			}
			if got := c.queues[lead].find(id); got.Status != status || c.begun[id] != want {
				t.Errorf("seed %d: task %s is %s and was begun %d times, want %s and %d; it needs %v", seed, id, got.Status, c.begun[id], status, want, needs[id])
			}
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
	three := c.queues[lead].find("task_3")
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
				e = entry{Op: opEnd, ID: c.order[0], Key: "end"}
				out += c.told(e) + c.told(entry{Op: opCollect, ID: c.order[0]})
				continue
			}
			out += c.told(e)
		}
		return out
	}
	if a, b := list(), list(); a != b || !strings.Contains(a, "At capacity: 2/2 agents running.") {
		t.Errorf("%s\n%s", a, b)
	}
}
