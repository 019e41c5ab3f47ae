package progress

import (
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/team"
)

// Activity says what a stop of a run would interrupt. It is safe for concurrent use.
type Activity struct {
	mu      sync.Mutex
	working map[string]bool        // running tasks that are more than a reply, by path and id
	tasks   map[string]runningTask // running tasks, by path and id
}

// A runningTask is a task that runs.
type runningTask struct {
	path  string    // of its frame
	below string    // path of what it calls
	waits time.Time // until then it waits to send a request again
}

// NewActivity returns the activity of a run that has not started.
func NewActivity() *Activity {
	return &Activity{working: map[string]bool{}, tasks: map[string]runningTask{}}
}

// HandleEvent takes an event of the run into account.
func (a *Activity) HandleEvent(ev graph.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := ev.Path + ev.Task
	switch b := ev.Body.(type) {
	case graph.TaskStarted:
		if b.Kind != "llm" && b.Kind != team.Node {
			a.working[id] = true
		}
		a.tasks[id] = runningTask{path: ev.Path, below: ev.ChildPath()}
	case graph.ValueEmitted:
		if t, ok := a.tasks[id]; ok {
			t.waits = time.Time{}
			if wait, ok := b.Value.(agent.RetryScheduled); ok {
				t.waits = time.Now().Add(wait.Wait)
			}
			a.tasks[id] = t
		}
	case graph.TaskDone:
		delete(a.working, id)
		delete(a.tasks, id)
	case graph.RunEnded:
		if ev.Path == "" {
			clear(a.tasks)
		}
	}
}

// OnlyWaits reports whether every running task waits to send a request to a model
// again: interrupting it loses nothing.
func (a *Activity) OnlyWaits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tasks {
		if !t.waits.After(time.Now()) && !a.hasTasks(t) {
			return false
		}
	}
	return len(a.tasks) > 0
}

// hasTasks reports whether a task is running inside another one. The caller must hold mu.
func (a *Activity) hasTasks(outer runningTask) bool {
	for _, t := range a.tasks {
		if strings.HasPrefix(t.path, outer.below) {
			return true
		}
	}
	return false
}

// OnlyReplies reports whether all running tasks are replies of models, or wait for the tasks inside them.
func (a *Activity) OnlyReplies() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.working) == 0
}
