package openai

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// Slots of the assembly; tool calls use their index, from zero.
const (
	textSlot      = -1
	reasoningSlot = -2
)

// A decoder reads the chunks of one reply. It uses the SDK's types but not its
// stream reader, which takes an early end of the stream for [DONE], fails on
// chunks that say "error": null, and closes tool calls when the next one begins.
type decoder struct {
	client  *wire.Client
	parts   *wire.Assembly
	id      string
	model   string
	finish  string
	refused bool
	usage   llm.Usage
}

func (d *decoder) read(r io.Reader) error {
	for ev, err := range d.client.Events(r) {
		if d.finish != "" && wire.IsFailure(err) {
			return nil // the reply is complete; only its usage may be missing
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(ev.Data), "[DONE]") {
			return nil
		}
		var chunk openai.ChatCompletionChunk
		if err := d.client.Decode(ev, &chunk); err != nil {
			return err
		}
		if err := d.chunk(chunk); err != nil {
			return err
		}
	}
	if d.finish == "" {
		return d.client.EndedEarly()
	}
	return nil
}

func (d *decoder) chunk(c openai.ChatCompletionChunk) error {
	if c.ID != "" {
		d.id = c.ID
	}
	if c.Model != "" {
		d.model = c.Model
	}
	if c.JSON.Usage.Valid() {
		d.usage = llm.Usage{
			Input:     int(c.Usage.PromptTokens),
			Output:    int(c.Usage.CompletionTokens),
			Cached:    int(c.Usage.PromptTokensDetails.CachedTokens),
			Reasoning: int(c.Usage.CompletionTokensDetails.ReasoningTokens),
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // only one is ever asked for
		}
		if err := d.delta(choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			d.finish = choice.FinishReason
		}
	}
	return nil
}

func (d *decoder) delta(delta openai.ChatCompletionChunkChoiceDelta) error {
	if err := d.parts.Reasoning(reasoningSlot, thoughts(delta.JSON.ExtraFields)); err != nil {
		return err
	}
	if err := d.content(delta); err != nil {
		return err
	}
	if delta.Refusal != "" {
		d.refused = true
		if err := d.parts.Text(textSlot, delta.Refusal); err != nil {
			return err
		}
	}
	for _, call := range delta.ToolCalls {
		args := call.Function.Arguments
		if raw := call.Function.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") {
			args = raw // some servers send the object instead of its text
		}
		if err := d.parts.Call(int(call.Index), call.ID, call.Function.Name, args); err != nil {
			return err
		}
	}
	return nil
}

// content reads the text, which is a list of typed parts at some servers.
func (d *decoder) content(delta openai.ChatCompletionChunkChoiceDelta) error {
	raw := delta.JSON.Content.Raw()
	if !strings.HasPrefix(raw, "[") {
		return d.parts.Text(textSlot, delta.Content)
	}
	type text struct{ Text string }
	var list []struct {
		text
		Thinking []text
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return d.client.Malformed("the stream holds content of an unknown shape", err)
	}
	for _, part := range list {
		for _, t := range part.Thinking {
			if err := d.parts.Reasoning(reasoningSlot, t.Text); err != nil {
				return err
			}
		}
		if err := d.parts.Text(textSlot, part.Text); err != nil {
			return err
		}
	}
	return nil
}

// thoughts reads the reasoning, which OpenAI does not send and other servers
// send under one of two names, or under both.
func thoughts(extra map[string]respjson.Field) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var s string
		if f, ok := extra[name]; ok && json.Unmarshal([]byte(f.Raw()), &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

func (d *decoder) reply(turn int) (llm.Reply, error) {
	stop := d.stop()
	message, err := d.parts.Message(turn, stop)
	if err != nil {
		return llm.Reply{}, err
	}
	if stop == llm.StopEnd && len(message.ToolCalls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{ID: d.id, Message: message, Usage: d.usage, Stop: stop, Model: d.model}, nil
}

func (d *decoder) stop() llm.StopReason {
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
