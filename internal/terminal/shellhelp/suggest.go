// Package shellhelp turns words into a command of the shell: it asks a model, shows the whole command with what it does,
// and runs it if the person at the terminal wants that. Off a terminal it prints the command and runs nothing, which is
// what the keys of shells use.
package shellhelp

import (
	"context"
	"path/filepath"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/runlimits"
)

// instructions are those of the agent that suggests commands.
const instructions = "You write one command for the shell {{__shell__}} on {{__os_distro__}}, in the directory {{__cwd__}}, that does what the user says.\n" +
	"Reply with the command in one fenced block, and after it at most three short lines that say what it does and what it changes.\n" +
	"If several steps are needed, join them with &&. If details are missing, take what is most likely. Do not call tools, and ask nothing."

// A Suggestion is a command with what it does.
type Suggestion struct {
	Command     string
	Explanation string // may be empty
}

// Suggest asks a model for a command. The run is recorded like every other. model replaces the one of the configuration
// unless it is "".
func Suggest(ctx context.Context, p *app.Process, words, model string, limits runlimits.Limits) (Suggestion, error) {
	dir, err := writeAgent(p)
	if err != nil {
		return Suggestion{}, err
	}
	run, err := p.StartRun(app.Request{Agent: dir, Prompt: words, Model: model, Headless: true, Session: "temp", Budget: limits.Budget(), Deadline: limits.Deadline})
	if err != nil {
		return Suggestion{}, err
	}
	defer run.Close()
	res, err := run.Drive(ctx, app.Driver{})
	switch {
	case err != nil:
		return Suggestion{}, err
	case res.Status != graph.Done:
		return Suggestion{}, failure.NewInvalid("raddle explain "+run.ID, "the model has given no command")
	}
	s := SplitReply(flow.OutcomeOf(res).Output)
	if s.Command == "" {
		return s, failure.NewInvalid("say it in other words; raddle runs show "+run.ID+" has its reply", "the model has given no command")
	}
	return s, nil
}

// writeAgent writes the agent below the cache, and returns its directory.
func writeAgent(p *app.Process) (string, error) {
	text, err := agentfile.WriteConfig(
		agentfile.Field{Key: "name", Value: "shell-command"},
		agentfile.Field{Key: "description", Value: "Suggests commands of the shell"},
		agentfile.Field{Key: "skills_enabled", Value: false},
		agentfile.Field{Key: "inject_user_instructions", Value: false},
		agentfile.Field{Key: "instructions", Value: instructions},
	)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(p.Dirs.Cache, "shell", "shell-command")
	return dir, config.WritePrivate(filepath.Join(dir, config.FileName), text)
}

// SplitReply takes the command out of a reply: the first fenced block, or the first line of a reply without one. The rest
// explains it.
func SplitReply(reply string) Suggestion {
	reply = strings.ReplaceAll(strings.TrimSpace(reply), "\r\n", "\n")
	before, rest, fenced := strings.Cut(reply, "```")
	if !fenced {
		line, more, _ := strings.Cut(reply, "\n")
		return Suggestion{Command: strings.Trim(strings.TrimSpace(line), "`"), Explanation: strings.TrimSpace(more)}
	}
	if _, body, ok := strings.Cut(rest, "\n"); ok {
		rest = body // without the name of the language
	}
	command, after, _ := strings.Cut(rest, "```")
	return Suggestion{Command: strings.TrimSpace(command), Explanation: strings.TrimSpace(before + "\n" + after)}
}
