package telemetry

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"raddle.dev/flow"
	"raddle.dev/llm"
)

// WrapModels returns models whose requests have spans. They are made inside of effects, so that
// a recorded reply has none.
func (t *Telemetry) WrapModels(m flow.Models) flow.Models { return models{m, t} }

type models struct {
	flow.Models
	telemetry *Telemetry
}

// Open implements [flow.Models].
func (m models) Open(ctx context.Context, dir, id string) (llm.Model, error) {
	opened, err := m.Models.Open(ctx, dir, id)
	if err != nil {
		return nil, err
	}
	return &model{opened, id, m.telemetry}, nil
}

// Hint implements [flow.Hinter].
func (m models) Hint(id string) string {
	if h, ok := m.Models.(flow.Hinter); ok {
		return h.Hint(id)
	}
	return ""
}

// model is a model whose requests have spans.
type model struct {
	llm.Model
	id        string
	telemetry *Telemetry
}

// Stream implements [llm.Model].
func (m *model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	recording := recordingOf(ctx)
	if recording == nil {
		return m.Model.Stream(ctx, r)
	}
	return func(yield func(llm.Delta, error) bool) {
		c := m.startCall(ctx, recording, r)
		defer c.end()
		for d, err := range m.Model.Stream(c.ctx, r) {
			c.take(d, err)
			if !yield(d, err) {
				return
			}
		}
	}
}

// modelCall is one request that is being answered.
type modelCall struct {
	recording *Recording
	ctx       context.Context
	span      trace.Span
	common    []attribute.KeyValue // of the span and the metrics
	began     time.Time
	chunks    bool
	reply     *llm.Reply
	err       error
}

func (m *model) startCall(ctx context.Context, r *Recording, req llm.Request) *modelCall {
	provider, name := splitModelID(m.id)
	c := &modelCall{
		recording: r,
		began:     time.Now(),
		common:    []attribute.KeyValue{attrOperation.String(operationChat), attrProvider.String(provider), attrRequestModel.String(name)},
	}
	list := append(c.common[:len(c.common):len(c.common)], attrStream.Bool(true))
	if r.run.Thread != r.run.ID {
		list = append(list, attrConversation.String(r.run.Thread))
	}
	if req.Temperature != nil {
		list = append(list, attrTemperature.Float64(*req.Temperature))
	}
	if req.TopP != nil {
		list = append(list, attrTopP.Float64(*req.TopP))
	}
	if req.MaxTokens > 0 {
		list = append(list, attrMaxTokens.Int(req.MaxTokens))
	}
	if len(req.Stop) > 0 {
		list = append(list, attrStops.StringSlice(req.Stop))
	}
	if len(req.Schema) > 0 {
		list = append(list, attrOutputType.String("json"))
	}
	c.ctx, c.span = r.start(ctx, operationChat+" "+name, trace.SpanKindClient, list...)
	c.ctx = llm.WithTraceparent(c.ctx, formatParent(c.ctx))
	if t := r.telemetry; t.setup.Settings.Content && c.span.IsRecording() {
		if req.System != "" {
			c.span.SetAttributes(t.text(attrInstructions, t.encodeInstructions(req.System)))
		}
		c.span.SetAttributes(t.text(attrInput, t.encodeMessages(req.Messages, "")))
	}
	return c
}

// take takes one element of the stream.
func (c *modelCall) take(d llm.Delta, err error) {
	switch {
	case err != nil:
		c.err = err
		return
	case d.Done != nil:
		c.reply = d.Done
	}
	if !c.chunks {
		c.chunks = true
		c.span.SetAttributes(attrFirstChunk.Float64(time.Since(c.began).Seconds()))
	}
}

// end ends the span, and measures the request.
func (c *modelCall) end() {
	t := c.recording.telemetry
	ctx := context.Background()
	measured := c.common
	switch {
	case c.reply != nil:
		measured = append(measured, c.endReply()...)
	case c.err != nil:
		c.recording.failSpan(c.span, c.err)
		measured = append(measured, attrErrorType.String(errorTypeOr(c.err)))
		if e, ok := errors.AsType[*llm.Error](c.err); ok && e.Status != 0 {
			c.span.SetAttributes(attrStatus.Int(e.Status))
		}
	default: // the reader has left
		c.span.SetAttributes(attrErrorType.String("cancelled"))
		c.span.SetStatus(codes.Error, "the reply was not read to its end")
		measured = append(measured, attrErrorType.String("cancelled"))
	}
	t.meters.operation.Record(ctx, time.Since(c.began).Seconds(), metric.WithAttributes(measured...))
	c.span.End()
}

// endReply records a complete reply. It returns what the metrics get of it.
func (c *modelCall) endReply() []attribute.KeyValue {
	t := c.recording.telemetry
	reply := c.reply
	ctx := context.Background()
	u := reply.Usage
	list := []attribute.KeyValue{attrInputTokens.Int(u.Input), attrOutputTokens.Int(u.Output), attrFinishReasons.StringSlice([]string{finishReason(reply.Stop)})}
	if u.Cached > 0 {
		list = append(list, attrCachedTokens.Int(u.Cached))
	}
	if u.Written > 0 {
		list = append(list, attrWrittenTokens.Int(u.Written))
	}
	if u.Reasoning > 0 {
		list = append(list, attrReasonTokens.Int(u.Reasoning))
	}
	if reply.ID != "" {
		list = append(list, attrResponseID.String(reply.ID))
	}
	var answered []attribute.KeyValue
	if reply.Model != "" {
		answered = append(answered, attrResponseModel.String(reply.Model))
	}
	measured := append(c.common[:len(c.common):len(c.common)], answered...)
	t.meters.tokens.Record(ctx, int64(u.Input), metric.WithAttributes(append(measured[:len(measured):len(measured)], attrTokenType.String("input"))...))
	t.meters.tokens.Record(ctx, int64(u.Output), metric.WithAttributes(append(measured[:len(measured):len(measured)], attrTokenType.String("output"))...))
	dollars := 0.0
	known := false
	if t.setup.Cost != nil {
		dollars, known = t.setup.Cost(reply.Model, u)
	}
	if known {
		list = append(list, attrCost.Float64(dollars))
		t.meters.cost.Add(ctx, dollars, metric.WithAttributes(measured...))
	}
	c.recording.addUsage(u, dollars, known)
	c.span.SetAttributes(append(list, answered...)...)
	if t.setup.Settings.Content && c.span.IsRecording() {
		c.span.SetAttributes(t.text(attrOutput, t.encodeMessages([]llm.Message{reply.Message}, finishReason(reply.Stop))))
	}
	return answered
}

// finishReason returns the reason in the words of the conventions.
func finishReason(r llm.StopReason) string {
	switch r {
	case llm.StopEnd, "":
		return "stop"
	case llm.StopTools:
		return "tool_call"
	case llm.StopFilter:
		return "content_filter"
	}
	return string(r)
}

// errorTypeOr returns the name of an error for error.type.
func errorTypeOr(err error) string {
	if name := errorType(err); name != "" {
		return name
	}
	return otherError
}
