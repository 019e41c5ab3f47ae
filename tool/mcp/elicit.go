package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/tool"
)

// An asker passes the questions of a call to its caller, one at a time, and the
// answers back.
type asker struct {
	enabled   bool // there is a person to ask
	questions chan tool.Question
	answers   chan []tool.Answer
	turn      chan struct{} // holds a value while no question is asked
	state     *askerState
}

// An askerState is guarded by the turn of its asker.
type askerState struct {
	known []tool.Answer // all answers so far
	used  map[int]bool  // of them
}

func newAsker(known []tool.Answer, enabled bool) asker {
	a := asker{enabled: enabled, questions: make(chan tool.Question), answers: make(chan []tool.Answer, 1), turn: make(chan struct{}, 1),
		state: &askerState{known: known, used: map[int]bool{}}}
	a.turn <- struct{}{}
	return a
}

// sendAnswers passes all answers so far to the question that waits.
func (a *asker) sendAnswers(all []tool.Answer) { a.answers <- all }

// recordedAnswer returns the first answer to a question of this text that was not used yet: a
// call that is made again asks in any order.
func (s *askerState) recordedAnswer(prompt string) (tool.Answer, bool) {
	for i, a := range s.known {
		if !s.used[i] && a.Prompt == prompt {
			s.used[i] = true
			return a, true
		}
	}
	return tool.Answer{}, false
}

// askQuestion returns the answer to a question: the recorded one if the call is made again.
func (a *asker) askQuestion(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if known, ok := a.state.recordedAnswer(q.Prompt); ok {
		return known, nil
	}
	select {
	case a.questions <- q:
	case <-ctx.Done():
		return tool.Answer{}, ctx.Err()
	}
	select {
	case a.state.known = <-a.answers:
	case <-ctx.Done():
		return tool.Answer{}, ctx.Err()
	}
	if known, ok := a.state.recordedAnswer(q.Prompt); ok {
		return known, nil
	}
	return tool.Answer{}, fmt.Errorf("the question %q got no answer", q.Prompt)
}

// handleElicitation asks the person who made a call what the server wants to know.
func (s *server) handleElicitation(ctx context.Context, c *connection, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	if p.Mode != "" && p.Mode != "form" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "raddle does not support the elicitation mode " + p.Mode}
	}
	o, _ := ctx.Value(openCallKey{}).(*openCall)
	if o == nil { // the protocol does not say for which call: the oldest one
		c.mu.Lock()
		if len(c.calls) > 0 {
			o = c.calls[0]
		}
		c.mu.Unlock()
	}
	if o == nil || !o.asker.enabled {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	select {
	case <-o.asker.turn:
		defer func() { o.asker.turn <- struct{}{} }()
	case <-o.done:
		return &sdk.ElicitResult{Action: "cancel"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-o.done:
			cancel()
		case <-ended.Done():
		}
	}()
	return fillForm(p, func(q tool.Question) (tool.Answer, error) {
		q.Prompt = s.redactText(fmt.Sprintf("MCP server %s asks: %s", s.config.ID, q.Prompt))
		return o.asker.askQuestion(ended, q)
	})
}

// A formField is a field of a form that a server sends.
type formField struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	Default     any      `json:"default"`
	OneOf       []struct {
		Const string `json:"const"`
	} `json:"oneOf"`
}

// fillForm asks one question for each field of a form, or one for a form without fields.
func fillForm(p *sdk.ElicitParams, ask func(tool.Question) (tool.Answer, error)) (*sdk.ElicitResult, error) {
	var form struct {
		Properties map[string]formField `json:"properties"`
		Required   []string             `json:"required"`
	}
	text, err := json.Marshal(p.RequestedSchema)
	if err == nil && p.RequestedSchema != nil {
		err = json.Unmarshal(text, &form)
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the form cannot be read: " + err.Error()}
	}
	if len(form.Properties) == 0 {
		answer, err := ask(tool.Question{Kind: "confirm", Prompt: p.Message, Options: []string{"yes", "no"}})
		if err != nil {
			return nil, err
		}
		if yes, ok := readYes(answerText(answer)); answer.Refused != "" || !ok || !yes {
			return &sdk.ElicitResult{Action: "decline"}, nil
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
	}
	content := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(form.Properties)) {
		field := form.Properties[name]
		q := field.buildQuestion(name, p.Message, len(form.Properties) == 1, slices.Contains(form.Required, name))
		for first := q.Prompt; ; {
			answer, err := ask(q)
			if err != nil {
				return nil, err
			}
			if answer.Refused != "" {
				return &sdk.ElicitResult{Action: "decline"}, nil
			}
			value, problem := field.parseAnswer(answerText(answer), slices.Contains(form.Required, name))
			if problem == "" {
				if value != nil {
					content[name] = value
				}
				break
			}
			q.Prompt = first + "\n(" + problem + ")"
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}, nil
}

// buildQuestion returns the question about a field.
func (f *formField) buildQuestion(name, message string, only, required bool) tool.Question {
	q := tool.Question{Kind: "input", Prompt: message, Options: f.fieldOptions()}
	label := cmp.Or(f.Title, name)
	if f.Description != "" {
		label += ": " + f.Description
	}
	if !only || f.Description != "" || f.Title != "" {
		q.Prompt += "\n" + label
	}
	if f.Default != nil {
		q.Prompt += fmt.Sprintf(" [%v]", f.Default)
	}
	if !required {
		q.Prompt += " (optional)"
	}
	switch {
	case f.Type == "boolean":
		q.Kind = "confirm"
		q.Options = []string{"yes", "no"}
	case len(q.Options) > 0:
		q.Kind = "select"
	}
	return q
}

func (f *formField) fieldOptions() []string {
	if len(f.Enum) > 0 {
		return f.Enum
	}
	var list []string
	for _, o := range f.OneOf {
		list = append(list, o.Const)
	}
	return list
}

// parseAnswer returns the value of an answer, which is nil if there is none, or the reason why it is
// not valid.
func (f *formField) parseAnswer(text string, required bool) (value any, problem string) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" && f.Type != "boolean" {
		switch {
		case f.Default != nil:
			return f.Default, ""
		case !required:
			return nil, ""
		case f.Type != "string":
			return nil, "the answer is empty"
		}
	}
	switch f.Type {
	case "boolean":
		yes, ok := readYes(trimmed)
		if !ok {
			return nil, "answer yes or no"
		}
		return yes, ""
	case "integer":
		n, err := strconv.ParseInt(trimmed, 10, 64)
		if err != nil {
			return nil, "answer with a whole number"
		}
		return n, ""
	case "number":
		n, err := strconv.ParseFloat(trimmed, 64)
		if err != nil {
			return nil, "answer with a number"
		}
		return n, ""
	}
	if options := f.fieldOptions(); len(options) > 0 && !slices.Contains(options, trimmed) {
		return nil, "answer with one of " + strings.Join(options, ", ")
	}
	return text, ""
}

func readYes(text string) (yes, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "yes", "y", "true", "":
		return true, true
	case "no", "n", "false":
		return false, true
	}
	return false, false
}

// answerText returns an answer as text.
func answerText(a tool.Answer) string {
	var text string
	if json.Unmarshal(a.Value, &text) == nil {
		return text
	}
	return string(a.Value)
}
