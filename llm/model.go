package llm

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// A Model answers requests. Implementations must be safe for concurrent use.
type Model interface {
	// Stream sends r and returns the deltas of the answer as they arrive. It
	// does nothing until the caller ranges over the sequence.
	//
	// The sequence can be used once. After a success its last element is a
	// Delta with Done set. After a failure its last element carries the error,
	// and the parts before it are not a reply. Leaving the loop cancels the
	// call and releases its connection before the loop statement ends. When ctx
	// ends, the error satisfies errors.Is with ctx.Err(); a failure of the
	// provider is an *Error.
	Stream(ctx context.Context, r Request) iter.Seq2[Delta, error]
}

// A Request is everything that is sent to a model for one reply. Only Messages
// is required; the zero value of every other field leaves the choice to the
// provider.
type Request struct {
	System      string     `json:"system,omitempty"` // sent unchanged; empty: none
	Messages    []Message  `json:"messages"`         // oldest first
	Tools       []ToolSpec `json:"tools,omitempty"`
	Temperature *float64   `json:"temperature,omitempty"` // nil: not sent
	TopP        *float64   `json:"top_p,omitempty"`       // nil: not sent
	// MaxTokens is the maximum number of tokens in the reply; 0: the provider's limit.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Effort is how hard the model should think, as a value that the provider
	// defines, such as "low" or "high". Empty: not sent.
	Effort string `json:"effort,omitempty"`
	// Serial asks for at most one tool call in a reply, where the provider has a word for it; a caller must make
	// several calls one after the other.
	Serial bool `json:"serial,omitempty"`
	// Provided names tools of the provider that the model may use by itself, such as ToolWebSearch; empty: none. What
	// it did with them is in Items of the reply. A provider that does not have one refuses the request before it is
	// sent.
	Provided []string `json:"provided,omitempty"`
	// Stop lists texts before which the reply ends; empty: not sent. Providers
	// accept four or five, and reasoning models may reject them.
	Stop []string `json:"stop,omitempty"`
	// Schema, if set, is the JSON Schema that the text of the reply must
	// satisfy. Providers enforce it to different degrees: validate the reply.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// These are tools of providers.
const (
	ToolWebSearch       = "web_search"
	ToolWebFetch        = "web_fetch"
	ToolCodeInterpreter = "code_interpreter"
)

// A ToolSpec describes a function that the model may ask to call.
type ToolSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Schema is the JSON Schema of the arguments, which are an object. Empty:
	// no arguments.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Form says in which form the tool changes files, if the request has other tools that do the same in other forms:
	// then a program that knows the model may leave out those in forms that the model was not trained on. Empty: the
	// tool is always offered.
	Form Form `json:"form,omitempty"`
}

// A Form is a way in which models write changes of files.
type Form string

// The forms.
const (
	FormReplace Form = "replace" // the old and the new text
	FormPatch   Form = "patch"   // the envelope of OpenAI's models, which begins with "*** Begin Patch"
	FormDiff    Form = "diff"    // a unified diff
)

// A Delta is one piece of a streaming reply. Exactly one of its fields is set.
type Delta struct {
	Text      string         `json:"text,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	ToolCall  *ToolCallDelta `json:"tool_call,omitempty"`
	Done      *Reply         `json:"done,omitempty"` // the complete reply; always the last delta
}

// A ToolCallDelta is a fragment of a tool call, for display. Fragments of
// several calls may interleave; Index says which call a fragment belongs to.
// The arguments are complete, and known to be valid JSON, only in Delta.Done.
type ToolCallDelta struct {
	Index int    `json:"index"`          // position of the call among the calls of the reply
	ID    string `json:"id,omitempty"`   // set on the first fragment, if the provider sent one
	Name  string `json:"name,omitempty"` // set on the first fragment
	Args  string `json:"args,omitempty"` // the next piece of the JSON text of the arguments
}

// A Reply is a complete answer.
type Reply struct {
	ID      string     `json:"id,omitempty"` // the provider's id of this reply, if it has one
	Message Message    `json:"message"`      // of RoleAssistant; its parts may be empty
	Usage   Usage      `json:"usage,omitzero"`
	Stop    StopReason `json:"stop,omitempty"`
	Model   string     `json:"model,omitempty"` // the model that answered, as the provider names it
}

// Text returns the text parts of the reply in order, without separators.
func (r Reply) Text() string { return r.Message.Text() }

// IsEmpty reports whether the reply has no parts and no token counts. Even a
// model that answers with an empty text has read its prompt, so only a broken
// server sends such a reply.
func (r Reply) IsEmpty() bool { return len(r.Message.Parts) == 0 && r.Usage == (Usage{}) }

// DescribeFlaw says in a few words why the reply is not a complete answer: it is empty,
// contains only reasoning, was withheld or was cut off. If there is no flaw, or
// the reply has tool calls, text is "". useless reports whether the reply has
// no text at all.
func (r Reply) DescribeFlaw() (text string, useless bool) {
	if len(r.Message.ToolCalls()) > 0 {
		return "", false
	}
	useless = strings.TrimSpace(r.Text()) == ""
	reasons := slices.ContainsFunc(r.Message.Parts, func(p Part) bool { _, is := p.(Reasoning); return is })
	switch {
	case r.Stop == StopFilter:
		text = "was withheld: the provider filtered it, or the model refused to answer"
	case r.Stop == StopLength:
		text = "was cut off at its length limit"
	case useless && reasons:
		text = "contains only reasoning, no answer"
	case useless:
		text = "is empty"
	}
	return text, useless
}

// Usage counts tokens. Counts that a provider does not report are zero.
type Usage struct {
	Input  int `json:"input,omitempty"`  // all tokens of the prompt, including cached ones
	Output int `json:"output,omitempty"` // all tokens of the reply, including reasoning
	Cached int `json:"cached,omitempty"` // the part of Input that the provider read from its cache
	// Written is the part of Input that the provider wrote to its cache; no token is in Cached and in Written.
	Written   int `json:"written,omitempty"`
	Reasoning int `json:"reasoning,omitempty"` // the part of Output that was used for reasoning
	Searches  int `json:"searches,omitempty"`  // of the web, by the provider; they are no tokens
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:     u.Input + v.Input,
		Output:    u.Output + v.Output,
		Cached:    u.Cached + v.Cached,
		Written:   u.Written + v.Written,
		Reasoning: u.Reasoning + v.Reasoning,
		Searches:  u.Searches + v.Searches,
	}
}

// A StopReason says why a model stopped. A reason without a constant here has
// the provider's value.
type StopReason string

// These are the reasons that callers act on.
const (
	StopEnd    StopReason = "end"    // the model has finished
	StopTools  StopReason = "tools"  // the model waits for the results of its tool calls
	StopLength StopReason = "length" // a token limit cut the reply off
	StopFilter StopReason = "filter" // the provider withheld the reply, or the model refused
)

// Generate sends r and collects the stream into its reply. It returns the
// first error of the stream, and an *Error of class Network if the stream ends
// without a reply.
func Generate(ctx context.Context, m Model, r Request) (Reply, error) {
	for d, err := range m.Stream(ctx, r) {
		if err != nil {
			return Reply{}, err
		}
		if d.Done != nil {
			return *d.Done, nil
		}
	}
	return Reply{}, &Error{Class: Network, Code: CodeReset, Message: "the stream ended without a reply"}
}

func joinText(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
