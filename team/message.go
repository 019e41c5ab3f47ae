package team

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// longestWait is the longest time, in seconds, that agent__check_inbox waits.
const longestWait = 300

// checkInbox takes the messages out of the caller's inbox. With wait_seconds it
// first waits for a message, as long as an agent is running that may write one.
func checkInbox(ctx context.Context, h agentHandle, c tool.Call, a args) (tool.Result, error) {
	until, fault := a.waitDeadline(time.Now())
	if fault != "" {
		return tool.FailedResult("%s%s", toolFailed, fault), nil
	}
	h.mu.Lock()
	for time.Now().Before(until) {
		m := h.state.agents[h.id]
		_, again := h.old[c.Key]
		if again || m == nil || len(m.inbox) > 0 {
			break
		}
		writers := h.state.writerIDs(m)
		if len(writers) == 0 {
			break
		}
		open, err := h.awaitOrAsk(ctx, writers, until)
		if err != nil {
			h.mu.Unlock()
			return tool.Result{}, err
		}
		if open != nil {
			h.mu.Unlock()
			return tool.JSONResult(inboxResult{Messages: []inboxMessage{}, Pending: open}), nil
		}
	}
	h.mu.Unlock()
	return h.changeResult(entry{Op: opInbox, Key: c.Key, By: h.id})
}

// waitDeadline returns when the wait that a call asks for ends, or what is wrong with
// the call.
func (a args) waitDeadline(now time.Time) (end time.Time, fault string) {
	text := strings.TrimSpace(string(a.Wait))
	if text == "" {
		return now, ""
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 {
		return now, "'wait_seconds' must be a number of seconds from 0 to 300"
	}
	return now.Add(time.Duration(min(seconds, longestWait) * float64(time.Second))), ""
}

// writerIDs returns the running agents that may write to an agent.
func (s *state) writerIDs(m *member) (ids []string) {
	add := func(list []*member) {
		for _, o := range list {
			if o != m && o.status == running {
				ids = append(ids, o.id)
			}
		}
	}
	add(m.children)
	if m.id != lead {
		add(s.childrenOf(m.parent))
		add([]*member{s.agents[m.parent]})
	}
	return ids
}

const noticeText = "Agents wait for your reply and do nothing until then. Answer each with agent__reply_escalation."

// noticeMiddleware is a tool middleware that informs an agent, in the outcome of any
// other tool, that its own agents wait for its reply.
func noticeMiddleware(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
		r, err := next(ctx, t, c)
		h, ok := handleOf(ctx)
		if err != nil || !ok || strings.HasPrefix(t.Name, "agent__") || len(r.Content) > 1 {
			return r, err
		}
		h.mu.Lock()
		open := h.state.pendingQuestions(h.id)
		h.mu.Unlock()
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
