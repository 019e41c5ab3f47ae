package agent

import (
	"encoding/json"
	"slices"
	"strconv"

	"raddle.dev/llm"
)

// What a request says where nobody has said anything. Some providers take a
// conversation only if the user begins it and has the last word.
const (
	sayBegin = "[The beginning of the conversation is not shown.]"
	sayGoOn  = "[Go on.]"
)

// valid is messages in a form that providers which are strict about histories
// accept: the user begins, the user or a tool has the last word, neighbours of one
// role are one message, nothing is empty, every call has one outcome behind it and
// every outcome its call, and arguments are objects.
func valid(messages []llm.Message) []llm.Message {
	var out []llm.Message
	for i, m := range messages {
		if m.Role == llm.RoleTool || says(m) == 0 {
			continue // outcomes go with their calls
		}
		m = objects(m)
		if last := len(out) - 1; last >= 0 && out[last].Role == m.Role {
			out[last].Parts = joined(out[last].Parts, m.Parts)
		} else {
			out = append(out, m)
		}
		if calls := m.ToolCalls(); len(calls) > 0 {
			var outcomes []llm.Part
			if i+1 < len(messages) && messages[i+1].Role == llm.RoleTool {
				outcomes = messages[i+1].Parts
			}
			cut := cutOffMessage(unanswered(calls, outcomes)).Parts
			out = append(out, llm.Message{Role: llm.RoleTool, Parts: paired(calls, slices.Concat(outcomes, cut))})
		}
	}
	if len(out) == 0 || out[0].Role != llm.RoleUser {
		out = slices.Insert(out, 0, llm.User(sayBegin))
	}
	if out[len(out)-1].Role == llm.RoleAssistant {
		out = append(out, llm.User(sayGoOn))
	}
	return out
}

// says counts what an assistant says that others can read.
func says(m llm.Message) (n int) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Reasoning:
		case llm.Text:
			n += len(p.Text)
		default:
			n++
		}
	}
	return n
}

// joined is the parts of two messages of the user's as those of one: two texts
// become one, as some providers take nothing else.
func joined(a, b []llm.Part) []llm.Part {
	first, text := a[len(a)-1].(llm.Text)
	second, too := b[0].(llm.Text)
	if !text || !too {
		return slices.Concat(a, b)
	}
	return slices.Concat(a[:len(a)-1], []llm.Part{llm.Text{Text: first.Text + "\n\n" + second.Text}}, b[1:])
}

// objects is a message whose calls all have objects for arguments: what is none
// is shown inside one.
func objects(m llm.Message) llm.Message {
	for i, p := range m.Parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		args, ok := object(c.Args)
		if !ok {
			args, _ = json.Marshal(map[string]json.RawMessage{"malformed": c.Args}) // cannot fail: the arguments are JSON
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

// distinct sees that each call of a reply has a name of its own. A call that is
// there twice to the letter is one call.
func distinct(m llm.Message) llm.Message {
	ids := map[string]llm.ToolCall{}
	parts := make([]llm.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			parts = append(parts, p)
			continue
		}
		if c.ID == "" {
			c.ID = "call"
		}
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
