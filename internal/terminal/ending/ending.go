// Package ending says how commands end: their exit codes, and errors as a person at a terminal reads them.
package ending

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/excerpt"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/llm"
)

// These are the exit codes. They are documented and stable; an end node may set others
// from 64 to 113.
const (
	Done        = 0
	Failed      = 1
	Usage       = 2
	Invalid     = 3
	Auth        = 4
	Waiting     = 5
	Budget      = 6
	Limit       = 7
	Stale       = 8
	NoAnswer    = overview.ExitNoAnswer
	Fault       = 10 // a panic: an internal error of raddle
	Timeout     = 124
	Hangup      = 129
	Interrupted = 130
	Quit        = 131 // SIGQUIT: the stacks of all goroutines are on standard error
	Pipe        = 141 // the output pipe was closed, and the run was stopped because of that
	Terminated  = 143
)

// An Error is an error with an exit code and, if there is one, the next step.
type Error struct {
	Code int
	Next string // "": none
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }

// Silent ends the command with a code after everything has been printed.
type Silent struct{ Code int }

func (e Silent) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// EndInterrupted returns the error of a question; Ctrl-C at it ends the command without a message.
func EndInterrupted(err error) error {
	if errors.Is(err, term.ErrInterrupted) {
		return Silent{Code: Interrupted}
	}
	return err
}

// BadUsage returns the error of a command that was written wrongly, with the next step, "" for none.
func BadUsage(next, format string, args ...any) error {
	return &Error{Code: Usage, Next: next, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code of an error.
func CodeOf(err error) int {
	var (
		quiet  Silent
		own    *Error
		ours   *failure.Error
		model  *llm.Error
		file   *config.FileError
		answer *graph.AnswerError
		limit  *graph.LimitError
		budget *agent.BudgetError
		needs  *flow.VariablesError
		late   *app.DeadlineError
	)
	switch {
	case err == nil:
		return Done
	case errors.As(err, &quiet):
		return quiet.Code
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &late):
		return Timeout
	case errors.As(err, &model) && model.Class == llm.Auth:
		return Auth
	case errors.As(err, &ours):
		return kindCode(ours.Kind)
	case errors.As(err, &file), invalidAgent(err):
		return Invalid
	case errors.As(err, &answer), errors.As(err, &needs):
		return Usage
	case errors.As(err, &budget):
		return Budget
	case errors.As(err, &limit) && (limit.Status != graph.TimedOut || limit.Path == ""): // else a node took too long
		return StatusCode(limit.Status)
	}
	return Failed
}

// StatusCode returns the exit code of a run that has a status. One that is done has also that of its end node, and one
// that has failed also that of its error.
func StatusCode(s graph.Status) int {
	switch s {
	case graph.Done:
		return Done
	case graph.Waiting:
		return Waiting
	case graph.Paused, graph.Canceled:
		return Interrupted
	case graph.TimedOut:
		return Timeout
	case graph.StepLimit, graph.VisitLimit:
		return Limit
	case graph.Abandoned:
		return Stale
	}
	return Failed
}

func kindCode(k failure.Kind) int {
	switch k {
	case failure.Usage:
		return Usage
	case failure.Invalid:
		return Invalid
	case failure.Unavailable:
		return Failed
	}
	return Stale
}

// invalidAgent reports whether an error is about an agent's definition.
func invalidAgent(err error) bool {
	var (
		load    *flow.LoadError
		refused *spec.ValidationError
		strict  *app.StrictError
		model   *flow.MissingModelError
	)
	return errors.As(err, &load) || errors.As(err, &refused) || errors.As(err, &strict) || errors.As(err, &model)
}

// SignalCode returns the exit code of a run that a signal stopped.
func SignalCode(s os.Signal) int {
	switch s {
	case syscall.SIGTERM:
		return Terminated
	case syscall.SIGHUP:
		return Hangup
	}
	return Interrupted
}

// PrintError writes an error to standard error: what and where, why, and the next step. p is nil if no process was
// opened.
func PrintError(con *console.Console, p *app.Process, err error) {
	var b strings.Builder
	if !con.Headed {
		b.WriteString(con.Screen.Paint(term.Red, "raddle: "))
	}
	defer func() { con.Headed = false }()
	if list := app.FindingsOf(err); len(list) > 0 {
		b.WriteString(faultsHeading(err) + "\n")
		for _, f := range list {
			look := LookAtFindings(p, con.Screen.Colors)
			look.Columns = con.Screen.Columns() - len("  ")
			b.WriteString("  " + look.FormatFinding(f) + "\n" + indentLines(look.FormatExcerpt(f), "  "))
		}
	} else if con.ShowsBlocks() && !con.Verbose {
		b.WriteString(formatCause(con, err) + "\n")
	} else {
		b.WriteString(formatCauses(err))
	}
	for _, also := range alsoFailed(err) {
		fmt.Fprintf(&b, "also failed: %s\n", also)
	}
	if next := NextStep(p, err); next != "" {
		fmt.Fprintf(&b, "next: %s\n", next)
	}
	con.Screen.PrintLine(strings.TrimSuffix(b.String(), "\n"))
}

// NextStep returns what to do about an error, or "". p is nil if no process was opened.
func NextStep(p *app.Process, err error) string {
	var (
		own   *Error
		ours  *failure.Error
		model *flow.MissingModelError
		needs *flow.VariablesError
		file  *config.FileError
	)
	switch {
	case errors.As(err, &own) && own.Next != "":
		return own.Next
	case errors.As(err, &ours):
		return ours.Next
	case errors.As(err, &model) && p != nil:
		return HintModel(p, model.Agent)
	case errors.As(err, &file):
		return "correct it: raddle config edit"
	case errors.As(err, &needs):
		return "set them: --agent-variable NAME VALUE"
	}
	return ""
}

// faultsHeading returns the first line above the findings of a file.
func faultsHeading(err error) string {
	parts := failure.Split(err)
	var load *flow.LoadError
	if errors.As(err, &load) {
		return fmt.Sprintf("agent '%s' cannot be loaded:", load.Agent)
	}
	if first, _, more := strings.Cut(parts[0], ":\n"); more {
		return first + ":"
	}
	list := app.FindingsOf(err)
	if strings.Contains(parts[0], list[0].Message) {
		return "errors in " + filepath.Base(list[0].Pos.File) + ":"
	}
	return parts[0] + ":"
}

// formatCauses returns an error in lines: the outermost words first, then its
// causes.
func formatCauses(err error) string {
	parts := failure.Split(err)
	var b strings.Builder
	b.WriteString(parts[0] + "\n")
	if len(parts) == 1 {
		return b.String()
	}
	b.WriteString("Caused by:\n")
	for i, p := range parts[1:] {
		p = strings.ReplaceAll(strings.TrimRight(flow.PlainReason(p), "\n"), "\n", "\n       ")
		fmt.Fprintf(&b, "    %d: %s\n", i, p)
	}
	return b.String()
}

// formatCause returns an error for a person at a terminal: what failed, unless that was the last line, and the
// innermost cause.
func formatCause(con *console.Console, err error) string {
	parts := failure.Split(err)
	text := parts[0]
	place := ""
	if m := failedAgent().FindStringSubmatch(text); m != nil {
		text = m[1] + " failed"
	}
	for _, p := range parts[1:] {
		if m := failedNode().FindStringSubmatch(p); m != nil && place == "" {
			place = " at " + m[1]
		}
	}
	if con.Headed && len(parts) > 1 {
		text = "  " + strings.TrimPrefix(place, " ")
	} else {
		text += place
	}
	if len(parts) > 1 {
		text = strings.TrimRight(text, " ")
		if text != "" {
			text += ": "
		} else {
			text = "  "
		}
		text += flow.PlainReason(parts[len(parts)-1])
	}
	return strings.TrimRight(text, "\n")
}

// These match the texts that name a failed agent and a failed node.
var (
	failedAgent = pattern.CompileLater(`^(?:Graph execution failed for agent|Agent) '([^']*)'(?: failed)?$`)
	failedNode  = pattern.CompileLater(`^at node '([^']*)'$`)
)

// alsoFailed reports the other branches that failed in the same step.
func alsoFailed(err error) []string {
	var step *graph.StepError
	if !errors.As(err, &step) || step.Path != "" {
		return nil
	}
	var list []string
	for _, t := range step.Tasks[1:] {
		list = append(list, fmt.Sprintf("at node '%s': %v", t.Node, t.Err))
	}
	return list
}

// indentLines begins each line of a text with indent.
func indentLines(text, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(indent + line)
	}
	return b.String()
}

