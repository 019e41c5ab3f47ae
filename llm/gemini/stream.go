package gemini

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// response is one event of a stream.
type response struct {
	ResponseID     wire.Word `json:"responseId"`
	ModelVersion   wire.Word `json:"modelVersion"`
	UsageMetadata  *tokens   `json:"usageMetadata"`
	PromptFeedback struct {
		BlockReason        string    `json:"blockReason"`
		BlockReasonMessage wire.Word `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Candidates []struct {
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
		FinishReason  string          `json:"finishReason"`
		FinishMessage wire.Word       `json:"finishMessage"`
		Grounding     json.RawMessage `json:"groundingMetadata"`
	} `json:"candidates"`
}

// grounding says on what a reply is based.
type grounding struct {
	WebSearchQueries []string `json:"webSearchQueries"`
	GroundingChunks  []struct {
		Web struct {
			URI   string `json:"uri"`
			Title string `json:"title"`
		} `json:"web"`
	} `json:"groundingChunks"`
}

type tokens struct {
	PromptTokenCount        wire.Count `json:"promptTokenCount"`
	CandidatesTokenCount    wire.Count `json:"candidatesTokenCount"`
	ThoughtsTokenCount      wire.Count `json:"thoughtsTokenCount"`
	CachedContentTokenCount wire.Count `json:"cachedContentTokenCount"`
}

// A decoder reads the responses of one stream.
type decoder struct {
	client *wire.Client
	origin string
	parts  *wire.Assembly
	id     string
	model  string
	finish string
	usage  llm.Usage
	slots  wire.Slots

	text    int             // the slot of the last text
	grounds json.RawMessage // the last grounding that came: each one has what those before it had
}

// Complete implements wire.Decoder. The usage arrives together with the finish
// reason.
func (d *decoder) Complete() bool { return d.finish != "" }

// Event implements wire.Decoder.
func (d *decoder) Event(ev wire.Event) (done bool, err error) {
	var r response
	if err := d.client.Decode(ev, &r); err != nil {
		return false, err
	}
	return false, d.applyResponse(r)
}

func (d *decoder) applyResponse(r response) error {
	if r.ResponseID != "" {
		d.id = string(r.ResponseID)
	}
	if r.ModelVersion != "" {
		d.model = string(r.ModelVersion)
	}
	if u := r.UsageMetadata; u != nil {
		d.usage = llm.Usage{
			Input:     int(u.PromptTokenCount),
			Output:    int(u.CandidatesTokenCount + u.ThoughtsTokenCount),
			Cached:    int(u.CachedContentTokenCount),
			Reasoning: int(u.ThoughtsTokenCount),
		}
	}
	if f := r.PromptFeedback; f.BlockReason != "" {
		return d.client.RefusedError(llm.BadRequest, f.BlockReason, "the prompt was blocked ("+f.BlockReason+") "+string(f.BlockReasonMessage))
	}
	if len(r.Candidates) == 0 {
		return nil
	}
	candidate := r.Candidates[0] // only one is ever requested
	for _, raw := range candidate.Content.Parts {
		if err := d.applyPart(raw); err != nil {
			return err
		}
	}
	if len(candidate.Grounding) > 0 {
		d.grounds = candidate.Grounding
	}
	switch f := candidate.FinishReason; f {
	case "", "FINISH_REASON_UNSPECIFIED", "CONTINUATION":
	case "MALFORMED_FUNCTION_CALL":
		return d.client.RefusedError(llm.Server, f, "the model wrote a tool call that is not valid: "+string(candidate.FinishMessage))
	default:
		d.finish = f
	}
	return nil
}

func (d *decoder) applyPart(raw json.RawMessage) (err error) {
	var p *part
	if err := json.Unmarshal(raw, &p); err != nil {
		return d.client.MalformedError("the stream contains a part of an unknown form", err)
	}
	switch {
	case p == nil:
		return nil
	case p.isOther():
		kind, text := describePart(raw)
		if kind == "" {
			return nil
		}
		d.slots.Next(wire.OtherPart)
		return d.parts.AddPart(llm.Item{Kind: kind, Text: text, Raw: raw, Origin: d.origin}, len(raw))
	case p.FunctionCall != nil:
		n := d.slots.Next(wire.OtherPart)
		args := string(p.FunctionCall.Args)
		if args == "null" {
			args = ""
		}
		if err := d.parts.AddCall(n, p.FunctionCall.ID, p.FunctionCall.Name, args); err != nil {
			return err
		}
		return d.parts.Seal(n, p.ThoughtSignature)
	case p.InlineData != nil:
		d.slots.Next(wire.OtherPart)
		media := p.InlineData
		if strings.HasPrefix(media.MIMEType, "image/") {
			return d.parts.AddPart(llm.Image{MIME: media.MIMEType, Data: media.Data}, len(media.Data))
		}
		return d.parts.AddPart(llm.File{
			Name: media.DisplayName,
			MIME: media.MIMEType,
			Data: media.Data,
		}, len(media.Data))
	case p.Text == "":
	case p.Thought:
		err = d.parts.AddReasoning(d.slots.Next(wire.ThoughtPart), p.Text)
	default:
		d.text = d.slots.Next(wire.TextPart)
		err = d.parts.AddText(d.text, p.Text)
	}
	if err != nil || p.ThoughtSignature == "" {
		return err
	}
	return d.parts.Seal(d.slots.Next(wire.OtherPart), p.ThoughtSignature) // the signature of the text before it
}

// isOther reports whether a part of a reply has nothing that raddle understands. A signature without a text is that of
// the text before it.
func (p *part) isOther() bool {
	return p.FunctionCall == nil && p.InlineData == nil && p.Text == "" && !p.Thought && p.ThoughtSignature == "" || p.ToolCall != nil || p.ToolResponse != nil || p.ExecutableCode != nil
}

// describePart returns the name of a part that only Google understands, "" if it is empty, and what a person should
// know about it.
func describePart(raw json.RawMessage) (kind, text string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return "", ""
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != "thoughtSignature" && name != "thought" && name != "text" {
			kind = name
		}
	}
	var p struct {
		ExecutableCode      struct{ Code string }
		CodeExecutionResult struct{ Output string }
		ToolCall            struct {
			ToolType string
			Args     struct {
				Queries []string
				URLs    []string
			}
		}
	}
	_ = json.Unmarshal(raw, &p) // another form says less
	switch {
	case kind == "executableCode":
		text = wire.DescribeCode(p.ExecutableCode.Code)
	case kind == "codeExecutionResult" && p.CodeExecutionResult.Output != "":
		text = "[It returned: " + strings.TrimSpace(p.CodeExecutionResult.Output) + "]"
	case kind == "toolCall" && len(p.ToolCall.Args.Queries) > 0:
		text = wire.DescribeSearch(p.ToolCall.Args.Queries...)
	case kind == "toolCall" && len(p.ToolCall.Args.URLs) > 0:
		text = wire.DescribeFetch(strings.Join(p.ToolCall.Args.URLs, ", "))
	}
	return kind, text
}

// groundingKind is the kind of the item that says on what a reply is based. It is not sent back: the API has no place
// for it.
const groundingKind = "groundingMetadata"

// addGrounding adds the pages on which the last text is based, and the searches that found them.
func (d *decoder) addGrounding() error {
	var g grounding
	if len(d.grounds) == 0 || json.Unmarshal(d.grounds, &g) != nil {
		return nil
	}
	d.usage.Searches = len(g.WebSearchQueries)
	for _, c := range g.GroundingChunks {
		if err := d.parts.AddSource(d.text, llm.Source{URL: c.Web.URI, Title: c.Web.Title}); err != nil {
			return err
		}
	}
	if len(g.WebSearchQueries) == 0 {
		return nil
	}
	return d.parts.AddPart(llm.Item{
		Kind:   groundingKind,
		Text:   wire.DescribeSearch(g.WebSearchQueries...),
		Raw:    d.grounds,
		Origin: d.origin,
	}, len(d.grounds))
}

func (d *decoder) buildReply(turn int) llm.Reply {
	stop := llm.StopReason(d.finish)
	switch d.finish {
	case "STOP":
		stop = llm.StopEnd
	case "MAX_TOKENS":
		stop = llm.StopLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		stop = llm.StopFilter
	}
	message := d.parts.Message(turn, stop)
	if stop == llm.StopEnd && len(message.ToolCalls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{ID: d.id, Message: message, Usage: d.usage, Stop: stop, Model: d.model}
}
