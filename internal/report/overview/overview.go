// Package overview gathers everything that can be said of a run from its journal, in the form in which programs get it:
// from raddle runs show --output json, and from the API of the server.
package overview

import (
	"context"
	"encoding/json"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// Run is a run as "runs show --output json" writes it.
type Run struct {
	runs.Info
	At        int64            `json:"at,omitempty"` // the checkpoint that is shown; absent: the current state
	Questions []graph.Question `json:"questions"`
	Answers   []runs.Answer    `json:"answers"` // that were given, oldest first
	Output    *string          `json:"output"`
	ExitCode  *int             `json:"exit_code"`
	State     json.RawMessage  `json:"state"`
	Path      []any            `json:"path"`
	Next      []string         `json:"next"`
	Usage     Usage            `json:"usage"`
	// Warnings are about replies of models that are not full answers, and an agent's open items.
	Warnings []string          `json:"warnings"`
	Failures []runs.Failure    `json:"failures"` // that the run has survived, oldest first
	Cause    *runs.Cause       `json:"cause"`    // of the failure with which it has ended; null: none is known
	Calls    []runs.ToolCall   `json:"tool_calls"`
	Searches []flow.Search     `json:"searches"` // in knowledge bases, with their results
	Seconds  float64           `json:"active_seconds"`
	Spent    Spent             `json:"spent"`       // where the time went
	Start    *runs.Record      `json:"start"`       // null: the command line did not start it
	Points   []runs.Checkpoint `json:"checkpoints"` // newest first
	Forks    []runs.Point      `json:"forks"`       // runs that were forked from it, and where
	Tree     Branch            `json:"tree"`        // the parts that worked, and their cost
	Cut      bool              `json:"interrupted"` // a person ended the turn
	Picture  Picture           `json:"picture"`

	Moments []runs.Moment `json:"-"` // what happened, oldest first
	Talks   bool          `json:"-"` // the run is a conversation, whose state is raddle's own
}

// DescribeRun gathers what to show of a run. The view has read the journal of the run; DescribeRun reads only those of
// other runs: what a copy was made of, and runs that are parts of this one.
func DescribeRun(ctx context.Context, p *app.Process, v *runs.View) (*Run, error) {
	models, err := v.ReadModels(ctx)
	if err != nil {
		return nil, err
	}
	s := &Run{
		Info:      v.Info,
		At:        v.At,
		Questions: append([]graph.Question{}, v.Snapshot.Questions...),
		State:     flow.StoredJSON(v.Snapshot.Values),
		Path:      v.Path(),
		Next:      append([]string{}, v.Snapshot.Next...),
		Warnings:  append([]string{}, models.Flaws...),
		Failures:  v.Failures(),
		Cause:     v.FindCause(),
		Calls:     append([]runs.ToolCall{}, v.ToolCalls()...),
		Searches:  v.Searches(),
		Seconds:   v.Snapshot.Active.Seconds(),
		Spent:     spentOf(v.Moments()),
		Start:     v.Record,
		Cut:       v.WasInterrupted(),
		Moments:   v.Moments(),
		Talks:     v.Talks(),
	}
	if v.Snapshot.Status == graph.Done {
		if text := openItems(v.Snapshot.Values); text != "" {
			s.Warnings = append(s.Warnings, text)
		}
		o := flow.OutcomeOf(graph.Result{Status: graph.Done, Value: v.Snapshot.Result})
		s.Output, s.ExitCode = &o.Output, new(DoneCode(o, models))
	}
	if v.Snapshot.Status.Final() {
		s.Next = []string{}
		s.Questions = []graph.Question{}
	}
	tree, err := v.ReadTree(ctx)
	if err != nil {
		return nil, err
	}
	s.Tree = TreeOf(p, tree)
	s.Tree.countFailedCalls(s.Calls)
	tree.RemoteCalls(&models)
	s.Usage = UsageOf(p, models)
	s.Warnings = append(s.Warnings, s.Tree.describeBlocked()...)
	if s.Points, err = v.Points(ctx); err != nil {
		return nil, err
	}
	s.Picture = PictureOf(ctx, p, v.Detail, s.Moments)
	if s.Answers, _, err = runs.ListAnswers(ctx, p.Runs, s.Moments); err != nil {
		return nil, err
	}
	s.Forks, err = runs.ListForks(ctx, p.Runs, v.Run)
	return s, err
}

// openItems reports, from the values of its state, an agent that ended with open items on its
// todo list although it was asked to continue; "" if it did not.
func openItems(values []history.StoredValue) string {
	var list agent.TodoList
	continued := 0
	for _, v := range values {
		var into any
		switch v.Key {
		case agent.Todo.Name():
			into = &list
		case agent.Continued.Name():
			into = &continued
		default:
			continue
		}
		if len(v.Parts) != 1 || json.Unmarshal(v.Parts[0], into) != nil {
			return "" // a key of a graph that has the same name
		}
	}
	if continued == 0 || list.Open() == 0 {
		return ""
	}
	return agent.OpenItems(list.Open(), continued)
}

// ExitNoAnswer is the exit code of a run whose models gave no useful reply.
const ExitNoAnswer = 9

// DoneCode returns the exit code of a run that is done: that of its end node, or an error
// if models were called and none gave a useful reply.
func DoneCode(o flow.Outcome, c runs.Calls) int {
	if o.ExitCode == 0 && c.Useless && strings.TrimSpace(o.Output) == "" {
		return ExitNoAnswer
	}
	return o.ExitCode
}

// Usage is what the model calls of a run have used.
type Usage struct {
	Calls     int `json:"calls"` // recorded replies of models
	Input     int `json:"input_tokens"`
	Output    int `json:"output_tokens"`
	Cached    int `json:"cached_tokens"`  // the part of Input that was read from a cache
	Written   int `json:"written_tokens"` // the part of Input that was written to a cache
	Reasoning int `json:"reasoning_tokens"`

	Cost     *float64 `json:"cost_usd"`       // of the calls whose price is known; null if there is no such call
	Unpriced int      `json:"unpriced_calls"` // calls whose price is unknown; calls of a transcript do not count
	Models   []string `json:"models"`         // models that gave the replies, in the order of their first one
}

// UsageOf returns what recorded calls have used, with their cost.
func UsageOf(p *app.Process, c runs.Calls) Usage {
	n := c.Usage
	u := Usage{Calls: c.Count, Models: c.ModelNames(), Input: n.Input, Output: n.Output, Cached: n.Cached, Written: n.Written, Reasoning: n.Reasoning}
	cost, priced, unknown := p.Models.CostOf(c)
	if u.Unpriced = unknown; priced > 0 || c.Count == 0 {
		u.Cost = &cost
	}
	return u
}
