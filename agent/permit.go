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
	Words []string        `json:"words,omitempty"` // what "words" allows

	Agent  string      `json:"agent,omitempty"`  // the name of the agent that makes the call, if it has one
	Detail *CallDetail `json:"detail,omitempty"` // of a question about permission, if the gate gives it
	// Edited reports whether a person has changed the arguments.
	Edited bool `json:"edited,omitempty"`
}

// A CallDetail says what a call does and why it asks.
type CallDetail struct {
	Does    string `json:"does,omitempty"`    // as the end of a sentence that begins with "the agent wants to"
	Command string `json:"command,omitempty"` // shell text that the call would run
	// Diff is the length in bytes of the question's prompt before the change of a file; 0: there is no change.
	Diff  int        `json:"diff,omitempty"`
	Parts []CallPart `json:"parts,omitempty"` // what the call needs that is not simply allowed
	// Risks are the harm that it may do, each as the end of a sentence that begins with "it".
	Risks []string `json:"risks,omitempty"`
	Dir   string   `json:"dir,omitempty"` // the directory in which it works
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

// chooseRules returns the rules that an answer gives to the call itself, of those that the question offers. "once"
// gives them to no other call.
func (a *PermissionAnswer) chooseRules(grant, words []string) []string {
	switch {
	case len(a.Rules) > 0:
		return a.Rules
	case a.Choice == answerWords:
		return words
	}
	return grant
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
	case answerOnce, answerRun, answerWords, answerAlways, answerNo:
		if len(a.Args) > 0 {
			return fmt.Errorf(`the choice %q takes no "args"`, a.Choice)
		}
	default:
		return fmt.Errorf("the choice %q must be one of once, run, words, always, no, edit", a.Choice)
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
	case answerWords:
		return PermissionAnswer{Choice: answerWords}
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

// A permitted is a call that wants permission, with what was decided about it.
type permitted struct {
	call    tool.Call    // the call to make, about whose arguments the gate has decided
	edited  bool         // a person has changed the arguments
	refused *tool.Result // the outcome of a call that must not be made; nil: it may be made
	why     *Permission  // to be recorded; nil: there is no gate
}

// requestPermission asks the gate about a call and, if the gate says so, a person, who may change the arguments.
func (a *actStep) requestPermission(ctx context.Context, t tool.Tool, p *permitted) error {
	if a.act.Gate == nil {
		return nil
	}
	for edits := range maxEdits {
		if args, ok, err := loadEdit(ctx, p.call, edits); err != nil {
			return err
		} else if ok {
			p.call.Args = args
			p.edited = true
			continue
		}
		d, err := a.act.Gate.Decide(ctx, t, p.call, a.listGrants())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.refused, p.why = denyCall("%v", err), a.refuseCall(byCall, t.Name, "cannot be judged")
			return nil
		}
		p.why = a.newPermission(&d)
		if d.Verdict != Ask {
			p.call.Permit, p.refused = d.Permit, d.refuse(t)
			if edited, err := a.applyAnswer(ctx, t, p, edits); err != nil || !edited {
				return err
			}
			continue
		}
		if fault := CheckArguments(t, p.call.Args); fault != nil { // no question about a call that cannot be made
			p.refused, p.why = denyCall("%v", fault), a.refuseCall(byCall, t.Name, "does not accept these arguments")
			return nil
		}
		if a.act.Headless {
			p.why.Answer = answerHeadless
			p.refused = denyCall("permission denied: this call of %s needs the consent of a person, and there is none. Find another way, or say what you could not do.", t.Name)
			return nil
		}
		answer, err := a.askPermission(ctx, t, p, d, edits)
		if err != nil || p.refused != nil || answer.Choice != answerEdit {
			p.call.Permit = d.Permit.Answer(answer.chooseRules(d.Grant, d.Words))
			return err
		}
		if err := p.edit(ctx, edits, answer.Args); err != nil {
			return err
		}
	}
	p.refused = denyCall("permission denied: the arguments of this call of %s were changed too often", t.Name)
	p.why = a.refuseCall(byCall, t.Name, "got other arguments from a person too often")
	return nil
}

// edit replaces the arguments of a call, which were replaced a number of times before, and records them.
func (p *permitted) edit(ctx context.Context, edits int, args json.RawMessage) (err error) {
	p.call.Args, err = recordEdit(ctx, p.call, edits, args)
	p.edited = true
	return err
}

// applyAnswer applies what a person has already answered about a call that the gate would let run without a question
// now, because a rule, the mode or the box has changed since: a person who refused it, or changed its arguments, has
// said so about this call. edited reports whether the arguments were changed, so that the gate decides about the call
// again.
func (a *actStep) applyAnswer(ctx context.Context, t tool.Tool, p *permitted, edits int) (edited bool, err error) {
	if p.refused != nil {
		return false, nil
	}
	value, answered, err := graph.FindAnswer[any](ctx, permissionQuestion(p.call, edits))
	if err == nil && !answered {
		return false, nil
	}
	answer, err := a.readAnswer(t, p, value, err)
	if err != nil || p.refused != nil || answer.Choice != answerEdit {
		return false, err
	}
	return true, p.edit(ctx, edits, answer.Args)
}

// readAnswer reads the answer to the question about a call, or the error in its place. A refusal, and an answer that
// cannot be read, refuse the call.
func (a *actStep) readAnswer(t tool.Tool, p *permitted, value any, err error) (PermissionAnswer, error) {
	refuse := func(outcome, format string, args ...any) {
		p.why.setAnswer(a, outcome, nil)
		p.refused = denyCall(format, args...)
	}
	if refusal := refusalOf(err); refusal != nil {
		refuse(answerRefused, "permission denied: %s", refusal.Reason)
		return PermissionAnswer{}, nil
	}
	if err != nil {
		return PermissionAnswer{}, err
	}
	answer, err := parsePermission(value)
	switch {
	case err != nil: // an older version recorded it
		refuse(answerRefused, "permission denied: the answer of the user could not be read: %v", err)
	case answer.Choice == answerNo && answer.Reason != "":
		refuse(answerNo, "permission denied: the user does not want this call of %s: %s", t.Name, answer.Reason)
	case answer.Choice == answerNo:
		refuse(answerNo, "permission denied: the user does not want this call of %s", t.Name)
	}
	return answer, nil
}

// refuse returns the outcome of a call that a decision denies; nil: it does not.
func (d *Decision) refuse(t tool.Tool) *tool.Result {
	switch {
	case d.Verdict != Deny:
		return nil
	case d.Reason == "":
		return denyCall("permission denied: a rule forbids this call of %s", t.Name)
	}
	return denyCall("permission denied: %s", d.Reason)
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
		args = newer
		edited = newer
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
	Words []string `json:"words,omitempty"`
	Boxed bool     `json:"boxed,omitempty"` // an answer lets the call run in the box only: see [tool.Permit]
}

// newOffer returns what the question about a decision offers.
func newOffer(d *Decision) offer {
	return offer{Bound: d.Bound, Grant: d.Grant, Words: d.Words, Boxed: d.Permit != nil && d.Permit.Boxed}
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

// covers reports whether a choice that was made when this was offered counts for a decision that is made now. What is
// bound to a content then or now must be the same; and nothing is allowed for longer that was not shown.
func (o *offer) covers(choice string, now Decision) bool {
	allows := choice != answerNo && choice != answerEdit
	if allows && o.Boxed && (now.Permit == nil || !now.Permit.Boxed) {
		return false // it would run outside of the box now
	}
	switch choice {
	case answerNo, answerEdit:
		return true
	case answerOnce:
		return !o.Bound && !now.Bound || slices.Equal(o.Grant, now.Grant)
	case answerWords:
		return len(o.Words) > 0 && slices.Equal(o.Words, now.Words)
	}
	return slices.Equal(o.Grant, now.Grant)
}

// askPermission asks a person about a call whose arguments were changed a number of times.
func (a *actStep) askPermission(ctx context.Context, t tool.Tool, p *permitted, d Decision, edits int) (answer PermissionAnswer, err error) {
	c := p.call
	refuse := func(format string, args ...any) (PermissionAnswer, error) {
		p.refused = denyCall(format, args...)
		return answer, nil
	}
	ask := a.newPermissionAsk(t, c, d, edits)
	_, key := editEffect(c, edits)
	if _, asked, err := loadRecorded[offer](ctx, "offer", key); err != nil {
		return answer, err
	} else if !asked && t.Refuse != nil {
		if r := t.Refuse(c); r != nil {
			p.refused, p.why = r, a.refuseCall(byCall, t.Name, "refused the call before anyone was asked")
			return answer, nil
		}
	}
	offered, err := graph.DoEffect(ctx, graph.Effect{Name: "offer", Key: key}, func(context.Context) (offer, error) { return newOffer(&d), nil })
	if err != nil {
		return answer, err
	}
	if err := a.announceQuestion(ctx, t, c, ask.Name, ask.Prompt); err != nil {
		return answer, err
	}
	value, err := graph.Interrupt[any](ctx, ask)
	if answer, err = a.readAnswer(t, p, value, err); err != nil || p.refused != nil {
		return answer, err
	}
	if !offered.covers(answer.Choice, d) {
		p.why.setAnswer(a, answerChanged, nil)
		return refuse("permission denied: what this call of %s runs has changed since the user was asked. Make the call again, so that the user can decide about it as it is now.", t.Name)
	}
	rules := answer.chooseRules(d.Grant, d.Words)
	switch answer.Choice {
	case answerOnce:
		p.why.setAnswer(a, answerOnce, nil)
	case answerRun, answerWords:
		p.why.setAnswer(a, answer.Choice, rules)
		a.addGrants(rules)
	case answerAlways:
		if len(answer.Rules) > 0 {
			if err := a.act.checkNarrowed(d.Grant, answer.Rules); err != nil {
				p.why.setAnswer(a, answerRefused, nil)
				return refuse("permission denied: the rules of the user's answer cannot be saved: %v", err)
			}
		}
		p.why.setAnswer(a, answerAlways, rules)
		a.addGrants(rules)
		if !d.Lasting {
			return answer, nil
		}
		_, err := graph.DoEffect(ctx, graph.Effect{Name: "always", Key: c.ID}, func(ctx context.Context) (bool, error) {
			return true, a.act.Gate.Always(ctx, rules)
		})
		return answer, err
	}
	return answer, nil
}

// newPermissionAsk returns the question about a call.
func (a *actStep) newPermissionAsk(t tool.Tool, c tool.Call, d Decision, edits int) graph.Ask {
	prompt, data := d.DescribeCall(t, c, a.act.redact)
	data.Agent = a.act.Budget.Of
	data.Edited = edits > 0
	options := []string{answerOnce}
	if len(d.Grant) > 0 {
		options = append(options, answerRun)
	}
	if len(d.Words) > 0 {
		options = append(options, answerWords)
	}
	if len(d.Grant) > 0 && d.Lasting {
		options = append(options, answerAlways)
	}
	options = append(options, answerNo)
	return graph.Ask{
		Name:    permissionQuestion(c, edits),
		Kind:    KindPermission,
		Prompt:  prompt,
		Options: options,
		Free:    true,
		Data:    data,
	}
}

// permissionQuestion returns the name of the question about a call whose arguments were changed a number of times.
func permissionQuestion(c tool.Call, edits int) string {
	if edits == 0 {
		return "permit " + c.ID
	}
	return "permit " + c.ID + "#" + strconv.Itoa(edits+1)
}

// DescribeCall returns the prompt and the data of the question whether a call may be made, for a decision that says
// Ask. redact takes secrets out of the texts that a person reads; the arguments in the data stay as they are.
func (d *Decision) DescribeCall(t tool.Tool, c tool.Call, redact func(string) string) (prompt string, data CallData) {
	prompt = d.Prompt
	if prompt == "" {
		prompt = fmt.Sprintf("May %s be called with %s?", t.Name, c.Args)
	}
	prompt = redact(prompt)
	data = CallData{ID: c.ID, Tool: t.Name, Args: c.Args, Grant: d.Grant, Words: d.Words}
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

// checkAnswer returns why an answer to a question about a call is rejected: see
// graph.Node.CheckAnswer. It does not repeat the checks that follow from the
// type of the question.
func (a *Act) checkAnswer(q graph.Question, given graph.Answer) error {
	if q.Kind == KindPermission {
		return a.checkPermission(q, given)
	}
	var d CallData
	if json.Unmarshal(q.Data, &d) != nil {
		return nil
	}
	for i := range userTools {
		if u := &userTools[i]; u.name == d.Tool && u.kind == q.Kind {
			if _, problem := u.answer(u, userArgs{Question: q.Prompt, Options: q.Options}, given.Value); problem != "" {
				return errors.New(problem)
			}
		}
	}
	return nil
}
