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

// slotKind is the kind of part that a slot of the assembly contains.
type slotKind int

const (
	nothing slotKind = iota
	textPart
	thoughtPart
	callPart
)

// A decoder reads the lines of one reply.
type decoder struct {
	client *wire.Client
	parts  *wire.Assembly
	model  string
	reason string
	done   bool
	usage  llm.Usage
	slot   int
	last   slotKind // the kind of part in slot
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
		if err := d.parts.AddReasoning(d.nextSlot(thoughtPart), r.Message.Thinking); err != nil {
			return false, err
		}
	}
	if r.Message.Content != "" {
		if err := d.parts.AddText(d.nextSlot(textPart), r.Message.Content); err != nil {
			return false, err
		}
	}
	for _, call := range r.Message.ToolCalls {
		args := string(call.Function.Arguments)
		if args == "null" {
			args = ""
		}
		if err := d.parts.AddCall(d.nextSlot(callPart), string(call.ID), call.Function.Name, args); err != nil {
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

// nextSlot returns the slot for a part: the last one, if it contains text of the same kind.
func (d *decoder) nextSlot(kind slotKind) int {
	if kind != d.last || kind == callPart {
		d.slot++
		d.last = kind
	}
	return d.slot
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
