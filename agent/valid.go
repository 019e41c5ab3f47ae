package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"raddle.dev/llm"
)

// These texts fill the first and the last place of a request. Some providers
// accept a conversation only if it starts and ends with a user message.
const (
	sayBegin    = "[The beginning of the conversation is not shown.]"
	sayContinue = "[Continue.]"
)

// normaliseMessages returns messages in a form that strict providers accept: the first
// message is the user's, the last one is the user's or a tool's, adjacent
// messages of the same role are one message, no message is empty, each call is
// followed by one outcome, each outcome has a call, and arguments are objects.
func normaliseMessages(messages []llm.Message) []llm.Message {
	var out []llm.Message
	for i, m := range messages {
		if m.Role == llm.RoleTool || countVisible(m) == 0 {
			continue // outcomes follow their calls
		}
		m = withObjectArgs(m)
		if last := len(out) - 1; last >= 0 && out[last].Role == m.Role {
			out[last].Parts = joinParts(out[last].Parts, m.Parts)
		} else {
			out = append(out, m)
		}
		if calls := m.ToolCalls(); len(calls) > 0 {
			var outcomes []llm.Part
			if i+1 < len(messages) && messages[i+1].Role == llm.RoleTool {
				outcomes = messages[i+1].Parts
			}
			cut := cutOffMessage(pendingCalls(calls, outcomes)).Parts
			out = append(out, llm.Message{Role: llm.RoleTool, Parts: pairOutcomes(calls, slices.Concat(outcomes, cut))})
		}
	}
	if len(out) == 0 || out[0].Role != llm.RoleUser {
		out = slices.Insert(out, 0, llm.User(sayBegin))
	}
	if out[len(out)-1].Role == llm.RoleAssistant {
		out = append(out, llm.User(sayContinue))
	}
	return out
}

// countVisible counts the parts of an assistant's message that other providers can
// read.
func countVisible(m llm.Message) (n int) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Reasoning:
		case llm.Text:
			n += len(p.Text)
		case llm.Item:
			n += len(p.Text)
		default:
			n++
		}
	}
	return n
}

// joinParts combines the parts of two user messages. Two texts become one, because
// some providers accept only that.
func joinParts(a, b []llm.Part) []llm.Part {
	first, text := a[len(a)-1].(llm.Text)
	second, too := b[0].(llm.Text)
	if !text || !too || len(first.Extra)+len(second.Extra) > 0 {
		return slices.Concat(a, b)
	}
	return slices.Concat(a[:len(a)-1], []llm.Part{llm.Text{Text: first.Text + "\n\n" + second.Text}}, b[1:])
}

// withObjectArgs returns a message whose calls all have objects as arguments: other
// arguments are put inside an object.
func withObjectArgs(m llm.Message) llm.Message {
	for i, p := range m.Parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		args, ok := argsObject(c.Args)
		if !ok {
			// cannot fail: the arguments are JSON
			args, _ = json.Marshal(map[string]json.RawMessage{"malformed": c.Args})
			if !json.Valid(c.Args) {
				args = json.RawMessage("{}")
			}
		}
		if string(args) == string(c.Args) {
			continue
		}
		c.Args = args
		m.Parts = slices.Clone(m.Parts)
		m.Parts[i] = c
	}
	return m
}

// withDistinctCalls makes the ids of the calls of a reply distinct. Two identical calls
// become one call.
func withDistinctCalls(m llm.Message) llm.Message {
	ids := map[string]llm.ToolCall{}
	parts := make([]llm.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			parts = append(parts, p)
			continue
		}
		c.ID = cmp.Or(c.ID, "call")
		was, taken := ids[c.ID]
		if taken && was.Name == c.Name && string(was.Args) == string(c.Args) && p.(llm.ToolCall).ID != "" {
			continue
		}
		for base, n := c.ID, 2; taken; n++ {
			c.ID = base + "_" + strconv.Itoa(n)
			_, taken = ids[c.ID]
		}
		ids[c.ID] = c
		parts = append(parts, c)
	}
	return llm.Message{Role: llm.RoleAssistant, Parts: parts}
}
