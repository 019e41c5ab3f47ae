package permission

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"raddle.dev/tool"
)

// A Mode says how much runs without a question where no rule decides. It never permits what a rule
// denies or asks about. No mode permits everything.
type Mode string

// The modes, from the strictest.
const (
	// ModePlan permits only what reads: everything else is denied, also what a rule or an answer
	// allows.
	ModePlan Mode = "plan"
	// ModeAsk asks before a call changes a file of the workspace, and before it runs a script that
	// does not say that it only reads.
	ModeAsk Mode = "ask"
	// ModeEdits permits changes of files in the workspace. It is the meaning of an empty Mode.
	ModeEdits Mode = "edits"
	// ModeBox permits what ModeEdits permits, and denies what would ask: see [Policy.Person].
	ModeBox Mode = "box"
)

// Modes are the names of all modes, in the order in which a person goes through them.
var Modes = []string{string(ModePlan), string(ModeAsk), string(ModeEdits), string(ModeBox)}

// ParseMode returns the mode with a name. An empty name is ModeEdits. ok is false if there is no such mode.
func ParseMode(name string) (m Mode, ok bool) {
	if name == "" {
		return ModeEdits, true
	}
	return Mode(name), slices.Contains(Modes, name)
}

// A ModeSwitch holds a mode that may change while calls are decided. It is safe for concurrent use.
// A nil ModeSwitch stays in ModeEdits.
type ModeSwitch struct{ mode atomic.Value }

// NewModeSwitch returns a switch with a mode.
func NewModeSwitch(m Mode) *ModeSwitch {
	s := &ModeSwitch{}
	s.SetMode(m)
	return s
}

// Mode returns the mode that holds now.
func (s *ModeSwitch) Mode() Mode {
	if s == nil {
		return ModeEdits
	}
	m, _ := s.mode.Load().(Mode)
	if m == "" {
		return ModeEdits
	}
	return m
}

// SetMode changes the mode. The next decision uses it; calls that run already are not stopped.
func (s *ModeSwitch) SetMode(m Mode) { s.mode.Store(m) }

// Next returns the mode that follows in the order of Modes; the first one follows the last.
func (m Mode) Next() Mode {
	at := max(0, slices.Index(Modes, string(m)))
	return Mode(Modes[(at+1)%len(Modes)])
}

// inPlan is the reason for what ModePlan denies, as the end of a sentence that begins with the need.
const inPlan = "is not permitted in the mode plan, in which you may only read"

// planAdvice informs the model what to do after ModePlan has denied a call.
const planAdvice = "Do not try the same in another form. Read what you need, then end your turn with a plan of the changes that you would make."

// inBoxMode is the end of a reason for what ModeBox denies in place of asking.
const inBoxMode = "; nothing asks in the mode box"

// boxAdvice informs the model what to do after ModeBox has denied a call.
const boxAdvice = "In the mode box no person is asked. Do it in another way that needs no permission, or say at the end what a person has to do."

// deniesQuestion reports whether a need that would ask is denied, because nothing asks in ModeBox but a call that wants
// out of the box, or to hosts from it, where a person can answer.
func (p *Policy) deniesQuestion(m matcher, n need) bool {
	return p.Mode == ModeBox && !(p.Person && (m.unboxed || n.kind == network && m.boxHosts > 0))
}

// mayChange reports whether what a need is about may change something, or is not known to only
// read. Guesses of what a command touches do not count: the command itself is a need.
func (n need) mayChange() bool { return n.kind.row().changes(n) }

// changesSomething reports whether a call may change something, as far as the tool says. What the
// touch lists is judged by itself.
func changesSomething(t tool.Tool, touch tool.Touch) bool {
	switch {
	case t.Effect == tool.ReadOnly:
		return false
	case t.Effect == tool.Dangerous:
		return true
	}
	return t.Touches == nil || touch.Unknown != ""
}

// judgeByMode returns the verdict of the mode on a need that no rule decides: fallback and why, or a stricter verdict.
func (p *Policy) judgeByMode(m matcher, n need) (Verdict, Ground) {
	switch {
	case n.fallback != Allow:
		return n.fallback, Ground{By: ByDefault, Why: n.why}
	case p.Mode != ModeAsk:
	case n.kind == writing && !n.guess:
		return Ask, Ground{By: ByMode, Why: "would be changed, and the mode is ask"}
	case n.kind == theCall && n.changes:
		return Ask, Ground{By: ByMode, Why: "does not say that it only reads, and the mode is ask"}
	}
	return Allow, p.groundOfDefault(m, n)
}

// sampleCall returns the verdict on a call of a tool with arguments that fit its schema and name a file of the
// workspace. known is false if other arguments may lead to another verdict.
func (p *Policy) sampleCall(t tool.Tool) (v Verdict, known bool) {
	args, ok := sampleArguments(t.Schema)
	if !ok {
		return Allow, false
	}
	m, needs, err := p.analyzeCall(context.Background(), t, args)
	if err != nil || !slices.ContainsFunc(needs, func(n need) bool { return n.kind == writing && !n.guess }) {
		return Allow, false
	}
	v = p.judgeNeeds(m, needs).Verdict
	return v, v == Deny || v == Ask && !p.hasArgumentRule(t.Name)
}

// sampleName is the value of a text in sample arguments.
const sampleName = "raddle-sample"

// sampleArguments returns an object with a text for each required member of a schema. ok is false
// if one of them is not a text.
func sampleArguments(schema json.RawMessage) (args json.RawMessage, ok bool) {
	var s struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil, false
	}
	values := map[string]string{}
	for _, name := range s.Required {
		if s.Properties[name].Type != "string" {
			return nil, false
		}
		values[name] = sampleName
	}
	args, err := json.Marshal(values)
	return args, err == nil
}
