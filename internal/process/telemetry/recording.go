package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A Run says what a process is about to drive.
type Run struct {
	ID      string
	Thread  string
	Agent   string
	Graph   bool   // the agent is a graph.yaml
	Resumed bool   // an earlier drive has started the run
	Parent  string // traceparent of what started the run; empty: it is the start of a trace

	// Asked says when the open questions of a resumed run were asked, by id. It may be nil.
	Asked map[string]time.Time
}

// Topics are the events that a Recording needs.
const Topics = graph.TopicRun | graph.TopicStep | graph.TopicTask | graph.TopicEmit | graph.TopicQuestion | graph.TopicPhase

// A Recording makes the spans of one drive of a run. RecordEvent is called by one goroutine, in the
// order of the events; the wrappers find the Recording in the context of the drive.
type Recording struct {
	telemetry *Telemetry
	run       Run
	began     time.Time
	span      trace.Span        // of the drive
	root      trace.SpanContext // of the first span of the run
	name      attribute.KeyValue

	mu        sync.Mutex // guards the fields below
	tasks     map[string]*openTask
	places    map[string]*openTask  // the same by their paths, as the paths of frames below them begin
	steps     map[string]*openStep  // by path
	children  map[string]*openChild // agents of teams, by id
	questions map[string]openQuestion
	usage     llm.Usage
	cost      float64
	priced    bool
}

// openTask is a task that works. A wrapper that runs in it may see it before its event arrives.
type openTask struct {
	id      trace.SpanID
	path    string
	node    string
	task    string
	kind    string
	step    int
	began   time.Time
	retries []graph.Event
}

// openStep is a step that has not been committed.
type openStep struct {
	id    trace.SpanID
	step  int
	began time.Time
	above trace.SpanID // the span of the task that the frame belongs to
}

type openQuestion struct {
	asked    time.Time
	question graph.Question
}

type recordingKey struct{}

// recordingOf returns the Recording of the drive that a context belongs to, or nil.
func recordingOf(ctx context.Context) *Recording {
	r, _ := ctx.Value(recordingKey{}).(*Recording)
	return r
}

// StartDrive starts the span of a drive. The context is for the drive. End must be called.
func (t *Telemetry) StartDrive(ctx context.Context, run Run) (context.Context, *Recording) {
	r := &Recording{
		telemetry: t,
		run:       run,
		began:     time.Now(),
		tasks:     map[string]*openTask{},
		places:    map[string]*openTask{},
		steps:     map[string]*openStep{},
		children:  map[string]*openChild{},
		questions: map[string]openQuestion{},
	}
	operation := operationAgent
	if r.name = attrAgent.String(run.Agent); run.Graph {
		operation = operationWorkflow
		r.name = attrWorkflow.String(run.Agent)
	}
	list := append(r.identify(), attrOperation.String(operation), r.name, attrResumed.Bool(run.Resumed))
	if run.Thread != run.ID {
		list = append(list, attrConversation.String(run.Thread))
	}
	name := operation + " " + run.Agent
	above := context.Background()
	if p := parseParent(run.Parent); p.IsValid() {
		above = trace.ContextWithRemoteSpanContext(above, p)
	}
	_, root := t.tracer.Start(withIDs(above, rootIDs(run.ID)), name, trace.WithAttributes(list...))
	r.root = root.SpanContext()
	r.span = root
	if run.Resumed {
		// The first drive has exported the root, or was killed before it could. That span is not
		// ended here, which would export it again: it only says whether the trace is sampled.
		_, r.span = t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), r.root), name, trace.WithAttributes(list...))
	}
	for id, at := range run.Asked {
		r.questions[id] = openQuestion{asked: at}
	}
	ctx = trace.ContextWithSpan(ctx, r.span)
	return context.WithValue(ctx, recordingKey{}, r), r
}

// identify returns the attributes that every span of the run has.
func (r *Recording) identify() []attribute.KeyValue {
	return []attribute.KeyValue{attrRun.String(r.run.ID), attrThread.String(r.run.Thread)}
}

