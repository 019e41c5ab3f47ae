// Package shape uses a Go type as the form of a model's answers: its JSON
// Schema is part of the requests, and an answer is checked against it before it
// is recorded. If an answer does not match, the model is asked once more and
// sees what is wrong. The package also makes tools from Go functions whose
// arguments have the form of a type.
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
	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
)

// A Shape is the form of answers that are a T. It is immutable and safe for
// concurrent use. Create one with New.
type Shape[T any] struct {
	schema   json.RawMessage
	resolved *jsonschema.Resolved
}

// New returns the shape of a T. T is usually a struct with json tags and, for
// descriptions of its fields for the model, jsonschema tags. New fails for types
// that have no JSON Schema, such as functions, maps whose keys are not texts,
// and types that contain themselves.
func New[T any]() (*Shape[T], error) {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("the schema of %T: %w", *new(T), err)
	}
	removeNullLists(schema)
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

// removeNullLists removes null from the types of lists: some providers reject such a
// schema, and an empty list means the same.
func removeNullLists(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Types = nil
		s.Type = "array"
	}
	removeNullLists(s.Items)
	removeNullLists(s.AdditionalProperties)
	for _, p := range s.Properties {
		removeNullLists(p)
	}
}

// Schema returns the JSON Schema, for an llm.Request.
func (s *Shape[T]) Schema() json.RawMessage { return s.schema }

// Parse decodes a complete answer. It removes a code fence around the JSON. It
// fails with an *agent.OutputError.
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

// WrapModel is an agent.ModelMiddleware, for Config.AroundModel and Think.Around.
// It adds the schema to requests. A reply without calls that does not match is
// sent back once, with what is wrong. Then the second reply counts, with the
// usage of both; if it does not match either, the call fails with an
// *agent.OutputError. The text of a reply is not passed on in pieces, because
// half of it is not useful.
func (s *Shape[T]) WrapModel(next llm.Model) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		r.Schema = s.schema
		return func(yield func(llm.Delta, error) bool) {
			reply, ok := forwardWithoutText(next.Stream(ctx, r), yield)
			if !ok {
				return
			}
			if fault := s.checkReply(reply); fault != nil {
				r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)], correctionMessages(reply, fault)...)
				again, ok := forwardWithoutText(next.Stream(ctx, r), yield)
				if !ok {
					return
				}
				again.Usage = again.Usage.Add(reply.Usage)
				if reply = again; s.checkReply(reply) != nil {
					yield(llm.Delta{}, s.checkReply(reply))
					return
				}
			}
			yield(llm.Delta{Done: &reply}, nil)
		}
	})
}

// forwardWithoutText passes a stream on, except its text and its end. ok is false if the
// stream failed or the reader left.
func forwardWithoutText(stream iter.Seq2[llm.Delta, error], yield func(llm.Delta, error) bool) (reply llm.Reply, ok bool) {
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

// checkReply returns an error if a reply does not match. It returns nil for a reply with calls,
// which is not the answer yet.
func (s *Shape[T]) checkReply(r llm.Reply) error {
	if len(r.Message.ToolCalls()) > 0 {
		return nil
	}
	_, err := s.Parse(r.Text())
	return err
}

// correctionMessages returns a reply that does not match, followed by a message that says
// what is wrong.
func correctionMessages(r llm.Reply, fault error) []llm.Message {
	m := llm.User(fmt.Sprintf("%v. Answer again, with JSON that satisfies the schema and nothing else.", fault))
	if r.Text() == "" {
		return []llm.Message{m}
	}
	return []llm.Message{r.Message, m}
}

// Node returns a node that sets a key to the newest reply of a model node or an
// agent, or of any of them if from is empty. It reads complete replies only,
// and fails with an *agent.OutputError if the reply does not match.
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
