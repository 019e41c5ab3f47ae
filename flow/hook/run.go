package hook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/wording"
)

// An Answer is what a hook says. It can forbid and narrow, and never allow.
type Answer struct {
	Deny      bool            `json:"deny,omitempty"`      // the call is not made
	Reason    string          `json:"reason,omitempty"`    // of a Deny, for the model and the person
	Arguments json.RawMessage `json:"arguments,omitempty"` // replace those of the call; an object
	Context   string          `json:"context,omitempty"`   // the model reads it
}

// may are the keys of an answer that have a meaning at each point.
var may = map[string][]string{
	BeforeTool: {"deny", "reason", "arguments", "context"},
	AfterTool:  {"context"},
	TurnStart:  {"context"},
	TurnEnd:    {},
	Question:   {},
}

// foreign are keys of other programs, with what raddle has instead.
var foreign = map[string]string{
	"decision": `write {"deny": true, "reason": "..."} to refuse a call`, "permissionDecision": `write {"deny": true, "reason": "..."} to refuse a call`,
	"hookSpecificOutput": "write deny, reason, arguments and context at the top of the object", "additionalContext": "it is called context here", "updatedInput": "it is called arguments here",
	"allow": "a hook cannot allow a call: the rules of permission and the user do", "continue": `write {"deny": true, "reason": "..."} to refuse a call`,
}

const (
	largestAnswer  = 256 << 10 // of each output, in bytes
	largestContext = 32 << 10
	largestError   = 2 << 10
)

// Surroundings are those in which hooks run.
type Surroundings struct {
	// Start runs the command of a hook to its end; nil: proc.Run. Whatever confines hooks belongs here.
	Start func(ctx context.Context, c proc.Command) (proc.Result, error)
	Dir   string   // in which they run
	Env   []string // without secrets
}

// Run runs a hook with its input, a JSON object. home is the directory of the file that has the hook, which it gets as
// RADDLE_HOOK_DIR. An error says why there is no answer: the command failed, was too slow, or has written what is no
// answer.
func (r Surroundings) Run(ctx context.Context, h Hook, home string, input []byte) (Answer, error) {
	start := r.Start
	if start == nil {
		start = proc.Run
	}
	mark := "RADDLE_HOOK=" + rand.Text()
	env := append(slices.Clone(r.Env), "RADDLE_HOOK_DIR="+home, mark)
	res, err := start(ctx, proc.Command{Path: "bash", Args: []string{"--noprofile", "--norc", "-c", h.Run}, Dir: r.Dir, Env: env, Stdin: append(input, '\n'), Timeout: h.Timeout, Limit: largestAnswer, Mark: mark})
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	if err != nil {
		return Answer{}, describeFailure(h, res, err)
	}
	if res.StdoutDropped > 0 {
		return Answer{}, fmt.Errorf("it wrote more than %d bytes: write only the answer on stdout", largestAnswer)
	}
	return parseAnswer(h.On, res.Stdout)
}

// describeFailure says why a command did not end well, with what it wrote on stderr.
func describeFailure(h Hook, res proc.Result, err error) error {
	text := "it could not be started: " + err.Error()
	var slow *proc.TimeoutError
	switch {
	case errors.As(err, &slow):
		text = fmt.Sprintf("it took longer than %v", h.Timeout)
	case res.Signal != "":
		text = "it was ended by " + res.Signal
	case res.ExitCode > 0:
		text = fmt.Sprintf("it ended with exit code %d", res.ExitCode)
	}
	if said := strings.ToValidUTF8(strings.TrimSpace(string(res.Stderr)), "�"); said != "" {
		text += ": " + wording.CutText(said, largestError, "…")
	}
	return errors.New(text)
}

// parseAnswer reads what a hook on a point has written. Nothing is the answer that changes nothing.
func parseAnswer(on string, text []byte) (a Answer, err error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if len(text) == 0 {
		return a, nil
	}
	if !utf8.Valid(text) {
		return a, errors.New("what it wrote on stdout is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var keys map[string]json.RawMessage
	if err := d.Decode(&keys); err != nil || keys == nil {
		return a, fmt.Errorf("what it wrote on stdout is not a JSON object (write other texts on stderr): %s", wording.CutText(string(text), 200, "…"))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a, errors.New("it wrote more than one JSON object on stdout")
	}
	for key := range keys {
		if !slices.Contains(may[on], key) {
			return a, errors.New(describeKey(on, key))
		}
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("its answer has a value of the wrong type: %w", err)
	}
	var object map[string]json.RawMessage
	if a.Arguments != nil && (json.Unmarshal(a.Arguments, &object) != nil || object == nil) {
		return a, errors.New("arguments of its answer must be an object")
	}
	if a.Arguments != nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, a.Arguments); err != nil {
			return a, err
		}
		a.Arguments = compact.Bytes()
	}
	if a.Reason != "" && !a.Deny {
		return a, errors.New(`its answer has a reason without "deny": true`)
	}
	if len(a.Context) > largestContext {
		a.Context = wording.CutText(a.Context, largestContext, "…")
	}
	a.Reason = wording.CutText(a.Reason, largestError, "…")
	return a, nil
}

// describeKey says why an answer on a point may not have a key.
func describeKey(on, key string) string {
	if slices.Contains(may[BeforeTool], key) {
		return fmt.Sprintf("%s has no meaning in an answer on %s", key, on)
	}
	text := fmt.Sprintf("its answer has the unknown key %q", key)
	if hint := foreign[key]; hint != "" {
		return text + ": " + hint
	}
	if near := wording.SuggestNearest(key, may[BeforeTool], ""); near != "" {
		text += ": " + near
	}
	return text
}
