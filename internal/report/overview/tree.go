package overview

import (
	"fmt"
	"strings"
	"time"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/team"
)

// Branch is a part of a run that worked, as "--output json" writes it.
type Branch struct {
	Path    string     `json:"path"`            // of nodes and agents; "": the run
	Agent   string     `json:"agent,omitempty"` // name of the run's agent, or of a spawned agent
	Status  string     `json:"status"`
	Error   string     `json:"error,omitempty"`
	Started *time.Time `json:"started"` // null if it has not started
	Ended   *time.Time `json:"ended"`   // null if it has not ended
	Seconds float64    `json:"seconds"` // from its start to its end, or to its newest record
	Usage   Usage      `json:"usage"`   // its own, without that of its children
	Tools   int        `json:"tool_calls"`
	Failed  int        `json:"failed_tool_calls,omitempty"`
	Purpose string     `json:"purpose,omitempty"` // of a spawned agent
	// Task is the task of a queue that it works on, or that no agent works on yet.
	Task      *team.Task `json:"task,omitempty"`
	Questions []string   `json:"questions"` // ids of its own open questions
	Children  []Branch   `json:"children"`
	Run       string     `json:"run,omitempty"` // of its own, which workers of a queue drive
}

// TreeOf gathers what to show of a branch and everything below it.
func TreeOf(p *app.Process, b *runs.Branch) Branch {
	n := Branch{Path: b.Path, Agent: b.Agent, Status: b.Status, Error: b.Error, Usage: UsageOf(p, b.Calls), Tools: b.Tools, Purpose: b.Purpose, Task: b.Task, Run: b.Run,
		Questions: append([]string{}, b.Questions...), Children: []Branch{}}
	if !b.Started.IsZero() {
		n.Started, n.Seconds = &b.Started, max(0, b.Updated.Sub(b.Started).Seconds())
	}
	if !b.Ended.IsZero() {
		n.Ended, n.Seconds = &b.Ended, max(0, b.Ended.Sub(b.Started).Seconds())
	}
	for _, c := range b.Children {
		n.Children = append(n.Children, TreeOf(p, c))
	}
	return n
}

// countFailedCalls counts the calls of tools that have failed, for each branch.
func (n *Branch) countFailedCalls(calls []runs.ToolCall) {
	for i := range calls {
		if c := &calls[i]; c.Status == "failed" && strings.TrimSuffix(runs.PlainPath(c.Path), "/") == n.Path {
			n.Failed++
		}
	}
	for i := range n.Children {
		n.Children[i].countFailedCalls(calls)
	}
}

// ListRuns returns the branches below this one that are runs of their own.
func (n *Branch) ListRuns() (list []*Branch) {
	for i := range n.Children {
		c := &n.Children[i]
		if c.Run != "" {
			list = append(list, c)
			continue
		}
		list = append(list, c.ListRuns()...)
	}
	return list
}

// describeBlocked describes the tasks below a node that stay blocked permanently, one sentence each.
func (n *Branch) describeBlocked() (sentences []string) {
	for i := range n.Children {
		c := &n.Children[i]
		if t := c.Task; t != nil && c.Started == nil && len(t.BlockedForEver) > 0 {
			sentences = append(sentences, fmt.Sprintf("task %s (%s) stays blocked permanently: it needs task %s, which failed or was cancelled", t.ID, t.Subject, strings.Join(t.BlockedForEver, ", ")))
		}
		sentences = append(sentences, c.describeBlocked()...)
	}
	return sentences
}
