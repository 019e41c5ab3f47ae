package llm

import (
	"context"
	"errors"
	"iter"

	"raddle.dev/internal/base/redact"
)

// RedactModel returns a model that removes secrets from everything that is sent to
// m and from everything that m answers: texts, reasoning, tool calls and
// results, names, errors. text removes the secrets of a whole text. hold
// returns how many bytes at the end of a piece of text may belong to an
// incomplete secret; they are sent with the next piece. If hold is nil, the
// text of a reply arrives in one piece. Fragments of tool calls are left out:
// the calls are in Delta.Done. If text is nil, Redacted returns m.
func RedactModel(m Model, text func(string) string, hold func(string) int) Model {
	if text == nil || m == nil {
		return m
	}
	return &redactingModel{m, text, hold}
}

type redactingModel struct {
	model Model
	text  func(string) string
	hold  func(string) int
}

// Stream implements Model.
func (m *redactingModel) Stream(ctx context.Context, r Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		text := redact.NewStream(m.text, m.hold)
		reasoning := redact.NewStream(m.text, m.hold)
		give := func(d Delta) bool { return d == Delta{} || yield(d, nil) }
		for d, err := range m.model.Stream(ctx, RedactRequest(r, m.text)) {
			ends := err != nil || d.Done != nil
			if d.Text != "" || ends {
				if !give(Delta{Reasoning: reasoning.End()}) {
					return
				}
			}
			if ends && !give(Delta{Text: text.End()}) {
				return
			}
			goes := true
			switch {
			case err != nil:
				goes = yield(Delta{}, redactError(err, m.text))
			case d.Done != nil:
				done := *d.Done
				done.ID, done.Model, done.Stop = m.text(done.ID), m.text(done.Model), StopReason(m.text(string(done.Stop)))
				done.Message = RedactMessage(done.Message, m.text)
				goes = yield(Delta{Done: &done}, nil)
			case d.Text != "":
				goes = give(Delta{Text: text.Push(d.Text)})
			case d.Reasoning != "":
				goes = give(Delta{Reasoning: reasoning.Push(d.Reasoning)})
			}
			if !goes || err != nil {
				return
			}
		}
	}
}

// RedactRequest applies text to all texts of a request and returns the result.
func RedactRequest(r Request, text func(string) string) Request {
	r.System = text(r.System)
	messages := make([]Message, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = RedactMessage(m, text)
	}
	r.Messages = messages
	if r.Tools != nil {
		tools := make([]ToolSpec, len(r.Tools))
		for i, t := range r.Tools {
			t.Description, t.Schema = text(t.Description), redactJSON(t.Schema, text)
			tools[i] = t
		}
		r.Tools = tools
	}
	r.Schema = redactJSON(r.Schema, text)
	return r
}

// RedactMessage applies text to all texts of a message and returns the result.
// If a secret spans several texts, these texts become one. Reasoning that is
// changed loses its signature, which would no longer be valid. Members that only a
// provider understands are removed if they have a secret.
func RedactMessage(m Message, text func(string) string) Message {
	m.Parts = redactParts(m.Parts, text)
	return m
}

func redactParts(parts []Part, text func(string) string) []Part {
	if parts == nil {
		return nil
	}
	out := make([]Part, len(parts))
	for i, p := range parts {
		switch p := p.(type) {
		case Text:
			p.Text, p.Extra = text(p.Text), redactExtra(p.Extra, text)
			out[i] = p
		case Reasoning:
			is := text(p.Text)
			extra := redactExtra(p.Extra, text)
			if is != p.Text || len(extra) != len(p.Extra) {
				p.Text = is
				p.Signature = ""
				extra = nil
			}
			p.Extra = extra
			out[i] = p
		case ToolCall:
			args := redactJSON(p.Args, text)
			extra := redactExtra(p.Extra, text)
			if string(args) != string(p.Args) || len(extra) != len(p.Extra) {
				p.Signature = ""
				extra = nil
			}
			p.ID, p.Name, p.Args, p.Extra = text(p.ID), text(p.Name), args, extra
			out[i] = p
		case Item:
			p.Kind, p.Text, p.Raw = text(p.Kind), text(p.Text), redactJSON(p.Raw, text)
			out[i] = p
		case ToolResult:
			p.CallID, p.Name, p.Content = text(p.CallID), text(p.Name), redactParts(p.Content, text)
			out[i] = p
		case File:
			p.Name, p.URL = text(p.Name), text(p.URL)
			out[i] = p
		case Image:
			p.URL = text(p.URL)
			out[i] = p
		default:
			out[i] = p
		}
	}
	return joinSpread(out, text)
}

// joinSpread joins texts that contain a secret only together.
func joinSpread(parts []Part, text func(string) string) []Part {
	texts := 0
	for _, p := range parts {
		if _, ok := p.(Text); ok {
			texts++
		}
	}
	if texts < 2 {
		return parts
	}
	whole := joinText(parts)
	clean := text(whole)
	if clean == whole {
		return parts
	}
	var out []Part
	for _, p := range parts {
		if _, ok := p.(Text); !ok {
			out = append(out, p)
		} else if clean != "" {
			out = append(out, Text{Text: clean})
			clean = ""
		}
	}
	return out
}

// redactExtra returns what only a provider understands, or nil if it has a secret:
// its provider would not accept it after a change.
func redactExtra(raw []byte, text func(string) string) []byte {
	if len(raw) == 0 || string(redact.RedactJSON(raw, text)) != string(raw) {
		return nil
	}
	return raw
}

func redactJSON(raw []byte, text func(string) string) []byte {
	if len(raw) == 0 {
		return raw
	}
	return redact.RedactJSON(raw, text)
}

// redactError applies text to the message of an error. Unwrap still returns the
// original error, so callers must print the error itself and not its causes.
func redactError(err error, text func(string) string) error {
	var failure *Error
	if errors.As(err, &failure) && err == error(failure) {
		clean := *failure
		clean.Message, clean.Code, clean.Host = text(failure.Message), text(failure.Code), text(failure.Host)
		return &clean
	}
	if is := text(err.Error()); is != err.Error() {
		return &redactedError{is, err}
	}
	return err
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

// Unwrap returns the original error, which contains the secret.
func (e *redactedError) Unwrap() error { return e.err }
