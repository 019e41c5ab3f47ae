package llm

import "context"

type traceparentKey struct{}

// WithTraceparent returns a context whose requests to models and to servers of tools name
// the span that they belong to, in the form of the header traceparent of W3C Trace Context.
// Empty: they name none.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}

// Traceparent returns what [WithTraceparent] has set, or "".
func Traceparent(ctx context.Context) string {
	text, _ := ctx.Value(traceparentKey{}).(string)
	return text
}
