// Package shape makes a Go type the form of a model's answers: its JSON Schema is
// part of the requests, an answer is checked against it before it is recorded, and
// one that does not fit is asked for once more, with what is wrong with it. It also
// makes tools of Go functions, whose arguments have the form of a type.
package shape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/google/jsonschema-go/jsonschema"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/wording"
	"raddle.dev/llm"
)

// A Shape is the form of answers that are a T. It is immutable and safe for
// concurrent use. Make one with Of.
type Shape[T any] struct {
	schema   json.RawMessage
	resolved *jsonschema.Resolved
}

// Of is the shape of a T: of a struct, usually, with the tags json and, for what
// the model is to know of a field, jsonschema. It fails for types that have no
// JSON Schema, such as functions, maps without text keys and types that contain
// themselves.
func Of[T any]() (*Shape[T], error) {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("the schema of %T: %w", *new(T), err)
	}
	filled(schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the schema of %T: %w", *new(T), err)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %T: %w", *new(T), err)
	}
	return &Shape[T]{schema: text, resolved: resolved}, nil
}

// filled takes out that a list may be null: some providers do not take such a
// schema, and an empty list says the same.
func filled(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Types, s.Type = nil, "array"
	}
	filled(s.Items)
	filled(s.AdditionalProperties)
	for _, p := range s.Properties {
		filled(p)
	}
}

// Schema is the JSON Schema, for an llm.Request.
func (s *Shape[T]) Schema() json.RawMessage { return s.schema }

// Parse reads a complete answer. A fence around the JSON is taken off. It fails
// with an *agent.OutputError.
func (s *Shape[T]) Parse(text string) (v T, err error) {
	fail := func(err error) (T, error) { return v, &agent.OutputError{Text: text, Err: err} }
	body := []byte(wording.StripFence(text))
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fail(err)
	}
	if err := s.resolved.Validate(value); err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return fail(err)
	}
	return v, nil
}

// Around is an agent.ModelMiddleware, for Config.AroundModel and Think.Around. It
// puts the schema into requests. A reply without calls that does not fit is sent
// back once, with what is wrong; the reply to that counts, and the usage of both.
// Where that does not fit either the call fails with an *agent.OutputError. The
// text of a reply is not passed on in pieces, since nobody can read half of it.
func (s *Shape[T]) Around(next llm.Model) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		r.Schema = s.schema
		return func(yield func(llm.Delta, error) bool) {
			reply, ok := quiet(next.Stream(ctx, r), yield)
			if !ok {
				return
			}
			if fault := s.fault(reply); fault != nil {
				r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)], told(reply, fault)...)
				again, ok := quiet(next.Stream(ctx, r), yield)
				if !ok {
					return
				}
				again.Usage = again.Usage.Add(reply.Usage)
				if reply = again; s.fault(reply) != nil {
					yield(llm.Delta{}, s.fault(reply))
					return
				}
			}
			yield(llm.Delta{Done: &reply}, nil)
		}
	})
}

// quiet passes a stream on but for its text and its end. It is false where the
// stream has failed or nobody listens any more.
func quiet(stream iter.Seq2[llm.Delta, error], yield func(llm.Delta, error) bool) (reply llm.Reply, ok bool) {
	for d, err := range stream {
		switch {
		case err != nil:
			yield(d, err)
			return reply, false
		case d.Done != nil:
			return *d.Done, true
		case d.Text == "" && !yield(d, nil):
			return reply, false
		}
	}
	yield(llm.Delta{}, &llm.Error{Class: llm.Network, Code: llm.CodeReset, Message: "the stream ended without a reply"})
	return reply, false
}

// fault is what is wrong with a reply; one with calls is not the answer yet.
func (s *Shape[T]) fault(r llm.Reply) error {
	if len(r.Message.ToolCalls()) > 0 {
		return nil
	}
	_, err := s.Parse(r.Text())
	return err
}

// told is a reply that does not fit, and what is said about it.
func told(r llm.Reply, fault error) []llm.Message {
	m := llm.User(fmt.Sprintf("%v. Answer again, with JSON that satisfies the schema and nothing else.", fault))
	if r.Text() == "" {
		return []llm.Message{m}
	}
	return []llm.Message{r.Message, m}
}

// Node makes the newest reply of a model node or an agent, or of any of them where
// from is empty, the value of a key. It reads the complete reply, never pieces of
// it, and fails with an *agent.OutputError where it does not fit.
func (s *Shape[T]) Node(name, from string, into graph.Key[T]) graph.Node {
	return graph.Node{Name: name, Kind: "parse", Quiet: true, Run: func(_ context.Context, st graph.State) (graph.Update, error) {
		text := agent.LastResponse(st)
		if from != "" {
			text = agent.Response(st, from)
		}
		if text == "" {
			return graph.Update{}, &agent.OutputError{Err: errors.New("there is no reply yet")}
		}
		v, err := s.Parse(text)
		if err != nil {
			return graph.Update{}, err
		}
		return graph.Put(into.Set(v)), nil
	}}
}