// End ends the span of the drive, with how the run is now.
func (r *Recording) End(res graph.Result, err error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.tasks)) {
		o := r.tasks[key]
		r.endTask(o, graph.TaskDone{
			Waiting: res.Status == graph.Waiting,
			Err:     unlessWaiting(res.Status, context.Canceled),
		}, now)
	}
	clear(r.tasks)
	clear(r.places)
	for _, id := range slices.Sorted(maps.Keys(r.children)) {
		r.endChild(id, now, res.Status.String(), "") // it may continue in another drive
	}
	r.endStepsBelow("", now, res.Status)
	for id, q := range r.questions {
		r.span.AddEvent(eventAsked, trace.WithTimestamp(q.asked), trace.WithAttributes(attrQuestion.String(id)))
	}
	list := []attribute.KeyValue{attrRunStatus.String(res.Status.String()), attrSteps.Int(res.Steps)}
	if r.usage != (llm.Usage{}) {
		list = append(list, attrInputTokens.Int(r.usage.Input), attrOutputTokens.Int(r.usage.Output))
	}
	if r.priced {
		list = append(list, attrCost.Float64(r.cost))
	}
	measured := []attribute.KeyValue{r.name}
	if err != nil {
		kind := attrErrorType.String(cmp.Or(errorType(err), res.Status.String()))
		list = append(list, kind)
		measured = append(measured, kind)
		r.span.SetStatus(codes.Error, r.telemetry.redact(err.Error()))
	}
	r.span.SetAttributes(list...)
	r.span.End(trace.WithTimestamp(now))
	histogram := r.telemetry.meters.agent
	if r.run.Graph {
		histogram = r.telemetry.meters.workflow
	}
	histogram.Record(context.Background(), now.Sub(r.began).Seconds(), metric.WithAttributes(measured...))
	r.telemetry.meters.runs.Add(context.Background(), 1, metric.WithAttributes(r.name, attrRunStatus.String(res.Status.String())))
}

// unlessWaiting returns the error of what did not end, if that is not because the run waits or was paused.
func unlessWaiting(s graph.Status, err error) error {
	if s == graph.Waiting || s == graph.Paused {
		return nil
	}
	return err
}

// RecordEvent takes one event of the drive.
func (r *Recording) RecordEvent(ev graph.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch b := ev.Body.(type) {
	case graph.PhaseStarted:
		if b.Phase == graph.PhasePlanning {
			r.openStep(ev.Path, ev.Step, ev.Time)
		}
	case graph.TaskStarted:
		r.openStep(ev.Path, ev.Step, ev.Time)
		o := r.openTask(ev)
		o.kind = b.Kind
		o.began = ev.Time
	case graph.TaskRetry:
		if o := r.tasks[taskKey(ev.Path, ev.Task)]; o != nil {
			o.retries = append(o.retries, ev)
		}
	case graph.TaskDone:
		r.recordDone(ev, b)
	case graph.StepCommitted:
		if s := r.steps[ev.Path]; s != nil && s.step == ev.Step {
			delete(r.steps, ev.Path)
			r.exportStep(ev.Path, s, ev.Time, attrNodes.StringSlice(b.Nodes), attrKeys.StringSlice(b.Keys))
		}
	case graph.QuestionAsked:
		r.questions[b.Question.ID] = openQuestion{asked: ev.Time, question: b.Question}
		r.telemetry.meters.questions.Add(context.Background(), 1, metric.WithAttributes(r.name))
	case graph.QuestionAnswered:
		r.recordAnswer(ev, b)
	case graph.ValueEmitted:
		r.recordTeam(ev, b.Value)
	}
}

func taskKey(path, task string) string { return path + "\x00" + task }

// openTask returns a task that works, and adds it if it is not known yet. The caller must hold mu.
func (r *Recording) openTask(ev graph.Event) *openTask {
	key := taskKey(ev.Path, ev.Task)
	o := r.tasks[key]
	if o == nil {
		o = &openTask{id: newSpanID(), path: ev.Path, node: ev.Node, task: ev.Task, step: ev.Step, began: time.Now()}
		r.tasks[key] = o
		r.places[ev.ChildPath()] = o
	}
	return o
}

