package team

import (
	"context"
	"encoding/json"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

const noticeText = "Agents wait for your reply and stand still until then. Answer each with agent__reply_escalation."

// noticeMiddleware is a tool middleware that informs an agent, in the outcome of any
// other tool, that its own agents wait for its reply.
func noticeMiddleware(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
		r, err := next(ctx, t, c)
		s, ok := handleOf(ctx)
		if err != nil || !ok || strings.HasPrefix(t.Name, "agent__") || len(r.Content) > 1 {
			return r, err
		}
		s.mu.Lock()
		open := s.state.pendingQuestions(s.id)
		s.mu.Unlock()
		if len(open) == 0 {
			return r, nil
		}
		r.Content = []llm.Part{llm.Text{Text: appendNotice(r.Text(), open)}}
		return r, nil
	}
}

// appendNotice returns an outcome with the notice added.
func appendNotice(text string, open []*escalation) string {
	more, err := json.Marshal(struct {
		Pending     []*escalation `json:"pending_escalations"`
		Instruction string        `json:"escalation_instruction"`
	}{open, noticeText})
	if err != nil {
		return text
	}
	text = strings.TrimSpace(text)
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		b, err := json.Marshal(text)
		if json.Valid([]byte(text)) {
			b = []byte(text)
		}
		if err != nil {
			return text
		}
		text = `{"output":` + string(b) + `}`
	}
	text = strings.TrimSuffix(text, "}")
	if strings.TrimSpace(text) != "{" {
		text += ","
	}
	return text + string(more[1:])
}
