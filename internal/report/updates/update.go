package updates

import (
	"encoding/json"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// A RunUpdate is one thing that an event adds: one of the types of this file.
type RunUpdate interface{ isUpdate() }

// TextAdded is a piece of the text of a reply.
type TextAdded struct {
	Reply *Reply
	Text  string // never empty
	First bool   // the text of the reply begins with it: nothing was passed on before, or it was withdrawn
	AtEnd bool   // it comes with the end of the reply: it was not streamed
}

// ReasoningAdded is a piece of what a model thinks before it replies.
type ReasoningAdded struct {
	Reply *Reply
	Text  string // never empty
	AtEnd bool   // it comes with the end of the reply: it was not streamed
}

// ReplyWithdrawn says that a model writes a reply again: what was passed on of it does not count. The pieces that
// follow begin with the first.
type ReplyWithdrawn struct {
	Reply     *Reply
	Why       string // in a few words, for people; "": the reply was recorded with another text
	Reasoning bool   // only the reasoning is withdrawn; never in a Tracker that replaces
	AtEnd     bool   // the whole reply comes next, and is not what was streamed
}

// ReplyEnded says that a reply is complete. All of its text was passed on.
type ReplyEnded struct {
	Reply   *Reply
	Done    agent.ReplyDone
	Missing bool // a part of the text was passed on only now, with the TextAdded before
}

// CallAdded says that there is a call of a tool. It comes once for each call, before its start and its end.
type CallAdded struct {
	Call  *Call
	Reply *Reply // the reply that asks for it; nil: it is not known
}

// CallStarted says that a call starts, or that it continues after an answer.
type CallStarted struct{ Call *Call }

// CallOutput is a piece of what a call prints, or its progress.
type CallOutput struct {
	Call *Call
	Text string
}

// CallEnded reports the outcome of a call.
type CallEnded struct {
	Call *Call
	Done agent.ToolDone
}

// StepStarted says that a node starts.
type StepStarted struct{ Step *Step }

// StepEnded says that a node has returned.
type StepEnded struct{ Step *Step }

// StateChanged says that the run has a new state: it starts or continues, or a step is complete.
type StateChanged struct{ Start bool }

// QuestionAsked says that a question is open.
type QuestionAsked struct{ Question *Question }

// QuestionAnswered says that a question was answered.
type QuestionAnswered struct{ Question *Question }

// ValueAdded is a value that a node has emitted and that is not the text or the end of a reply, nor the start or the
// end of a call. It follows what the value means for replies and calls: that of an [agent.RetryScheduled] follows a
// ReplyWithdrawn.
type ValueAdded struct{ Value any }

// A Call is one call of a tool.
type Call struct {
	ID   string // as the model gave it; calls of different agents may have the same
	Path string // of the conversation that makes it, each node followed by a slash
	Name string
	Args json.RawMessage // nil: they are not known
}

// Key returns the path and the id of a call, which no other call of the run has.
func (c *Call) Key() string { return c.Path + c.ID }

// A Step is a node that runs.
type Step struct {
	// Name is the path and the node; if several of the same node run at the same time, the others have a number:
	// "work#2".
	Name string
	Path string // as the event had it
	Node string

	task  string
	order int // among all steps of the run
}

// A Question is one that a node has asked.
type Question struct {
	graph.Question
	Path   string // of the conversation that asks, each node followed by a slash
	Record int64  // in the journal
}

func (TextAdded) isUpdate()        {}
func (ReasoningAdded) isUpdate()   {}
func (ReplyWithdrawn) isUpdate()   {}
func (ReplyEnded) isUpdate()       {}
func (CallAdded) isUpdate()        {}
func (CallStarted) isUpdate()      {}
func (CallOutput) isUpdate()       {}
func (CallEnded) isUpdate()        {}
func (StepStarted) isUpdate()      {}
func (StepEnded) isUpdate()        {}
func (StateChanged) isUpdate()     {}
func (QuestionAsked) isUpdate()    {}
func (QuestionAnswered) isUpdate() {}
func (ValueAdded) isUpdate()       {}
