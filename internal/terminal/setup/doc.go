// Package setup asks the person at the terminal for what raddle needs: a model, the key of a provider, a first agent,
// completion in the shell. It saves the answers.
package setup

import (
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
)

// A Guide asks one person. Its methods return [term.ErrLeftOpen] if the person does not answer, and
// [term.ErrInterrupted] after Ctrl-C.
type Guide struct {
	*console.Console
	Process  *app.Process  // that uses the answers
	Prompter term.Prompter // that asks them
	// Reopen opens the process again, after a key was stored; nil if the guide asks for no key.
	Reopen func() (*app.Process, error)

	OffersLook bool // PickModel offers to look at recorded agents, with [ErrLook]
}
