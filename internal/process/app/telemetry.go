package app

import (
	"cmp"
	"context"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/telemetry"
)

// WriteTrace makes the process also write the spans of its runs to a file. It must be called
// before the first run. CloseTrace reports whether the file is complete.
func (p *Process) WriteTrace(path string) error {
	p.trace.file = p.Dirs.AbsPath(path)
	if _, err := p.trace.openTelemetry(); err != nil {
		return failure.NewUsage("choose a file that can be written", "--trace: %v", err)
	}
	return nil
}

// CloseTrace ends the telemetry of the process: nothing is traced from now on. The error says
// that the file of the trace is not complete.
func (p *Process) CloseTrace() error { return p.trace.telemetry.Close() }

// A tracer opens the telemetry of a process when it is first needed.
type tracer struct {
	process *Process
	file    string // where spans are written to; empty: nowhere

	once      sync.Once
	telemetry *telemetry.Telemetry // nil: none
	err       error
}

// openTelemetry returns the telemetry of the process, nil if the environment asks for none.
func (t *tracer) openTelemetry() (*telemetry.Telemetry, error) {
	t.once.Do(func() {
		p := t.process
		if t.file == "" && !telemetry.IsConfigured(p.env.Get) {
			return
		}
		t.telemetry, t.err = telemetry.Open(telemetry.Setup{
			Settings: telemetry.ReadSettings(p.env.Get),
			File:     t.file,
			Version:  Version(),
			Secrets:  p.Tools.SecretSet(),
			Log:      p.Log,
			Cost:     p.Models.UsageCost,
		})
	})
	return t.telemetry, t.err
}

// wrapHost adds what makes the spans of models, tools and searches to the environment of an
// agent.
func (t *tracer) wrapHost(h *flow.Host) {
	opened, err := t.openTelemetry()
	if opened == nil || err != nil {
		return
	}
	h.Models = opened.WrapModels(h.Models)
	h.Tooling.Around = []agent.ToolMiddleware{opened.WrapTool}
	h.Retrieval.Around = opened.WrapSearch
	h.Retrieval.Embedder = opened.WrapEmbedders(h.Retrieval.Embedder)
}

// findParent returns the span that asks for a run, or else the one that started this process, for the start record of
// the run; "" if there is none, or nothing is traced.
func (t *tracer) findParent(asked string) string {
	parent := cmp.Or(asked, t.process.env.Get(telemetry.VariableParent))
	if opened, _ := t.openTelemetry(); opened == nil || !telemetry.IsParent(parent) {
		return ""
	}
	return parent
}

// traceDrive returns a context and a driver that record what a drive does. End must be called
// with how it ended.
func (r *Run) traceDrive(ctx context.Context, d Driver) (_ context.Context, _ Driver, end func(graph.Result, error)) {
	if r.telemetry == nil {
		return ctx, d, func(graph.Result, error) {}
	}
	run := telemetry.Run{
		ID:      r.ID,
		Thread:  r.Thread,
		Agent:   r.Agent.Name,
		Graph:   r.Agent.Config == nil,
		Resumed: r.Resumed,
		Parent:  r.Record.TraceParent,
	}
	if r.Resumed && len(r.Questions) > 0 {
		run.Asked = r.readAskedTimes(ctx)
	}
	ctx, recording := r.telemetry.StartDrive(ctx, run)
	wanted := d.Topics
	deliver := d.Event
	seq := int64(0)
	d.Topics |= telemetry.Topics
	d.Event = func(ev graph.Event) {
		recording.RecordEvent(ev)
		if deliver == nil || !isWanted(ev.Body, wanted) {
			return
		}
		if ev.Seq == 1 {
			seq = 0 // the first event of another drive
		}
		seq++
		ev.Seq = seq
		deliver(ev)
	}
	return ctx, d, recording.End
}

// isWanted reports whether the caller of a drive has asked for an event.
func isWanted(b graph.Body, topics graph.Topic) bool {
	topic := topics
	switch b.(type) {
	case graph.RunStarted:
		topic = graph.TopicRun
	case graph.StepCommitted:
		topic = graph.TopicStep
	case graph.TaskStarted, graph.TaskRetry, graph.TaskDone:
		topic = graph.TopicTask
	case graph.ValueEmitted:
		topic = graph.TopicEmit
	case graph.QuestionAsked, graph.QuestionAnswered:
		topic = graph.TopicQuestion
	case graph.PhaseStarted:
		topic = graph.TopicPhase
	case graph.RunEnded:
		return true
	}
	return topics&topic != 0
}

// readAskedTimes returns when the open questions of the run were asked, by id.
func (r *Run) readAskedTimes(ctx context.Context) map[string]time.Time {
	asked := map[string]time.Time{}
	for _, q := range r.Questions {
		asked[q.ID] = time.Now()
	}
	for rec, err := range journal.Records(ctx, r.runner.Store, r.Thread, journal.Range{}) {
		if err != nil {
			break // only the start of a span is unknown
		}
		if rec.Kind != journal.KindQuestion {
			continue
		}
		if c, err := history.DecodeContent(rec); err == nil && c.Question != nil {
			if _, open := asked[c.Question.ID]; open {
				asked[c.Question.ID] = time.UnixMicro(rec.Time)
			}
		}
	}
	return asked
}
