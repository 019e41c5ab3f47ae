package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A HookPoint is where hooks run.
type HookPoint string

// These are the points at which hooks run.
const (
	HookBeforeTool HookPoint = "before_tool" // before the gate judges a call
	HookAfterTool  HookPoint = "after_tool"  // after a call that was made
	HookTurnStart  HookPoint = "turn_start"
	HookTurnEnd    HookPoint = "turn_end"
	HookQuestion   HookPoint = "question" // before a question about a call opens
)

// HookInput is what a hook learns. Its JSON is what commands read.
type HookInput struct {
	On        HookPoint       `json:"on"`
	Agent     string          `json:"agent,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    *HookResult     `json:"result,omitempty"`   // of HookAfterTool
	Prompt    string          `json:"prompt,omitempty"`   // of HookTurnStart: what the user says
	Reply     string          `json:"reply,omitempty"`    // of HookTurnEnd: the text of the turn
	Question  string          `json:"question,omitempty"` // of HookQuestion
}

// HookResult is the outcome of a call.
type HookResult struct {
	Text  string `json:"text"`
	Error bool   `json:"error"`
}

// A HookAnswer is what a hook says: it can forbid and narrow a call and add something for the model, and never allow.
type HookAnswer struct {
	Deny      bool            `json:"deny,omitempty"`
	Reason    string          `json:"reason,omitempty"`    // of Deny, for the model and the person
	Arguments json.RawMessage `json:"arguments,omitempty"` // replace those of the call, before the gate judges it
	Context   string          `json:"context,omitempty"`   // for the model
}

// A Hook is one hook that runs at a point.
type Hook struct {
	ID   string // the same as long as the hook is the same
	Name string // for people
	// Run returns the answer of the hook. After an error of a hook on HookBeforeTool the call is not made.
	Run func(ctx context.Context, in HookInput) (HookAnswer, error)
}

// FindHooks returns the hooks for what happens, in the order in which they run. t is the tool of a call.
type FindHooks func(ctx context.Context, t tool.Tool, in HookInput) []Hook

// HookRecord is what the journal has of a hook that ran. The zero value says that the hook was cut off.
type HookRecord struct {
	Hook   string     `json:"hook"` // its name
	On     HookPoint  `json:"on"`
	Tool   string     `json:"tool,omitempty"`
	Answer HookAnswer `json:"answer,omitzero"`
	Failed string     `json:"failed,omitempty"` // why there is no answer
}

// HookEffect is the name of the effects of hooks.
const HookEffect = "hook"

// Describe says in one line what the hook has done; "" if it has changed nothing.
func (r *HookRecord) Describe() string {
	about := ""
	if r.Tool != "" {
		about = " of " + r.Tool
	}
	switch {
	case r.Hook == "":
		return ""
	case r.Failed != "" && r.On == HookBeforeTool:
		return fmt.Sprintf("the hook %s failed, so the call%s is not made: %s", r.Hook, about, firstLine(r.Failed))
	case r.Failed != "":
		return fmt.Sprintf("the hook %s on %s failed: %s", r.Hook, r.On, firstLine(r.Failed))
	case r.Answer.Deny:
		return strings.TrimRight(fmt.Sprintf("the hook %s denied the call%s: %s", r.Hook, about, firstLine(r.Answer.Reason)), ": ")
	case r.Answer.Arguments != nil:
		return fmt.Sprintf("the hook %s changed the arguments of the call%s", r.Hook, about)
	case r.Answer.Context != "":
		return fmt.Sprintf("the hook %s on %s added a text for the model", r.Hook, r.On)
	}
	return ""
}

// DescribeRun says in one line that the hook ran.
func (r *HookRecord) DescribeRun() string {
	return strings.TrimSpace(fmt.Sprintf("the hook %s ran on %s %s", r.Hook, r.On, r.Tool))
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}

// mayRunAgain reports whether hooks on a point run again after a crash before their answer was recorded. The others
// have an intent in the journal first, and are then in doubt: they do not run again.
func (p HookPoint) mayRunAgain() bool {
	return p == HookBeforeTool || p == HookTurnStart
}

// RunHook runs a hook once: its answer is in the journal before it is used, so that a resume does not run it again. key
// distinguishes what it runs for within its task. Its texts are redacted before they are recorded. It fails only if the
// run cannot continue.
func RunHook(ctx context.Context, h Hook, in HookInput, key string, redact func(string) string) (HookRecord, error) {
	e := hookEffect(h, in, key)
	if !in.On.mayRunAgain() {
		e.InDoubt = graph.DoubtSkip
	}
	rec, err := graph.DoEffect(ctx, e, func(ctx context.Context) (HookRecord, error) {
		run, release := Interruptible(ctx)
		defer release()
		rec := HookRecord{Hook: h.Name, On: in.On, Tool: in.Tool}
		answer, err := h.Run(run, in)
		if err != nil && run.Err() != nil {
			return rec, context.Cause(run)
		}
		if err != nil {
			rec.Failed = redact(err.Error())
		} else {
			rec.Answer = answer.redact(redact)
		}
		if text := rec.Describe(); text != "" {
			graph.Emit(ctx, Warning{Text: text})
		}
		return rec, nil
	})
	if err == nil && rec.Hook == "" {
		graph.Emit(ctx, Warning{Text: fmt.Sprintf("the hook %s on %s was cut off when the process ended: it may or may not have done its work, and does not run again", h.Name, in.On)})
	}
	return rec, err
}

// hookEffect returns the effect of a hook.
func hookEffect(h Hook, in HookInput, key string) graph.Effect {
	return graph.Effect{Name: HookEffect, Key: strings.TrimSpace(string(in.On)+" "+key) + " " + h.ID}
}

// redact removes secrets from the texts of an answer. Arguments that are no object any more are removed, so that
// nothing is done with them.
func (a HookAnswer) redact(redact func(string) string) HookAnswer {
	a.Reason, a.Context = redact(a.Reason), redact(a.Context)
	if a.Arguments != nil {
		text := redact(string(a.Arguments))
		if !json.Valid([]byte(text)) {
			return HookAnswer{Deny: true, Reason: "the arguments of the hook have a secret in a place from which it cannot be removed"}
		}
		a.Arguments = json.RawMessage(text)
	}
	return a
}

// hooked is what the hooks before a call have said together.
type hooked struct {
	args    json.RawMessage // of the call to make
	changed bool
	refused *tool.Result // of a call that is not made; nil: none refuses it
	why     string       // of refused, as the end of a sentence that begins with the tool
	notes   []string     // for the model
}

// runBefore runs the hooks before a call, each with the arguments that the one before it left. If begun is true, the
// call was made or refused already: then only the answers that are recorded count.
func (st *actStep) runBefore(ctx context.Context, t tool.Tool, c tool.Call, begun bool) (out hooked, err error) {
	out.args = c.Args
	if st.act.Hooks == nil {
		return out, nil
	}
	in := HookInput{On: HookBeforeTool, Agent: st.act.Budget.Of, Tool: t.Name, CallID: c.ID, Arguments: c.Args}
	for _, h := range st.act.Hooks(ctx, t, in) {
		in.Arguments = out.args
		var rec HookRecord
		if begun {
			e := hookEffect(h, in, c.ID)
			rec, _, err = loadRecorded[HookRecord](ctx, e.Name, e.Key)
		} else {
			rec, err = RunHook(ctx, h, in, c.ID, st.act.redact)
		}
		if err != nil {
			return out, err
		}
		if refused := rec.refusal(); refused != nil {
			out.refused = refused
			out.why = "is not allowed by the hook " + rec.Hook
			return out, nil
		}
		if rec.Answer.Arguments != nil {
			out.args = rec.Answer.Arguments
			out.changed = true
		}
		if rec.Answer.Context != "" {
			out.notes = append(out.notes, rec.Answer.Context)
		}
	}
	if out.changed {
		out.notes = append([]string{fmt.Sprintf("A hook changed the arguments of this call before it was made. It was made with: %s", out.args)}, out.notes...)
		if fault := CheckArguments(t, out.args); fault != nil {
			out.refused = denyCall("permission denied: a hook changed the arguments of this call to what the tool does not accept: %v", fault)
			out.why = "got arguments from a hook that it does not accept"
		}
	}
	return out, nil
}

// announceQuestion runs the hooks for a question about a call that opens. name is that of the question.
func (st *actStep) announceQuestion(ctx context.Context, t tool.Tool, c tool.Call, name, prompt string) error {
	if st.act.Hooks == nil {
		return nil
	}
	return RunHooks(ctx, st.act.Hooks, HookInput{On: HookQuestion, Agent: st.act.Budget.Of, Tool: t.Name, CallID: c.ID, Question: st.act.redact(prompt)}, name, st.act.redact)
}

// RunHooks runs the hooks for what happens at a point at which their answers have no meaning.
func RunHooks(ctx context.Context, find FindHooks, in HookInput, key string, redact func(string) string) error {
	if find == nil {
		return nil
	}
	for _, h := range find(ctx, tool.Tool{}, in) {
		if _, err := RunHook(ctx, h, in, key, redact); err != nil {
			return err
		}
	}
	return nil
}

// refusal returns the outcome of a call that a hook does not let through; nil: it does.
func (r *HookRecord) refusal() *tool.Result {
	switch {
	case r.Failed != "":
		return denyCall("permission denied: the hook %s, which looks at this call first, failed: %s", r.Hook, r.Failed)
	case r.Answer.Deny && r.Answer.Reason == "":
		return denyCall("permission denied: the hook %s does not allow this call", r.Hook)
	case r.Answer.Deny:
		return denyCall("permission denied: the hook %s does not allow this call: %s", r.Hook, r.Answer.Reason)
	}
	return nil
}

// runAfter runs the hooks after a call that was made, and adds to its outcome what they say to the model.
func (st *actStep) runAfter(ctx context.Context, t tool.Tool, c tool.Call, r tool.Result) (tool.Result, error) {
	if st.act.Hooks == nil {
		return r, nil
	}
	in := HookInput{On: HookAfterTool, Agent: st.act.Budget.Of, Tool: t.Name, CallID: c.ID, Arguments: c.Args, Result: &HookResult{Text: r.Text(), Error: r.Error}}
	for _, h := range st.act.Hooks(ctx, t, in) {
		rec, err := RunHook(ctx, h, in, c.ID, st.act.redact)
		if err != nil {
			return r, err
		}
		if rec.Answer.Context != "" {
			if r.Content = slices.Clone(r.Content); len(r.Content) == 0 {
				r.Content = []llm.Part{llm.Text{Text: r.Text()}}
			}
			r.Content = append(r.Content, llm.Text{Text: "\n" + rec.Answer.Context})
		}
	}
	return r, nil
}

// CallOfHook returns the id of the call before which a hook ran, from the key of its effect; "": it ran at another
// point.
func CallOfHook(key string) string {
	rest, ok := strings.CutPrefix(key, string(HookBeforeTool)+" ")
	id, _, _ := strings.Cut(rest, " ")
	if !ok {
		return ""
	}
	return id
}
