package term

import (
	"context"
	"os"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"github.com/charmbracelet/colorprofile"
)

// A formPrompter asks with forms: arrow keys choose. The question and
// the answer stay on the screen as plain lines, whatever their size; only the
// form itself is drawn and removed.
type formPrompter struct {
	in      *os.File
	screen  *Screen
	keys    *Keyboard
	guarded bool // the person may not expect the next form: keys typed before it and during its graceTime are ignored
}

func (p *formPrompter) ShowQuestion(_ context.Context, question string, _ []Choice) error {
	if question != "" {
		p.screen.PrintLine(question)
	}
	p.guarded = true
	return nil
}

func (p *formPrompter) ChooseOne(ctx context.Context, m Menu) (int, error) {
	field := huh.NewSelect[int]().Options(listOptions(m.Choices)...).Value(&m.First)
	if rows := p.optionRows(); len(m.Choices) > rows {
		field = field.Height(rows)
	}
	if err := p.runForm(ctx, field, "arrow keys and Enter; Esc leaves the question open"); err != nil {
		return 0, err
	}
	p.screen.PrintLine("> " + m.Choices[m.First].Label)
	return m.First, nil
}

func (p *formPrompter) ChooseSeveral(ctx context.Context, choices []Choice) ([]int, error) {
	var picked []int
	field := huh.NewMultiSelect[int]().Options(listOptions(choices)...).Filterable(false).Value(&picked)
	if rows := p.optionRows(); len(choices) > rows {
		field = field.Height(rows)
	}
	if err := p.runForm(ctx, field, "Space chooses, Enter is done; Esc leaves the question open"); err != nil {
		return nil, err
	}
	labels := "none"
	if len(picked) > 0 {
		words := make([]string, len(picked))
		for i, at := range picked {
			words[i] = choices[at].Label
		}
		labels = strings.Join(words, ", ")
	}
	p.screen.PrintLine("> " + labels)
	return picked, nil
}

func listOptions(choices []Choice) []huh.Option[int] {
	var list []huh.Option[int]
	for i, c := range choices {
		list = append(list, huh.NewOption(c.Label, i))
	}
	return list
}

// optionRows returns how many choices are shown at once.
func (p *formPrompter) optionRows() int {
	const around, least = 4, 3
	_, rows := p.screen.Size()
	return max(rows-around, least)
}

func (p *formPrompter) ReadText(ctx context.Context, prompt, text string) (string, error) {
	field := huh.NewInput().Prompt(prompt).Value(&text)
	if err := p.runForm(ctx, field, "Enter is done; Esc leaves the question open"); err != nil {
		return "", err
	}
	p.screen.PrintLine(prompt + text)
	return text, nil
}

// runForm shows a form with one field until it is submitted or cancelled. hint explains the keys.
func (p *formPrompter) runForm(ctx context.Context, field huh.Field, hint string) error {
	form := newForm(field, hint, p.guarded)
	if p.guarded {
		p.keys.DiscardInput()
	}
	p.guarded = false
	defer p.keys.LendTerminal(false)()
	options := []tea.ProgramOption{
		tea.WithoutSignalHandler(), tea.WithInput(p.in), tea.WithOutput(p.screen.File()), tea.WithContext(ctx), tea.WithFilter(knownSize),
	}
	if !p.screen.Colors {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	_, err := tea.NewProgram(form, options...).Run()
	if rows := strings.Count(form.shown, "\n") + 1; rows > 1 { // the cursor is in the last one
		_, _ = p.screen.Write([]byte(RewindRows(rows)))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case form.interrupted:
		return ErrInterrupted
	case form.fields.State != huh.StateCompleted:
		return ErrLeftOpen
	}
	return nil
}

// knownSize gives a terminal that reports no size the usual one.
func knownSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok && (size.Width <= 0 || size.Height <= 0) {
		return tea.WindowSizeMsg{Width: 80, Height: 24}
	}
	return msg
}

// A form is a form on the screen. What it shows last stays there, and its caller removes it.
type form struct {
	fields      *huh.Form
	hint        string // explains the keys; shown as soon as keys count
	ready       bool   // keys count
	interrupted bool   // Ctrl-C was pressed
	cols        int
	shown       string // the last view
}

func newForm(field huh.Field, hint string, guarded bool) *form {
	keys := huh.NewDefaultKeyMap()
	keys.Quit = key.NewBinding(key.WithKeys("ctrl+c", "ctrl+d", "esc"))
	keys.Select.Filter.SetEnabled(false)
	// Letters choose nothing: the person may still be typing a text.
	keys.Select.Up.SetKeys("up", "ctrl+p")
	keys.Select.Down.SetKeys("down", "ctrl+n")
	keys.Select.GotoTop.SetKeys("home")
	keys.Select.GotoBottom.SetKeys("end")
	keys.MultiSelect.Up.SetKeys("up", "ctrl+p")
	keys.MultiSelect.Down.SetKeys("down", "ctrl+n")
	keys.MultiSelect.GotoTop.SetKeys("home")
	keys.MultiSelect.GotoBottom.SetKeys("end")
	keys.MultiSelect.Toggle.SetKeys("space")
	fields := huh.NewForm(huh.NewGroup(field)).WithKeyMap(keys).WithShowHelp(false).WithTheme(huh.ThemeFunc(huh.ThemeBase))
	fields.SubmitCmd, fields.CancelCmd = tea.Quit, tea.Quit
	return &form{fields: fields, hint: hint, ready: !guarded, cols: 80}
}

// keysReady is the message that the form accepts keys.
type keysReady struct{}

// Init implements tea.Model.
func (f *form) Init() tea.Cmd {
	if f.ready {
		return f.fields.Init()
	}
	return tea.Batch(f.fields.Init(), tea.Tick(graceTime, func(time.Time) tea.Msg { return keysReady{} }))
}

// Update implements tea.Model.
func (f *form) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case keysReady:
		f.ready = true
		return f, nil
	case tea.WindowSizeMsg:
		f.cols = m.Width
	case tea.PasteMsg:
		if !f.ready {
			return f, nil
		}
	case tea.KeyPressMsg:
		f.interrupted = m.String() == "ctrl+c"
		switch {
		case m.String() == "ctrl+z" && CanSuspend():
			return f, tea.Suspend
		case !f.ready && m.String() != "ctrl+c":
			return f, nil
		case m.String() == "ctrl+j": // a line feed, which a terminal may send for Enter
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		}
	}
	_, cmd := f.fields.Update(msg)
	return f, cmd
}

// View implements tea.Model. After the end it returns what was shown last, so that it is certain which rows of the screen belong to the form.
func (f *form) View() tea.View {
	if text := f.fields.View(); text != "" {
		f.shown = strings.TrimRight(text, "\n") + "\n"
		if f.ready {
			f.shown += CutEnd(f.hint, f.cols)
		}
	}
	return tea.NewView(f.shown)
}
