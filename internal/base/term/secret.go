package term

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	xterm "golang.org/x/term"
)

// ReadSecret reads a line that is not shown: each character is a star.
func (p *formPrompter) ReadSecret(ctx context.Context, prompt string) (string, error) {
	f := newSecretField(prompt)
	err := p.runForm(ctx, f)
	return f.input.Value(), err
}

// A secretField lets a person write a line that is not shown.
type secretField struct{ input textinput.Model }

func newSecretField(prompt string) *secretField {
	f := &secretField{input: textinput.New()}
	f.input.Prompt = menuFrame + " " + prompt
	f.input.EchoMode = textinput.EchoPassword
	f.input.KeyMap.Paste.SetEnabled(false) // it would start a program that reads the clipboard
	styles := f.input.Styles()
	styles.Focused = textinput.StyleState{}
	styles.Blurred = textinput.StyleState{}
	styles.Cursor.Blink = false
	f.input.SetStyles(styles)
	_ = f.input.Focus() // the cursor does not blink
	return f
}

func (f *secretField) handleKey(press tea.KeyPressMsg) (done, used bool) {
	if name := press.String(); name == "enter" || name == "ctrl+j" {
		return true, true
	}
	f.input, _ = f.input.Update(press)
	return false, true
}

func (f *secretField) pasteText(text string) {
	f.input, _ = f.input.Update(tea.PasteMsg{Content: text})
}

func (f *secretField) describeKeys() []string {
	return []string{"Enter sends · Esc: answer later", "Esc: answer later"}
}

func (f *secretField) renderLines(cols, _ int) []string {
	f.input.SetWidth(max(cols-TextWidth(f.input.Prompt)-2, 1))
	return []string{ansi.Truncate(f.input.View(), cols, "")}
}

// ReadSecret reads a line that is not shown.
func (p *linePrompter) ReadSecret(ctx context.Context, prompt string) (string, error) {
	defer p.keys.LendTerminal(true)()
	defer p.keys.SaveMode()() // a read that is abandoned leaves the echo off
	signals, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	hideInput(p.in) // before the prompt: keys pressed as soon as it is seen would be shown
	p.printText("%s", prompt)
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := xterm.ReadPassword(int(p.in.Fd()))
		done <- result{text, err}
	}()
	select {
	case <-signals.Done():
		p.printText("\n")
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", ErrInterrupted
	case r := <-done:
		p.printText("\n")
		if r.err != nil {
			return "", ErrLeftOpen // the end of the input
		}
		return string(r.text), nil
	}
}
