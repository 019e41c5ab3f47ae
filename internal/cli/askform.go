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

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// formPrompter asks on a terminal: arrow keys choose an option. The question and
// the answer stay on the screen as plain lines, whatever their size; only the
// choice between them is drawn.
type formPrompter struct{ sh *shell }

func (p *formPrompter) ask(ctx context.Context, q graph.Question) (any, error) {
	p.sh.err.line(promptOf(q, p.sh.err.colors))
	options := optionsOf(q)
	switch {
	case len(options) == 0:
		return p.text(ctx, answerPrompt)
	case q.Kind == agent.KindCheckbox:
		return p.several(ctx, options)
	}
	n, err := p.choose(ctx, options)
	if err != nil {
		return "", err
	}
	p.sh.err.line("> " + options[n].label)
	if options[n].ask == "" {
		return options[n].value, nil
	}
	text, err := p.text(ctx, options[n].ask)
	return options[n].value + text, err
}

// choose returns the index of the chosen option.
func (p *formPrompter) choose(ctx context.Context, options []option) (int, error) {
	chosen := 0
	field := huh.NewSelect[int]().Description("arrow keys and Enter; Esc leaves the question open").Options(shownOptions(options)...).Value(&chosen)
	if rows := p.rows(); len(options) > rows {
		field = field.Height(rows)
	}
	return chosen, p.run(ctx, field)
}

// several returns any number of the options.
func (p *formPrompter) several(ctx context.Context, options []option) (any, error) {
	var picked []int
	field := huh.NewMultiSelect[int]().Description("Space chooses, Enter is done; Esc leaves the question open").
		Options(shownOptions(options)...).Filterable(false).Value(&picked)
	if rows := p.rows(); len(options) > rows {
		field = field.Height(rows)
	}
	if err := p.run(ctx, field); err != nil {
		return nil, err
	}
	chosen := []string{}
	for _, i := range picked {
		chosen = append(chosen, options[i].value)
	}
	p.sh.err.line("> " + orElse(plainText(list(chosen)), "none"))
	return chosen, nil
}

func shownOptions(options []option) []huh.Option[int] {
	var shown []huh.Option[int]
	for i, o := range options {
		shown = append(shown, huh.NewOption(o.label, i))
	}
	return shown
}

// rows is how many lines a field may take.
func (p *formPrompter) rows() int {
	const around, least, many = 4, 3, 1000
	if _, rows, err := term.GetSize(int(p.sh.err.file.Fd())); err == nil {
		return max(rows-around, least)
	}
	return many
}

// text asks for a text.
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
