package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// givenIDs are the ids of the span that is started next, in the context of its start only.
type givenIDs struct {
	trace trace.TraceID // of a span without a parent
	span  trace.SpanID
}

type givenIDsKey struct{}

// withIDs returns the context for the start of a span with known ids. Its children must not
// inherit the context.
func withIDs(ctx context.Context, ids givenIDs) context.Context {
	return context.WithValue(ctx, givenIDsKey{}, ids)
}

// idGenerator makes the ids of spans: those that the context holds, else random ones.
type idGenerator struct{}

// NewIDs implements the IDGenerator of the SDK.
func (idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if ids, ok := ctx.Value(givenIDsKey{}).(givenIDs); ok && ids.trace.IsValid() {
		return ids.trace, ids.span
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, newSpanID()
}

// NewSpanID implements the IDGenerator of the SDK.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if ids, ok := ctx.Value(givenIDsKey{}).(givenIDs); ok {
		return ids.span
	}
	return newSpanID()
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // never fails
	}
	return id
}

// rootIDs returns the ids of the first span of a run, which every process can compute.
func rootIDs(run string) (ids givenIDs) {
	sum := sha256.Sum256([]byte("raddle run " + run))
	n := copy(ids.trace[:], sum[:])
	copy(ids.span[:], sum[n:])
	return ids
}

// The names of the header, and of the variable of the environment, that name the span of a caller.
const (
	headerParent   = "traceparent"
	VariableParent = "TRACEPARENT"
)

// parseParent returns the span that a traceparent names; the zero value if it names none.
func parseParent(text string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{headerParent: text})
	return trace.SpanContextFromContext(ctx)
}

// formatParent returns the traceparent of the span of a context, or "".
func formatParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[headerParent]
}

// IsParent reports whether a text is a valid traceparent.
func IsParent(text string) bool { return parseParent(text).IsValid() }
