package term

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// A formPrompter asks with forms: keys choose. The question and
// the answer stay on the screen as plain lines, whatever their size; only the
// form itself is drawn and removed.
type formPrompter struct {
	in      *os.File
	screen  *Screen
	keys    *Keyboard
	step    bool   // the next text completes a choice, and Esc returns to the choices
	frame   string // of the menu of that choice
	leave   string // what Esc does
	guarded bool   // the person may not expect the next form: keys typed before it and during its graceTime are ignored
}

func (p *formPrompter) ShowQuestion(_ context.Context, question string, _ []Choice) error {
	if question != "" {
		p.screen.PrintLine(question)
	}
	p.guarded = true
	return nil
}

func (p *formPrompter) ChooseOne(ctx context.Context, m Menu) (int, error) {
	f := newMenuField(m, p.screen.Colors)
	if err := p.runLeaving(ctx, f, cmp.Or(m.Leave, p.leave)); err != nil {
		return 0, err
	}
	c := m.Choices[f.at()]
	if p.step, p.frame = c.Step, m.Frame; !c.Step {
		p.printAnswer(m, c.Label)
	}
	return f.at(), nil
}

func (p *formPrompter) ChooseSeveral(ctx context.Context, choices []Choice) ([]int, error) {
	m := Menu{Choices: choices}
	f := newMenuField(m, p.screen.Colors)
	f.marked = make([]bool, len(choices))
	if err := p.runForm(ctx, f); err != nil {
		return nil, err
	}
	var picked []int
	var words []string
	for i, marked := range f.marked {
		if marked {
			picked = append(picked, i)
			words = append(words, choices[i].Label)
		}
	}
	if len(words) == 0 {
		words = []string{"none"}
	}
	p.printAnswer(m, strings.Join(words, ", "))
	return picked, nil
}

// Columns returns the width of the terminal.
func (p *formPrompter) Columns() int {
	cols, _ := p.screen.Size()
	return cols
}

// printAnswer prints the answer that stays on the screen.
func (p *formPrompter) printAnswer(m Menu, label string) {
	line := p.screen.Paint(Green, "✓") + " " + label
	if m.Frame != "" {
		line = "└ " + line
	}
	p.screen.PrintLine(line)
}

func (p *formPrompter) ReadText(ctx context.Context, prompt, text string) (string, error) {
	f := newTextField(prompt, text)
	f.step = p.step
	if err := p.runForm(ctx, f); err != nil {
		return "", err
	}
	frame := ""
	if p.step {
		frame = p.frame + " "
	}
	p.screen.PrintLine(frame + prompt + strings.ReplaceAll(RevealText(f.text()), "\n", "\n"+frame+"  "))
	return f.text(), nil
}

// runForm shows a form with one field until it is submitted or cancelled.
func (p *formPrompter) runForm(ctx context.Context, field formField) error {
	return p.runLeaving(ctx, field, p.leave)
}

