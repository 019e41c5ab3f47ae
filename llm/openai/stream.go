package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// These are slots of the assembly. Tool calls use their index, starting with 0,
// as slot.
const (
	textSlot      = -1
	reasoningSlot = -2
)

// chunk is one event of a reply. Fields that servers send in several forms keep
// their JSON.
type chunk struct {
	ID      wire.Word `json:"id"`
	Model   wire.Word `json:"model"`
	Usage   *tokens   `json:"usage"`
	Choices []choice  `json:"choices"`
}

type tokens struct {
	PromptTokens        wire.Count `json:"prompt_tokens"`
	CompletionTokens    wire.Count `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens wire.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

type choice struct {
	Index        wire.Count `json:"index"`
	FinishReason wire.Word  `json:"finish_reason"`
	Delta        delta      `json:"delta"`
}

// plainDelta has the members of a delta that raddle understands.
type plainDelta struct {
	Content          json.RawMessage `json:"content"` // a text, or a list of typed parts on some servers
	Refusal          string          `json:"refusal"`
	ReasoningContent wire.Word       `json:"reasoning_content"` // not part of OpenAI's API, like Reasoning
	Reasoning        wire.Word       `json:"reasoning"`
	ToolCalls        []callDelta     `json:"tool_calls"`
}

// delta is a piece of a message, with the members that raddle does not understand.
type delta struct {
	plainDelta
	others map[string]json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *delta) UnmarshalJSON(data []byte) (err error) {
	if err = json.Unmarshal(data, &d.plainDelta); err == nil {
		d.others, err = otherMembers(data, "role", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call")
	}
	return err
}

type plainCall struct {
	Index    wire.Count `json:"index"`
	ID       wire.Word  `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a text, or an object on some servers
	} `json:"function"`
}

// callDelta is a piece of a call, with the members that raddle does not understand.
type callDelta struct {
	plainCall
	others map[string]json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *callDelta) UnmarshalJSON(data []byte) (err error) {
	if err = json.Unmarshal(data, &c.plainCall); err == nil {
		c.others, err = otherMembers(data, "index", "id", "type", "function")
	}
	return err
}

// otherMembers returns the members of a JSON object without the known ones and those that are null; nil if there is
// none.
func otherMembers(data []byte, known ...string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	for name, value := range members {
		if slices.Contains(known, name) || string(value) == "null" {
			delete(members, name)
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return members, nil
}

// A decoder reads the chunks of one reply. Tool calls are complete only at the
// end of the stream.
type decoder struct {
	client  *wire.Client
	parts   *wire.Assembly
	id      string
	model   string
	finish  string
	refused bool
	usage   llm.Usage
	others  map[string]json.RawMessage // of the message
}

// Complete implements wire.Decoder. After the finish reason, only the usage may
// be missing.
func (d *decoder) Complete() bool { return d.finish != "" }

// Event implements wire.Decoder.
func (d *decoder) Event(ev wire.Event) (done bool, err error) {
	if strings.HasPrefix(string(ev.Data), "[DONE]") {
		return true, nil
	}
	var c chunk
	if err := d.client.Decode(ev, &c); err != nil {
		return false, err
	}
	return false, d.applyChunk(c)
}

func (d *decoder) applyChunk(c chunk) error {
	if c.ID != "" {
		d.id = string(c.ID)
	}
	if c.Model != "" {
		d.model = string(c.Model)
	}
	if u := c.Usage; u != nil {
		d.usage = llm.Usage{
			Input:     int(u.PromptTokens),
			Output:    int(u.CompletionTokens),
			Cached:    int(u.PromptTokensDetails.CachedTokens),
			Reasoning: int(u.CompletionTokensDetails.ReasoningTokens),
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // only one is ever requested
		}
		if err := d.applyDelta(choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			d.finish = string(choice.FinishReason)
		}
	}
	return nil
}

func (d *decoder) applyDelta(delta delta) error {
	thought := delta.ReasoningContent // some servers send it in both fields
	thought = cmp.Or(thought, delta.Reasoning)
	if err := d.parts.AddReasoning(reasoningSlot, string(thought)); err != nil {
		return err
	}
	if err := d.applyContent(delta.Content); err != nil {
		return err
	}
	if delta.Refusal != "" {
		d.refused = true
		if err := d.parts.AddText(textSlot, delta.Refusal); err != nil {
			return err
		}
	}
	d.others = mergeStreamed(d.others, delta.others)
	for _, call := range delta.ToolCalls {
		var args string
		if raw := call.Function.Arguments; strings.HasPrefix(string(raw), "{") {
			args = string(raw)
		} else if len(raw) > 0 && json.Unmarshal(raw, &args) != nil {
			args = string(raw) // no provider sends this: the model sees what it wrote
		}
		if err := d.parts.AddCall(int(call.Index), string(call.ID), call.Function.Name, args); err != nil {
			return err
		}
		if err := d.keepCallMembers(call); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) applyContent(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	type text struct{ Text string }
	var list []struct {
		text
		Thinking []text
	}
	if !strings.HasPrefix(string(raw), "[") {
		var whole string
		if err := json.Unmarshal(raw, &whole); err != nil {
			return d.client.MalformedError("the stream contains content of an unknown form", err)
		}
		return d.parts.AddText(textSlot, whole)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return d.client.MalformedError("the stream contains content of an unknown form", err)
	}
	for _, part := range list {
		for _, t := range part.Thinking {
			if err := d.parts.AddReasoning(reasoningSlot, t.Text); err != nil {
				return err
			}
		}
		if err := d.parts.AddText(textSlot, part.Text); err != nil {
			return err
		}
	}
	return nil
}

// keepCallMembers adds the members of a piece of a call that raddle does not understand to the call.
func (d *decoder) keepCallMembers(call callDelta) error {
	if len(call.others) == 0 {
		return nil
	}
	var before map[string]json.RawMessage
	if kept := d.parts.ReadExtra(int(call.Index)); len(kept) > 0 && json.Unmarshal(kept, &before) != nil {
		return nil
	}
	return d.parts.SetExtra(int(call.Index), encodeValue(mergeStreamed(before, call.others)))
}

// keepOthers adds the members of the message that raddle does not understand to its reasoning.
func (d *decoder) keepOthers() error {
	if len(d.others) == 0 {
		return nil
	}
	if err := d.parts.OpenReasoning(reasoningSlot); err != nil {
		return err
	}
	return d.parts.SetExtra(reasoningSlot, encodeValue(d.others))
}

func (d *decoder) buildReply(turn int) llm.Reply {
	stop := d.stopReason()
	message := d.parts.Message(turn, stop)
	if stop == llm.StopEnd && len(message.ToolCalls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{ID: d.id, Message: message, Usage: d.usage, Stop: stop, Model: d.model}
}

func (d *decoder) stopReason() llm.StopReason {
	switch {
	case d.refused:
		return llm.StopFilter
	case d.finish == "stop", d.finish == "":
		return llm.StopEnd
	case d.finish == "tool_calls", d.finish == "function_call":
		return llm.StopTools
	case d.finish == "length":
		return llm.StopLength
	case d.finish == "content_filter":
		return llm.StopFilter
	}
	return llm.StopReason(d.finish)
}
