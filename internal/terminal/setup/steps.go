package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/release"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/doctor"
)

// AskAll asks for a model, a first agent and completion. The person may leave a step out. next is a command to try.
func (g *Guide) AskAll(ctx context.Context) (next string, err error) {
	next = "raddle help agents"
	for _, step := range []func(context.Context) (string, error){g.askModel, g.askAgent, g.askCompletion, g.askNotice} {
		hint, err := step(ctx)
		if errors.Is(err, term.ErrInterrupted) || err != nil && !errors.Is(err, term.ErrLeftOpen) {
			return "", err
		}
		next = cmp.Or(hint, next)
	}
	return next, nil
}

// askModel chooses a model, and tries it if the person agrees.
func (g *Guide) askModel(ctx context.Context) (string, error) {
	model := g.Process.Config.Model
	keep := false
	if model != "" {
		var err error
		if keep, err = g.AskYesNo(ctx, "Your model is "+model+". Keep it?"); err != nil {
			return "", err
		}
	}
	if !keep {
		var err error
		if model, err = g.PickModel(ctx, "Which model shall raddle use?"); err != nil {
			return "", err
		}
		if err := g.SaveModel(model); err != nil {
			return "", err
		}
	}
	yes, err := g.AskYesNo(ctx, "Send one short request to "+model+" to see whether it answers?")
	if err != nil || !yes {
		return "", err
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	text, err := doctor.TryModel(ctx, g.Process, model)
	if err != nil {
		g.Screen.PrintLine(g.Screen.Paint(term.Red, "✗") + " " + term.CleanText(err.Error()))
		g.Screen.PrintLine("next: raddle doctor --online, or: raddle init")
		return "", nil
	}
	g.PrintNote("%s %s", g.Screen.Paint(term.Green, "✓"), text)
	return "", nil
}

// askAgent creates a first agent, unless the user has one.
func (g *Guide) askAgent(ctx context.Context) (next string, err error) {
	if name := ownAgent(g.Process); name != "" {
		return "raddle run " + wording.QuoteWord(name) + ` "a prompt"`, nil
	}
	yes, err := g.AskYesNo(ctx, "Create a first agent, with a tool of its own?")
	if err != nil || !yes {
		return "", err
	}
	for {
		name, err := g.askTextFrom(ctx, "Name: ", "helper")
		if err != nil {
			return "", err
		}
		name = strings.TrimSpace(name)
		place, files, err := g.Process.NewAgent(name, false)
		if err != nil {
			g.Screen.PrintLine(term.CleanText(err.Error()))
			continue
		}
		for _, f := range files {
			g.PrintNote("%s %s", g.Screen.Paint(term.Green, "✓"), g.Process.Dirs.ShortPath(f))
		}
		return "raddle run " + wording.QuoteWord(place.Name) + ` 'How long is the word "shuttle"?'`, nil
	}
}

// ownAgent returns the name of an agent in the agents directory that does not come with raddle, "" if there is none.
func ownAgent(p *app.Process) string {
	bundled := app.BundledAgents()
	for _, a := range p.ListAgents() {
		if !slices.Contains(bundled, a.Name) {
			return a.Name
		}
	}
	return ""
}

// askTextFrom asks for a text that the person edits.
func (g *Guide) askTextFrom(ctx context.Context, prompt, text string) (string, error) {
	if err := g.Prompter.ShowQuestion(ctx, "", nil); err != nil {
		return "", err
	}
	answer, err := g.Prompter.ReadText(ctx, prompt, text)
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
		return completionSetup{
			file: filepath.Join(cmp.Or(getenv("ZDOTDIR"), home), ".zshrc"),
			text: "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\nsource <(raddle completion zsh)",
		}, true
	case "fish":
		return completionSetup{
			file: filepath.Join(cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "fish", "completions", "raddle.fish"),
			text: "raddle completion fish | source",
		}, true
	}
	return completionSetup{}, false
}

// askCompletion adds completion to the start file of the user's shell.
func (g *Guide) askCompletion(ctx context.Context) (string, error) {
	setup, ok := findCompletionSetup(os.Getenv, g.Process.Dirs.Home)
	if !ok || g.Process.Dirs.Home == "" {
		return "", nil
	}
	if _, err := exec.LookPath("raddle"); err != nil {
		g.PrintNote("raddle is not on your PATH, so completion cannot be set up: go install puts it into $(go env GOPATH)/bin")
		return "", nil
	}
	old, err := os.ReadFile(setup.file)
	if strings.Contains(string(old), "raddle completion") {
		return "", nil
	}
	short := g.Process.Dirs.ShortPath(setup.file)
	question := fmt.Sprintf("Set up completion with Tab? This adds to %s:\n  %s", short, strings.ReplaceAll(setup.text, "\n", "\n  "))
	yes, asked := g.AskYesNo(ctx, question)
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
	g.PrintNote("%s %s is changed; new shells complete raddle's commands.", g.Screen.Paint(term.Green, "✓"), short)
	return "", nil
}

// askNotice asks once whether conversations may look for newer releases. A program without releases has none to look for.
func (g *Guide) askNotice(ctx context.Context) (string, error) {
	source, err := release.FindSource()
	if err != nil || release.Version == "" || g.Process.Config.UpdateNotice != nil {
		return "", nil
	}
	yes, err := g.AskYesNo(ctx, fmt.Sprintf("Say when there is a newer raddle? A conversation then asks %s, at most once a day, and sends nothing else.", source))
	if err != nil {
		return "", err
	}
	_, err = config.SetValue(g.Process.Dirs.Config, "update_notice", strconv.FormatBool(yes), g.Process.ConfigEnviron)
	return "", err
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

// AskYesNo asks for yes or no; Enter alone means yes.
func (g *Guide) AskYesNo(ctx context.Context, what string) (bool, error) {
	answer, err := question.Ask(ctx, g.Prompter, graph.Question{
		Kind:    question.KindConfirm,
		Prompt:  what,
		Options: []string{"yes", "no"},
	}, g.Screen.Colors)
	return answer == "yes", err
}

// AskToSend shows what a plan says, and asks whether to do it, unless the person has agreed already. It returns an
// error unless the answer is yes, and without a terminal.
func (g *Guide) AskToSend(ctx context.Context, plan string, agreed bool) error {
	if agreed {
		g.PrintNote("%s", strings.TrimSpace(plan))
		return nil
	}
	if g.Prompter == nil {
		return failure.NewUsage("to send it without a question: --yes", "nothing is sent without a yes, and there is no terminal to ask at:\n%s", strings.TrimSpace(plan))
	}
	yes, err := g.AskYesNo(ctx, plan+"Send it?")
	if err == nil && !yes || err == term.ErrLeftOpen {
		return errors.New("nothing was sent")
	}
	return err
}

// ListSteps returns the commands that do what the questions would, and the model if one is set up already.
func (g *Guide) ListSteps() (model, steps string) {
	models := g.Process.Models
	id := g.Process.Config.Model
	set := g.Process.Config.Model != ""
	if !set {
		id, _ = models.SuggestModel()
	}
	client, _, _ := strings.Cut(id, ":")
	info, known := models.FindKey(client)
	ready := known && info.Ready && models.JudgeClientKey(client) == "" || client == "script"
	var list []string
	if !ready {
		list = append(list, "raddle login "+client+" < key.txt")
	}
	if !set {
		list = append(list, "raddle config set model "+id)
	}
	list = append(list, "raddle agents new helper", `raddle run helper 'How long is the word "shuttle"?'`)
	if set && ready {
		model = id
	}
	return model, strings.Join(list, "\nthen: ")
}
