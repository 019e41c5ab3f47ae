package flow

import (
	"context"

	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/redact"
	"raddle.dev/llm"
)

// A Redactor removes secrets from texts. It must be safe for concurrent use.
type Redactor interface {
	// Text returns the text without secrets. A JSON document stays valid JSON.
	Text(text string) string
	// Hold returns how many bytes at the end of a text may belong to an
	// incomplete secret.
	Hold(text string) int
	// AddNamed adds the value of a variable if the variable's name says that it
	// is a secret.
	AddNamed(name, value string)
}

// NewRedactor returns a Redactor of values that must not appear in a state, a
// journal, an event or a request. Values of less than 6 bytes and a few common
// words are ignored.
func NewRedactor(secrets ...string) Redactor { return redact.New(secrets...) }

// redact removes the known secrets from a text.
func (h *Host) redact(text string) string {
	if h.Redactor == nil {
		return text
	}
	return h.Redactor.Text(text)
}

// holdLength calls [Redactor.Hold].
func (h *Host) holdLength(text string) int {
	if h.Redactor == nil {
		return 0
	}
	return h.Redactor.Hold(text)
}

// redactValue removes the known secrets from a value of a state.
func (h *Host) redactValue(v any) any {
	switch v := v.(type) {
	case string:
		return h.redact(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = h.redactValue(item)
		}
		return list
	case *jsonvalue.Object:
		o := &jsonvalue.Object{}
		for name, member := range v.All() {
			o.Set(h.redact(name), h.redactValue(member))
		}
		return o
	}
	return v
}

// openModel opens a model that removes secrets from requests and replies.
func (h *Host) openModel(ctx context.Context, dir, id string) (llm.Model, error) {
	m, err := h.Models.Open(ctx, dir, id)
	if err != nil {
		return nil, err
	}
	return llm.RedactModel(m, h.redact, h.holdLength), nil
}

// redactErrors returns a node's function with secrets removed from its errors,
// because the journal stores their texts.
func (h *Host) redactErrors(run graph.Func) graph.Func {
	return func(ctx context.Context, s graph.State) (graph.Update, error) {
		u, err := run(ctx, s)
		if err == nil || isWaiting(err) {
			return u, err
		}
		if text := h.redact(err.Error()); text != err.Error() {
			err = &explainedError{text, err}
		}
		return u, err
	}
}