// recordDone ends a task. A result that the journal or the cache has makes no span.
func (r *Recording) recordDone(ev graph.Event, b graph.TaskDone) {
	if b.Recorded {
		r.forgetTask(ev)
		return
	}
	o := r.openTask(ev)
	status := graph.Done
	if b.Waiting {
		status = graph.Waiting
	} else if b.Err != nil {
		status = graph.Failed
	}
	r.endStepsBelow(ev.ChildPath(), ev.Time, status)
	r.forgetTask(ev)
	r.endTask(o, b, ev.Time)
}

// endTask exports the span of a task. The caller must hold mu.
func (r *Recording) endTask(o *openTask, b graph.TaskDone, at time.Time) {
	step := r.openStep(o.path, o.step, o.began)
	list := append(r.identify(), attrNode.String(o.node), attrTask.String(o.task), attrStep.Int(o.step))
	if o.path != "" {
		list = append(list, attrPath.String(o.path))
	}
	if o.kind != "" {
		list = append(list, attrKind.String(o.kind))
	}
	if b.Attempts > 0 {
		list = append(list, attrAttempts.Int(b.Attempts))
	}
	if b.Waiting {
		list = append(list, attrWaiting.Bool(true))
	}
	if b.Cached {
		list = append(list, attrCached.Bool(true))
	}
	s := r.startSpan(step.id, o.id, "task "+o.node, o.began, list)
	for _, ev := range o.retries {
		retry := ev.Body.(graph.TaskRetry)
		s.AddEvent(eventRetry, trace.WithTimestamp(ev.Time), trace.WithAttributes(attrAttempts.Int(retry.Attempt), attrErrorType.String(cmp.Or(errorType(retry.Err), otherError))))
	}
	if b.Err != nil && !b.Waiting {
		r.failSpan(s, b.Err)
	}
	s.End(trace.WithTimestamp(at))
}

// forgetTask removes a task that has ended. The caller must hold mu.
func (r *Recording) forgetTask(ev graph.Event) {
	delete(r.tasks, taskKey(ev.Path, ev.Task))
	delete(r.places, ev.ChildPath())
}

// failSpan marks a span as failed.
func (r *Recording) failSpan(s trace.Span, err error) {
	s.SetAttributes(attrErrorType.String(cmp.Or(errorType(err), otherError)))
	s.SetStatus(codes.Error, r.telemetry.redact(err.Error()))
}

// startSpan starts a span that began at a time, with an id that others may already know.
func (r *Recording) startSpan(above, id trace.SpanID, name string, began time.Time, list []attribute.KeyValue) trace.Span {
	ctx := trace.ContextWithSpanContext(context.Background(), r.span.SpanContext().WithSpanID(above))
	_, s := r.telemetry.tracer.Start(withIDs(ctx, givenIDs{span: id}), name, trace.WithTimestamp(began), trace.WithAttributes(list...))
	return s
}

// openStep returns the step of a frame. An earlier step of the frame that was not committed
// ends. The caller must hold mu.
func (r *Recording) openStep(path string, step int, at time.Time) *openStep {
	s := r.steps[path]
	if s != nil && s.step == step {
		return s
	}
	if s != nil {
		r.exportStep(path, s, at)
	}
	s = &openStep{id: newSpanID(), step: step, began: at, above: r.findAbove(path)}
	r.steps[path] = s
	return s
}

// findAbove returns the span of the task whose frame has a path, else that of the drive. The
// caller must hold mu.
func (r *Recording) findAbove(path string) trace.SpanID {
	place := strings.TrimSuffix(path, "/")
	for place != "" {
		if o := r.places[place+"/"]; o != nil {
			return o.id
		}
		if c := r.children[place[strings.LastIndexByte(place, '/')+1:]]; c != nil {
			return c.id
		}
		place = place[:max(strings.LastIndexByte(place, '/'), 0)] // a named child is below its task
	}
	return r.span.SpanContext().SpanID()
}

