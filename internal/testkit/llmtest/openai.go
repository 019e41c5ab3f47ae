package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// OpenAI is OpenAI's Chat Completions API.
func OpenAI() Vendor {
	return Vendor{Name: "OpenAI", Check: checkOpenAI, stream: streamOpenAI, refuse: func(m string) string {
		return `{"error":{"message":` + quoteJSON(m) + `,"type":"invalid_request_error","param":"messages","code":null}}`
	}}
}

type openAIMessage struct {
	Role       string
	Content    json.RawMessage
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID, Type string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// checkOpenAI requires every call to be answered by the messages right after it, and every
// answer to have a call.
func checkOpenAI(body []byte) error {
	var r struct{ Messages []openAIMessage }
	if err := errors.Join(json.Unmarshal(body, &r), checkStrict(body)); err != nil {
		return err
	}
	if len(r.Messages) == 0 {
		return errors.New("messages is empty")
	}
	var open []string // calls without an answer so far
	for i, m := range r.Messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Errorf("messages[%d] of the role 'tool' answers no call right before it: %q", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
		} else if len(open) > 0 {
			return fmt.Errorf("messages[%d]: the tool calls %v are not answered", i, open)
		}
		if err := m.checkMessage(); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		for _, c := range m.ToolCalls {
			if slices.Contains(open, c.ID) {
				return fmt.Errorf("messages[%d] has two calls %q", i, c.ID)
			}
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the tool calls %v are not answered", open)
	}
	return nil
}

// checkMessage returns an error if the message by itself is not valid.
func (m openAIMessage) checkMessage() error {
	var text *string
	var parts []struct{ Type string }
	if len(m.Content) > 0 && json.Unmarshal(m.Content, &text) != nil && json.Unmarshal(m.Content, &parts) != nil {
		return errors.New("content is neither a text nor a list")
	}
	switch {
	case !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role):
		return fmt.Errorf("unknown role %q", m.Role)
	case len(m.ToolCalls) > 0 && m.Role != "assistant":
		return fmt.Errorf("the role %q makes no calls", m.Role)
	case text == nil && len(parts) == 0 && len(m.ToolCalls) == 0:
		return errors.New("there is no content")
	}
	for _, p := range parts {
		if p.Type != "text" && m.Role != "user" {
			return fmt.Errorf("the role %q may hold text only, not %q", m.Role, p.Type)
		}
	}
	for _, c := range m.ToolCalls {
		if c.ID == "" || len(c.ID) > 40 || c.Type != "function" || !isPlainName(c.Function.Name, 64) || !isJSONObject([]byte(c.Function.Arguments)) {
			return fmt.Errorf("the call %+v is not valid", c)
		}
	}
	return nil
}

// streamOpenAI sends the arguments of all calls interleaved, half of each at a time.
func streamOpenAI(t Turn) string {
	var b strings.Builder
	chunk := func(delta, finish string) {
		fmt.Fprintf(&b, `data: {"id":"r","model":"gpt-x","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
	}
	if t.Thought != "" {
		chunk(`{"reasoning_content":`+quoteJSON(t.Thought)+`}`, "null")
	}
	for _, half := range splitHalf(t.Text) {
		chunk(`{"content":`+quoteJSON(half)+`}`, "null")
	}
	for i, c := range t.Calls {
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, c.ID, c.Name), "null")
	}
	for h := range 2 {
		for i, c := range t.Calls {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoteJSON(splitHalf(c.Args)[h])), "null")
		}
	}
	finish := `"stop"`
	if len(t.Calls) > 0 {
		finish = `"tool_calls"`
	}
	if t.Cut {
		finish = `"length"`
	}
	chunk(`{}`, finish)
	b.WriteString(`data: {"id":"r","model":"gpt-x","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}` + "\n\n")
	return b.String() + "data: [DONE]\n\n"
}
