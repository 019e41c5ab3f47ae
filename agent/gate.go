package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
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

// A Decision is the answer of a Gate about a call.
type Decision struct {
	Verdict Verdict
	Reason  string // of a Deny: shown to the model
	Prompt  string // of an Ask; empty: a default that names the tool and its arguments
	// Grant names what can be allowed for longer than this call, in a form that
	// the gate chooses. If empty, a person can allow only this call.
	Grant   []string
	Lasting bool // Grant may be allowed permanently, not only for the run
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
	// "run", "always" and "no"; any other text means no and is the reason.
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
	answerAlways = "always"
	answerNo     = "no"
)

// CallData is Question.Data of the questions about a call.
type CallData struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
	Grant []string        `json:"grant,omitempty"` // what "run" and "always" allow
}

// requestPermission asks the gate and, if the gate says so, a person. refused is the
// outcome of a call that must not be made, and nil if the call may be made.
func (a *actStep) requestPermission(ctx context.Context, t tool.Tool, c tool.Call) (refused *tool.Result, err error) {
	if a.act.Gate == nil {
		return nil, nil
	}
	d, err := a.act.Gate.Decide(ctx, t, c, a.listGrants())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	switch {
	case err != nil:
		return denyCall("%v", err), nil
	case d.Verdict == Allow:
		return nil, nil
	case d.Verdict == Deny && d.Reason == "":
		return denyCall("permission denied: a rule forbids this call of %s", t.Name), nil
	case d.Verdict == Deny:
		return denyCall("permission denied: %s", d.Reason), nil
	case a.act.Headless:
		return denyCall("permission denied: this call of %s needs the consent of a person, and there is none. Find another way, or say what you could not do.", t.Name), nil
	}
	return a.askPermission(ctx, t, c, d)
}

func denyCall(format string, args ...any) *tool.Result {
	r := tool.FailedResult(format, args...)
	return &r
}

func (a *actStep) askPermission(ctx context.Context, t tool.Tool, c tool.Call, d Decision) (*tool.Result, error) {
	prompt := d.Prompt
	if prompt == "" {
		prompt = fmt.Sprintf("May %s be called with %s?", t.Name, c.Args)
	}
	options := []string{answerOnce, answerNo}
	switch {
	case len(d.Grant) > 0 && d.Lasting:
		options = []string{answerOnce, answerRun, answerAlways, answerNo}
	case len(d.Grant) > 0:
		options = []string{answerOnce, answerRun, answerNo}
	}
	answer, err := graph.Interrupt[any](ctx, graph.Ask{Name: "permit " + c.ID, Kind: KindPermission, Prompt: a.act.redact(prompt),
		Options: options, Free: true, Data: CallData{ID: c.ID, Tool: t.Name, Args: c.Args, Grant: d.Grant}})
	var refusal *graph.RefusedError
	switch {
	case errors.As(err, &refusal):
		return denyCall("permission denied: %s", refusal.Reason), nil
	case err != nil:
		return nil, err
	}
	switch text := strings.TrimSpace(fmt.Sprint(answer)); strings.ToLower(text) {
	case answerOnce, "yes", "y", "true":
		return nil, nil
	case answerRun:
		a.addGrants(d.Grant)
		return nil, nil
	case answerAlways:
		a.addGrants(d.Grant)
		if !d.Lasting {
			return nil, nil
		}
		_, err := graph.DoEffect(ctx, graph.Effect{Name: "always", Key: c.ID}, func(ctx context.Context) (bool, error) {
			return true, a.act.Gate.Always(ctx, d.Grant)
		})
		return nil, err
	case "", answerNo, "n", "false":
		return denyCall("permission denied: the user does not want this call of %s", t.Name), nil
	default:
		text = strings.TrimSpace(strings.TrimPrefix(text, answerNo+":"))
		return denyCall("permission denied: the user does not want this call of %s: %s", t.Name, text), nil
	}
}

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
