package anthropic

import (
	"encoding/json"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// event is one event of a reply. Which fields it has depends on its type, and
// that of its block or delta. The names of events are ignored, because proxies
// remove them.
type event struct {
	Type    string     `json:"type"`
	Index   wire.Count `json:"index"`
	Message struct {
		ID    wire.Word `json:"id"`
		Model wire.Word `json:"model"`
		Usage tokens    `json:"usage"`
	} `json:"message"`
	ContentBlock blockStart `json:"content_block"`
	Delta        blockDelta `json:"delta"`
	Usage        tokens     `json:"usage"`
}

type blockStart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        wire.Word       `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type blockDelta struct {
	Type        string    `json:"type"`
	Text        string    `json:"text"`
	Thinking    string    `json:"thinking"`
	Signature   string    `json:"signature"`
	PartialJSON string    `json:"partial_json"`
	StopReason  wire.Word `json:"stop_reason"`
}

type tokens struct {
	InputTokens              wire.Count `json:"input_tokens"`
	CacheReadInputTokens     wire.Count `json:"cache_read_input_tokens"`
	CacheCreationInputTokens wire.Count `json:"cache_creation_input_tokens"`
	OutputTokens             wire.Count `json:"output_tokens"`
	OutputTokensDetails      struct {
		ThinkingTokens wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// A decoder reads the events of one reply. A block is complete only at the end
// of the stream.
type decoder struct {
	client *wire.Client
	parts  *wire.Assembly
	origin string
	id     string
	model  string
	stop   string
	usage  llm.Usage
}

// Complete implements wire.Decoder. The usage arrives together with the stop
// reason.
func (d *decoder) Complete() bool { return d.stop != "" }

// Event implements wire.Decoder.
func (d *decoder) Event(ev wire.Event) (done bool, err error) {
	var e event
	if err := d.client.Decode(ev, &e); err != nil {
		return false, err
	}
	return e.Type == "message_stop", d.applyEvent(e)
}

func (d *decoder) applyEvent(e event) error {
	n := int(e.Index)
	switch e.Type {
	case "message_start":
		d.id, d.model = string(e.Message.ID), string(e.Message.Model)
		d.updateUsage(e.Message.Usage)
	case "content_block_start":
		return d.startBlock(n, e.ContentBlock)
	case "content_block_delta":
		return d.applyDelta(n, e.Delta)
	case "message_delta":
		if e.Delta.StopReason != "" {
			d.stop = string(e.Delta.StopReason)
		}
		d.updateUsage(e.Usage)
	}
	return nil
}

func (d *decoder) startBlock(n int, b blockStart) error {
	switch b.Type {
	case "text":
		return d.parts.AddText(n, b.Text)
	case "thinking":
		if err := d.parts.AddReasoning(n, b.Thinking); err != nil {
			return err
		}
		return d.parts.Seal(n, b.Signature)
	case "redacted_thinking":
		return d.parts.AddPart(llm.Reasoning{Signature: b.Data, Redacted: true, Origin: d.origin}, len(b.Data))
	case "tool_use":
		args := string(b.Input)
		if args == "{}" || args == "null" {
			args = "" // the arguments follow in fragments
		}
		return d.parts.AddCall(n, string(b.ID), b.Name, args)
	}
	return nil
}

func (d *decoder) applyDelta(n int, delta blockDelta) error {
	switch delta.Type {
	case "text_delta":
		return d.parts.AddText(n, delta.Text)
	case "thinking_delta":
		return d.parts.AddReasoning(n, delta.Thinking)
	case "signature_delta":
		return d.parts.Seal(n, delta.Signature)
	case "input_json_delta":
		return d.parts.AddCall(n, "", "", delta.PartialJSON)
	}
	return nil
}

// updateUsage stores counts, which are totals so far. Counts that an event leaves out
// are zero and do not change the stored value.
func (d *decoder) updateUsage(t tokens) {
	if sum := int(t.InputTokens + t.CacheReadInputTokens + t.CacheCreationInputTokens); sum > 0 {
		d.usage.Input, d.usage.Cached, d.usage.Written = sum, int(t.CacheReadInputTokens), int(t.CacheCreationInputTokens)
	}
	if t.OutputTokens > 0 {
		d.usage.Output = int(t.OutputTokens)
	}
	if n := t.OutputTokensDetails.ThinkingTokens; n > 0 {
		d.usage.Reasoning = int(n)
	}
}

func (d *decoder) buildReply(turn int) llm.Reply {
	stop := llm.StopReason(d.stop)
	switch d.stop {
	case "end_turn", "stop_sequence", "":
		stop = llm.StopEnd
	case "tool_use":
		stop = llm.StopTools
	case "max_tokens", "model_context_window_exceeded":
		stop = llm.StopLength
	case "refusal":
		stop = llm.StopFilter
	}
	message := d.parts.Message(turn, stop)
	return llm.Reply{ID: d.id, Message: message, Usage: d.usage, Stop: stop, Model: d.model}
}
