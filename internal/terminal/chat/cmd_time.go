package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/storage/attach"
)

var timeCommands = []command{
	{name: "undo", dots: []string{"undo"}, args: "[N]", help: "take back the last message, or the last N", group: groupTime, run: undoTurns},
	{name: "redo", dots: []string{"redo"}, help: "bring back what /undo took back", group: groupTime, run: redoTurns},
	{
		name:  "retry",
		args:  "[MODEL]",
		help:  "send the last message again, as a new branch",
		dots:  []string{"regenerate"},
		group: groupTime,
		run:   retryTurn,
	},
	{
		name:  "edit",
		help:  "choose an earlier message, change it, and continue from there",
		dots:  []string{"edit"},
		group: groupTime,
		run:   editTurn,
	},
	{name: "fork", dots: []string{"fork"}, help: "continue on a new branch; this one stays as it is", group: groupTime, run: forkTalk},
	{
		name:  "rewind",
		help:  "go back to before a message: the conversation, the files, or both",
		group: groupTime,
		run:   rewindTalk,
	},
	{
		name:  "branches",
		args:  "[NAME]",
		help:  "list the branches, and change to one",
		group: groupTime,
		run:   switchBranch,
	},
}

// listTurns returns the turns of the current branch, oldest first. It returns an error if there are none.
func listTurns(ctx context.Context, s *Session) ([]conversation.Turn, error) {
	if err := s.requireTalk(); err != nil {
		return nil, err
	}
	turns, err := s.talk.Turns(ctx)
	if err == nil && len(turns) == 0 {
		err = failure.NewUsage("send a message first", "there is no message yet")
	}
	return turns, err
}

func undoTurns(ctx context.Context, s *Session, rest string) error {
	turns, err := listTurns(ctx, s)
	if err != nil {
		return err
	}
	n := 1
	if rest != "" {
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return failure.NewUsage("write: /undo 2", "the number of messages must be 1 or more")
		}
	}
	n = min(n, len(turns))
	if err := s.talk.Undo(ctx, n); err != nil {
		return err
	}
	s.say(fmt.Sprintf("Took back %s, from %q on. /redo brings it back; files stay as they are (/rewind).", countTurns(n), firstWords(turns[len(turns)-n].Prompt)))
	return nil
}

func redoTurns(ctx context.Context, s *Session, _ string) error {
	if err := s.requireTalk(); err != nil {
		return err
	}
	if err := s.talk.Redo(ctx); err != nil {
		return err
	}
	s.showRecent(ctx)
	return nil
}

func retryTurn(ctx context.Context, s *Session, model string) error {
	turns, err := listTurns(ctx, s)
	if err != nil {
		return err
	}
	if model != "" {
		if err := s.setModel(model); err != nil {
			return err
		}
	}
	last := turns[len(turns)-1]
	if err := s.talk.Undo(ctx, 1); err != nil {
		return err
	}
	text := strings.Join(append([]string{last.Prompt}, last.Added...), "\n\n")
	s.send(ctx, message{text: text, shown: text, files: filesOf(last)})
	return nil
}

// editTurn lets the person choose an earlier message, and puts it into the editor: what is sent next replaces it on a
// new branch.
func editTurn(ctx context.Context, s *Session, _ string) error {
	turns, n, err := s.chooseTurn(ctx, "Continue from which message?")
	if err != nil {
		return err
	}
	if err := s.talk.BranchAt(ctx, n); err != nil {
		return err
	}
	s.say(fmt.Sprintf("Back to before message %d. The old way stays as a branch: /branches", n))
	if s.edit != nil {
		s.edit.SetText(turns[n-1].Prompt)
	}
	s.attached.files = filesOf(turns[n-1])
	for _, f := range s.attached.files {
		s.say("Your next message gets " + attach.Mark + f.String())
	}
	return nil
}

