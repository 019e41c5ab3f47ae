package anthropic

import (
	"encoding/json"
	"strings"

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
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        blockDelta      `json:"delta"`
	Usage        tokens          `json:"usage"`
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
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	Signature   string          `json:"signature"`
	PartialJSON string          `json:"partial_json"`
	StopReason  wire.Word       `json:"stop_reason"`
	Citation    json.RawMessage `json:"citation"`
}

type tokens struct {
	InputTokens              wire.Count `json:"input_tokens"`
	CacheReadInputTokens     wire.Count `json:"cache_read_input_tokens"`
	CacheCreationInputTokens wire.Count `json:"cache_creation_input_tokens"`
	OutputTokens             wire.Count `json:"output_tokens"`
	ServerToolUse            struct {
		WebSearchRequests wire.Count `json:"web_search_requests"`
	} `json:"server_tool_use"`
	OutputTokensDetails struct {
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
	before llm.Usage // of the parts of the reply before pauses

	first     int                       // slot of the first block after a pause
	slots     int                       // that were used
	kept      map[int]*keptBlock        // by slot
	order     []int                     // the slots of kept
	citations map[int][]json.RawMessage // of texts, by slot
}

// A keptBlock is a block that only Anthropic understands, such as a call of one of its own tools or its outcome.
type keptBlock struct {
	start json.RawMessage
	input strings.Builder // fragments of its input
}

// pauseTurn is the reason of a reply that is not over.
const pauseTurn = "pause_turn"

// startAgain prepares the decoder for the rest of a reply that was paused.
func (d *decoder) startAgain() {
	d.first = d.slots
	d.stop = ""
	d.before = d.before.Add(d.usage)
	d.usage = llm.Usage{}
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
	n := d.first + int(e.Index)
	switch e.Type {
	case "message_start":
		d.id = string(e.Message.ID)
		d.model = string(e.Message.Model)
		d.updateUsage(e.Message.Usage)
	case "content_block_start":
		d.slots = max(d.slots, n+1)
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

func (d *decoder) startBlock(n int, raw json.RawMessage) error {
	var b blockStart
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return d.client.MalformedError("the stream contains a block of an unknown form", err)
	}
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
	case "":
		return nil
	}
	d.kept[n] = &keptBlock{start: raw}
	d.order = append(d.order, n)
	return d.parts.SetPart(n, llm.Item{Kind: b.Type, Raw: raw, Origin: d.origin}, len(raw))
}

func (d *decoder) applyDelta(n int, delta blockDelta) error {
	switch delta.Type {
	case "text_delta":
		return d.parts.AddText(n, delta.Text)
	case "thinking_delta":
		return d.parts.AddReasoning(n, delta.Thinking)
	case "signature_delta":
		return d.parts.Seal(n, delta.Signature)
	case "citations_delta":
		return d.addCitation(n, delta.Citation)
	case "input_json_delta":
		if b := d.kept[n]; b != nil {
			b.input.WriteString(delta.PartialJSON)
			return nil
		}
		return d.parts.AddCall(n, "", "", delta.PartialJSON)
	}
	return nil
}

// addCitation adds a citation to the text of a slot.
func (d *decoder) addCitation(n int, raw json.RawMessage) error {
	d.citations[n] = append(d.citations[n], raw)
	var at struct{ URL, Title string }
	_ = json.Unmarshal(raw, &at) // it is kept in any form
	if err := d.parts.AddSource(n, llm.Source{URL: at.URL, Title: at.Title}); err != nil {
		return err
	}
	extra, err := json.Marshal(object{"citations": d.citations[n]})
	if err != nil {
		return d.client.MalformedError("the stream contains a citation of an unknown form", err)
	}
	return d.parts.SetExtra(n, extra)
}

// finishKept completes the blocks that are kept, whose input has come in fragments.
func (d *decoder) finishKept() {
	for _, n := range d.order {
		b := d.kept[n]
		var members map[string]json.RawMessage
		if input := b.input.String(); input != "" && json.Valid([]byte(input)) && json.Unmarshal(b.start, &members) == nil {
			members["input"] = json.RawMessage(input)
			b.start, _ = json.Marshal(members) // it was JSON
			b.input.Reset()
		}
		var call struct {
			Type, Name string
			Input      json.RawMessage
		}
		_ = json.Unmarshal(b.start, &call) // it was read before
		_ = d.parts.SetPart(n, llm.Item{
			Kind:   call.Type,
			Text:   wire.DescribeInput(call.Name, call.Input),
			Raw:    b.start,
			Origin: d.origin,
		}, 0) // it has room
	}
}

// updateUsage stores counts, which are totals so far. Counts that an event leaves out
// are zero and do not change the stored value.
func (d *decoder) updateUsage(t tokens) {
	if sum := int(t.InputTokens + t.CacheReadInputTokens + t.CacheCreationInputTokens); sum > 0 {
		d.usage.Input = sum
		d.usage.Cached = int(t.CacheReadInputTokens)
		d.usage.Written = int(t.CacheCreationInputTokens)
	}
	if t.OutputTokens > 0 {
		d.usage.Output = int(t.OutputTokens)
	}
	if n := t.ServerToolUse.WebSearchRequests; n > 0 {
		d.usage.Searches = int(n)
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
	d.finishKept()
	message := d.parts.Message(turn, stop)
	return llm.Reply{ID: d.id, Message: message, Usage: d.before.Add(d.usage), Stop: stop, Model: d.model}
}
