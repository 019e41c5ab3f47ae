package team

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// These are the states of a task.
const (
	taskPending    = "pending"
	taskBlocked    = "blocked"
	taskInProgress = "in_progress"
	taskCompleted  = "completed"
	taskFailed     = "failed"
)

// A task is a piece of work that may depend on others.
type task struct {
	ID          string   `json:"id"`
	Subject     string   `json:"subject"`
	Description string   `json:"-"`
	Status      string   `json:"status"`
	Owner       *string  `json:"owner"`
	BlockedBy   []string `json:"blocked_by"` // the ones that are not completed, in numeric order
	Blocks      []string `json:"blocks"`
	Agent       *string  `json:"agent"`
	Prompt      *string  `json:"prompt"`
	AgentID     string   `json:"agent_id,omitempty"` // the agent that works or worked on it

	reportedWaiting bool // an event has said that the task waits for a place
	reported        bool // a result has said that the task stays blocked permanently
}

// A queue is the tasks of one agent. The id of a task is its position, starting
// with 1.
type queue struct{ tasks []*task }

// taskID returns the id that a model means: N and task_N are the same.
func taskID(text string) string {
	text = strings.TrimSpace(text)
	if n, ok := strings.CutPrefix(text, "task_"); ok {
		text = n
	}
	if n, err := strconv.Atoi(text); err == nil {
		return strconv.Itoa(n)
	}
	return text
}

// findTask returns the task with an id, or nil.
func (q *queue) findTask(id string) *task {
	n, err := strconv.Atoi(taskID(id))
	if q == nil || err != nil || n < 1 || n > len(q.tasks) {
		return nil
	}
	return q.tasks[n-1]
}

// addTask adds a task. An invalid dependency is left out and causes a warning.
// Completed dependencies do not block the task.
func (q *queue) addTask(in newTask) (t *task, warnings []string) {
	t = &task{ID: strconv.Itoa(len(q.tasks) + 1), Subject: in.Subject, Description: in.Description, Status: taskPending, BlockedBy: []string{}, Blocks: []string{}}
	if in.Agent != "" {
		t.Agent, t.Prompt = &in.Agent, &in.Prompt
	}
	for _, name := range in.BlockedBy {
		id := taskID(name)
		on := q.findTask(id)
		switch {
		case id == t.ID:
			warnings = append(warnings, "A task cannot depend on itself")
		case on == nil:
			warnings = append(warnings, fmt.Sprintf("Dependency task '%s' does not exist", name))
		case on.Status == taskCompleted || slices.Contains(t.BlockedBy, on.ID):
		default:
			if on.Status == taskFailed {
				warnings = append(warnings, fmt.Sprintf("Dependency task '%s' has failed: this task will remain blocked", on.ID))
			}
			t.BlockedBy, on.Blocks = append(t.BlockedBy, on.ID), append(on.Blocks, t.ID)
			t.Status = taskBlocked
		}
	}
	slices.SortFunc(t.BlockedBy, byNumber)
	q.tasks = append(q.tasks, t)
	return t, warnings
}

func byNumber(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x - y
}

// completeTask marks a task as completed, and returns the tasks that can start
// because of it. Completing a task again has no effect.
func (q *queue) completeTask(t *task) (runnable []*task) {
	if t.Status == taskCompleted {
		return nil
	}
	t.Status = taskCompleted
	for _, id := range t.Blocks {
		on := q.findTask(id)
		on.BlockedBy = slices.DeleteFunc(on.BlockedBy, func(b string) bool { return b == t.ID })
		if len(on.BlockedBy) == 0 && on.Status == taskBlocked {
			on.Status = taskPending
			runnable = append(runnable, on)
		}
	}
	return runnable
}

// readyTasks returns the tasks that an agent can start, in numeric order.
func (q *queue) readyTasks() (ready []*task) {
	if q == nil {
		return nil
	}
	for _, t := range q.tasks {
		if t.Status == taskPending && t.Agent != nil {
			ready = append(ready, t)
		}
	}
	return ready
}
