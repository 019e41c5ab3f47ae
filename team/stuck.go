package team

import (
	"fmt"
	"slices"
	"strings"
)

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
func (s agentHandle) newlyStuck() (list []stuckTask) {
	for _, t := range s.state.queues[s.id].stuckTasks(true) {
		if key := s.id + "/" + t.ID; !s.supervisor.stuck[key] {
			s.supervisor.stuck[key] = true
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
