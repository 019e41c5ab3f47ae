package gemini

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"google.golang.org/genai"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// A decoder reads the responses that a stream is made of.
type decoder struct {
	client *wire.Client
	parts  *wire.Assembly
	id     string
	model  string
	finish genai.FinishReason
	usage  llm.Usage
	slot   int
	last   part // what slot holds
}

// part is what a slot of the assembly may go on with.
type part int

const (
	nothing part = iota
	textPart
	thoughtPart
	otherPart
)

// A chunk is a response with the arguments of its calls as they came.
type chunk struct {
	genai.GenerateContentResponse
	args []json.RawMessage // by the index of the part, of the first candidate
}

// UnmarshalJSON reads the response twice, since the SDK's type rounds numbers.
func (c *chunk) UnmarshalJSON(data []byte) error {
	var exact struct {
		Candidates []struct {
			Content struct {
				Parts []struct {
					FunctionCall struct{ Args json.RawMessage }
				}
			}
		}
	}
	if err := json.Unmarshal(data, &exact); err != nil {
		return err
	}
	if len(exact.Candidates) > 0 {
		for _, p := range exact.Candidates[0].Content.Parts {
			c.args = append(c.args, p.FunctionCall.Args)
		}
	}
	return json.Unmarshal(data, &c.GenerateContentResponse)
}

func (d *decoder) read(r io.Reader) error {
	for ev, err := range d.client.Events(r) {
		if d.finish != "" && wire.IsFailure(err) {
			return nil // the reply is complete
		}
		if err != nil {
			return err
		}
		var c chunk
		if err := d.client.Decode(ev, &c); err != nil {
			return err
		}
		if err := d.chunk(c); err != nil {
			return err
		}
	}
	if d.finish == "" {
		return d.client.EndedEarly()
	}
	return nil
}

func (d *decoder) chunk(c chunk) error {
	if c.ResponseID != "" {
		d.id = c.ResponseID
	}
	if c.ModelVersion != "" {
		d.model = c.ModelVersion
	}
	if u := c.UsageMetadata; u != nil {
		d.usage = llm.Usage{
			Input:     int(u.PromptTokenCount),
			Output:    int(u.CandidatesTokenCount + u.ThoughtsTokenCount),
			Cached:    int(u.CachedContentTokenCount),
			Reasoning: int(u.ThoughtsTokenCount),
		}
	}
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" {
		return d.client.Refused(llm.BadRequest, string(f.BlockReason), "the prompt was blocked ("+string(f.BlockReason)+") "+f.BlockReasonMessage)
	}
	if len(c.Candidates) == 0 || c.Candidates[0] == nil {
		return nil
	}
	candidate := c.Candidates[0] // only one is ever asked for
	if candidate.Content != nil {
		for i, p := range candidate.Content.Parts {
			if err := d.part(p, c.args[i]); err != nil {
				return err
			}
		}
	}
	switch f := candidate.FinishReason; f {
	case "", genai.FinishReasonUnspecified, genai.FinishReasonContinuation:
	case genai.FinishReasonMalformedFunctionCall:
		return d.client.Refused(llm.Server, string(f), "the model wrote a tool call that is not valid: "+candidate.FinishMessage)
	default:
		d.finish = f
	}
	return nil
}

func (d *decoder) part(p *genai.Part, args json.RawMessage) error {
	switch {
	case p == nil:
	case p.FunctionCall != nil:
		n := d.next(otherPart)
		if err := d.parts.Call(n, p.FunctionCall.ID, p.FunctionCall.Name, string(args)); err != nil {
			return err
		}
		return d.parts.Seal(n, base64.StdEncoding.EncodeToString(p.ThoughtSignature))
	case p.InlineData != nil:
		d.next(otherPart)
		if strings.HasPrefix(p.InlineData.MIMEType, "image/") {
			return d.parts.Part(llm.Image{MIME: p.InlineData.MIMEType, Data: p.InlineData.Data}, len(p.InlineData.Data))
		}
		return d.parts.Part(llm.File{Name: p.InlineData.DisplayName, MIME: p.InlineData.MIMEType, Data: p.InlineData.Data}, len(p.InlineData.Data))
	case p.Text == "":
	case p.Thought:
		return d.parts.Reasoning(d.next(thoughtPart), p.Text)
	default:
		return d.parts.Text(d.next(textPart), p.Text)
	}
	return nil
}

// next returns the slot for a part: the last one, if it holds text of the same
// sort.
func (d *decoder) next(p part) int {
	if p != d.last || p == otherPart {
		d.slot++
		d.last = p
	}
	return d.slot
}

func (d *decoder) reply(turn int) (llm.Reply, error) {
	stop := llm.StopReason(d.finish)
	switch d.finish {
	case genai.FinishReasonStop:
		stop = llm.StopEnd
	case genai.FinishReasonMaxTokens:
		stop = llm.StopLength
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonLanguage, genai.FinishReasonBlocklist,
		genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonImageSafety,
		genai.FinishReasonImageProhibitedContent, genai.FinishReasonImageRecitation:
		stop = llm.StopFilter
	}
	message, err := d.parts.Message(turn, stop)
	if err != nil {
		return llm.Reply{}, err
	}
	if stop == llm.StopEnd && len(message.ToolCalls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{ID: d.id, Message: message, Usage: d.usage, Stop: stop, Model: d.model}, nil
}
