// Package tool is what a model may ask to have done: a [Tool] has a name, a
// schema of its arguments and a function that runs it. Where tools come from is
// the business of the packages below: scripts, built-ins, servers.
//
// A tool never decides whether it may run, and knows no journal. It tells what a
// call would touch and how it stands a repetition; the loop that runs it asks
// whoever gives permission, records the outcome, and only then tells the model.
package tool

import (
	"context"
	"encoding/json"

	"raddle.dev/llm"
)

// A Tool is one function a model may call. A Tool is a value: whoever wants to
// add to what Run does wraps it in a copy.
type Tool struct {
	Name        string          // unique among the tools of a request
	Description string          // told to the model
	Schema      json.RawMessage // JSON Schema of the arguments, an object; empty: no arguments

	Effect   Effect // what a repetition does; decides what happens to a call that a crash left in doubt
	Parallel bool   // a call may run while other calls of the same reply do
	InDoubt  Doubt  // what is done with such a call, unless it may be repeated
	Polls    bool   // the same call again and again is its ordinary use, never taken for a loop

	// Repeats reports whether a call with these arguments may simply be made again; nil: as
	// Effect says.
	Repeats func(args json.RawMessage) bool

	// Touches tells what a call would reach, without reaching it. nil: nothing
	// is known but the tool's name. An error means that the arguments are of no
	// use: it is told to the model, and the tool does not run.
	Touches func(args json.RawMessage) (Touch, error)

	// Run does it. What goes wrong with the task at hand is a Result with Error
	// set: the model reads it and goes on. An error is told to the model as
	// well, in the shape of [Failed], unless ctx has ended, the error means
	// that the run is to wait, or it is a [*Question] or [ErrCutOff], which a call
	// with a Key may return. Run must stop when ctx ends, and may be called
	// concurrently.
	Run func(ctx context.Context, c Call) (Result, error)
}

// Spec is what the model is told of the tool.
func (t Tool) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema}
}

// MayRepeat reports whether a call with these arguments may simply be made again when a
// crash cut it off before its outcome was known.
func (t Tool) MayRepeat(args json.RawMessage) bool {
	if t.Repeats != nil {
		return t.Repeats(args)
	}
	return t.Effect.MayRepeat()
}

// A Call is one wish of a model, about to be fulfilled.
type Call struct {
	ID   string          // the model's name for the call
	Args json.RawMessage // a JSON object
	// Key is the same whenever the same call runs again after a crash, and no
	// other call's: for services that take an idempotency key. Empty: there is none.
	Key string

	Answers []Answer // to the questions that Run has asked so far, in their order
	// Repeat says that the call may be made again although its first outcome is not known.
	Repeat bool
	// Progress shows a person how far the call is; nil: nobody looks. It may be called
	// concurrently, and not after Run has returned.
	Progress func(text string)
}

// An Effect says what running a call a second time does.
type Effect string

// The effects, from the harmless to the grave.
const (
	ReadOnly   Effect = "read-only"  // it changes nothing
	Idempotent Effect = "idempotent" // twice is as good as once
	Undeclared Effect = ""           // nobody has said
	Dangerous  Effect = "dangerous"  // it may do harm, even once: it asks where no rule allows it
)

// MayRepeat reports whether a call of which nobody knows if it happened may simply
// be made again.
func (e Effect) MayRepeat() bool { return e == ReadOnly || e == Idempotent }

// A Touch is what a call reaches outside the conversation.
type Touch struct {
	Reads, Writes []string // paths of files or directories, absolute or relative to the workspace; removing is writing; a directory stands for everything in it
	// Lists are directories of which the call reads the names only, or of whose files it
	// leaves out by itself what a rule denies.
	Lists    []string
	Commands []string // shell source that would be run
	Network  []string // hosts, "*" where the call itself decides

	// Unknown says why the call may reach more than the lists name, as the end of a sentence
	// that begins with the tool's name. Such a call asks. Empty: the lists are complete.
	Unknown string
	// Passed is the call that this one passes on, of a function that calls tools by their
	// names. The rules for that tool hold as well. nil: there is none.
	Passed *PassedCall
}

// A PassedCall is a call that a call passes on to a tool.
type PassedCall struct {
	Tool string          // its name, as rules know it
	Args json.RawMessage // a JSON object
}
