package app

import (
	"context"
	"encoding/json"
	"fmt"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool/permission"
)

// StartRemoteRun prepares the run that a question of a run waits for, with the settings of that run, as it is in the
// store. Like [Process.StartRun] it records nothing: [Run.RecordRemoteStart] does.
func (p *Process) StartRemoteRun(above *Run, parent *runs.Detail, q *graph.Question, call graph.RemoteCall) (*Run, error) {
	var in flow.RemoteInput
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return nil, fmt.Errorf("question %q of run %s: %w", q.ID, parent.Run, err)
	}
	if parent.Record == nil {
		return nil, fmt.Errorf("run %s was not started by raddle", parent.Run)
	}
	rec := *parent.Record
	from := &runOrigin{mark: parent.Foreign}
	from.limitRecord(&rec, p.Dirs.Work)
	if err := p.restoreVariables(&rec, "set %s to it on the machine of the worker"); err != nil {
		return nil, err
	}
	mode, _ := permission.ParseMode(rec.Mode)
	var state *jsonvalue.Object
	if in.State != nil {
		value, err := jsonvalue.ParseStored(in.State)
		if err != nil {
			return nil, fmt.Errorf("question %q of run %s: its state: %w", q.ID, parent.Run, err)
		}
		state, _ = value.(*jsonvalue.Object)
	}
	prompt := in.Prompt
	if in.Branch == nil {
		rec.Files = nil
		rec.Attached = nil
		rec.Templates = nil
	} else {
		prompt = rec.Prompt
	}
	rec.Named, rec.Agent, rec.Dir, rec.Model = above.Record.NamedDir(), in.Agent, findRemoteDir(above.Agent, &in), in.Model
	// The bundle and the approval are those of the run above.
	rec.Bundle = ""
	rec.Approved = nil
	rec.Parent = &runs.Parent{Run: parent.Run, Question: q.ID}
	media := in.MediaParts()
	// The record has these values elsewhere.
	in.Prompt = ""
	in.State = nil
	in.Model = ""
	in.Media = nil
	rec.Input = &in
	run := &Run{reachable: reachable{process: p}, jobs: p.Tools.Jobs, ID: call.Run, Thread: call.Run, Record: &rec, Mode: permission.NewModeSwitch(mode), given: givenInput{user: parent.Snapshot.User}}
	err := p.prepareRun(run, Request{Prompt: prompt, State: state, Media: media, UIHooks: UIHooks{Mode: run.Mode, files: above.files, unnamed: from.isLimited()}})
	if err != nil {
		run.Close()
		return nil, err
	}
	if parent.Foreign != nil {
		run.publishMark(p, parent.Snapshot.Thread)
	}
	return run, nil
}

// findRemoteDir returns the directory of the agent of a run that another one waits for. That one may have asked on
// another machine, where its files were elsewhere.
func findRemoteDir(above *flow.Agent, in *flow.RemoteInput) string {
	dir := in.Dir
	for _, a := range above.Agents() {
		if a.Dir == in.Dir {
			return a.Dir
		}
		if a.Name == in.Agent {
			dir = a.Dir
		}
	}
	return dir
}

// RecordRemoteStart records the start of a run of StartRemoteRun. It prepares nothing that the run needs: what drives
// it does.
func (r *Run) RecordRemoteStart(ctx context.Context) error {
	if r.publish != nil {
		if err := r.publish(ctx); err != nil {
			return err
		}
	}
	paused := make(chan struct{})
	close(paused)
	in := r.input
	in.Run = r.ID
	in.Thread = r.Thread
	in.Pause = paused
	_, err := r.consumeEvents(Driver{}, func() eventSeq { return r.runner.Run(ctx, in) })
	return err
}

// RemoteAnswer returns the answer to the question that a run waits for another one with, when that has ended: its
// result, or why there is none. reason is that of a run that will not continue although its journal does not say so;
// "": the run has ended.
func (p *Process) RemoteAnswer(ctx context.Context, child *runs.View, question, reason string) (graph.Answer, error) {
	a := graph.Answer{ID: question, By: "run " + child.Run}
	calls, err := child.ReadModels(ctx)
	if err != nil {
		return a, err
	}
	money, _, unpriced := p.Models.CostOf(calls)
	res := flow.RemoteResult{Run: child.Run, Spend: agent.Spend{Calls: calls.Count, ToolCalls: len(child.ToolCalls()), Usage: calls.Usage, Money: money, Unpriced: unpriced}}
	var in flow.RemoteInput
	if child.Record != nil && child.Record.Input != nil {
		in = *child.Record.Input
		in.Agent = child.Record.Agent
	}
	switch s := child.Snapshot; {
	case s.Status == graph.Done:
		res.Output = flow.OutcomeOf(graph.Result{Status: graph.Done, Value: s.Result}).Output
	case s.Status == graph.Abandoned:
		res.TimedOut = child.Reason == runs.TimePassed
		a.Refused = fmt.Sprintf("run %s was cancelled", child.Run)
	case child.Reason != "":
		a.Refused = flow.RemoteFailure(in, child.Reason)
	default:
		a.Refused = flow.RemoteFailure(in, reason)
	}
	a.Value = res
	return a, nil
}
