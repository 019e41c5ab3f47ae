package agent

import (
	"encoding/json"
	"time"

	"raddle.dev/llm"
)

// The values that the nodes send while they run, as [graph.Emitted] events. What
// an earlier drive has recorded is not sent again. They marshal to JSON with a
// "type" beside their fields.
type (
	// TextDelta is a piece of the text of a reply.
	TextDelta struct {
		Text string `json:"text"`
	}
	// ReasoningDelta is a piece of what the model thinks.
	ReasoningDelta struct {
		Text string `json:"text"`
	}
	// Replied says that a reply is complete and recorded next.
	Replied struct {
		Message llm.Message    `json:"message"`
		Model   string         `json:"model,omitempty"`
		Usage   llm.Usage      `json:"usage"`
		Stop    llm.StopReason `json:"stop,omitempty"`
		Cost    float64        `json:"cost,omitempty"`   // in the currency of the prices
		Priced  bool           `json:"priced,omitempty"` // Cost is known
	}
	// ToolStarted says that a call begins. A call that is refused, is no call of a
	// tool, or repeats itself is not begun: there is only its ToolDone.
	ToolStarted struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	// ToolProgress says how far a call is, as its tool reports it.
	ToolProgress struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Text string `json:"text"`
	}
	// ToolDone says what has become of a call.
	ToolDone struct {
		ID    string        `json:"id"`
		Name  string        `json:"name"`
		Text  string        `json:"text"` // as the model reads it
		Error bool          `json:"error,omitempty"`
		Took  time.Duration `json:"took_ns,omitempty"`
	}
	// Shortened says that the beginning of the conversation no longer fits the
	// window and is left out of requests.
	Shortened struct {
		Messages int  `json:"messages"`          // left out, in all
		Tokens   int  `json:"tokens"`            // of the request now, estimated
		Limit    int  `json:"limit"`             // of the window
		Summary  bool `json:"summary,omitempty"` // a summary stands in their place
	}
	// Summed says that a model has summed up what was too long: messages that the
	// window had no room for, or an agent's output.
	Summed struct {
		Model string    `json:"model,omitempty"`
		Usage llm.Usage `json:"usage"`
	}
	// Spending is what the turn has cost so far.
	Spending struct {
		Spend
	}
	// Retrying says that a request to a model has failed and is sent again after a
	// wait. What was emitted of its reply does not count.
	Retrying struct {
		Reason  string        `json:"reason"` // in a few words: "rate limited"
		Wait    time.Duration `json:"wait_ns"`
		Request int           `json:"request"` // the number of the request that will be sent; 2 or more
	}
	// Continuing says that a model which stopped early is sent on.
	Continuing struct {
		Count int `json:"count"`
		Max   int `json:"max"`
		Open  int `json:"open"` // items not done
	}
	// Warning is something that went wrong and was tolerated.
	Warning struct {
		Text string `json:"text"`
	}
)

func typed(name string, v any) ([]byte, error) {
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

// MarshalJSON adds the type.
func (v TextDelta) MarshalJSON() ([]byte, error) {
	type plain TextDelta
	return typed("text_delta", plain(v))
}

// MarshalJSON adds the type.
func (v ReasoningDelta) MarshalJSON() ([]byte, error) {
	type plain ReasoningDelta
	return typed("reasoning_delta", plain(v))
}

// MarshalJSON adds the type.
func (v Replied) MarshalJSON() ([]byte, error) { type plain Replied; return typed("replied", plain(v)) }

// MarshalJSON adds the type.
func (v ToolStarted) MarshalJSON() ([]byte, error) {
	type plain ToolStarted
	return typed("tool_started", plain(v))
}

// MarshalJSON adds the type.
func (v ToolProgress) MarshalJSON() ([]byte, error) {
	type plain ToolProgress
	return typed("tool_progress", plain(v))
}

// MarshalJSON adds the type.
func (v ToolDone) MarshalJSON() ([]byte, error) {
	type plain ToolDone
	return typed("tool_done", plain(v))
}

// MarshalJSON adds the type.
func (v Shortened) MarshalJSON() ([]byte, error) {
	type plain Shortened
	return typed("shortened", plain(v))
}

// MarshalJSON adds the type.
func (v Summed) MarshalJSON() ([]byte, error) { type plain Summed; return typed("summed", plain(v)) }

// MarshalJSON adds the type.
func (v Spending) MarshalJSON() ([]byte, error) { return typed("spending", v.Spend) }

// MarshalJSON adds the type.
func (v Retrying) MarshalJSON() ([]byte, error) {
	type plain Retrying
	return typed("retrying", plain(v))
}

// MarshalJSON adds the type.
func (v Continuing) MarshalJSON() ([]byte, error) {
	type plain Continuing
	return typed("continuing", plain(v))
}

// MarshalJSON adds the type.
func (v Warning) MarshalJSON() ([]byte, error) { type plain Warning; return typed("warning", plain(v)) }
