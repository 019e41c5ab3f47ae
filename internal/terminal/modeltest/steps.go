package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/provider"
	"raddle.dev/llm"
)

// A Step is one thing that agents need from a model.
type Step struct {
	Name  string // one word: the column of the table
	Title string // for people
	Means string // what it means for agents if it does not work
	After string // the name of the step without which this one makes no sense; "": none

	tools    bool                         // it is for models that can call tools
	claims   func(t *provider.Trial) bool // whether the catalogue says that the model can do it; nil: every model can
	requests int                          // how many it sends at most
	media    int                          // tokens of what is attached, at most
	play     func(ctx context.Context, s *dialogue) verdict
}

// A verdict is what a step has found.
type verdict struct {
	detail string // for people; what came
	fault  string // why it does not work; "": it works, unless there is an error
	err    error  // of the provider
	minor  bool   // agents can do without it
}

// ListSteps returns the steps in their order.
func ListSteps() []Step {
	return []Step{
		{
			Name:     "answer",
			Title:    "streamed answer",
			Means:    "agents cannot use this model",
			requests: 1,
			play:     playAnswer,
		},
		{
			Name:     "tool",
			Title:    "tool call",
			Means:    "tools do not work with this model: an agent can only talk with it",
			After:    "answer",
			tools:    true,
			requests: 1,
			play:     playTool,
		},
		{
			Name:     "parallel",
			Title:    "two calls at once",
			Means:    "an agent ends with this error when the model calls two tools at once",
			After:    "tool",
			tools:    true,
			requests: 2,
			play:     playParallel,
		},
		{
			Name:     "round",
			Title:    "second round",
			Means:    "an agent ends with this error after its first tool call",
			After:    "tool",
			tools:    true,
			requests: 1,
			play:     playRound,
		},
		{
			Name:     "moved",
			Title:    "another's history",
			Means:    "a conversation that another model began cannot be continued with this one",
			After:    "tool",
			tools:    true,
			requests: 1,
			play:     playMoved,
		},
		{
			Name:     "picture",
			Title:    "picture",
			Means:    "do not attach pictures for this model",
			After:    "answer",
			claims:   claimsMedia("image"),
			requests: 1,
			media:    2_000,
			play:     playPicture,
		},
		{
			Name:     "pdf",
			Title:    "PDF",
			Means:    "do not attach PDFs for this model; give it their text",
			After:    "answer",
			claims:   claimsMedia("pdf"),
			requests: 1,
			media:    4_000,
			play:     playDocument,
		},
		{
			Name:     "schema",
			Title:    "structured answer",
			Means:    "an agent with an output schema ends with this error: ask for JSON in the prompt",
			After:    "answer",
			claims:   func(t *provider.Trial) bool { return t.Schemas },
			requests: 1,
			play:     playSchema,
		},
		{
			Name:     "limit",
			Title:    "limit of a reply",
			Means:    "max_tokens does not end a reply",
			After:    "answer",
			requests: 1,
			play:     playLimit,
		},
		{
			Name:  "usage",
			Title: "tokens counted",
			Means: "limits of costs and of the window count nothing",
			After: "answer",
			play:  judgeUsage,
		},
	}
}

// claimsMedia returns whether the catalogue says that a model takes a kind of media.
func claimsMedia(kind string) func(t *provider.Trial) bool {
	return func(t *provider.Trial) bool { return slices.Contains(t.Media, kind) }
}

// mostReply is the limit of a reply in tokens: what models think before a few words fits in it.
const mostReply = 4_096

const instructions = "A program tests you. Do exactly what the message says, and write nothing else."

