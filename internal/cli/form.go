package cli

import (
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"github.com/charmbracelet/colorprofile"

	"raddle.dev/internal/term"
)

// graceTime is how long a question ignores keys after it appeared: they were meant for what was on the screen before.
const graceTime = 300 * time.Millisecond

// A form is a field to fill in on the terminal.
type form struct {
	field   huh.Field
	hint    string // explains the keys; shown as soon as keys count
	guarded bool   // the person may not expect it: keys typed before it and during its graceTime are ignored
}

// runForm shows a form until it is submitted or cancelled. The caller handles
// signals and ends ctx.
func (p *formPrompter) runForm(ctx context.Context, f form) error {
	if f.guarded {
		p.env.keys.DiscardInput()
	}
	defer p.env.keys.LendTerminal(false)()
	options := []tea.ProgramOption{
		tea.WithoutSignalHandler(), tea.WithInput(p.env.in), tea.WithOutput(p.env.err.File()), tea.WithContext(ctx), tea.WithFilter(knownSize),
	}
	if !p.env.err.colors {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	shown := newShownForm(f)
	_, err := tea.NewProgram(shown, options...).Run()
	if shown.lines > 1 { // the cursor is in the last one
		_, _ = p.env.err.Write([]byte(term.RewindRows(shown.lines)))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case shown.form.State != huh.StateCompleted:
		return errParked
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

// shownForm is a form on the screen. It records how many lines it takes: the
// last of them stay on the screen, and must be removed.
type shownForm struct {
	form  *huh.Form
	hint  string
	ready bool // keys count
	cols  int
	lines int
}

func newShownForm(f form) *shownForm {
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
	shown := huh.NewForm(huh.NewGroup(f.field)).WithKeyMap(keys).WithShowHelp(false).WithTheme(huh.ThemeFunc(huh.ThemeBase))
	shown.SubmitCmd, shown.CancelCmd = tea.Quit, tea.Quit
	return &shownForm{form: shown, hint: f.hint, ready: !f.guarded, cols: 80}
}

// keysReady is the message that the form accepts keys.
type keysReady struct{}

// Init implements tea.Model.
func (f *shownForm) Init() tea.Cmd {
	if f.ready {
		return f.form.Init()
	}
	return tea.Batch(f.form.Init(), tea.Tick(graceTime, func(time.Time) tea.Msg { return keysReady{} }))
}

// Update implements tea.Model.
func (f *shownForm) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
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
		switch {
		case m.String() == "ctrl+z" && term.CanSuspend():
			return f, tea.Suspend
		case !f.ready && m.String() != "ctrl+c":
			return f, nil
		case m.String() == "ctrl+j": // a line feed, which a terminal may send for Enter
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		}
	}
	_, cmd := f.form.Update(msg)
	return f, cmd
}

// View implements tea.Model.
func (f *shownForm) View() tea.View {
	text := f.form.View()
	if text == "" {
		return tea.NewView(text)
	}
	text = strings.TrimRight(text, "\n") + "\n"
	if f.ready {
		text += truncateEnd(f.hint, f.cols)
	}
	f.lines = strings.Count(text, "\n") + 1
	return tea.NewView(text)
}
