package gemini

import (
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
		Content       content   `json:"content"`
		FinishReason  string    `json:"finishReason"`
		FinishMessage wire.Word `json:"finishMessage"`
	} `json:"candidates"`
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
	parts  *wire.Assembly
	id     string
	model  string
	finish string
	usage  llm.Usage
	slots  wire.Slots
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
	for _, p := range candidate.Content.Parts {
		if err := d.applyPart(p); err != nil {
			return err
		}
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

func (d *decoder) applyPart(p *part) (err error) {
	switch {
	case p == nil:
		return nil
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
		return d.parts.AddPart(llm.File{Name: media.DisplayName, MIME: media.MIMEType, Data: media.Data}, len(media.Data))
	case p.Text == "":
	case p.Thought:
		err = d.parts.AddReasoning(d.slots.Next(wire.ThoughtPart), p.Text)
	default:
		err = d.parts.AddText(d.slots.Next(wire.TextPart), p.Text)
	}
	if err != nil || p.ThoughtSignature == "" {
		return err
	}
	return d.parts.Seal(d.slots.Next(wire.OtherPart), p.ThoughtSignature) // the signature of the text before it
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
