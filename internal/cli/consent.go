package cli

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/term"
)

// askConsent asks the person at the terminal about directories that a run picks up
// although the user did not name them. given reports whether the person agreed to one,
// which counts for runs that start from now on. Without a person, consent only prints a
// message; answers of the command line are not consent.
func askConsent(env *environment, p *app.Process, run *app.Run) (given bool, err error) {
	list, err := p.FindImplicitDirs(run.Agent)
	if err != nil {
		return false, err
	}
	who := env.newPrompter()
	for _, u := range list {
		if u.Packages {
			asked, err := askPackageConsent(env, p, u, who == nil || run.Record.Headless)
			if err != nil {
				return given, err
			}
			given = given || asked
			continue
		}
		what := fmt.Sprintf("%s was not named by you, and may run or decide what runs: %s", term.QuoteName(p.Dirs.ShortPath(u.Dir)), quoteNames(u.Files))
		if who == nil || run.Record.Headless {
			if !env.quiet {
				env.err.PrintLine("raddle: " + env.err.Paint(term.Yellow, "warning:") + " " + plainText(what) + "; " + describeRestrictions(u))
			}
			continue
		}
		answer, err := askQuestion(context.Background(), who, graph.Question{Kind: kindConfirm, Prompt: what + "\nUse it, until one of these files changes?", Options: []string{"no", "yes"}}, env.err.Colors)
		if errors.Is(err, term.ErrLeftOpen) {
			return given, silentExit{exitInterrupted}
		}
		if err != nil {
			return given, err
		}
		if answer == "yes" {
			if err := p.RecordConsent(u); err != nil {
				return given, err
			}
			given = true
		}
	}
	return given, nil
}

// askPackageConsent asks about interpreters and packages in the workspace, and reports
// whether they may be used. It remembers a no.
func askPackageConsent(env *environment, p *app.Process, u app.ImplicitDir, nobody bool) (given bool, err error) {
	what := fmt.Sprintf("The programs and packages in %s were not named by you. Tools of this agent would run them.", term.QuoteName(p.Dirs.ShortPath(u.Dir)))
	if nobody {
		if !env.quiet {
			env.err.PrintLine("raddle: " + env.err.Paint(term.Yellow, "warning:") + " " + plainText(what) + " raddle does not use them until you consent at a terminal.")
		}
		return false, nil
	}
	answer, err := askQuestion(context.Background(), env.newPrompter(), graph.Question{Kind: kindConfirm, Options: []string{"no", "yes"},
		Prompt: what + "\nUse them, until one of the files changes? After a no, raddle does not ask again (delete the entry in " + p.Dirs.ShortPath(p.ConsentFile()) + " to change that)."}, env.err.Colors)
	switch {
	case errors.Is(err, term.ErrLeftOpen):
		return false, silentExit{exitInterrupted}
	case err != nil:
		return false, err
	case answer == "yes":
		return true, p.RecordConsent(u)
	}
	return false, p.RecordRefusal(u)
}

// describeRestrictions says what a directory may do without consent.
func describeRestrictions(u app.ImplicitDir) string {
	if u.Agent {
		return "until you consent at a terminal, its tools and scripts ask each time, and its servers are not started"
	}
	return "without consent it may only forbid or ask"
}

// quoteNames returns names of files for a person who decides about them, quoted so that each stands out from the text around it.
func quoteNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = term.QuoteName(name)
	}
	return joinWords(quoted)
}
