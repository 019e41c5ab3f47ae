package telemetry

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"raddle.dev/graph"
	"raddle.dev/team"
)

// openChild is an agent of a team that works, and was started by another one.
type openChild struct {
	id    trace.SpanID
	name  string
	began time.Time
	above trace.SpanID // of the agent that started it, or of the task of the team
}

// recordTeam takes what a team emits about its agents. The caller must hold mu.
func (r *Recording) recordTeam(ev graph.Event, value any) {
	switch v := value.(type) {
	case team.AgentStarted:
		above := r.openTask(ev).id
		if parent := r.children[v.Parent]; parent != nil {
			above = parent.id
		}
		r.children[v.ID] = &openChild{id: newSpanID(), name: v.Agent, began: ev.Time, above: above}
	case team.AgentEnded:
		r.endChild(v.ID, ev.Time, v.Status, v.Error)
	}
}

// endChild exports the span of an agent of a team. failed says why it has failed; "": it has not. The caller must hold
// mu.
func (r *Recording) endChild(id string, at time.Time, status, failed string) {
	c := r.children[id]
	if c == nil {
		return // it never started
	}
	delete(r.children, id)
	r.endStepsOf(id, at, status)
	list := append(r.identify(), attrOperation.String(operationAgent), attrAgent.String(c.name), attrAgentID.String(id), attrAgentStatus.String(status))
	measured := []attribute.KeyValue{attrAgent.String(c.name)}
	s := r.startSpan(c.above, c.id, operationAgent+" "+c.name, c.began, list)
	if failed != "" {
		s.SetAttributes(attrErrorType.String(otherError))
		s.SetStatus(codes.Error, r.telemetry.redact(failed))
		measured = append(measured, attrErrorType.String(otherError))
	}
	s.End(trace.WithTimestamp(at))
	r.telemetry.meters.agent.Record(context.Background(), at.Sub(c.began).Seconds(), metric.WithAttributes(measured...))
}

// endStepsOf ends the steps of the frames of an agent of a team. The caller must hold mu.
func (r *Recording) endStepsOf(id string, at time.Time, status string) {
	for _, path := range slices.Sorted(maps.Keys(r.steps)) {
		if strings.Contains("/"+path, "/"+id+"/") {
			s := r.steps[path]
			delete(r.steps, path)
			r.exportStep(path, s, at, attrRunStatus.String(status))
		}
	}
}
