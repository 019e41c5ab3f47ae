package chat

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/owncommand"
	"raddle.dev/internal/process/toolbox"
)

// A macroState says how the steps of a macro are carried out.
type macroState struct {
	stepping bool // a step is carried out
	refused  bool // the command that was typed last, or taken from the queue, was not carried out
}

// groupOwn is the group of the commands that the person or the project has written.
const groupOwn = "Own commands"

// listOwn returns the commands and macros of the person and of the project.
func (s *Session) listOwn() []owncommand.Command {
	return owncommand.List(s.Process.Dirs.Config, s.Process.Dirs.Work)
}

// findOwn returns the own command with the name of a line, which begins with a slash or a dot. A command of raddle has
// precedence.
func (s *Session) findOwn(typed string) (own owncommand.Command, rest string, ok bool) {
	word, rest, _ := strings.Cut(typed, " ")
	if len(word) < 2 || word[0] != '/' && word[0] != '.' || strings.Contains(word, "\n") {
		return own, "", false
	}
	isOwn := func(c command) bool {
		return word[0] == '/' && (c.name == word[1:] || slices.Contains(c.also, word[1:])) || word[0] == '.' && slices.Contains(c.dots, word[1:])
	}
	if slices.ContainsFunc(listCommands(), isOwn) {
		return own, "", false
	}
	list := s.listOwn()
	at := slices.IndexFunc(list, func(c owncommand.Command) bool { return c.Name == word[1:] })
	if at < 0 {
		return own, "", false
	}
	return list[at], strings.TrimSpace(rest), true
}

// queueOwn runs an own command, or queues it while a turn works.
func (s *Session) queueOwn(ctx context.Context, typed string, c owncommand.Command, rest string) {
	if s.turn != nil {
		s.queue = append(s.queue, message{shown: typed, command: true})
		return
	}
	if err := s.runOwn(ctx, c, rest); err != nil {
		s.Backend.ShowError(err)
		s.restore(typed)
		s.macro.refused = true
	}
}

// runOwn runs an own command: its text is a message, and the steps of a macro are typed one after the other.
func (s *Session) runOwn(ctx context.Context, c owncommand.Command, rest string) error {
	if c.Project {
		if err := s.askForProject(ctx, c); err != nil {
			return err
		}
	}
	if c.Macro && s.macro.stepping {
		return failure.NewUsage("write its steps into this one", "a step of a macro cannot run the macro %s", c.Name)
	}
	lines, err := c.Expand(rest)
	switch {
	case err != nil:
		return err
	case c.Macro:
		for _, line := range lines {
			s.queue = append(s.queue, message{shown: line, command: true, step: true})
		}
		s.runQueue(ctx)
		return nil
	case c.Project: // it names no files: those would be sent without having been seen
		s.send(ctx, message{text: lines[0], shown: lines[0]})
		return nil
	}
	m, err := newMessage(s.Process.Dirs, lines[0])
	if err != nil {
		return err
	}
	s.send(ctx, m)
	return nil
}

// askForProject asks once whether the commands of the project may be used, until one of them changes.
func (s *Session) askForProject(ctx context.Context, c owncommand.Command) error {
	dir := owncommand.ProjectDir(s.Process.Dirs.Work)
	if s.Process.Tools.TrustsTree(dir) {
		return nil
	}
	text, err := plainfile.ReadBeneath(s.Process.Dirs.Work, c.Path, maxShellOutput)
	if err != nil {
		return err
	}
	s.Screen.PrintLine("\n" + term.RevealText(strings.TrimSpace(string(text))))
	at, err := s.choose(ctx, "This command comes with the project. Use the commands in "+s.Process.Dirs.ShortPath(dir)+"?", []string{"no", "yes, until one of them changes"})
	if err != nil {
		return err
	}
	if at == 0 {
		return failure.NewUsage("read its file, and run it again", "/%s was not run", c.Name)
	}
	return s.Process.Tools.RecordConsent(toolbox.ImplicitDir{Dir: dir, Skills: true})
}

// runNamed runs an own command by its name: the reference's .macro NAME.
func runNamed(ctx context.Context, s *Session, rest string) error {
	name, args, _ := strings.Cut(rest, " ")
	list := s.listOwn()
	at := slices.IndexFunc(list, func(c owncommand.Command) bool { return c.Name == name })
	if at < 0 {
		var names []string
		for _, c := range list {
			names = append(names, c.Name)
		}
		next := cmp.Or(wording.SuggestNearest(name, names, ""), "write one: commands/NAME.md next to config.yaml; raddle help chat")
		return failure.NewUsage(next, "you have no command %q", name)
	}
	return s.runOwn(ctx, list[at], strings.TrimSpace(args))
}

// runQueue sends what is queued until a turn works.
func (s *Session) runQueue(ctx context.Context) {
	for len(s.queue) > 0 && s.turn == nil && !s.leaving {
		m := s.queue[0]
		s.queue = s.queue[1:]
		s.macro.refused = false
		if m.command {
			s.macro.stepping = m.step
			s.submit(ctx, m.shown)
			s.macro.stepping = false
			s.endMacro(m.step)
		} else {
			s.send(ctx, m)
		}
	}
	if s.turn != nil {
		s.sendQueued()
	}
}

// endMacro drops the further steps of a macro of which one was refused.
func (s *Session) endMacro(step bool) {
	if !step || !s.macro.refused {
		return
	}
	s.leaveOut(func(m message) bool { return m.step })
}

// leaveOut drops what is queued up to the first message that is not meant.
func (s *Session) leaveOut(meant func(message) bool) {
	for len(s.queue) > 0 && meant(s.queue[0]) {
		s.say("Left out: " + s.queue[0].shown)
		s.queue = s.queue[1:]
	}
}

// ownHelp returns the lines of /help about own commands that contain a word.
func (s *Session) ownHelp(word string, cols int) (lines []string) {
	for _, c := range s.listOwn() {
		if word == "" || strings.Contains(strings.ToLower(c.Name+" "+c.Description), word) {
			lines = append(lines, helpLine(term.CleanLine("/"+strings.TrimSpace(c.Name+" "+c.Hint)), term.CleanLine(c.Description), 26, cols))
		}
	}
	return lines
}

// attachOutput runs a shell command of the person, and adds its output to the next message.
func attachOutput(ctx context.Context, s *Session, line string) error {
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "sh"), "-c", line)
	cmd.Dir = s.Process.Dirs.Work
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("`%s`: %w\n%s", line, err, wording.CutText(term.CleanText(out.String()), 1000, "…"))
	}
	s.attached.texts = append(s.attached.texts, outputOf(line, out.String()))
	s.say("Your next message gets the output of " + line)
	return nil
}

// outputOf returns the output of a shell command as a part of a message.
func outputOf(line, out string) string {
	return "Output of `" + line + "`:\n```\n" + strings.TrimRight(wording.CutText(term.CleanText(out), maxShellOutput, "\n[cut]"), "\n") + "\n```"
}
