package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	// Words names what can be allowed for the run in place of Grant: everything that begins as the call does. Empty: there is nothing of that kind.
	Words   []string
	Lasting bool // Grant may be allowed permanently, not only for the run
	// Bound reports whether Grant also names what the call would run now, such as the content of a file. An answer then counts only if that is
	// the same when it is given.
	Bound bool
	// Permit is passed to the tool with the call, if the verdict is Allow or a person allows it; nil: the tool gets none.
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
			a.grants, a.newGrants = append(a.grants, g), append(a.newGrants, g)
		}
	}
}

// A Permission says how it was decided whether a call may be made, and what let it pass or stopped it. It is recorded with the outcome of the call, because
// rules, modes and files may be others later.
type Permission struct {
	Verdict string `json:"verdict"` // "allow": without a question; "ask" or "deny"
	// Answer is the outcome of a question: "once", "run", "words", "always" or "no", "refused" if there was no answer, "headless" if there was no person to ask, and "changed"
	// if the answer did not count, because what the call runs has changed since.
	Answer  string   `json:"answer,omitempty"`
	Rules   []string `json:"rules,omitempty"`   // what the answer allows for longer than the call
	Grounds []Ground `json:"grounds,omitempty"` // of what was decided: what let the call pass, what asks, or what denies
	More    int      `json:"more,omitempty"`    // further grounds, which are not recorded
}

// A Ground says what decided about one thing that a call needs.
type Ground struct {
	Text string `json:"text"` // a command, a file, a host or the tool, shortened
	// By is "rule", "answer" (an earlier one), "mode", "trust" (in what a person has named or agreed to), "box", "hook", "call" (it cannot be made as the model
	// wants it) or "default".
	By   string `json:"by"`
	Rule string `json:"rule,omitempty"` // the rule or mode, with the place of the rule
	Why  string `json:"why"`            // as the end of a sentence that begins with the text; the rule follows it unless it is named there
}

// Describe returns the ground as a sentence.
func (g *Ground) Describe() string {
	text := strings.TrimSpace(g.Text + " " + g.Why)
	if strings.Contains(g.Why, g.Rule) {
		return text
	}
	return text + " " + g.Rule
}

// These are bases of grounds that no gate knows, and outcomes of questions that are no answers.
const (
	byHook = "hook"
	byCall = "call"

	answerRefused  = "refused"
	answerHeadless = "headless"
	answerChanged  = "changed"
)

// These limit what is recorded about the permission of a call.
const (
	maxGrounds    = 8
	maxGroundText = 120 // characters of a text
	maxGroundRule = 240 // characters of a rule or a reason
)

// newPermission returns the permission of a call for a decision of the gate, without an answer.
func (st *actStep) newPermission(d *Decision) *Permission {
	p := &Permission{Verdict: d.Verdict.String()}
	for _, g := range d.Grounds {
		p.addGround(st, g)
	}
	return p
}

// refuseCall returns the permission of a call that is not made, although no rule denies it.
func (st *actStep) refuseCall(by, text, why string) *Permission {
	p := &Permission{Verdict: Deny.String()}
	p.addGround(st, Ground{Text: text, By: by, Why: why})
	return p
}

// addGround adds a ground without secrets, and shortened.
func (p *Permission) addGround(st *actStep, g Ground) {
	if g.Rule != "" {
		g.Why = strings.TrimSuffix(g.Why, " "+g.Rule)
	}
	g.Text, g.Rule, g.Why = st.shortenSafely(g.Text, maxGroundText), st.shortenSafely(g.Rule, maxGroundRule), st.shortenSafely(g.Why, maxGroundRule)
	switch {
	case slices.Contains(p.Grounds, g):
	case len(p.Grounds) >= maxGrounds:
		p.More++
	default:
		p.Grounds = append(p.Grounds, g)
	}
}

// setAnswer adds the outcome of the question about the call. rules are those that the answer gives.
func (p *Permission) setAnswer(st *actStep, answer string, rules []string) {
	p.Answer = answer
	for _, r := range rules {
		p.Rules = append(p.Rules, st.shortenSafely(r, maxGroundRule))
	}
}

// shortenSafely removes secrets from a text before it is cut, so that no part of a secret remains.
func (st *actStep) shortenSafely(text string, most int) string {
	text = st.act.redact(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

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

// IsBoxed reports whether the call was let pass because it runs in the box. The receiver may be nil.
func (p *Permission) IsBoxed() bool {
	return p != nil && p.Verdict == Allow.String() && slices.ContainsFunc(p.Grounds, func(g Ground) bool { return g.By == "box" })
}

// ReadPermission returns what the data of a question says about the permission of its call, without an answer.
func (d *CallData) ReadPermission() *Permission {
	p := &Permission{Verdict: Ask.String()}
	if d.Detail == nil {
		return p
	}
	for _, part := range d.Detail.Parts {
		by := "default"
		if part.Rule != "" {
			by = "rule"
		}
		p.Grounds = append(p.Grounds, Ground{Text: part.Text, By: by, Rule: part.Rule, Why: part.Why})
	}
	return p
}

// AddAnswer adds a recorded answer to a question about a call, as JSON, or why there is none.
func (p *Permission) AddAnswer(answer []byte, refused string, about *CallData) {
	var value any
	p.Answer = answerRefused
	if refused != "" || json.Unmarshal(answer, &value) != nil {
		return
	}
	if a, err := parsePermission(value); err == nil {
		p.Answer = a.Choice
		if a.Choice == answerRun || a.Choice == answerWords || a.Choice == answerAlways {
			p.Rules = a.chooseRules(about.Grant, about.Words)
		}
	}
}

// A CallOutcome is what the journal has of a call, or of one try of it.
type CallOutcome struct {
	Result     *tool.Result    // as the tool gave it; nil: the call asks, or was cut off
	Ask        *tool.Question  // what a person must answer before it can continue
	Edited     json.RawMessage // the arguments with which it was made, if a person has changed them
	Refused    bool            // it was not made
	Permission *Permission     // nil: nothing is recorded, as in journals of older versions, and of calls that were made without a gate
}

// ReadCall decodes the record of a call.
func ReadCall(data []byte) (CallOutcome, error) {
	var r callRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return CallOutcome{}, fmt.Errorf("the recorded outcome of a call: %w", err)
	}
	return CallOutcome{Result: r.Result, Ask: r.Ask, Edited: r.Edited, Refused: r.Refused, Permission: r.Permission}, nil
}
