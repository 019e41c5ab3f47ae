package agent

import (
	"encoding/json"
	"strings"
	"time"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

// These are the values that the nodes emit while they run, as [graph.ValueEmitted]
// events. They are not emitted again for what an earlier drive recorded. In
// the JSON of the event, each has a member "type".
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
	// ToolOutput is what a call prints while it runs: whole lines. Its outcome repeats them, as far as the tool says.
	ToolOutput struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Text string `json:"text"`
	}
	// ServerStarting says that a node waits for the start of a server of tools, or that the wait is over.
	ServerStarting struct {
		Server string `json:"server"`
		Over   bool   `json:"over,omitempty"` // the server has started, or could not be started
	}
	// ToolDone reports the outcome of a call.
	ToolDone struct {
		ID    string        `json:"id"`
		Name  string        `json:"name"`
		Text  string        `json:"text"` // as the model sees it
		Error bool          `json:"error,omitempty"`
		Took  time.Duration `json:"took_ns,omitempty"`
		// Changes are what the call did to files. Their JSON has no contents.
		Changes []tool.FileChange `json:"changes,omitempty"`
		// Media are the images and files of the outcome, for those who watch the run as it works.
		Media []llm.Part `json:"-"`
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
	// wait, or to another model. Ignore the events of the reply so far.
	RetryScheduled struct {
		Reason  string        `json:"reason"` // in a few words: "rate limited"
		Wait    time.Duration `json:"wait_ns"`
		Request int           `json:"request"`         // the number of the next request; 1: the first one to Model
		Model   string        `json:"model,omitempty"` // the alternative that is asked instead; "": the same model
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

// Notes returns what a person should know about what the provider of the model has done by itself: its searches, and
// the pages on which the text is based. Each is a text of one or more lines.
func (d ReplyDone) Notes() (list []string) {
	for _, p := range d.Message.Parts {
		if item, ok := p.(llm.Item); ok && item.Text != "" {
			list = append(list, strings.Trim(item.Text, "[]"))
		}
	}
	for _, p := range d.Message.Parts {
		text, _ := p.(llm.Text)
		for _, s := range text.Sources {
			list = append(list, strings.TrimSpace("source: "+s.Title+" "+s.URL))
		}
	}
	return list
}

// EventType returns "text_delta".
func (TextDelta) EventType() string { return "text_delta" }

// EventType returns "reasoning_delta".
func (ReasoningDelta) EventType() string { return "reasoning_delta" }

// EventType returns "replied".
func (ReplyDone) EventType() string { return "replied" }

// EventType returns "tool_started".
func (ToolStarted) EventType() string { return "tool_started" }

// EventType returns "tool_progress".
func (ToolProgress) EventType() string { return "tool_progress" }

// EventType returns "tool_output".
func (ToolOutput) EventType() string { return "tool_output" }

// EventType returns "server_starting".
func (ServerStarting) EventType() string { return "server_starting" }

// EventType returns "tool_done".
func (ToolDone) EventType() string { return "tool_done" }

// EventType returns "shortened".
func (WindowShortened) EventType() string { return "shortened" }

// EventType returns "summed".
func (SummaryDone) EventType() string { return "summed" }

// EventType returns "retrying".
func (RetryScheduled) EventType() string { return "retrying" }

// EventType returns "continuing".
func (ContinuationSent) EventType() string { return "continuing" }

// EventType returns "warning".
func (Warning) EventType() string { return "warning" }

// EventType returns "spending".
func (SpendReport) EventType() string { return "spending" }