// filesOf returns the pictures and documents of a message that was sent.
func filesOf(t conversation.Turn) (files []attach.File) {
	for i, p := range t.Media {
		f := attach.File{Media: p, Name: fmt.Sprintf("attachment %d", i+1)}
		if i < len(t.Attached) {
			f.Name = t.Attached[i].Name
		}
		files = append(files, f)
	}
	return files
}

// chooseTurn asks for a message, the newest first, and returns its number.
func (s *Session) chooseTurn(ctx context.Context, question string) ([]conversation.Turn, int, error) {
	turns, err := listTurns(ctx, s)
	if err != nil {
		return nil, 0, err
	}
	var labels []string
	for i := len(turns); i > 0; i-- {
		labels = append(labels, fmt.Sprintf("%d  %s%s", i, firstWords(turns[i-1].Prompt), describeTurn(turns[i-1])))
	}
	at, err := s.choose(ctx, question, labels)
	return turns, len(turns) - at, err
}

// describeTurn says what a turn did.
func describeTurn(t conversation.Turn) string {
	var parts []string
	if n := len(t.Calls); n > 0 {
		parts = append(parts, wording.FormatCount(n, "call"))
	}
	if n := len(t.Files); n > 0 {
		parts = append(parts, wording.FormatCount(n, "file"))
	}
	if t.Interrupted {
		parts = append(parts, "interrupted")
	}
	if parts == nil {
		return ""
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}

// firstWords returns the beginning of a text on one line.
func firstWords(text string) string {
	const most = 60
	line := term.CleanLine(strings.Join(strings.Fields(text), " "))
	if term.TextWidth(line) > most {
		return term.CutEnd(line, most-1) + "…"
	}
	return line
}

func forkTalk(ctx context.Context, s *Session, _ string) error {
	if _, err := listTurns(ctx, s); err != nil {
		return err
	}
	if err := s.talk.AddBranch(ctx); err != nil {
		return err
	}
	s.say("This is a new branch. /branches lists all of them.")
	return nil
}

func switchBranch(ctx context.Context, s *Session, name string) error {
	if err := s.requireTalk(); err != nil {
		return err
	}
	list, err := s.talk.Branches(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return failure.NewUsage("", "there is no message yet, and no branch")
	}
	if name == "" {
		var labels []string
		for _, b := range list {
			label := fmt.Sprintf("%s  %s  %s", b.Name, countTurns(b.Turns), firstWords(b.Last))
			if b.Current {
				label += "  (this one)"
			}
			labels = append(labels, label)
		}
		at, err := s.choose(ctx, "Continue on which branch?", labels)
		if err != nil {
			return err
		}
		name = list[at].Name
	}
	if err := s.talk.SwitchBranch(ctx, name); err != nil {
		return err
	}
	s.showRecent(ctx)
	return nil
}

func rewindTalk(ctx context.Context, s *Session, _ string) error {
	_, n, err := s.chooseTurn(ctx, "Go back to before which message?")
	if err != nil {
		return err
	}
	preview, err := s.talk.PreviewRewind(ctx, n)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Go back with what? %d files would change.", len(preview.Restored)+len(preview.Removed))
	if len(preview.Skipped) > 0 {
		question += fmt.Sprintf(" %d files stay as they are.", len(preview.Skipped))
	}
	at, err := s.choose(ctx, question, []string{"the conversation and the files", "only the conversation", "only the files"})
	if err != nil {
		return err
	}
	report, err := s.talk.Rewind(ctx, n, []conversation.RewindMode{conversation.RewindBoth, conversation.RewindConversation, conversation.RewindFiles}[at])
	if err != nil {
		return err
	}
	for _, path := range report.Restored {
		s.say("restored " + s.Process.Dirs.ShortPath(path))
	}
	for _, path := range report.Removed {
		s.say("removed " + s.Process.Dirs.ShortPath(path))
	}
	for _, skipped := range report.Skipped {
		s.warn("left " + s.Process.Dirs.ShortPath(skipped.Path) + " as it is: " + skipped.Reason)
	}
	if at != 2 {
		s.say(fmt.Sprintf("Back to before message %d. The old way stays as a branch: /branches", n))
	}
	return nil
}
