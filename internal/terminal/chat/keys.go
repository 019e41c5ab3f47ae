package chat

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/editor"
)

// twice is how soon a key must be pressed again to count as pressed twice.
const twice = 2 * time.Second

// handleKey handles a key or a paste.
func (s *Session) handleKey(ctx context.Context, msg tea.Msg) {
	if paste, ok := msg.(tea.PasteMsg); ok {
		msg = handlePaste(s, paste)
	}
	action := s.edit.HandleKey(msg)
	again := false
	if key, ok := msg.(tea.KeyPressMsg); ok {
		again = key.String() == s.pressed.String() && time.Since(s.at) < twice
		s.pressed = key
		s.at = time.Now()
	}
	switch action {
	case editor.Send:
		s.submit(ctx, s.edit.Take())
	case editor.Cancel, editor.Interrupt:
		s.handleStop(ctx, action, again)
	case editor.EndInput:
		s.leaving = true
	case editor.Earlier:
		s.takeBack()
	case editor.OpenEditor:
		s.editElsewhere()
	case editor.ShowMore:
		s.showDetails()
	case editor.NextMode:
		s.mode.SetMode(nextMode(s, s.mode.Mode()))
		s.setNotice("Permission mode: " + describeMode(s.mode.Mode()))
	case editor.Suspend:
		s.suspend()
	case editor.PastePicture:
		pastePicture(ctx, s)
	case editor.ClearScreen:
		s.Screen.ClearAll()
	}
}

// handleStop handles Esc and Ctrl-C. While a turn works, both stop it. At the prompt they empty the editor; after that
// Esc twice goes back to an earlier message, and Ctrl-C twice leaves.
func (s *Session) handleStop(ctx context.Context, action editor.Action, again bool) {
	switch {
	case s.turn != nil:
		s.interruptTurn()
		s.pressed = tea.KeyPressMsg{}
	case !s.edit.IsEmpty():
		s.edit.SetText("")
		s.pressed = tea.KeyPressMsg{}
	case action == editor.Interrupt && again:
		s.leaving = true
	case action == editor.Interrupt:
		s.setNotice("Press Ctrl-C again to leave.")
	case again:
		s.pressed = tea.KeyPressMsg{}
		s.runCommand(ctx, "/edit", "edit", "")
	default:
		s.setNotice("Press Esc again to go back to an earlier message.")
	}
}

// setNotice shows a text instead of the status line for a moment.
func (s *Session) setNotice(text string) {
	s.notice = notice{text: text, since: time.Now()}
}

// submit handles a text that was entered: a command, a shell command or a message. One that begins with a space is a
// message, whatever follows.
func (s *Session) submit(ctx context.Context, typed string) {
	text := strings.TrimSpace(typed)
	switch {
	case text == "":
	case strings.HasPrefix(typed, "!"):
		runShell(ctx, s, text)
	default:
		if own, rest, ok := s.findOwn(strings.TrimRight(typed, " \t\n")); ok {
			s.queueOwn(ctx, text, own, rest)
			return
		}
		if name, args, ok := parseCommand(strings.TrimRight(typed, " \t\n")); ok {
			s.runCommand(ctx, text, name, args)
			return
		}
		if word, _, _ := strings.Cut(text, " "); s.macro.stepping && len(word) > 1 && (word[0] == '.' || word[0] == '/') && !strings.Contains(word[1:], "/") {
			s.Backend.ShowError(failure.NewUsage("see: /help", "the macro has a step with the command %s, which raddle has not", word))
			s.macro.refused = true
			return
		}
		m, err := newMessage(s.Process.Dirs, editor.TrimBlock(typed))
		if err != nil {
			s.Backend.ShowError(err)
			s.restore(typed)
			return
		}
		s.send(ctx, m)
	}
}

// restore puts a text that could not be sent back into the editor.
func (s *Session) restore(text string) {
	if s.edit != nil && s.edit.IsEmpty() {
		s.edit.SetText(text)
	}
}

// draw shows the queue, the editor and the status line.
func (s *Session) draw() {
	cols, _ := s.Screen.Size()
	cols = max(cols-1, 8)
	s.edit.SetWidth(cols)
	s.dropTaken()
	lines := queuedLines(s.queue, cols)
	text, at := s.edit.View()
	at.Row += len(lines)
	lines = append(lines, text...)
	lines = append(lines, statusLine(s, cols))
	s.Screen.SetInput(lines, at)
}

// statusLine returns the last line of the screen.
func statusLine(s *Session, cols int) string {
	if s.notice.text != "" {
		return term.PaintText(term.Yellow, term.CutEnd(term.CleanLine(s.notice.text), cols))
	}
	parts := []string{s.currentModel()}
	if context := s.usage.contextText(); context != "" {
		parts = append(parts, context)
	}
	if cost := s.usage.costText(); cost != "" {
		parts = append(parts, cost)
	}
	parts = append(parts, string(s.mode.Mode()), cmp.Or(s.title, s.agent.Name))
	if s.turn != nil {
		parts = append(parts, "Esc stops")
	}
	for i, part := range parts {
		parts[i] = term.CleanLine(part)
	}
	line := strings.Join(parts, " · ")
	if term.TextWidth(line) > cols && len(parts) > 2 {
		line = strings.Join(parts[:len(parts)-1], " · ")
	}
	return term.PaintText(term.Dim, term.CutEnd(line, cols))
}

// currentModel returns the model that answers, in a short form.
func (s *Session) currentModel() string {
	model := s.modelID()
	if _, name, ok := strings.Cut(model, ":"); ok && !strings.HasPrefix(model, "script:") {
		return name
	}
	if file, ok := strings.CutPrefix(model, "script:"); ok {
		return "transcript " + filepath.Base(file)
	}
	return cmp.Or(model, "no model")
}

// editElsewhere edits the text in the program that VISUAL or EDITOR names.
func (s *Session) editElsewhere() {
	command := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(command) == 0 {
		s.setNotice("Set VISUAL or EDITOR to the program that you edit with.")
		return
	}
	file, err := os.CreateTemp("", "raddle-*.md")
	if err != nil {
		s.setNotice(err.Error())
		return
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(s.edit.Text())
	if err = errors.Join(err, file.Close()); err == nil {
		takeBack := s.Keyboard.LendTerminal(true)
		cmd := exec.Command(command[0], append(command[1:], file.Name())...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Screen.File(), s.Screen.File()
		err = cmd.Run()
		takeBack()
	}
	if err != nil {
		s.setNotice("The text was not changed: " + err.Error())
		return
	}
	if text, err := os.ReadFile(file.Name()); err == nil {
		s.edit.SetText(strings.TrimRight(string(text), "\n"))
	}
}

// suspend stops the process, as Ctrl-Z does in a shell, and returns when it continues.
func (s *Session) suspend() {
	if !term.CanSuspend() {
		return
	}
	takeBack := s.Keyboard.LendTerminal(true)
	s.Keyboard.Suspend()
	takeBack()
}