// runLeaving is runForm for a field where Esc does something else than usual.
func (p *formPrompter) runLeaving(ctx context.Context, field formField, leave string) error {
	form := newForm(field, p.screen.Colors, p.guarded)
	form.leave = leave
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
	case form.state == formInterrupted:
		return ErrInterrupted
	case form.state != formDone:
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

// A formField is what a form asks for.
type formField interface {
	// handleKey handles a key that counts. done reports whether the person has answered, and used whether the key means
	// anything.
	handleKey(key tea.KeyPressMsg) (done, used bool)
	// pasteText handles a text that was pasted.
	pasteText(text string)
	// renderLines returns the field as at most rows lines, none of which is wider than the terminal.
	renderLines(cols, rows int) []string
	// describeKeys explains the keys, the best explanation first: the first one that fits is shown.
	describeKeys() []string
}

// A formState says whether a form is over.
type formState int

const (
	formOpen formState = iota
	formDone
	formLeft        // the question stays open
	formInterrupted // Ctrl-C was pressed
)

// A form is a form on the screen. What it shows last stays there, and its caller removes it.
type form struct {
	field        formField
	colors       Colors
	state        formState
	ready        bool // keys have counted; the hint is shown
	awaitedPause int  // the number of the pause that the form waits for before keys count again; 0: keys count
	pauses       int  // pauses that the form has waited for
	cols         int
	rows         int
	shown        string // the last view
	leave        string // what Esc does; "": the question is answered later
}

// describeKeys explains the keys of the field, with what Esc does.
func (f *form) describeKeys() []string {
	hints := f.field.describeKeys()
	if f.leave == "" {
		return hints
	}
	usual := strings.NewReplacer("Esc: answer later", "Esc: "+f.leave, "Esc: later", "Esc: "+f.leave)
	changed := make([]string, len(hints))
	for i, hint := range hints {
		changed[i] = usual.Replace(hint)
	}
	return changed
}

func newForm(field formField, colors Colors, guarded bool) *form {
	f := &form{field: field, colors: colors, ready: !guarded, cols: 80, rows: 24}
	if guarded {
		f.pauses = 1
		f.awaitedPause = 1
	}
	return f
}

// keysReady is the message that a pause is over: no key was pressed for graceTime.
type keysReady struct{ pause int }

// Init implements tea.Model.
func (f *form) Init() tea.Cmd {
	if f.awaitedPause == 0 {
		return nil
	}
	return waitForPause(f.awaitedPause)
}

func waitForPause(number int) tea.Cmd {
	return tea.Tick(graceTime, func(time.Time) tea.Msg { return keysReady{number} })
}

// ignoreKeys makes the form ignore keys until there is a pause: the person types a text that is not meant for it.
func (f *form) ignoreKeys() tea.Cmd {
	f.pauses++
	f.awaitedPause = f.pauses
	return waitForPause(f.awaitedPause)
}

// Update implements tea.Model.
func (f *form) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if f.state != formOpen {
		return f, nil
	}
	switch m := msg.(type) {
	case keysReady:
		if m.pause == f.awaitedPause {
			f.ready = true
			f.awaitedPause = 0
		}
	case tea.WindowSizeMsg:
		f.cols = m.Width
		f.rows = m.Height
	case tea.PasteMsg:
		if f.awaitedPause == 0 {
			f.field.pasteText(m.Content)
		}
	case tea.KeyPressMsg:
		return f, f.handleKey(m)
	}
	return f, nil
}

func (f *form) handleKey(key tea.KeyPressMsg) tea.Cmd {
	switch name := key.String(); {
	case name == "ctrl+c":
		f.state = formInterrupted
		return tea.Quit
	case name == "ctrl+z" && CanSuspend():
		return tea.Suspend
	case f.awaitedPause != 0 && f.ready:
		return f.ignoreKeys()
	case f.awaitedPause != 0:
		return nil
	case name == "esc" || name == "ctrl+d":
		f.state = formLeft
		return tea.Quit
	}
	switch done, used := f.field.handleKey(key); {
	case done:
		f.state = formDone
		return tea.Quit
	case !used:
		return f.ignoreKeys()
	}
	return nil
}

// View implements tea.Model. After the end it returns what was shown last, so that it is certain which rows of the
// screen belong to the form.
func (f *form) View() tea.View {
	if f.state == formOpen {
		lines := f.field.renderLines(f.cols, max(f.rows-2, 1))
		f.shown = strings.Join(lines, "\n") + "\n"
		if f.ready {
			f.shown += f.colors.paintDirectly(Dim, firstThatFits(f.describeKeys(), f.cols-1))
		}
	}
	return tea.NewView(f.shown)
}

// firstThatFits returns the first text that fits into a width, or the beginning of the last one.
func firstThatFits(texts []string, width int) string {
	for _, text := range texts {
		if TextWidth(text) <= width {
			return text
		}
	}
	return CutEnd(texts[len(texts)-1], width)
}

// paintDirectly is Paint for text that does not go through a [Writer].
func (c Colors) paintDirectly(style Style, text string) string {
	if !c || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
