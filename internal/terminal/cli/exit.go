package cli

import (
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
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/excerpt"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/llm"
)

// These are the exit codes. They are documented and stable; an end node may set others
// from 64 to 113.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInvalid     = 3
	exitAuth        = 4
	exitWaiting     = 5
	exitBudget      = 6
	exitLimit       = 7
	exitStale       = 8
	exitNoAnswer    = overview.ExitNoAnswer
	exitFault       = 10 // a panic: an internal error of raddle
	exitTimeout     = 124
	exitHangup      = 129
	exitInterrupted = 130
	exitQuit        = 131 // SIGQUIT: the stacks of all goroutines are on standard error
	exitPipe        = 141 // the output pipe was closed, and the run was stopped because of that
	exitTerminated  = 143
)

// An exitError is an error with an exit code and, if there is one, the next step.
type exitError struct {
	code int
	next string
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the error.
func (e *exitError) Unwrap() error { return e.err }

// silentExit ends the command with a code after everything has been printed.
type silentExit struct{ code int }

func (e silentExit) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// endInterrupted returns the error of a question; Ctrl-C at it ends the command without a message.
func endInterrupted(err error) error {
	if errors.Is(err, term.ErrInterrupted) {
		return silentExit{exitInterrupted}
	}
	return err
}

func badUsage(next, format string, args ...any) error {
	return &exitError{code: exitUsage, next: next, err: fmt.Errorf(format, args...)}
}

// exitCode returns the exit code of an error.
func exitCode(err error) int {
	var (
		quiet  silentExit
		own    *exitError
		ours   *failure.Error
		model  *llm.Error
		file   *config.FileError
		answer *graph.AnswerError
		limit  *graph.LimitError
		budget *agent.BudgetError
		needs  *flow.VariablesError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &quiet):
		return quiet.code
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &model) && model.Class == llm.Auth:
		return exitAuth
	case errors.As(err, &ours):
		return kindCode(ours.Kind)
	case errors.As(err, &file), invalidAgent(err):
		return exitInvalid
	case errors.As(err, &answer), errors.As(err, &needs):
		return exitUsage
	case errors.As(err, &budget):
		return exitBudget
	case errors.As(err, &limit) && (limit.Status != graph.TimedOut || limit.Path == ""): // else a node took too long
		return statusCode(limit.Status)
	}
	return exitFailed
}

// statusCode returns the exit code of a run that has a status. One that is done has also that of its end node, and one
// that has failed also that of its error.
func statusCode(s graph.Status) int {
	switch s {
	case graph.Done:
		return exitDone
	case graph.Waiting:
		return exitWaiting
	case graph.Paused, graph.Canceled:
		return exitInterrupted
	case graph.TimedOut:
		return exitTimeout
	case graph.StepLimit, graph.VisitLimit:
		return exitLimit
	case graph.Abandoned:
		return exitStale
	}
	return exitFailed
}

func kindCode(k failure.Kind) int {
	switch k {
	case failure.Usage:
		return exitUsage
	case failure.Invalid:
		return exitInvalid
	case failure.Unavailable:
		return exitFailed
	}
	return exitStale
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

// signalCode returns the exit code of a run that a signal stopped.
func signalCode(s os.Signal) int {
	switch s {
	case syscall.SIGTERM:
		return exitTerminated
	case syscall.SIGHUP:
		return exitHangup
	}
	return exitInterrupted
}

// finishCommand prints what went wrong, if anything, and returns the exit code.
func finishCommand(op *opener, err error) int {
	op.Screen.ClearLive()
	if err == nil && op.Out.Err() != nil {
		err = &exitError{code: exitFailed, err: fmt.Errorf("the result cannot be written: %w", op.Out.Err())}
	}
	code := exitCode(err)
	var quiet silentExit
	if err != nil && !errors.As(err, &quiet) {
		printError(op.Console, op.process, err)
	}
	return code
}

// printError writes an error to standard error: what and where, why, and the next step. p is nil if no process was
// opened.
func printError(con *console.Console, p *app.Process, err error) {
	var b strings.Builder
	if !con.Headed {
		b.WriteString(con.Screen.Paint(term.Red, "raddle: "))
	}
	defer func() { con.Headed = false }()
	if list := findingsOf(err); len(list) > 0 {
		b.WriteString(faultsHeading(err) + "\n")
		for _, f := range list {
			look := findingLook(p, con.Screen.Colors)
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
	if next := nextStep(p, err); next != "" {
		fmt.Fprintf(&b, "next: %s\n", next)
	}
	_, _ = con.Screen.Write([]byte(b.String()))
}

// nextStep returns what to do about an error, or "". p is nil if no process was opened.
func nextStep(p *app.Process, err error) string {
	var (
		own   *exitError
		ours  *failure.Error
		model *flow.MissingModelError
		needs *flow.VariablesError
		file  *config.FileError
	)
	switch {
	case errors.As(err, &own) && own.next != "":
		return own.next
	case errors.As(err, &ours):
		return ours.Next
	case errors.As(err, &model) && p != nil:
		return missingModelHint(p, model.Agent)
	case errors.As(err, &file):
		return "correct it: raddle config edit"
	case errors.As(err, &needs):
		return "set them: --agent-variable NAME VALUE"
	}
	return ""
}

// findingsOf returns the findings with positions that an error contains.
func findingsOf(err error) []strictyaml.Finding {
	var (
		load    *flow.LoadError
		refused *spec.ValidationError
		strict  *app.StrictError
		list    strictyaml.Lister
	)
	switch {
	case errors.As(err, &load):
		return load.Findings
	case errors.As(err, &refused):
		return refused.Findings
	case errors.As(err, &strict):
		return strict.Findings
	case errors.As(err, &list):
		return list.ListFindings()
	}
	return nil
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
	list := findingsOf(err)
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

// findingLook says how findings of files look on a stream with these colours. The values of files that may hold secrets
// are hidden. p may be nil.
func findingLook(p *app.Process, colors term.Colors) excerpt.Look {
	if p == nil {
		return excerpt.Look{Colors: colors}
	}
	dirs := p.Dirs
	return excerpt.Look{Colors: colors, ShortPath: dirs.ShortPath, HoldsSecrets: func(path string) bool {
		return filepath.Base(path) == "mcp.json" || filepath.Dir(path) == dirs.Config
	}}
}
