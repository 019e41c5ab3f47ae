package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/config"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/runs"
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
	exitParked      = 5
	exitBudget      = 6
	exitLimit       = 7
	exitStale       = 8
	exitNoAnswer    = 9
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
	case errors.As(err, &limit) && limit.Status == graph.TimedOut && limit.Path == "":
		return exitTimeout
	case errors.As(err, &limit) && limit.Status != graph.TimedOut:
		return exitLimit
	}
	return exitFailed
}

func kindCode(k failure.Kind) int {
	switch k {
	case failure.Usage:
		return exitUsage
	case failure.Invalid:
		return exitInvalid
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

// doneCode returns the exit code of a run that is done: that of its end node, or an error
// if models were called and none gave a useful reply.
func doneCode(o flow.Outcome, c runs.Calls) int {
	if o.ExitCode == exitDone && c.Useless && strings.TrimSpace(o.Output) == "" {
		return exitNoAnswer
	}
	return o.ExitCode
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
func (env *environment) finishCommand(err error) int {
	env.err.ClearLive()
	if err == nil && env.out.Err() != nil {
		err = &exitError{code: exitFailed, err: fmt.Errorf("the result cannot be written: %w", env.out.Err())}
	}
	code := exitCode(err)
	var quiet silentExit
	if err != nil && !errors.As(err, &quiet) {
		env.printError(err)
	}
	return code
}
