package agent

import (
	"context"
	"slices"

	"raddle.dev/tool"
)

// A Gate permits or denies tool calls. It is asked before each call, and again
// for a call that runs again; a call whose outcome is recorded no longer needs
// permission. A Gate must be safe for concurrent use.
type Gate interface {
	// Decide says whether a call may be made. granted is what a person already
	// allowed for the run: Decide must not ask again for what it covers. If
	// Decide returns an error, the call is not made and the model sees the
	// error.
	Decide(ctx context.Context, t tool.Tool, c tool.Call, granted []string) (Decision, error)
	// Always saves what a person allowed permanently: the Grant of a Decision.
	// It is an effect and may be repeated after a crash.
	Always(ctx context.Context, grant []string) error
}

// A GrantChecker is a Gate that saves rules which a person has changed.
type GrantChecker interface {
	// CheckNarrowed returns an error if one of the rules permits more than the
	// rules of a Decision's Grant.
	CheckNarrowed(grant, rules []string) error
}

// A Decision is the answer of a Gate about a call.
type Decision struct {
	Verdict Verdict
	Reason  string   // of a Deny: shown to the model
	Prompt  string   // of an Ask; empty: a default that names the tool and its arguments
	Diff    string   // of an Ask: the change of a file, which follows the prompt; empty: there is none
	Grounds []Ground // what let the call pass, what asks, or what denies; they are recorded
	// Detail says the same as Prompt, in parts that a user interface can arrange.
	Detail *CallDetail
	// Grant names what can be allowed for longer than this call, in a form that
	// the gate chooses. If empty, a person can allow only this call.
	Grant []string
	// Words names what can be allowed for the run in place of Grant: everything that begins as the call does. Empty:
	// there is nothing of that kind.
	Words   []string
	Lasting bool // Grant may be allowed permanently, not only for the run
	// Bound reports whether Grant also names what the call would run now, such as the content of a file. An answer then
	// counts only if that is the same when it is given.
	Bound bool
	// Permit is passed to the tool with the call, if the verdict is Allow or a person allows it; nil: the tool gets
	// none.
	Permit *tool.Permit
}

// A Verdict is allow, deny, or ask a person.
type Verdict int

// These are the verdicts.
const (
	Ask Verdict = iota
	Allow
	Deny
)

// String returns the word that records use.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	}
	return "ask"
}

// These are the kinds of questions that this package asks, in addition to
// "select", "confirm" and "input". Their answers are texts.
const (
	// KindPermission asks whether a call may be made. Its answers are "once",
	// "run", "words", "always" and "no"; any other text means no and is the reason. An
	// answer can also be a [PermissionAnswer], as an object or as the text of
	// one.
	KindPermission = "permission"
	// KindDoubt asks what happens to a call that was running when its process
	// died: "retry" or "skip".
	KindDoubt = "doubt"
	// KindCheckbox asks for any number of the options. Its answer is a list of
	// texts, or one text with an option on each line.
	KindCheckbox = "checkbox"
)

// These are the answers to a question about permission.
const (
	answerOnce   = "once"
	answerRun    = "run"
	answerWords  = "words"
	answerAlways = "always"
	answerNo     = "no"
	answerEdit   = "edit"
)

// listGrants returns what a person allowed for the run.
func (a *actStep) listGrants() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.grants)
}

func (a *actStep) addGrants(grant []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range grant {
		if !slices.Contains(a.grants, g) {
			a.grants = append(a.grants, g)
			a.newGrants = append(a.newGrants, g)
		}
	}
}
