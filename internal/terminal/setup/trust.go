package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/report/question"
)

// WarnImplicitDirs says what a run does not use, because there is no person to ask.
func (g *Guide) WarnImplicitDirs(list []toolbox.ImplicitDir) {
	for _, u := range list {
		what, _, otherwise := g.describeImplicitDir(u)
		g.PrintWarning(term.CleanText(what + otherwise))
	}
}

// AskConsent asks about what a run would use although the user did not name it. Several are one question, in which the
// person may choose to decide about each; what has changed since the person agreed is shown. A no to packages, skills
// and servers is remembered. given reports whether the person agreed to one of them.
func (g *Guide) AskConsent(ctx context.Context, list []toolbox.ImplicitDir) (given bool, err error) {
	ask := func(prompt string, options ...string) (any, error) {
		return question.Ask(ctx, g.Prompter, graph.Question{
			Kind:    question.KindConfirm,
			Prompt:  prompt,
			Options: options,
		}, g.Screen.Colors)
	}
	var common any = eachAlone
	if len(list) > 1 {
		g.Screen.PrintLine(g.describeImplicitDirs(list))
		file := g.Process.Dirs.ShortPath(g.Process.Tools.ConsentFile())
		if common, err = ask("Use all of it, until one of the files changes?\nraddle remembers a no to packages, skills and servers in "+file+".", "no", "yes", eachAlone); err != nil {
			return false, err
		}
	}
	for _, u := range list {
		answer := common
		if answer == eachAlone {
			what, request, _ := g.describeImplicitDir(u)
			if changes := formatChanges(u, g.Screen.Colors); changes != "" {
				g.Screen.PrintLine(changes)
			}
			if answer, err = ask(what+"\n"+request, "no", "yes"); err != nil {
				return given, err
			}
		}
		if answer == "yes" {
			err = g.Process.Tools.RecordConsent(u)
			given = true
		} else {
			err = g.Process.Tools.RecordRefusal(u)
		}
		if err != nil {
			return given, err
		}
	}
	return given, nil
}

// eachAlone is the answer to a question about several directories after which each is a question of its own.
const eachAlone = "ask about each"

// describeImplicitDirs lists several directories, each with what has changed since the person agreed to it.
func (g *Guide) describeImplicitDirs(list []toolbox.ImplicitDir) string {
	lines := []string{g.Screen.Colors.Paint(term.Bold, fmt.Sprintf("This run would use %d things that you did not name:", len(list)))}
	for _, u := range list {
		what, _, _ := g.describeImplicitDir(u)
		lines = append(lines, "- "+term.CleanText(what))
		if changes := formatChanges(u, g.Screen.Colors); changes != "" {
			lines = append(lines, changes)
		}
	}
	return strings.Join(lines, "\n")
}

// Limits of what is shown of changes.
const (
	mostChanges   = 20 // files of a directory
	longestChange = 40 // lines of a file
)

// formatChanges says what has changed in a directory since the person agreed to it; "" if they never did.
func formatChanges(u toolbox.ImplicitDir, colors term.Colors) string {
	if u.Since.IsZero() {
		return ""
	}
	lines := []string{"  " + term.QuoteName(filepath.Base(u.Dir)) + " has changed since you agreed to it on " + u.Since.Local().Format("2 January 2006, 15:04") + "."}
	for _, c := range u.Changes[:min(len(u.Changes), mostChanges)] {
		lines = append(lines, "  "+term.QuoteName(c.Path)+" was "+c.Kind)
		var diff []string
		if c.Diff != "" {
			diff = strings.Split(strings.TrimSuffix(c.Diff, "\n"), "\n")
		}
		for _, line := range diff[:min(len(diff), longestChange)] {
			lines = append(lines, "    "+colors.Paint(question.StyleDiff(line), term.RevealText(line)))
		}
		if more := len(diff) - longestChange; more > 0 {
			lines = append(lines, "    ("+wording.FormatCount(more, "line")+" more: read the file)")
		}
	}
	if more := len(u.Changes) - mostChanges; more > 0 {
		lines = append(lines, "  ("+wording.FormatCount(more, "more file")+": read the directory)")
	}
	return strings.Join(lines, "\n")
}

// describeImplicitDir says what a directory is, asks for consent, and says what it may do without consent.
func (g *Guide) describeImplicitDir(u toolbox.ImplicitDir) (what, request, otherwise string) {
	p := g.Process
	name := term.QuoteName(p.Dirs.ShortPath(u.Dir))
	switch {
	case u.Packages:
		return "The programs and packages in " + name + " were not named by you. Tools of this agent would run them.",
			"Use them, until one of the files changes? After a no, raddle does not ask again (delete the entry in " + p.Dirs.ShortPath(p.Tools.ConsentFile()) + " to change that).",
			" raddle does not use them until you consent at a terminal."
	case u.Skills:
		return "The skills in " + name + " were not named by you. This agent would follow them: " + quoteNames(u.Files),
			"Use them, until one of the files changes? After a no, raddle does not ask again (delete the entry in " + p.Dirs.ShortPath(p.Tools.ConsentFile()) + " to change that).",
			"; the agent does not see them until you consent at a terminal"
	case u.Servers:
		return "The MCP servers in " + name + " were not named by you. raddle would start them in this directory: " + quoteNames(u.Files),
			"Start them, until this file changes? After a no, raddle does not ask again (delete the entry in " + p.Dirs.ShortPath(p.Tools.ConsentFile()) + " to change that).",
			"; they are not started until you consent at a terminal"
	case u.Agent:
		otherwise = "; until you consent at a terminal, its tools and scripts ask each time, and its servers are not started"
	default:
		files := make([]string, len(u.Files))
		for i, file := range u.Files {
			files[i] = term.QuoteName(p.Dirs.ShortPath(filepath.Join(u.Dir, filepath.FromSlash(file))))
		}
		if len(u.Hooks) > 0 {
			return "This project brings its own rules and hooks (" + strings.Join(files, ", ") + "). The rules can let tools run without asking, and raddle runs the hooks: " + quoteNames(u.Hooks) + ".",
				"Trust them, until one of these files changes?", " Until you trust them at a terminal, rules can only deny or ask, and raddle refuses the calls that hooks should look at first."
		}
		return "This project brings its own rules (" + strings.Join(files, ", ") + "). They can let tools run without asking.",
			"Trust them, until one of these files changes?", " Until you trust them at a terminal, they can only deny or ask."
	}
	what = name + " was not named by you, and may run or decide what runs: " + quoteNames(u.Files)
	if len(u.Hooks) > 0 {
		what += ". raddle would run these hooks: " + quoteNames(u.Hooks)
		otherwise += "; raddle refuses the calls that its hooks should look at first"
	}
	return what, "Use it, until one of these files changes?", otherwise
}

// quoteNames returns names of files for a person who decides about them, quoted so that each stands out from the text
// around it.
func quoteNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = term.QuoteName(name)
	}
	return strings.Join(quoted, ", ")
}
