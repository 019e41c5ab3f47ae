package anthropic

import (
	"io"

	"github.com/anthropics/anthropic-sdk-go"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// A decoder reads the events of one reply. It uses the SDK's types but not its
// stream reader, which takes an early end of the stream for message_stop, skips
// events whose name a proxy has dropped, and reports a failure inside the
// stream under the status 200. A block is closed at the end of the stream only.
type decoder struct {
	client *wire.Client
	parts  *wire.Assembly
	id     string
	model  string
	stop   anthropic.StopReason
	usage  llm.Usage
}

func (d *decoder) read(r io.Reader) error {
	for ev, err := range d.client.Events(r) {
		if err != nil && d.stop != "" && wire.IsFailure(err) {
			return nil // the reply is complete, and its usage is known
		}
		if err != nil {
			return err
		}
		var e anthropic.MessageStreamEventUnion
		if err := d.client.Decode(ev, &e); err != nil {
			return err
		}
		if e.Type == "message_stop" {
			return nil
		}
		if err := d.event(e); err != nil {
			return err
		}
	}
	if d.stop == "" {
		return d.client.EndedEarly()
	}
	return nil
}

func (d *decoder) event(e anthropic.MessageStreamEventUnion) error {
	n := int(e.Index)
	switch e.Type {
	case "message_start":
		d.id, d.model = e.Message.ID, e.Message.Model
		u := e.Message.Usage
		d.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
	case "content_block_start":
		return d.start(n, e.ContentBlock)
	case "content_block_delta":
		return d.delta(n, e.Delta)
	case "message_delta":
		if e.Delta.StopReason != "" {
			d.stop = e.Delta.StopReason
		}
		u := e.Usage
		d.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
	}
	return nil
}

func (d *decoder) start(n int, b anthropic.ContentBlockStartEventContentBlockUnion) error {
	switch b.Type {
	case "text":
		return d.parts.Text(n, b.Text)
	case "thinking":
		if err := d.parts.Reasoning(n, b.Thinking); err != nil {
			return err
		}
		return d.parts.Seal(n, b.Signature)
	case "redacted_thinking":
		return d.parts.Part(llm.Reasoning{Signature: b.Data, Redacted: true, Origin: origin}, len(b.Data))
	case "tool_use":
		args := b.JSON.Input.Raw()
		if args == "{}" || args == "null" {
			args = "" // it follows in fragments
		}
		return d.parts.Call(n, b.ID, b.Name, args)
	}
	return nil
}

func (d *decoder) delta(n int, delta anthropic.MessageStreamEventUnionDelta) error {
	switch delta.Type {
	case "text_delta":
		return d.parts.Text(n, delta.Text)
	case "thinking_delta":
		return d.parts.Reasoning(n, delta.Thinking)
	case "signature_delta":
		return d.parts.Seal(n, delta.Signature)
	case "input_json_delta":
		return d.parts.Call(n, "", "", delta.PartialJSON)
	}
	return nil
}

// count takes over counts, which are sums so far. Those that an event leaves out
// are zero and keep their former value.
func (d *decoder) count(input, cacheRead, cacheWritten, output, thinking int64) {
	if sum := int(input + cacheRead + cacheWritten); sum > 0 {
		d.usage.Input, d.usage.Cached = sum, int(cacheRead)
	}
	if output > 0 {
		d.usage.Output = int(output)
	}
	if thinking > 0 {
		d.usage.Reasoning = int(thinking)
	}
}

func (d *decoder) reply(turn int) (llm.Reply, error) {
	stop := llm.StopReason(d.stop)
	switch d.stop {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence, "":
		stop = llm.StopEnd
	case anthropic.StopReasonToolUse:
		stop = llm.StopTools
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		stop = llm.StopLength
	case anthropic.StopReasonRefusal:
		stop = llm.StopFilter
	}
	message, err := d.parts.Message(turn, stop)
	if err != nil {
		return llm.Reply{}, err
	}
	return llm.Reply{ID: d.id, Message: message, Usage: d.usage, Stop: stop, Model: d.model}, nil
}