// exportStep exports the span of a step. The caller must hold mu.
func (r *Recording) exportStep(path string, s *openStep, at time.Time, more ...attribute.KeyValue) {
	list := append(append(r.identify(), attrStep.Int(s.step)), more...)
	if path != "" {
		list = append(list, attrPath.String(path))
	}
	r.startSpan(s.above, s.id, "step", s.began, list).End(trace.WithTimestamp(at))
}

// endStepsBelow ends the steps of all frames whose path begins with a prefix. The caller must
// hold mu.
func (r *Recording) endStepsBelow(prefix string, at time.Time, status graph.Status) {
	for _, path := range slices.Sorted(maps.Keys(r.steps)) {
		if strings.HasPrefix(path, prefix) {
			s := r.steps[path]
			delete(r.steps, path)
			r.exportStep(path, s, at, attrRunStatus.String(status.String()))
		}
	}
}

// recordAnswer exports the span of a question: from when it was asked, by whatever process, until
// now.
func (r *Recording) recordAnswer(ev graph.Event, b graph.QuestionAnswered) {
	q, ok := r.questions[b.ID]
	if !ok {
		q.asked = ev.Time
	}
	delete(r.questions, b.ID)
	list := append(r.identify(), attrQuestion.String(b.ID), attrAhead.Bool(b.Ahead))
	if q.question.Kind != "" {
		list = append(list, attrKind.String(q.question.Kind))
	}
	if b.Refused != "" {
		list = append(list, attrRefused.Bool(true))
	}
	if r.telemetry.setup.Settings.Content && q.question.Prompt != "" {
		list = append(list, r.telemetry.text(attrPrompt, q.question.Prompt))
	}
	r.startSpan(r.root.SpanID(), newSpanID(), "question", q.asked, list).End(trace.WithTimestamp(ev.Time))
}

// place is a span of a wrapper, in the context of what runs inside it.
type place struct {
	task string // the key of its task
	span trace.Span
}

type placeKey struct{}

// start starts the span of work that a task does now. The context is for that work.
func (r *Recording) start(ctx context.Context, name string, kind trace.SpanKind, list ...attribute.KeyValue) (context.Context, trace.Span) {
	i := graph.TaskInfo(ctx)
	key := ""
	above := r.span.SpanContext()
	if i.Node != "" {
		task := fmt.Sprintf("%d.%s.%d", i.Step, i.Node, i.Index)
		key = taskKey(i.Path, task)
		list = append(list, attrNode.String(i.Node), attrTask.String(task), attrStep.Int(i.Step))
		if i.Path != "" {
			list = append(list, attrPath.String(i.Path))
		}
		r.mu.Lock()
		above = above.WithSpanID(r.openTask(graph.Event{Path: i.Path, Task: task, Node: i.Node, Step: i.Step}).id)
		r.mu.Unlock()
	}
	if outer, ok := ctx.Value(placeKey{}).(place); ok && outer.task == key {
		above = outer.span.SpanContext()
	}
	_, s := r.telemetry.tracer.Start(trace.ContextWithSpanContext(context.Background(), above), name,
		trace.WithSpanKind(kind), trace.WithAttributes(append(r.identify(), list...)...))
	ctx = context.WithValue(trace.ContextWithSpan(ctx, s), placeKey{}, place{key, s})
	return ctx, s
}

// addUsage adds what a reply used.
func (r *Recording) addUsage(u llm.Usage, dollars float64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage = r.usage.Add(u)
	if known {
		r.cost = r.cost + dollars
		r.priced = true
	}
}

// errorType returns the name of an error for error.type, or "" if it has none.
func errorType(err error) string {
	var e *llm.Error
	var limit *graph.LimitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && e.Status != 0:
		return strconv.Itoa(e.Status)
	case errors.As(err, &e):
		return string(e.Class)
	case errors.As(err, &limit):
		return limit.Status.String()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return ""
}
