package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// toolError is the value of error.type for a call whose result is an error.
const toolError = "tool_error"

// WrapTool is an [agent.ToolMiddleware] that makes the spans of calls.
func (t *Telemetry) WrapTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, called tool.Tool, c tool.Call) (tool.Result, error) {
		r := recordingOf(ctx)
		if r == nil {
			return next(ctx, called, c)
		}
		began := time.Now()
		list := []attribute.KeyValue{attrOperation.String(operationTool), attrTool.String(called.Name), attrToolType.String("function"), attrCallID.String(c.ID)}
		kind := trace.SpanKindInternal
		if isServerTool(called.Name) {
			list = append(list, attrMCPMethod.String("tools/call"))
			kind = trace.SpanKindClient
		}
		if called.Description != "" {
			list = append(list, t.text(attrToolText, called.Description))
		}
		ctx, s := r.start(ctx, operationTool+" "+called.Name, kind, list...)
		ctx = llm.WithTraceparent(ctx, formatParent(ctx))
		content := t.setup.Settings.Content && s.IsRecording()
		if content {
			s.SetAttributes(attrCallArgs.String(t.cleanText(string(c.Args))))
		}
		result, err := next(ctx, called, c)
		measured := []attribute.KeyValue{attrTool.String(called.Name), attrToolType.String("function"), r.name}
		failed := ""
		switch {
		case errors.As(err, new(*tool.Question)), errors.Is(err, graph.ErrWaiting), errors.Is(err, graph.ErrPaused):
			s.AddEvent(eventToolAsked)
			s.SetAttributes(attrWaiting.Bool(true))
		case err != nil:
			failed = errorTypeOr(err)
			r.failSpan(s, err)
		case result.Error:
			failed = toolError
			s.SetAttributes(attrErrorType.String(toolError))
			s.SetStatus(codes.Error, "the result of the call is an error")
		}
		if failed != "" {
			measured = append(measured, attrErrorType.String(failed))
		}
		if content && err == nil {
			s.SetAttributes(attrCallResult.String(t.cleanText(result.Text())))
		}
		t.meters.tool.Record(context.Background(), time.Since(began).Seconds(), metric.WithAttributes(measured...))
		s.End()
		return result, err
	}
}

// isServerTool reports whether a call of a tool is a request to an MCP server.
func isServerTool(name string) bool {
	return strings.HasPrefix(name, "mcp__") || strings.HasPrefix(name, "mcp_invoke_")
}
