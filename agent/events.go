package agent

import (
	"encoding/json"
	"time"

	"raddle.dev/llm"
)

// These are the values that the nodes emit while they run, as [graph.ValueEmitted]
// events. They are not emitted again for what an earlier drive recorded. Each
// value marshals to a JSON object with an additional field "type".
type (
	// TextDelta is a piece of the text of a reply.
	TextDelta struct {
		Text string `json:"text"`
	}
	// ReasoningDelta is a piece of the model's reasoning.
	ReasoningDelta struct {
		Text string `json:"text"`
	}
	// ReplyDone says that a reply is complete. It is recorded next.
	ReplyDone struct {
		Message llm.Message    `json:"message"`
		Model   string         `json:"model,omitempty"`
		Usage   llm.Usage      `json:"usage"`
		Stop    llm.StopReason `json:"stop,omitempty"`
		Cost    float64        `json:"cost,omitempty"`   // in the currency of the prices
		Priced  bool           `json:"priced,omitempty"` // reports whether Cost is known
	}
	// ToolStarted says that a call starts. It is not emitted for a call that is
	// refused, names an unknown tool or repeats itself: such a call only has a
	// ToolDone.
	ToolStarted struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	// ToolProgress is the progress of a call, as its tool reports it.
	ToolProgress struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Text string `json:"text"`
	}
	// ToolDone reports the outcome of a call.
	ToolDone struct {
		ID    string        `json:"id"`
		Name  string        `json:"name"`
		Text  string        `json:"text"` // as the model sees it
		Error bool          `json:"error,omitempty"`
		Took  time.Duration `json:"took_ns,omitempty"`
	}
	// WindowShortened says that the beginning of the conversation no longer fits in
	// the window and is left out of requests.
	WindowShortened struct {
		Messages int  `json:"messages"`          // total number of messages left out
		Tokens   int  `json:"tokens"`            // of the request now (estimate)
		Limit    int  `json:"limit"`             // of the window
		Summary  bool `json:"summary,omitempty"` // a summary replaces them
	}
	// SummaryDone says that a model summarized what was too long: messages that did
	// not fit in the window, or the output of an agent.
	SummaryDone struct {
		Model string    `json:"model,omitempty"`
		Usage llm.Usage `json:"usage"`
	}
	// SpendReport is the cost of the turn so far.
	SpendReport struct {
		Spend
	}
	// RetryScheduled says that a request to a model failed and is sent again after a
	// wait. Ignore the events of the reply so far.
	RetryScheduled struct {
		Reason  string        `json:"reason"` // in a few words: "rate limited"
		Wait    time.Duration `json:"wait_ns"`
		Request int           `json:"request"` // the number of the next request; 2 or more
	}
	// ContinuationSent says that a model which stopped early gets a reminder.
	ContinuationSent struct {
		Count int `json:"count"`
		Max   int `json:"max"`
		Open  int `json:"open"` // items that are not done
	}
	// Warning reports a problem that did not stop the run.
	Warning struct {
		Text string `json:"text"`
	}
)

func marshalTyped(name string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"type":"`+name+`"`), ',')
	if len(b) == len("{}") {
		return append(out[:len(out)-1], '}'), nil
	}
	return append(out, b[1:]...), nil
}

// MarshalJSON adds the field "type".
func (v TextDelta) MarshalJSON() ([]byte, error) {
	type plain TextDelta
	return marshalTyped("text_delta", plain(v))
}

// MarshalJSON adds the field "type".
func (v ReasoningDelta) MarshalJSON() ([]byte, error) {
	type plain ReasoningDelta
	return marshalTyped("reasoning_delta", plain(v))
}

// MarshalJSON adds the field "type".
func (v ReplyDone) MarshalJSON() ([]byte, error) {
	type plain ReplyDone
	return marshalTyped("replied", plain(v))
}

// MarshalJSON adds the field "type".
func (v ToolStarted) MarshalJSON() ([]byte, error) {
	type plain ToolStarted
	return marshalTyped("tool_started", plain(v))
}

// MarshalJSON adds the field "type".
func (v ToolProgress) MarshalJSON() ([]byte, error) {
	type plain ToolProgress
	return marshalTyped("tool_progress", plain(v))
}

// MarshalJSON adds the field "type".
func (v ToolDone) MarshalJSON() ([]byte, error) {
	type plain ToolDone
	return marshalTyped("tool_done", plain(v))
}

// MarshalJSON adds the field "type".
func (v WindowShortened) MarshalJSON() ([]byte, error) {
	type plain WindowShortened
	return marshalTyped("shortened", plain(v))
}

// MarshalJSON adds the field "type".
func (v SummaryDone) MarshalJSON() ([]byte, error) {
	type plain SummaryDone
	return marshalTyped("summed", plain(v))
}

// MarshalJSON adds the field "type".
func (v SpendReport) MarshalJSON() ([]byte, error) { return marshalTyped("spending", v.Spend) }

// MarshalJSON adds the field "type".
func (v RetryScheduled) MarshalJSON() ([]byte, error) {
	type plain RetryScheduled
	return marshalTyped("retrying", plain(v))
}

// MarshalJSON adds the field "type".
func (v ContinuationSent) MarshalJSON() ([]byte, error) {
	type plain ContinuationSent
	return marshalTyped("continuing", plain(v))
}

// MarshalJSON adds the field "type".
func (v Warning) MarshalJSON() ([]byte, error) {
	type plain Warning
	return marshalTyped("warning", plain(v))
}
