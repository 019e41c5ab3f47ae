package term

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
)

// A textField lets a person write a text of one or several lines.
type textField struct {
	prompt string
	step   bool // Esc returns to the choices
	area   textarea.Model
}

// maxTextRows is how many rows of a text are shown at once.
const maxTextRows = 12

func newTextField(prompt, text string) *textField {
	f := &textField{prompt: prompt, area: textarea.New()}
	a := &f.area
	a.ShowLineNumbers = false
	a.Prompt = ""
	a.CharLimit = 0
	a.DynamicHeight = true
	a.MinHeight = 1
	a.MaxHeight = maxTextRows
	a.MaxContentHeight = 1 << 30
	a.MaxWidth = 0
	keys := &a.KeyMap
	// a line feed adds a line: it may be part of a text that is pasted
	keys.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	// it would start a program that reads the clipboard
	keys.Paste.SetEnabled(false)
	for _, k := range []*key.Binding{&keys.CopySelection, &keys.SelectAll, &keys.SelectCharacterBackward, &keys.SelectCharacterForward, &keys.SelectLineDown, &keys.SelectLineUp,
		&keys.SelectWordBackward, &keys.SelectWordForward} {
		k.SetEnabled(false)
	}
	plain := textarea.StyleState{}
	styles := a.Styles()
	styles.Focused = plain
	styles.Blurred = plain
	styles.Cursor.Blink = false
	a.SetStyles(styles)
	a.SetValue(text)
	_ = a.Focus() // the cursor does not blink
	return f
}

func (f *textField) text() string { return f.area.Value() }

func (f *textField) handleKey(press tea.KeyPressMsg) (done, used bool) {
	if press.String() == "enter" {
		return true, true
	}
	f.area, _ = f.area.Update(press)
	return false, true
}

func (f *textField) pasteText(text string) {
	f.area, _ = f.area.Update(tea.PasteMsg{Content: lineEnds.Replace(text)})
}

// lineEnds replaces what ends lines in a paste: most terminals send a carriage return.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func (f *textField) describeKeys() []string {
	if f.step {
		return []string{"Enter sends, Alt-Enter adds a line · Esc: back", "Enter sends · Esc: back"}
	}
	return []string{"Enter sends, Alt-Enter adds a line · Esc: answer later", "Enter sends · Esc: later", "Esc: later"}
}

func (f *textField) renderLines(cols, rows int) []string {
	frame := menuFrame + " "
	head := frame + f.prompt
	var lines []string
	if TextWidth(head) > cols/2 {
		for _, line := range wrapText(strings.TrimSpace(f.prompt), cols-TextWidth(frame)) {
			lines = append(lines, CutEnd(frame+line, cols))
		}
		head = frame
	}
	f.area.MaxHeight = max(min(maxTextRows, rows-len(lines)), 1)
	f.area.SetWidth(max(cols-TextWidth(head)-1, 1))
	for i, line := range strings.Split(f.area.View(), "\n") {
		if i > 0 {
			head = frame + strings.Repeat(" ", TextWidth(head)-TextWidth(frame))
		}
		lines = append(lines, head+line)
	}
	return lines
}
