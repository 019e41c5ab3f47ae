package cli

import (
	"context"
	"errors"
	"fmt"

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
	field := huh.NewSelect[int]().Options(options...).Value(&chosen)
	if _, rows, err := term.GetSize(int(p.sh.err.file.Fd())); err == nil && len(options) > rows-3 {
		field = field.Height(max(rows-3, 3))
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
	form := huh.NewForm(huh.NewGroup(field)).WithKeyMap(keys).WithShowHelp(false).WithTheme(huh.ThemeFunc(huh.ThemeBase)).WithProgramOptions(options...)
	err := form.RunWithContext(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, huh.ErrUserAborted):
		return errParked
	}
	return fmt.Errorf("the prompt: %w", err)
}
