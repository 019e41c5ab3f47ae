// Package tool defines the functions that a model may call: a [Tool] has a name, a schema of its
// arguments and a function that runs it. The packages below it make tools: from scripts, built-in
// ones, from servers.
//
// A tool never decides whether it may run, and does not know the journal. It declares what a call
// would touch and whether the call may be repeated. The loop that runs it asks for permission,
// records the outcome, and only then sends it to the model.
package tool

import (
	"context"
	"encoding/json"

	"raddle.dev/llm"
)

// A Tool is one function that a model may call. A Tool is a value: to add to what Run does, copy it
// and wrap Run.
type Tool struct {
	Name        string          // unique among the tools of a request
	Description string          // sent to the model
	Schema      json.RawMessage // JSON Schema of the arguments, an object; empty: no arguments
	Form        llm.Form        // see llm.ToolSpec

	Effect   Effect // what a repetition does; decides what happens to a call that a crash left in doubt
	Parallel bool   // a call may run while other calls of the same reply do
	InDoubt  Doubt  // what happens to such a call, unless it may be repeated
	Polls    bool   // the same call many times is its normal use, and never counts as a loop
	Sees     bool   // its results have the content of files, and say of which: see Result.Seen

	// Repeats reports whether a call with these arguments may simply be made again; nil: as
	// Effect says.
	Repeats func(args json.RawMessage) bool

	// Touches returns what a call would reach, without reaching it. nil: only the tool's name is
	// known. An error means that the tool cannot use the arguments: the model reads the error, and
	// the tool does not run.
	Touches func(args json.RawMessage) (Touch, error)

	// Check returns why a call with these arguments cannot be made, before anyone is asked about it. nil: the schema
	// decides.
	Check func(args json.RawMessage) error
	// Refuse returns the result of a call that would change nothing as things are, so that no person is asked about it;
	// nil: the call can be made. Refuse itself may be nil.
	Refuse func(c Call) *Result

	// Run makes the call. If the task itself fails, Run returns a Result with Error set: the model
	// reads it and continues. The model also reads an error, as a [FailedResult], with these
	// exceptions: ctx has ended, the error means that the run must wait, or it is a [*Question] or
	// [ErrCutOff], which a call with a Key may return. Run must stop when ctx ends, and may be
	// called concurrently.
	Run func(ctx context.Context, c Call) (Result, error)
}

// Spec returns the description of the tool that the model reads.
func (t Tool) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema, Form: t.Form}
}

// MayRepeat reports whether a call with these arguments may simply be made again when a
// crash cut it off before its outcome was known.
func (t Tool) MayRepeat(args json.RawMessage) bool {
	if t.Repeats != nil {
		return t.Repeats(args)
	}
	return t.Effect.MayRepeat()
}

// A Call is one call of a tool that a model asked for.
type Call struct {
	ID   string          // the model's name for the call
	Args json.RawMessage // a JSON object
	// Key is the same whenever the same call runs again after a crash, and it differs from the keys
	// of all other calls: for services that take an idempotency key. Empty: there is none.
	Key string

	Answers []Answer // to the questions that Run has asked so far, in their order
	// Repeat says that the call may be made again although its first outcome is not known.
	Repeat bool
	// Progress shows a person how far the call is; nil: no person watches. It may be called
	// concurrently, and not after Run has returned.
	Progress func(text string)
	// Output shows a person what the call prints while it runs, in pieces; nil: no person watches. It may be called
	// concurrently, and not after Run has returned.
	Output func(text string)

	// Seen returns how the conversation that makes the call has seen a file last; nil: it has not seen it. The path is
	// absolute, without links. If Seen itself is nil, there is no conversation, or it has no tool that Sees: then the
	// caller knows what it overwrites.
	Seen func(path string) *SeenFile

	// Permit says how the call was permitted; nil: no one judged it, because the caller itself wants it.
	Permit *Permit
}

// A Permit says how a call was permitted, for tools that decide on the way how far they go.
type Permit struct {
	// Allowed reports whether a rule or a person allowed the commands of the call. If it is false, they
	// run only because they are known to be harmless, and get no secrets in their environment.
	Allowed bool
	// Unasked reports whether the call runs a command that no rule and no person allowed, and none that needs that. In
	// its environment git takes no programs from a repository: the repository may have changed since the call was
	// judged.
	Unasked bool
	// Boxed reports whether the call must run its commands in the box: nothing else lets them run.
	Boxed bool
	// Hosts are what the commands may reach from the box in addition to what rules allow: names, with a port that is
	// none of the web. Without Boxed they mean nothing.
	Hosts []string
	// Granted are the rules that the answer of a person gives for this call.
	Granted []string
	// Judge says why the call could not be made with other arguments without a question; nil: it could. granted are
	// rules that count in addition.
	Judge func(args json.RawMessage, granted []string) error
}

// Answer returns the permit of a call that a person has allowed. granted are the rules that the answer gives. The
// receiver may be nil.
func (p *Permit) Answer(granted []string) *Permit {
	if p == nil {
		return nil
	}
	if p.Boxed { // the answer is about hosts: the commands stay in the box
		return &Permit{Unasked: p.Unasked, Boxed: true, Hosts: p.Hosts, Granted: granted, Judge: p.Judge}
	}
	return &Permit{Allowed: true, Granted: granted, Judge: p.Judge}
}

// An Effect says what a repetition of a call does.
type Effect string

// The effects, from harmless to dangerous.
const (
	ReadOnly   Effect = "read-only"  // it changes nothing
	Idempotent Effect = "idempotent" // twice has the same result as once
	Undeclared Effect = ""           // it is not declared
	Dangerous  Effect = "dangerous"  // it may do harm, even once: it asks if no rule allows it
)

// MayRepeat reports whether a call may simply be made again if it is not known whether it happened.
func (e Effect) MayRepeat() bool { return e == ReadOnly || e == Idempotent }

// A Touch is what a call reaches outside the conversation.
type Touch struct {
	// Reads and Writes are paths of files or directories, absolute or relative to the workspace; removing is writing; a
	// directory means everything in it.
	Reads, Writes []string
	// Lists are directories of which the call reads only the names, or in which it leaves out the
	// files that a rule denies.
	Lists    []string
	Commands []string // shell source that would be run
	Boxes    bool     // the call can run Commands in a box: see [Permit]
	Unboxed  bool     // the call could run Commands in a box, and asks not to
	Network  []string // hosts, "*" where the call itself decides; with Boxes, what Commands reach from the box
	// Private are those of Network that are this machine or lie in a private network. Only a rule that names
	// them allows them: not one about every host.
	Private []string

	// Unknown says why the call may reach more than the lists name, as the end of a sentence
	// that begins with the tool's name. Such a call asks. Empty: the lists are complete.
	Unknown string
	// Definition is what the tool's maker says about it, for tools whose makers may change it while raddle works. An
	// answer that allows the tool is bound to it. Empty: it does not change.
	Definition string
	// Changed reports whether Definition was another one before in this process: then a rule by name does not allow the
	// call.
	Changed bool
	// Like is the tool as a call of which this one is judged: its rules hold as well, and answers give rules for it.
	// Empty: there is none.
	Like string
	// Passed is the call that this one passes on, if the function calls tools by their names. The
	// rules for that tool hold as well. nil: there is none.
	Passed *PassedCall
}

// A PassedCall is a call that a call passes on to a tool.
type PassedCall struct {
	Tool string          // its name, as rules know it
	Args json.RawMessage // a JSON object
}
