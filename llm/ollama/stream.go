package ollama

import (
	"encoding/json"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// response is one line of a stream.
type response struct {
	Model   wire.Word `json:"model"`
	Message struct {
		Content   string `json:"content"`
		Thinking  string `json:"thinking"`
		ToolCalls []struct {
			ID       wire.Word `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done       bool       `json:"done"`
	DoneReason wire.Word  `json:"done_reason"`
	Prompt     wire.Count `json:"prompt_eval_count"`
	Eval       wire.Count `json:"eval_count"`
}

// A decoder reads the lines of one reply.
type decoder struct {
	client *wire.Client
	parts  *wire.Assembly
	model  string
	reason string
	done   bool
	usage  llm.Usage
	slots  wire.Slots
}

// Complete implements wire.Decoder.
func (d *decoder) Complete() bool { return d.done }

// Event implements wire.Decoder.
func (d *decoder) Event(ev wire.Event) (done bool, err error) {
	var r response
	if err := d.client.Decode(ev, &r); err != nil {
		return false, err
	}
	if r.Model != "" {
		d.model = string(r.Model)
	}
	if r.Message.Thinking != "" {
		if err := d.parts.AddReasoning(d.slots.Next(wire.ThoughtPart), r.Message.Thinking); err != nil {
			return false, err
		}
	}
	if r.Message.Content != "" {
		if err := d.parts.AddText(d.slots.Next(wire.TextPart), r.Message.Content); err != nil {
			return false, err
		}
	}
	for _, call := range r.Message.ToolCalls {
		args := string(call.Function.Arguments)
		if args == "null" {
			args = ""
		}
		if err := d.parts.AddCall(d.slots.Next(wire.OtherPart), string(call.ID), call.Function.Name, args); err != nil {
			return false, err
		}
	}
	if r.Done {
		d.done = true
		d.reason = string(r.DoneReason)
		d.usage = llm.Usage{Input: int(r.Prompt), Output: int(r.Eval)}
	}
	return d.done, nil
}

func (d *decoder) buildReply(turn int) llm.Reply {
	stop := llm.StopReason(d.reason)
	switch d.reason {
	case "stop", "":
		stop = llm.StopEnd
	case "length":
		stop = llm.StopLength
	}
	m := d.parts.Message(turn, stop)
	if stop == llm.StopEnd && len(m.ToolCalls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{Message: m, Usage: d.usage, Stop: stop, Model: d.model}
}
