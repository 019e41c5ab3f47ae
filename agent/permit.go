package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/tool"
)

// CallData is Question.Data of the questions about a call.
type CallData struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
	Grant []string        `json:"grant,omitempty"` // what "run" and "always" allow

	Agent  string      `json:"agent,omitempty"`  // the name of the agent that makes the call, if it has one
	Detail *CallDetail `json:"detail,omitempty"` // of a question about permission, if the gate gives it
	// Edited reports whether a person has changed the arguments.
	Edited bool `json:"edited,omitempty"`
}

// A CallDetail says what a call does and why it asks.
type CallDetail struct {
	Does    string     `json:"does,omitempty"`    // as the end of a sentence that begins with "the agent wants to"
	Command string     `json:"command,omitempty"` // shell text that the call would run
	Diff    int        `json:"diff,omitempty"`    // the length in bytes of the question's prompt before the change of a file; 0: there is no change
	Parts   []CallPart `json:"parts,omitempty"`   // what the call needs that is not simply allowed
	Risks   []string   `json:"risks,omitempty"`   // the harm that it may do, as the end of a sentence that begins with "it"
	Dir     string     `json:"dir,omitempty"`     // the directory in which it works
}

// A CallPart is one thing that a call needs.
type CallPart struct {
	Text   string `json:"text"`             // a command, a file, a host
	Why    string `json:"why"`              // why it asks, as the end of a sentence that begins with the text
	Detail string `json:"detail,omitempty"` // what is known about its effect
	Rule   string `json:"rule,omitempty"`   // the rule that asks, with its place; empty: no rule is about it
}

// A PermissionAnswer is an answer to a question about permission that says more
// than one word. Its JSON is the answer.
type PermissionAnswer struct {
	// Choice is "always" with Rules, or "edit" with Args. It can also be one of
	// the other answers, without either.
	Choice string `json:"choice"`
	// Rules are saved by "always" instead of CallData.Grant. None may permit
	// more than that does.
	Rules []string `json:"rules,omitempty"`
	// Args replace the arguments of the call. The gate decides about the call
	// again, and the model reads what was changed.
	Args json.RawMessage `json:"args,omitempty"`
	// Reason is why a call is refused, with the choice "no".
	Reason string `json:"reason,omitempty"`
}

