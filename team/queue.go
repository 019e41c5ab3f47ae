package team

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
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
		t.Agent = &in.Agent
		t.Prompt = &in.Prompt
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
			t.BlockedBy = append(t.BlockedBy, on.ID)
			on.Blocks = append(on.Blocks, t.ID)
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

// A stuckTask is a task that stays blocked permanently: a task that it depends
// on, directly or indirectly, has failed or was cancelled.
type stuckTask struct {
	ID      string   `json:"id"`
	Subject string   `json:"subject"`
	Failed  []string `json:"failed"` // the failed tasks that it depends on, in numeric order
}

// stuckTasks returns the tasks that stay blocked permanently, in numeric order. If
// unreported is true, it leaves out those that a result has named.
func (q *queue) stuckTasks(unreported bool) (list []stuckTask) {
	if q == nil {
		return nil
	}
	failed := map[string][]string{} // by task
	for _, t := range q.tasks {     // a task depends only on earlier tasks
		if t.Status != taskBlocked {
			continue
		}
		for _, id := range t.BlockedBy {
			if q.findTask(id).Status == taskFailed {
				failed[t.ID] = append(failed[t.ID], id)
			}
			failed[t.ID] = append(failed[t.ID], failed[id]...)
		}
		if causes := failed[t.ID]; len(causes) > 0 && !(unreported && t.reported) {
			slices.SortFunc(causes, byNumber)
			list = append(list, stuckTask{t.ID, t.Subject, slices.Compact(causes)})
		}
	}
	return list
}

// reportStuck returns the tasks of an agent's queue that stay blocked
// permanently and that no result has named yet.
func (s *state) reportStuck(by string) []stuckTask {
	q := s.queues[by]
	list := q.stuckTasks(true)
	for _, t := range list {
		q.findTask(t.ID).reported = true
	}
	return list
}

// newlyStuck returns the tasks of the agent that stay blocked permanently and
// that neither a result nor a reminder of this drive has named. The caller must
// hold mu.
func (h agentHandle) newlyStuck() (list []stuckTask) {
	for _, t := range h.state.queues[h.id].stuckTasks(true) {
		if key := h.id + "/" + t.ID; !h.supervisor.stuck[key] {
			h.supervisor.stuck[key] = true
			list = append(list, t)
		}
	}
	return list
}

// describeStuck returns one sentence that says which tasks stay blocked.
func describeStuck(list []stuckTask) string {
	var each []string
	for _, t := range list {
		each = append(each, fmt.Sprintf("task %s (%s), which needs task %s", t.ID, t.Subject, joinIDs(t.Failed)))
	}
	verb := "stays"
	if len(list) > 1 {
		verb = "stay"
	}
	return fmt.Sprintf("%s %s blocked for ever: a task that it needs failed or was cancelled", strings.Join(each, "; "), verb)
}

// nodeRemind is the node after an agent's last reply: it checks for agents that
// still run.
const nodeRemind = "remind"

// reminded counts how often an agent was reminded of them.
var reminded = graph.Last[int]("reminded")

// addReminders adds a node that sends an agent a reminder when it ends its turn while
// its own agents still run. After most reminders they are cancelled.
func addReminders(d *graph.Def, most int) {
	for _, e := range d.Edges {
		for label, to := range e.Cases {
			if to == graph.End {
				e.Cases[label] = nodeRemind
			}
		}
	}
	d.Keys = append(d.Keys, reminded)
	d.Nodes = append(d.Nodes, graph.Node{Name: nodeRemind, Kind: "remind",
		Run: func(ctx context.Context, s graph.State) (graph.Update, error) { return remindAgent(ctx, s, most) }})
	d.Edges = append(d.Edges, graph.Edge{From: []string{nodeRemind}, Cases: map[string]string{"reminded": agent.NodeThink, "over": graph.End},
		Pick: func(s graph.State) ([]string, error) {
			if said := agent.Messages.Get(s); len(said) > 0 && said[len(said)-1].By == nodeRemind {
				return []string{"reminded"}, nil
			}
			return []string{"over"}, nil
		}})
}

func remindAgent(ctx context.Context, s graph.State, most int) (graph.Update, error) {
	at, ok := handleOf(ctx)
	if !ok || agent.WasInterrupted(s) || agent.IsInterrupted(ctx) {
		return graph.Update{}, nil
	}
	at.mu.Lock()
	var ids []string
	for _, m := range at.state.childrenOf(at.id) {
		if m.status == running {
			ids = append(ids, m.id)
		}
	}
	open := at.state.pendingQuestions(at.id)
	count := reminded.Get(s)
	var stuck []stuckTask
	if count < most {
		stuck = at.newlyStuck()
	}
	at.mu.Unlock()
	// running agents end with this agent, and no task starts after them
	if len(ids) == 0 && len(stuck) == 0 || count >= most {
		return graph.Update{}, nil
	}
	return graph.Put(reminded.Set(count+1), agent.Messages.Set([]agent.Entry{{Message: llm.User(formatReminder(ids, open, stuck)), By: nodeRemind}})), nil
}

// formatReminder returns the text of the reminder.
func formatReminder(ids []string, open []*escalation, stuck []stuckTask) string {
	var b strings.Builder
	b.WriteString("[system reminder: ")
	if len(ids) > 0 {
		fmt.Fprintf(&b, "agents that you have started still run: %s]\nCollect each with agent__collect, or stop it with agent__cancel, before you end your turn.", joinIDs(ids))
	} else {
		b.WriteString("your queue holds tasks that cannot start]")
	}
	for _, x := range open {
		fmt.Fprintf(&b, "\n%s (%s) waits for your reply to %s: %s", x.From, x.Name, x.ID, x.Question)
	}
	if len(stuck) > 0 {
		fmt.Fprintf(&b, "\nIn your queue, %s. Create new tasks, do the work another way, or say in your answer what is missing.", describeStuck(stuck))
	}
	return b.String()
}
