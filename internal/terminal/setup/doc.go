// Package setup asks the person at the terminal for what raddle needs: a model, the key of a provider, a first agent, completion in the shell.
// It saves the answers.
package setup

import (
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
)

// A Guide asks one person. Its methods return [term.ErrLeftOpen] if the person does not answer, and [term.ErrInterrupted] after Ctrl-C.
type Guide struct {
	Process  *app.Process                     // that uses the answers
	Screen   *term.Screen                     // where questions are asked
	Prompter term.Prompter                    // that asks them
	Note     func(format string, args ...any) // writes a line about what was done
	Warn     func(text string)                // writes a warning
	Reopen   func() (*app.Process, error)     // opens the process again, after a key was stored

	OffersLook bool // PickModel offers to look at recorded agents, with [ErrLook]
}
