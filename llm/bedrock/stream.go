package bedrock

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// payload is the data of an event. Which fields it has depends on the name of the event.
type payload struct {
	Index wire.Count `json:"contentBlockIndex"`
	Start struct {
		ToolUse *struct {
			ID   wire.Word `json:"toolUseId"`
			Name string    `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta struct {
		Text    string `json:"text"`
		ToolUse *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Reasoning *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
			Redacted  []byte `json:"redactedContent"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	StopReason wire.Word `json:"stopReason"`
	Usage      *struct {
		Input   wire.Count `json:"inputTokens"`
		Output  wire.Count `json:"outputTokens"`
		Read    wire.Count `json:"cacheReadInputTokens"`
		Written wire.Count `json:"cacheWriteInputTokens"`
	} `json:"usage"`
	Message string `json:"message"` // of an exception
}

// A decoder reads the events of one reply.
type decoder struct {
	client   *wire.Client
	parts    *wire.Assembly
	origin   string
	stop     string
	usage    llm.Usage
	redacted map[int][]byte // what has arrived of encrypted reasoning, by the indexes of its blocks
}

// Complete implements wire.Decoder. The usage follows the stop reason.
func (d *decoder) Complete() bool { return d.stop != "" }

// Event implements wire.Decoder.
func (d *decoder) Event(ev wire.Event) (done bool, err error) {
	var e payload
	if err := d.client.Decode(ev, &e); err != nil {
		return false, err
	}
	if code, failed := strings.CutPrefix(ev.Name, exceptionEvent); failed {
		return false, d.client.RefusedError(classOf(code), code, e.Message)
	}
	if code, failed := strings.CutPrefix(ev.Name, errorEvent); failed {
		return false, d.client.RefusedError(classOf(code), code, e.Message)
	}
	n := int(e.Index)
	switch ev.Name {
	case "contentBlockStart":
		if call := e.Start.ToolUse; call != nil {
			return false, d.parts.AddCall(n, string(call.ID), call.Name, "")
		}
	case "contentBlockDelta":
		return false, d.applyDelta(n, e)
	case "contentBlockStop":
		return false, d.endRedacted(n)
	case "messageStop":
		d.stop = string(e.StopReason)
	case "metadata":
		if u := e.Usage; u != nil {
			d.usage = llm.Usage{
				Input:   int(u.Input + u.Read + u.Written),
				Output:  int(u.Output),
				Cached:  int(u.Read),
				Written: int(u.Written),
			}
		}
		return d.stop != "", nil
	}
	return false, nil
}

func (d *decoder) applyDelta(n int, e payload) error {
	switch delta := e.Delta; {
	case delta.ToolUse != nil:
		return d.parts.AddCall(n, "", "", delta.ToolUse.Input)
	case delta.Reasoning != nil:
		d.redacted[n] = append(d.redacted[n], delta.Reasoning.Redacted...)
		if err := d.parts.AddReasoning(n, delta.Reasoning.Text); err != nil {
			return err
		}
		return d.parts.Seal(n, delta.Reasoning.Signature)
	default:
		return d.parts.AddText(n, delta.Text)
	}
}

// endRedacted adds the encrypted reasoning of a block that has ended, if it has some.
func (d *decoder) endRedacted(n int) error {
	data := d.redacted[n]
	delete(d.redacted, n)
	if len(data) == 0 {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(data)
	return d.parts.AddPart(llm.Reasoning{Signature: text, Redacted: true, Origin: d.origin}, len(text))
}

func (d *decoder) buildReply(turn int, model string) (llm.Reply, error) {
	for _, n := range slices.Sorted(maps.Keys(d.redacted)) {
		if err := d.endRedacted(n); err != nil {
			return llm.Reply{}, err
		}
	}
	stop := llm.StopReason(d.stop)
	switch d.stop {
	case "end_turn", "stop_sequence":
		stop = llm.StopEnd
	case "tool_use":
		stop = llm.StopTools
	case "max_tokens", "model_context_window_exceeded":
		stop = llm.StopLength
	case "guardrail_intervened", "content_filtered":
		stop = llm.StopFilter
	}
	message := d.parts.Message(turn, stop)
	if stop == llm.StopEnd && len(message.ToolCalls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{Message: message, Usage: d.usage, Stop: stop, Model: model}, nil
}
