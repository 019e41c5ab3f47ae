package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/tool"
)

// A Permission says how it was decided whether a call may be made, and what let it pass or stopped it. It is recorded
// with the outcome of the call, because rules, modes and files may be others later.
type Permission struct {
	Verdict string `json:"verdict"` // "allow": without a question; "ask" or "deny"
	// Answer is the outcome of a question: "once", "run", "words", "always" or "no", "refused" if there was no answer,
	// "headless" if there was no person to ask, and "changed" if the answer did not count, because what the call runs
	// has changed since.
	Answer string   `json:"answer,omitempty"`
	Rules  []string `json:"rules,omitempty"` // what the answer allows for longer than the call
	// Grounds are the reasons of the decision: what let the call pass, what asks, or what denies.
	Grounds []Ground `json:"grounds,omitempty"`
	More    int      `json:"more,omitempty"` // further grounds, which are not recorded
}

// A Ground says what decided about one thing that a call needs.
type Ground struct {
	Text string `json:"text"` // a command, a file, a host or the tool, shortened
	// By is "rule", "answer" (an earlier one), "mode", "trust" (in what a person has named or agreed to), "box",
	// "hook", "call" (it cannot be made as the model wants it) or "default".
	By   string `json:"by"`
	Rule string `json:"rule,omitempty"` // the rule or mode, with the place of the rule
	// Why is the end of a sentence that begins with the text; the rule follows it unless it is named there.
	Why string `json:"why"`
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
	Result  *tool.Result    // as the tool gave it; nil: the call asks, or was cut off
	Ask     *tool.Question  // what a person must answer before it can continue
	Edited  json.RawMessage // the arguments with which it was made, if a person has changed them
	Refused bool            // it was not made
	// Permission is nil if nothing is recorded: in journals of older versions, and of calls that were made without a
	// gate.
	Permission *Permission
}

// ReadCall decodes the record of a call.
func ReadCall(data []byte) (CallOutcome, error) {
	var r callRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return CallOutcome{}, fmt.Errorf("the recorded outcome of a call: %w", err)
	}
	return CallOutcome{Result: r.Result, Ask: r.Ask, Edited: r.Edited, Refused: r.Refused, Permission: r.Permission}, nil
}