// weatherTool is the one tool of the conversation.
var weatherTool = llm.ToolSpec{
	Name:        "weather",
	Description: "Returns the weather of a city.",
	Schema:      json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"name of the city"}},"required":["city"]}`),
}

// newRequest returns a request with one message.
func newRequest(parts ...llm.Part) llm.Request {
	return llm.Request{
		System:    instructions,
		MaxTokens: mostReply,
		Messages:  []llm.Message{{Role: llm.RoleUser, Parts: parts}},
	}
}

func (s *dialogue) newToolRequest(prompt string) llm.Request {
	r := newRequest(llm.Text{Text: prompt})
	r.Tools, r.Effort = []llm.ToolSpec{weatherTool}, s.target.chooseEffort()
	if r.Effort != "" {
		r.MaxTokens *= 2 // some wires count thoughts that are limited apart
	}
	return r
}

// continueWith returns the request that follows an exchange.
func (e exchange) continueWith(messages ...llm.Message) llm.Request {
	r := e.request
	r.Messages = slices.Concat(r.Messages, []llm.Message{e.reply.Message}, messages)
	return r
}

// judgeText returns the text of a reply, or what is wrong with it.
func judgeText(e exchange, err error) verdict {
	if err != nil {
		return verdict{err: err}
	}
	if flaw, useless := e.reply.DescribeFlaw(); flaw != "" && useless {
		return verdict{fault: "the reply " + flaw}
	}
	return verdict{detail: quoteShort(e.reply.Text())}
}

// quoteShort returns the beginning of a text in quotes.
func quoteShort(text string) string {
	return `"` + wording.CutText(strings.Join(strings.Fields(text), " "), 40, "…") + `"`
}

func playAnswer(ctx context.Context, s *dialogue) verdict {
	e, err := s.ask(ctx, newRequest(llm.Text{Text: "Answer with the word: violet"}))
	v := judgeText(e, err)
	if v.err == nil && v.fault == "" && e.deltas == 0 {
		v.fault = "the text did not come as a stream"
	}
	return v
}

func playTool(ctx context.Context, s *dialogue) verdict {
	e, err := s.ask(ctx, s.newToolRequest("Call the tool weather for the city Brno."))
	if err != nil {
		return verdict{err: err}
	}
	s.first = e
	if fault := judgeCalls(e.reply, 1); fault != "" {
		return verdict{fault: fault}
	}
	detail := "without reasoning"
	if hasReasoning(e.reply) {
		detail = "with reasoning"
	}
	if e.request.Effort != "" {
		detail += ", at effort " + e.request.Effort
	}
	return verdict{detail: detail}
}

// judgeCalls returns what is wrong with the calls of a reply, "" if there are at least some calls of the tool with its
// argument.
func judgeCalls(r llm.Reply, least int) string {
	calls := r.Message.ToolCalls()
	for _, c := range calls {
		var args struct{ City string }
		if c.Name != weatherTool.Name || json.Unmarshal(c.Args, &args) != nil || args.City == "" {
			return fmt.Sprintf("the call %s %s is none of the tool %s", c.Name, wording.CutText(string(c.Args), 40, "…"), weatherTool.Name)
		}
	}
	switch {
	case len(calls) == 0 && r.Stop == llm.StopLength:
		return "the reply was cut off before a call"
	case len(calls) == 0:
		return "the model answered " + quoteShort(r.Text()) + " and called nothing"
	case len(calls) < least:
		return "the model calls one tool at a time"
	}
	return ""
}

func playParallel(ctx context.Context, s *dialogue) verdict {
	e, err := s.ask(ctx, s.newToolRequest("Call the tool weather for the city Ostrava and for the city Liberec, both in the same reply."))
	if err != nil {
		return verdict{err: err}
	}
	if fault := judgeCalls(e.reply, 2); fault != "" {
		return verdict{fault: fault, minor: true}
	}
	next, err := s.ask(ctx, e.continueWith(answerCalls(e.reply.Message)))
	if err != nil {
		return verdict{err: err}
	}
	if flaw, useless := next.reply.DescribeFlaw(); useless && flaw != "" {
		return verdict{fault: "after both results the reply " + flaw}
	}
	return verdict{detail: fmt.Sprintf("%d calls and their results", len(e.reply.Message.ToolCalls()))}
}

func playRound(ctx context.Context, s *dialogue) verdict {
	e, err := s.ask(ctx, s.first.continueWith(answerCalls(s.first.reply.Message)))
	if err != nil {
		return verdict{err: err}
	}
	if flaw, useless := e.reply.DescribeFlaw(); useless && flaw != "" {
		return verdict{fault: "after the result the reply " + flaw}
	}
	if err := checkBeginning(s.first.body, e.body); err != nil {
		return verdict{fault: err.Error()}
	}
	if names := findReturned(s.first.body, e.body); len(names) > 0 {
		return verdict{detail: reasoningBack + strings.Join(names, ", ")}
	}
	if hasReasoning(s.first.reply) {
		return verdict{detail: "reasoning does not go back"}
	}
	return verdict{detail: "there was no reasoning"}
}

// reasoningBack is the beginning of the detail about reasoning that goes back.
const reasoningBack = "reasoning goes back as "

// playMoved continues a conversation of another model, whose call has an id in the form of OpenAI and no reasoning.
func playMoved(ctx context.Context, s *dialogue) verdict {
	r := s.newToolRequest("Call the tool weather for the city Olomouc.")
	const id = "call_4fT9bQ2mXo7Zc1Lr8KdYw3Ha"
	call := llm.Message{
		Role:  llm.RoleAssistant,
		Parts: []llm.Part{llm.ToolCall{ID: id, Name: weatherTool.Name, Args: json.RawMessage(`{"city":"Olomouc"}`)}},
	}
	r.Messages = append(r.Messages, call, answerCalls(call), llm.User("Answer with the word: amber"))
	return judgeText(s.ask(ctx, r))
}

func playPicture(ctx context.Context, s *dialogue) verdict {
	e, err := s.ask(ctx, newRequest(llm.Text{Text: "Answer with the colour of the picture, in one English word."}, llm.Image{
		MIME: "image/png",
		Data: drawPicture(),
	}))
	return judgeSeen(judgeText(e, err), e, pictureColour, "the picture is "+pictureColour)
}

func playDocument(ctx context.Context, s *dialogue) verdict {
	file := llm.File{Name: "word.pdf", MIME: "application/pdf", Data: writeDocument()}
	e, err := s.ask(ctx, newRequest(llm.Text{Text: "Answer with the word that is written in the document."}, file))
	return judgeSeen(judgeText(e, err), e, documentWord, "the document says "+documentWord)
}

// judgeSeen adds whether a reply has a word of what was attached.
func judgeSeen(v verdict, e exchange, word, truth string) verdict {
	if v.err == nil && v.fault == "" && !strings.Contains(strings.ToLower(e.reply.Text()), word) {
		return verdict{fault: "the model answered " + v.detail + ", and " + truth}
	}
	return v
}

func playSchema(ctx context.Context, s *dialogue) verdict {
	r := newRequest(llm.Text{Text: "Give the city Brno and the number 7, as JSON with the members city and number."})
	r.Schema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"number":{"type":"integer"}},"required":["city","number"],"additionalProperties":false}`)
	e, err := s.ask(ctx, r)
	v := judgeText(e, err)
	if v.err != nil || v.fault != "" {
		return v
	}
	var answer struct {
		City   *string
		Number *int
	}
	if json.Unmarshal([]byte(e.reply.Text()), &answer) != nil || answer.City == nil || answer.Number == nil {
		return verdict{fault: "the model answered " + v.detail + ", which the schema forbids"}
	}
	return v
}

