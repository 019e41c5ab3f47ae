package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
	"raddle.dev/internal/doctor"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func newInitCommand(env *environment) *cobra.Command {
	return newCommand(env, &noOptions{}, runInit, &cobra.Command{
		Use:   "init",
		Short: "Set raddle up: a model, a first agent, shell completion",
		Long: `It finds keys and models on this machine, asks which model to use, and saves it in config.yaml. Then it offers to send one short request,
to create an agent, and to set up completion in your shell. Esc skips a step. Nothing is written without a yes.`,
		Example: "  raddle init",
		Args:    checkArgCount(0, 0, ""),
	})
}

// runInit asks for each step. Without a person it lists the commands that do the same.
func runInit(ctx context.Context, env *environment, _ noOptions, _ []string) error {
	who := env.newPrompter()
	if who == nil {
		model, _ := env.process.Models.SuggestModel()
		client, _, _ := strings.Cut(model, ":")
		return badUsage(strings.Join([]string{
			"raddle login " + client + " < key.txt",
			"then: raddle config set model " + model,
			"then: raddle agents new helper",
			`then: raddle run helper 'How long is the word "shuttle"?'`,
		}, "\n"), "init asks questions, and standard input or standard error is not a terminal")
	}
	next := "raddle help agents"
	for _, step := range []func(context.Context, *environment, term.Prompter) (string, error){initModel, initAgent, initCompletion} {
		hint, err := step(ctx, env, who)
		switch {
		case errors.Is(err, term.ErrInterrupted):
			return silentExit{exitInterrupted}
		case errors.Is(err, term.ErrLeftOpen):
		case err != nil:
			return err
		}
		next = cmp.Or(hint, next)
	}
	env.printNote("next: raddle (a conversation), or: %s", next)
	return nil
}

// initModel chooses a model, and tries it if the person agrees.
func initModel(ctx context.Context, env *environment, who term.Prompter) (string, error) {
	model := env.process.Config.Model
	keep := false
	if model != "" {
		var err error
		if keep, err = askYesNo(ctx, env, who, "Your model is "+model+". Keep it?", "yes"); err != nil {
			return "", err
		}
	}
	if !keep {
		var err error
		if model, err = pickModel(ctx, env, who, "Which model shall raddle use?"); err != nil {
			return "", err
		}
		if err := saveModel(env, model); err != nil {
			return "", err
		}
	}
	yes, err := askYesNo(ctx, env, who, "Send one short request to "+model+" to see whether it answers?", "yes")
	if err != nil || !yes {
		return "", err
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	text, err := doctor.TryModel(ctx, env.process, model)
	if err != nil {
		env.err.PrintLine(env.err.Paint(term.Red, "✗") + " " + plainText(err.Error()))
		env.err.PrintLine("next: raddle doctor --online, or: raddle init")
		return "", nil
	}
	env.printNote("%s %s", env.err.Paint(term.Green, "✓"), text)
	return "", nil
}

// initAgent creates a first agent, unless the user has one.
func initAgent(ctx context.Context, env *environment, who term.Prompter) (next string, err error) {
	if name := ownAgent(env.process); name != "" {
		return "raddle run " + wording.QuoteWord(name) + ` "a prompt"`, nil
	}
	yes, err := askYesNo(ctx, env, who, "Create a first agent, with a tool of its own?", "yes")
	if err != nil || !yes {
		return "", err
	}
	for {
		name, err := askTextFrom(ctx, who, "Name: ", "helper")
		if err != nil {
			return "", err
		}
		name = strings.TrimSpace(name)
		place, files, err := env.process.NewAgent(name, false)
		if err != nil {
			env.err.PrintLine(plainText(err.Error()))
			continue
		}
		for _, f := range files {
			env.printNote("%s %s", env.err.Paint(term.Green, "✓"), env.process.Dirs.ShortPath(f))
		}
		return "raddle run " + wording.QuoteWord(place.Name) + ` 'How long is the word "shuttle"?'`, nil
	}
}

// ownAgent returns the name of an agent in the agents directory that does not come with raddle, "" if there is none.
func ownAgent(p *app.Process) string {
	bundled := map[string]bool{}
	for _, name := range app.BundledAgents() {
		bundled[name] = true
	}
	for _, a := range p.ListAgents() {
		if !bundled[a.Name] {
			return a.Name
		}
	}
	return ""
}

// askTextFrom asks for a text that the person edits.
func askTextFrom(ctx context.Context, who term.Prompter, prompt, text string) (string, error) {
	if err := who.ShowQuestion(ctx, "", nil); err != nil {
		return "", err
	}
	answer, err := who.ReadText(ctx, prompt, text)
	return cmp.Or(strings.TrimSpace(answer), text), err
}

// A completionSetup is what makes a shell complete raddle's commands.
type completionSetup struct {
	file string // to which text is added
	text string
}

// findCompletionSetup returns what the user's shell needs. ok is false for a shell that raddle does not know.
func findCompletionSetup(getenv func(string) string, home string) (setup completionSetup, ok bool) {
	switch filepath.Base(getenv("SHELL")) {
	case "bash":
		return completionSetup{file: filepath.Join(home, ".bashrc"), text: `eval "$(raddle completion bash)"`}, true
	case "zsh":
		return completionSetup{file: filepath.Join(cmp.Or(getenv("ZDOTDIR"), home), ".zshrc"),
			text: "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\nsource <(raddle completion zsh)"}, true
	case "fish":
		return completionSetup{file: filepath.Join(cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "fish", "completions", "raddle.fish"),
			text: "raddle completion fish | source"}, true
	}
	return completionSetup{}, false
}

// initCompletion adds completion to the start file of the user's shell.
func initCompletion(ctx context.Context, env *environment, who term.Prompter) (string, error) {
	setup, ok := findCompletionSetup(os.Getenv, env.process.Dirs.Home)
	if !ok || env.process.Dirs.Home == "" {
		return "", nil
	}
	if _, err := exec.LookPath("raddle"); err != nil {
		env.printNote("raddle is not on your PATH, so completion cannot be set up: go install puts it into $(go env GOPATH)/bin")
		return "", nil
	}
	old, err := os.ReadFile(setup.file)
	if strings.Contains(string(old), "raddle completion") {
		return "", nil
	}
	short := env.process.Dirs.ShortPath(setup.file)
	question := fmt.Sprintf("Set up completion with Tab? This adds to %s:\n  %s", short, strings.ReplaceAll(setup.text, "\n", "\n  "))
	yes, asked := askYesNo(ctx, env, who, question, "yes")
	if asked != nil || !yes {
		return "", asked
	}
	text := "# Completion of raddle's commands.\n" + setup.text + "\n"
	if err == nil && len(old) > 0 {
		if old[len(old)-1] != '\n' {
			text = "\n" + text
		}
		text = "\n" + text
	}
	if err := appendText(setup.file, text); err != nil {
		return "", err
	}
	env.printNote("%s %s is changed; new shells complete raddle's commands.", env.err.Paint(term.Green, "✓"), short)
	return "", nil
}

// appendText adds a text to a file, and creates it if it does not exist.
func appendText(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