// parsePermission returns the answer that a value means. An error says why the value is not an
// answer.
func parsePermission(value any) (a PermissionAnswer, err error) {
	var object []byte
	switch v := value.(type) {
	case bool:
		return PermissionAnswer{Choice: map[bool]string{true: answerOnce, false: answerNo}[v]}, nil
	case string:
		text := strings.TrimSpace(v)
		if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"choice"`) {
			return parsePermissionText(text), nil
		}
		object = []byte(text)
	default:
		if object, err = json.Marshal(v); err != nil {
			return a, err
		}
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, fmt.Errorf(`it is no answer: write {"choice": "edit", "args": {...}}, {"choice": "always", "rules": [...]} or a word (%w)`, err)
	}
	if d.More() {
		return a, errors.New("there is text after the object")
	}
	return a, a.check()
}

// chooseRules returns the rules that an answer gives to the call itself, of those that the question offers. "once" gives them to no other call.
func (a *PermissionAnswer) chooseRules(offered []string) []string {
	if len(a.Rules) > 0 {
		return a.Rules
	}
	return offered
}

func (a *PermissionAnswer) check() error {
	switch a.Choice {
	case answerEdit:
		var args map[string]json.RawMessage
		if json.Unmarshal(a.Args, &args) != nil || args == nil {
			return errors.New(`the choice "edit" needs the new arguments as an object: "args"`)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, a.Args); err != nil {
			return err
		}
		a.Args = compact.Bytes()
	case answerOnce, answerRun, answerAlways, answerNo:
		if len(a.Args) > 0 {
			return fmt.Errorf(`the choice %q takes no "args"`, a.Choice)
		}
	default:
		return fmt.Errorf("the choice %q must be one of once, run, always, no, edit", a.Choice)
	}
	if len(a.Rules) > 0 && a.Choice != answerAlways {
		return fmt.Errorf(`the choice %q takes no "rules"`, a.Choice)
	}
	return nil
}

// parsePermissionText returns the answer of a word. Every other text is a refusal with its
// reason.
func parsePermissionText(text string) PermissionAnswer {
	switch strings.ToLower(text) {
	case answerOnce, "yes", "y", "true":
		return PermissionAnswer{Choice: answerOnce}
	case answerRun:
		return PermissionAnswer{Choice: answerRun}
	case answerAlways:
		return PermissionAnswer{Choice: answerAlways}
	case "", answerNo, "n", "false":
		return PermissionAnswer{Choice: answerNo}
	}
	return PermissionAnswer{Choice: answerNo, Reason: strings.TrimSpace(strings.TrimPrefix(text, answerNo+":"))}
}

// checkPermission accepts every text as an answer to the question that the
// answer names: a text that is not one of the options is a refusal with its
// reason. An answer that names no question may be meant for a different
// question, so it must be one of the options.
func (a *Act) checkPermission(q graph.Question, given graph.Answer) error {
	oneOf := fmt.Errorf("it must be one of %s", strings.Join(q.Options, ", "))
	if v, ok := given.Value.(string); ok && given.ID == "" && !slices.Contains(q.Options, v) {
		return oneOf
	}
	answer, err := parsePermission(given.Value)
	if err != nil {
		return err
	}
	var d CallData
	if json.Unmarshal(q.Data, &d) != nil {
		return nil
	}
	if at := slices.IndexFunc(a.Tools, func(t tool.Tool) bool { return t.Name == d.Tool }); at >= 0 && answer.Choice == answerEdit {
		if err := CheckArguments(a.Tools[at], answer.Args); err != nil {
			return err
		}
	}
	if len(answer.Rules) == 0 {
		return nil
	}
	if !slices.Contains(q.Options, answerAlways) {
		return oneOf
	}
	return a.checkNarrowed(d.Grant, answer.Rules)
}

// checkNarrowed returns why rules may not be saved instead of the rules that a question offers.
func (a *Act) checkNarrowed(grant, rules []string) error {
	if slices.Equal(grant, rules) {
		return nil
	}
	if c, ok := a.Gate.(GrantChecker); ok {
		return c.CheckNarrowed(grant, rules)
	}
	return errors.New("the rules cannot be changed")
}

// maxEdits is how often the arguments of one call can be changed.
const maxEdits = 100

// requestPermission asks the gate and, if the gate says so, a person. refused is the
// outcome of a call that must not be made, and nil if the call may be made. The
// person may change the arguments: permitted is the call to make, and the gate has
// decided about exactly these arguments.
func (a *actStep) requestPermission(ctx context.Context, t tool.Tool, c tool.Call) (permitted tool.Call, edited bool, refused *tool.Result, err error) {
	if a.act.Gate == nil {
		return c, false, nil, nil
	}
	for edits := range maxEdits {
		if args, ok, err := loadEdit(ctx, c, edits); err != nil {
			return c, edited, nil, err
		} else if ok {
			c.Args, edited = args, true
			continue
		}
		d, err := a.act.Gate.Decide(ctx, t, c, a.listGrants())
		if ctx.Err() != nil {
			return c, edited, nil, context.Cause(ctx)
		}
		switch {
		case err != nil:
			return c, edited, denyCall("%v", err), nil
		case d.Verdict == Allow:
			c.Permit = d.Permit
			return c, edited, nil, nil
		case d.Verdict == Deny && d.Reason == "":
			return c, edited, denyCall("permission denied: a rule forbids this call of %s", t.Name), nil
		case d.Verdict == Deny:
			return c, edited, denyCall("permission denied: %s", d.Reason), nil
		}
		if fault := CheckArguments(t, c.Args); fault != nil { // no question about a call that cannot be made
			return c, edited, denyCall("%v", fault), nil
		}
		if a.act.Headless {
			return c, edited, denyCall("permission denied: this call of %s needs the consent of a person, and there is none. Find another way, or say what you could not do.", t.Name), nil
		}
		answer, refused, err := a.askPermission(ctx, t, c, d, edits)
		if err != nil || refused != nil || answer.Choice != answerEdit {
			c.Permit = d.Permit.Answer(answer.chooseRules(d.Grant))
			return c, edited, refused, err
		}
		if c.Args, err = recordEdit(ctx, c, edits, answer.Args); err != nil {
			return c, edited, nil, err
		}
		edited = true
	}
	return c, edited, denyCall("permission denied: the arguments of this call of %s were changed too often", t.Name), nil
}

// editEffect returns the effect that records new arguments of a call. They are
// recorded before the call is made: after a crash the call never runs with the
// arguments that the person has replaced, whatever the gate then decides.
func editEffect(c tool.Call, edits int) (name, key string) {
	return "edit", c.ID + "#" + strconv.Itoa(edits+1)
}

func recordEdit(ctx context.Context, c tool.Call, edits int, args json.RawMessage) (json.RawMessage, error) {
	name, key := editEffect(c, edits)
	return graph.DoEffect(ctx, graph.Effect{Name: name, Key: key}, func(context.Context) (json.RawMessage, error) { return args, nil })
}

// loadEdit returns the arguments that an earlier drive recorded. ok is false if there are none.
func loadEdit(ctx context.Context, c tool.Call, edits int) (args json.RawMessage, ok bool, err error) {
	name, key := editEffect(c, edits)
	return loadRecorded[json.RawMessage](ctx, name, key)
}

// loadEdits returns the arguments of a call that was started: those of the model, or
// those by which a person has replaced them, which are then also edited.
func (a *actStep) loadEdits(ctx context.Context, c tool.Call) (args, edited json.RawMessage, err error) {
	args = c.Args
	for edits := 0; a.act.Gate != nil && edits < maxEdits; edits++ {
		newer, ok, err := loadEdit(ctx, c, edits)
		if err != nil || !ok {
			return args, edited, err
		}
		args, edited = newer, newer
	}
	return args, edited, nil
}

func denyCall(format string, args ...any) *tool.Result {
	return new(tool.FailedResult(format, args...))
}

// An offer is what a question about a call says that an answer allows. It is recorded before the question is asked.
type offer struct {
	Bound bool     `json:"bound,omitempty"` // as in [Decision]
	Grant []string `json:"grant,omitempty"`
}

// UnmarshalJSON also reads the list of rules that older versions recorded, for decisions that were bound.
func (o *offer) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		*o = offer{Bound: true}
		return json.Unmarshal(data, &o.Grant)
	}
	type plain offer
	return json.Unmarshal(data, (*plain)(o))
}

// covers reports whether a choice that was made when this was offered counts for a decision that is made now. What is bound to a content then or
// now must be the same; and nothing is allowed for longer that was not shown.
func (o *offer) covers(choice string, now Decision) bool {
	switch choice {
	case answerNo, answerEdit:
		return true
	case answerOnce:
		return !o.Bound && !now.Bound || slices.Equal(o.Grant, now.Grant)
	}
	return slices.Equal(o.Grant, now.Grant)
}

// askPermission asks a person about a call whose arguments were changed a number of times.
func (a *actStep) askPermission(ctx context.Context, t tool.Tool, c tool.Call, d Decision, edits int) (answer PermissionAnswer, refused *tool.Result, err error) {
	ask := a.newPermissionAsk(t, c, d, edits)
	_, key := editEffect(c, edits)
	offered, err := graph.DoEffect(ctx, graph.Effect{Name: "offer", Key: key}, func(context.Context) (offer, error) { return offer{d.Bound, d.Grant}, nil })
	if err != nil {
		return answer, nil, err
	}
	value, err := graph.Interrupt[any](ctx, ask)
	if refusal := refusalOf(err); refusal != nil {
		return answer, denyCall("permission denied: %s", refusal.Reason), nil
	}
	if err != nil {
		return answer, nil, err
	}
	if answer, err = parsePermission(value); err != nil { // an older version recorded it
		return answer, denyCall("permission denied: the answer of the user could not be read: %v", err), nil
	}
	if !offered.covers(answer.Choice, d) {
		return answer, denyCall("permission denied: what this call of %s runs has changed since the user was asked. Make the call again, so that the user can decide about it as it is now.", t.Name), nil
	}
	switch answer.Choice {
	case answerRun:
		a.addGrants(d.Grant)
	case answerAlways:
		rules := d.Grant
		if len(answer.Rules) > 0 {
			if err := a.act.checkNarrowed(d.Grant, answer.Rules); err != nil {
				return answer, denyCall("permission denied: the rules of the user's answer cannot be saved: %v", err), nil
			}
			rules = answer.Rules
		}
		a.addGrants(rules)
		if !d.Lasting {
			return answer, nil, nil
		}
		_, err := graph.DoEffect(ctx, graph.Effect{Name: "always", Key: c.ID}, func(ctx context.Context) (bool, error) {
			return true, a.act.Gate.Always(ctx, rules)
		})
		return answer, nil, err
	case answerNo:
		text := fmt.Sprintf("permission denied: the user does not want this call of %s", t.Name)
		if answer.Reason != "" {
			text += ": " + answer.Reason
		}
		return answer, denyCall("%s", text), nil
	}
	return answer, nil, nil
}

// newPermissionAsk returns the question about a call.
func (a *actStep) newPermissionAsk(t tool.Tool, c tool.Call, d Decision, edits int) graph.Ask {
	prompt, data := d.DescribeCall(t, c, a.act.redact)
	data.Agent, data.Edited = a.act.Budget.Of, edits > 0
	options := []string{answerOnce, answerNo}
	switch {
	case len(d.Grant) > 0 && d.Lasting:
		options = []string{answerOnce, answerRun, answerAlways, answerNo}
	case len(d.Grant) > 0:
		options = []string{answerOnce, answerRun, answerNo}
	}
	name := "permit " + c.ID
	if edits > 0 {
		name += "#" + strconv.Itoa(edits+1)
	}
	return graph.Ask{Name: name, Kind: KindPermission, Prompt: prompt, Options: options, Free: true, Data: data}
}

// DescribeCall returns the prompt and the data of the question whether a call may be made, for a decision that says Ask. redact takes
// secrets out of the texts that a person reads; the arguments in the data stay as they are.
func (d *Decision) DescribeCall(t tool.Tool, c tool.Call, redact func(string) string) (prompt string, data CallData) {
	prompt = d.Prompt
	if prompt == "" {
		prompt = fmt.Sprintf("May %s be called with %s?", t.Name, c.Args)
	}
	prompt = redact(prompt)
	data = CallData{ID: c.ID, Tool: t.Name, Args: c.Args, Grant: d.Grant}
	if d.Detail != nil {
		detail := *d.Detail
		detail.Does, detail.Command = redact(detail.Does), redact(detail.Command)
		detail.Parts = slices.Clone(detail.Parts)
		for i, p := range detail.Parts {
			detail.Parts[i] = CallPart{Text: redact(p.Text), Why: redact(p.Why), Detail: redact(p.Detail), Rule: p.Rule}
		}
		if detail.Diff = 0; d.Diff != "" {
			detail.Diff = len(prompt) + 1
		}
		data.Detail = &detail
	}
	if d.Diff != "" {
		prompt += "\n" + redact(d.Diff)
	}
	return prompt, data
}

// describeEdit returns what the model reads about a call whose arguments a person has changed.
func describeEdit(args json.RawMessage) string {
	return fmt.Sprintf("The user changed the arguments of this call before it was made. It was made with: %s\n", args)
}
