package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
)

// consent asks the person at the terminal about directories that a run picks up
// although nobody named them. given tells whether there was one to which they
// agreed, which counts for runs that begin from now on. Where nobody is, it is only
// told; answers of the command line are no consent.
func (sh *shell) consent(p *app.Process, run *app.Run) (given bool, err error) {
	list, err := p.Pickups(run.Agent)
	if err != nil {
		return false, err
	}
	who := sh.prompter()
	for _, u := range list {
		what := fmt.Sprintf("%s was not named by you, and may run or decide what runs: %s", p.Dirs.Short(u.Dir), strings.Join(u.Files, ", "))
		if who == nil || run.Record.Headless {
			if !sh.quiet {
				sh.err.line("raddle: " + sh.err.paint(yellow, "warning:") + " " + plainText(what) + "; " + unconsented(u))
			}
			continue
		}
		answer, err := who.ask(context.Background(), graph.Question{Kind: kindConfirm, Prompt: what + "\nUse it, until one of these files changes?", Options: []string{"no", "yes"}})
		if errors.Is(err, errParked) {
			return given, silent{exitInterrupted}
		}
		if err != nil {
			return given, err
		}
		if answer == "yes" {
			if err := p.Consent(u); err != nil {
				return given, err
			}
			given = true
		}
	}
	return given, nil
}

// unconsented tells what a directory may do meanwhile.
func unconsented(u app.Pickup) string {
	if u.Agent {
		return "until you consent at a terminal, its tools and scripts ask each time, and its servers are not started"
	}
	return "without consent it may only forbid or ask"
}
