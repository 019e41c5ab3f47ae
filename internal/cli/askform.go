package cli

import (
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"raddle.dev/graph"
)

// formPrompter asks on a terminal: arrow keys choose an option. The question and
// the answer stay on the screen as plain lines, whatever their size; only the
// choice between them is drawn.
type formPrompter struct{ sh *shell }

func (p *formPrompter) ask(ctx context.Context, q graph.Question) (string, error) {
	p.sh.err.line(p.sh.err.paint(bold, q.Prompt))
	if len(q.Options) == 0 {
		return p.text(ctx, answerPrompt)
	}
	n, err := p.choose(ctx, q)
	switch {
	case err != nil:
		return "", err
	case n < len(q.Options):
		p.sh.err.line("> " + q.Options[n])
		return q.Options[n], nil
	}
	p.sh.err.line("> " + otherOption)
	return p.text(ctx, otherPrompt+" ")
}

// choose returns the index of the chosen option; one past the last is "other".
func (p *formPrompter) choose(ctx context.Context, q graph.Question) (int, error) {
	var options []huh.Option[int]
	for i, o := range q.Options {
		options = append(options, huh.NewOption(o, i))
	}
	if q.Free {
		options = append(options, huh.NewOption(otherOption, len(q.Options)))
	}
	chosen := 0
	field := huh.NewSelect[int]().Description("arrow keys and Enter; Esc leaves the question open").Options(options...).Value(&chosen)
	if _, rows, err := term.GetSize(int(p.sh.err.file.Fd())); err == nil && len(options) > rows-4 {
		field = field.Height(max(rows-4, 3))
	}
	return chosen, p.run(ctx, field)
}

func (p *formPrompter) text(ctx context.Context, prompt string) (string, error) {
	var text string
	if err := p.run(ctx, huh.NewInput().Prompt(prompt).Value(&text)); err != nil {
		return "", err
	}
	p.sh.err.line(prompt + text)
	return text, nil
}

// run shows a field until it is submitted or left. Signals are handled by
// whoever made ctx.
func (p *formPrompter) run(ctx context.Context, field huh.Field) error {
	keys := huh.NewDefaultKeyMap()
	keys.Quit = key.NewBinding(key.WithKeys("ctrl+c", "ctrl+d", "esc"))
	keys.Select.Filter.SetEnabled(false)
	options := []tea.ProgramOption{tea.WithoutSignalHandler(), tea.WithInput(p.sh.in), tea.WithOutput(p.sh.err.file)}
	if !p.sh.err.colors {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	form := huh.NewForm(huh.NewGroup(field)).WithKeyMap(keys).WithShowHelp(false).WithTheme(huh.ThemeFunc(huh.ThemeBase))
	form.SubmitCmd, form.CancelCmd = tea.Quit, tea.Quit
	shown := &shownForm{Form: form}
	_, err := tea.NewProgram(shown, append(options, tea.WithContext(ctx))...).Run()
	if shown.lines > 1 { // the cursor is in the last one
		_, _ = fmt.Fprintf(p.sh.err, "\x1b[%dA\r\x1b[J", shown.lines-1)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case form.State != huh.StateCompleted:
		return errParked
	}
	return nil
}

// shownForm is a form that remembers how many lines it takes on the screen: the
// last of them stay there, and have to be taken away.
type shownForm struct {
	*huh.Form
	lines int
}

// Update implements tea.Model.
func (f *shownForm) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := f.Form.Update(msg)
	return f, cmd
}

// View implements tea.Model.
func (f *shownForm) View() tea.View {
	text := f.Form.View()
	if text != "" {
		f.lines = strings.Count(text, "\n") + 1
	}
	return tea.NewView(text)
}