func playLimit(ctx context.Context, s *dialogue) verdict {
	r := newRequest(llm.Text{Text: "Count from one to five hundred, all numbers in words."})
	r.MaxTokens = leastReply
	e, err := s.ask(ctx, r)
	switch {
	case err != nil:
		return verdict{err: err}
	case e.reply.Stop != llm.StopLength:
		return verdict{fault: fmt.Sprintf("a reply with at most %d tokens ended with %q, not at its limit", leastReply, e.reply.Stop)}
	}
	return verdict{detail: fmt.Sprintf("cut off at %d tokens", leastReply)}
}

// leastReply is the smallest limit of a reply that every wire takes.
const leastReply = 16

// judgeUsage judges the tokens that the replies so far have counted.
func judgeUsage(_ context.Context, s *dialogue) verdict {
	u := s.usage
	if u.Input == 0 || u.Output == 0 {
		return verdict{fault: "the server counts no tokens"}
	}
	parts := []string{fmt.Sprintf("%d in", u.Input), fmt.Sprintf("%d out", u.Output)}
	for _, part := range []struct {
		count int
		name  string
	}{{u.Cached, "cached"}, {u.Written, "written to a cache"}, {u.Reasoning, "of reasoning"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.name))
		}
	}
	return verdict{detail: strings.Join(parts, ", ")}
}
