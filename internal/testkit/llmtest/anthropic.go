package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Anthropic is Anthropic's Messages API.
func Anthropic() Vendor {
	return Vendor{Name: "Anthropic", Check: checkAnthropic, stream: streamAnthropic, refuse: func(m string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","message":` + quoteJSON(m) + `}}`
	}}
}

type anthropicBlock struct {
	Type, Text, ID, Name, Signature string
	ToolUseID                       string `json:"tool_use_id"`
	Input                           json.RawMessage
	Content                         []anthropicBlock
}

type anthropicMessage struct {
	Role    string
	Content []anthropicBlock
}

// checkAnthropic requires users and assistants to take turns, and the results of
// all calls at the beginning of the next message.
func checkAnthropic(body []byte) error {
	var r struct {
		System, Messages json.RawMessage
		MaxTokens        int `json:"max_tokens"`
	}
	var messages []anthropicMessage
	if err := checkAnthropicRules(body); err != nil {
		return err
	}
	if err := errors.Join(json.Unmarshal(body, &r), json.Unmarshal(r.Messages, &messages)); err != nil {
		return err
	}
	var system []anthropicBlock
	if len(r.System) > 0 {
		if err := errors.Join(json.Unmarshal(r.System, &system), (anthropicMessage{Role: "system", Content: system}).checkMessage()); err != nil {
			return err
		}
	}
	if len(messages) == 0 || r.MaxTokens <= 0 {
		return errors.New("messages: at least one message is required, and max_tokens")
	}
	var open []string
	used := map[string]bool{}
	for i, m := range messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: roles must alternate: %q where %q is due", i, m.Role, want)
		}
		if err := m.checkMessage(); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
		if err := m.checkAnswers(open); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
		open = open[:0]
		for _, b := range m.Content {
			if b.Type != "tool_use" {
				continue
			}
			if used[b.ID] {
				return fmt.Errorf("messages.%d: `tool_use` ids must be unique: %q", i, b.ID)
			}
			used[b.ID] = true
			open = append(open, b.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_use ids were found without tool_result blocks: %v", open)
	}
	return nil
}

// checkMessage returns an error if the message by itself is not valid.
func (m anthropicMessage) checkMessage() error {
	if len(m.Content) == 0 {
		return errors.New("there is no content")
	}
	ids := []string{}
	for _, b := range m.Content {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			return errors.New("text content blocks must contain non-whitespace text")
		case b.Type == "thinking" && b.Signature == "":
			return errors.New("a thinking block has no signature")
		case b.Type == "tool_use" && (m.Role != "assistant" || !isPlainName(b.ID, 200) || !isPlainName(b.Name, 64) || !isJSONObject(b.Input) || slices.Contains(ids, b.ID)):
			return fmt.Errorf("the tool_use %q is not valid", b.ID)
		case b.Type == "tool_result" && m.Role != "user":
			return errors.New("a tool_result outside of a user's message")
		}
		for _, c := range b.Content {
			if c.Type == "text" && strings.TrimSpace(c.Text) == "" {
				return errors.New("a tool_result holds empty text")
			}
		}
		ids = append(ids, b.ID)
	}
	return nil
}

// checkAnswers returns an error unless the message begins with one result for each open call.
func (m anthropicMessage) checkAnswers(open []string) error {
	open = slices.Clone(open)
	for i, b := range m.Content {
		if b.Type != "tool_result" {
			continue
		}
		at := slices.Index(open, b.ToolUseID)
		if at < 0 {
			return fmt.Errorf("unexpected tool_use_id in tool_result blocks: %q", b.ToolUseID)
		}
		if i > 0 && m.Content[i-1].Type != "tool_result" {
			return errors.New("tool_result blocks must come first")
		}
		open = slices.Delete(open, at, at+1)
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_use ids were found without tool_result blocks immediately after: %v", open)
	}
	return nil
}

// streamAnthropic opens all calls before it sends the arguments of any call.
func streamAnthropic(t Turn) string {
	var b strings.Builder
	send := func(name, fields string) { fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%[1]q%s}\n\n", name, fields) }
	n := 0
	block := func(start string, deltas ...string) {
		send("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, n, start))
		for _, d := range deltas {
			send("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, n, d))
		}
		n++
	}
	send("message_start", `,"message":{"id":"r","type":"message","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	if t.Thought != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`,
			`{"type":"thinking_delta","thinking":`+quoteJSON(t.Thought)+`}`, `{"type":"signature_delta","signature":`+quoteJSON("seal of "+t.Thought)+`}`)
	}
	if h := splitHalf(t.Text); t.Text != "" {
		block(`{"type":"text","text":""}`, `{"type":"text_delta","text":`+quoteJSON(h[0])+`}`, `{"type":"text_delta","text":`+quoteJSON(h[1])+`}`)
	}
	first := n
	for _, c := range t.Calls {
		block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Name))
	}
	for h := range 2 {
		for i, c := range t.Calls {
			send("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, first+i, quoteJSON(splitHalf(c.Args)[h])))
		}
	}
	for i := range n {
		send("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
	}
	stop := "end_turn"
	if len(t.Calls) > 0 {
		stop = "tool_use"
	}
	if t.Cut {
		stop = "max_tokens"
	}
	send("message_delta", `,"delta":{"stop_reason":"`+stop+`"},"usage":{"output_tokens":2}`)
	send("message_stop", "")
	return b.String()
}