// LookAtFindings says how findings of files look on a stream with these colours. The values of files that may hold secrets
// are hidden. p may be nil.
func LookAtFindings(p *app.Process, colors term.Colors) excerpt.Look {
	if p == nil {
		return excerpt.Look{Colors: colors}
	}
	dirs := p.Dirs
	return excerpt.Look{Colors: colors, ShortPath: dirs.ShortPath, HoldsSecrets: func(path string) bool {
		return filepath.Base(path) == "mcp.json" || filepath.Dir(path) == dirs.Config
	}}
}

// SuggestWord suggests one of a few words, or lists them.
func SuggestWord(wrong string, known []string) string {
	return cmp.Or(wording.SuggestNearest(wrong, known, ""), "use one of "+strings.Join(known, ", "))
}

// BadChoice returns the error of a flag whose value is none of a few words.
func BadChoice(flag, wrong string, known []string) error {
	return BadUsage(SuggestWord(wrong, known), "%s %s: it must be one of %s", flag, wrong, strings.Join(known, ", "))
}

// ExitSilently returns the error of a command that has said everything and ends with a code; nil for Done.
func ExitSilently(code int) error {
	if code == Done {
		return nil
	}
	return Silent{Code: code}
}

// HintModel returns what to do when no model is set: commands to paste.
func HintModel(p *app.Process, agent string) string {
	model, needs := p.Models.SuggestModel()
	run := "raddle run " + wording.QuoteWord(agent) + " --model " + model + " …  (or once and for all: raddle config set model " + model + ")"
	if agent == "AGENT" {
		run = "raddle config set model " + model
	}
	if needs == "" {
		return run
	}
	return "raddle login " + needs + "  (or set a key: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, …)\nthen: " + run
}
