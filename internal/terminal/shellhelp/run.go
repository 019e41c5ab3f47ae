package shellhelp

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"unicode"

	"raddle.dev/agent"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/runlimits"
)

// Options are what a person wants.
type Options struct {
	Words string
	Model string // "": that of the configuration
	Print bool   // print the command, and run nothing
	Keys  string // print the key binding of this shell; "": none

	Limits runlimits.Limits // of the run
}

// Run shows a command, and runs it if the person wants that. It returns the exit code of the command.
func Run(ctx context.Context, con *console.Console, p *app.Process, o Options) (code int, err error) {
	if strings.TrimSpace(o.Words) == "" {
		return 0, failure.NewUsage(`write: raddle -e "find large files"`, "the words that say what the command should do are missing")
	}
	ask := con.NewPrompter()
	if !con.Out.IsTerminal() {
		ask = nil
	}
	s, err := Suggest(ctx, p, o.Words, o.Model, o.Limits)
	if err != nil {
		return 0, err
	}
	d, err := p.Tools.JudgeCommand(ctx, s.Command)
	if err != nil {
		return 0, err
	}
	if d.Verdict == agent.Deny {
		reason, _, _ := strings.Cut(d.Reason, " Do not try") // what follows is for models
		con.Screen.PrintLine(Describe(s, con.Screen.Colors))
		return 0, &failure.Error{Kind: failure.Invalid, Msg: "a rule denies this command: " + term.CleanLine(reason), Next: "raddle help permissions"}
	}
	if ask == nil || o.Print {
		return 0, printCommand(con, s)
	}
	choices := []term.Choice{{Label: "run it", Word: "run", Key: "r"}, {Label: "print it", Word: "print", Key: "p"}, {Label: "leave it", Word: "leave", Key: "l"}}
	text := Describe(s, con.Screen.Colors)
	if d.Detail != nil {
		for _, risk := range d.Detail.Risks {
			text += "\n" + con.Screen.Paint(term.Yellow, "Careful: it "+term.CleanLine(risk)+".")
		}
	}
	if err := ask.ShowQuestion(ctx, text, choices); err != nil {
		return 0, err
	}
	at, err := ask.ChooseOne(ctx, term.Menu{Choices: choices, Leave: "leave it"})
	switch {
	case errors.Is(err, term.ErrInterrupted):
		return 0, err
	case err != nil || at == 2:
		return 0, nil
	case at == 1:
		return 0, printCommand(con, s)
	}
	return runCommand(ctx, con, p, s.Command)
}

// Describe returns a command and its explanation for a person, whole, with every control character visible.
func Describe(s Suggestion, colors term.Colors) string {
	text := colors.Paint(term.Bold, term.RevealText(s.Command))
	if s.Explanation != "" {
		text += "\n" + term.CleanText(s.Explanation)
	}
	return text
}

// printCommand prints a command as it is. One with control characters is an error: a shell would not show them in its
// line.
func printCommand(con *console.Console, s Suggestion) error {
	isHidden := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) }
	if strings.ContainsFunc(s.Command, isHidden) {
		return failure.NewInvalid("ask again on a terminal, which shows them", "the command has characters that a terminal does not show")
	}
	con.Out.PrintExact(s.Command)
	return nil
}

// runCommand runs a command of the person in the shell, with the terminal of this process.
func runCommand(ctx context.Context, con *console.Console, p *app.Process, command string) (code int, err error) {
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "sh"
	}
	cmd := exec.CommandContext(ctx, shell, "-c", command)
	cmd.Dir = p.Dirs.Work
	cmd.Stdin = con.In
	cmd.Stdout = con.Out.File()
	cmd.Stderr = con.Screen.File()
	restore := term.IgnoreInterrupts() // Ctrl-C is for the command
	err = cmd.Run()
	restore()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}
