package editor

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"raddle.dev/internal/base/term"
)

// An Action is what a key asks the owner of an editor to do.
type Action int

const (
	None         Action = iota // the editor has handled the key
	Send                       // send the text; Take returns it
	Cancel                     // Esc, with nothing in the editor that it could close
	Interrupt                  // Ctrl-C
	EndInput                   // Ctrl-D in an empty editor
	OpenEditor                 // Ctrl-G: edit the text in another program
	ShowMore                   // Ctrl-O: show details
	NextMode                   // Shift-Tab
	Suspend                    // Ctrl-Z
	ClearScreen                // Ctrl-L
	PastePicture               // Ctrl-V: the terminal pastes text itself
	// Earlier is Up in the first line of an empty editor without a history: the owner may have something to take back
	Earlier
)

// An Editor holds the text that a person types. It is not safe for concurrent use.
type Editor struct {
	// Complete returns what could stand at the end of the text before the cursor. If nil, there is no completion.
	Complete func(before string) Completion
	// Hint is shown while the editor is empty.
	Hint string

	area    textarea.Model
	width   int
	pastes  []paste
	history *History
	place   int    // in the history; its length is the text that the person types
	draft   string // that text, while an older one is shown
	menu    menu
	search  *search // nil: the person is not searching
}

// promptText stands before the first line, and spaces of its width before the others.
const promptText = "> "

// maxRows is the largest number of lines of text that are shown at once.
const maxRows = 10

// New returns an empty editor with a history, which may be nil.
func New(history *History) *Editor {
	if history == nil {
		history = &History{}
	}
	e := &Editor{area: textarea.New(), history: history, place: history.Len()}
	keys := textarea.DefaultKeyMap()
	keys.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	for _, b := range []*key.Binding{&keys.Paste, &keys.SelectAll, &keys.CopySelection, &keys.SelectCharacterBackward, &keys.SelectCharacterForward,
		&keys.SelectLineDown, &keys.SelectLineUp, &keys.SelectWordBackward, &keys.SelectWordForward} {
		b.SetEnabled(false) // the terminal selects, copies and pastes
	}
	e.area.KeyMap = keys
	e.area.ShowLineNumbers = false
	e.area.Prompt = ""
	e.area.CharLimit = 0
	e.area.MaxHeight = maxRows
	e.area.MaxContentHeight = 1 << 20
	e.area.DynamicHeight = true
	e.area.SetVirtualCursor(false)
	plain := textarea.StyleState{Base: lipgloss.NewStyle(), Text: lipgloss.NewStyle(), CursorLine: lipgloss.NewStyle(), EndOfBuffer: lipgloss.NewStyle()}
	e.area.SetStyles(textarea.Styles{Focused: plain, Blurred: plain})
	e.area.Focus()
	e.SetWidth(80)
	return e
}

// SetWidth sets the number of columns that a line may take.
func (e *Editor) SetWidth(columns int) {
	if columns = max(columns, len(promptText)+2); columns != e.width {
		e.width = columns
		e.area.SetWidth(columns - len(promptText))
	}
}

// Text returns the text with all that was pasted.
func (e *Editor) Text() string { return e.expandPastes(e.area.Value()) }

// IsEmpty reports whether there is no text.
func (e *Editor) IsEmpty() bool { return e.area.Value() == "" }

// SetText replaces the text. The cursor moves to its end.
func (e *Editor) SetText(text string) {
	e.pastes = nil
	e.menu = menu{}
	e.area.SetValue("")
	e.insertPaste(text)
	e.place = e.history.Len()
}

// Take returns the text, empties the editor, and adds the text to the history.
func (e *Editor) Take() string {
	text := e.Text()
	e.history.Add(text)
	e.SetText("")
	return text
}

// HandleKey handles a key or a paste.
func (e *Editor) HandleKey(msg tea.Msg) Action {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		e.search = nil
		e.insertPaste(msg.Content)
		e.updateMenu(false)
	case tea.KeyPressMsg:
		if e.search != nil && e.handleSearchKey(msg) {
			return None
		}
		return e.handleKey(msg)
	}
	return None
}

// ownerKeys are keys that the editor leaves to its owner.
var ownerKeys = map[string]Action{
	"ctrl+g": OpenEditor, "ctrl+o": ShowMore, "shift+tab": NextMode, "ctrl+z": Suspend, "ctrl+l": ClearScreen, "ctrl+v": PastePicture, "ctrl+c": Interrupt,
}

func (e *Editor) handleKey(k tea.KeyPressMsg) Action {
	name := k.String()
	if action, ok := ownerKeys[name]; ok {
		return action
	}
	switch name {
	case "esc":
		if e.menu.isOpen() {
			e.menu = menu{}
			return None
		}
		return Cancel
	case "enter", "ctrl+m":
		return e.handleEnter()
	case "tab":
		e.handleTab()
		return None
	case "ctrl+r":
		e.startSearch()
		return None
	case "ctrl+d":
		if e.IsEmpty() {
			return EndInput
		}
	case "up", "ctrl+p", "down", "ctrl+n":
		if handled, action := e.handleVertical(name == "up" || name == "ctrl+p"); handled {
			return action
		}
	case "backspace", "ctrl+h":
		if e.removePaste() {
			return None
		}
	}
	e.area, _ = e.area.Update(k)
	e.updateMenu(false)
	return None
}

// handleEnter chooses from the menu, adds a line after a backslash and inside a ::: block, or asks to send the text.
func (e *Editor) handleEnter() Action {
	if e.menu.isOpen() && e.menu.chosen >= 0 {
		e.acceptChoice()
		return None
	}
	value := e.area.Value()
	atEnd := e.area.Line() == e.area.LineCount()-1
	switch {
	case atEnd && strings.HasSuffix(value, `\`):
		e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
		e.area.InsertString("\n")
		return None
	case IsOpenBlock(value):
		e.area.InsertString("\n")
		return None
	case strings.TrimSpace(value) == "":
		return None
	}
	e.menu = menu{}
	return Send
}

// IsOpenBlock reports whether a text begins with ::: and does not end with it: further lines belong to it.
func IsOpenBlock(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), blockMark)
	return ok && !strings.HasSuffix(rest, blockMark)
}

// blockMark begins and ends a text of several lines.
const blockMark = ":::"

// TrimBlock returns a text without the marks of a block of several lines.
func TrimBlock(text string) string {
	trimmed := strings.TrimSpace(text)
	rest, begins := strings.CutPrefix(trimmed, blockMark)
	rest, ends := strings.CutSuffix(rest, blockMark)
	if begins && ends {
		return strings.Trim(rest, "\n")
	}
	return text
}

// handleVertical moves in the menu, or in the history from the first or the last line.
func (e *Editor) handleVertical(up bool) (handled bool, action Action) {
	switch {
	case e.menu.isOpen():
		e.menu.move(up)
		return true, None
	case up && e.isFirstRow():
		if e.place == e.history.Len() && e.IsEmpty() {
			action = Earlier
		}
		e.showOlder()
		return true, action
	case !up && e.isLastRow():
		e.showNewer()
		return true, None
	}
	return false, None
}

func (e *Editor) isFirstRow() bool { return e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 }

func (e *Editor) isLastRow() bool {
	info := e.area.LineInfo()
	return e.area.Line() == e.area.LineCount()-1 && info.RowOffset >= info.Height-1
}

// View returns the lines to show, and the place of the cursor. No line is wider than the editor.
func (e *Editor) View() ([]string, term.Cursor) {
	if e.search != nil {
		return e.viewSearch()
	}
	var lines []string
	for i, line := range strings.Split(e.area.View(), "\n") {
		prompt := promptText
		if i > 0 || e.area.ScrollYOffset() > 0 {
			prompt = strings.Repeat(" ", len(promptText))
		}
		lines = append(lines, term.CutEnd(prompt+term.CleanLine(strings.TrimRight(ansi.Strip(line), " ")), e.width))
	}
	at := term.Cursor{Column: len(promptText)}
	if c := e.area.Cursor(); c != nil {
		at = term.Cursor{Row: min(max(c.Y, 0), len(lines)-1), Column: min(c.X+len(promptText), e.width-1)}
	}
	if e.IsEmpty() && e.Hint != "" {
		lines[0] = promptText + term.PaintText(term.Dim, term.CutEnd(e.Hint, e.width-len(promptText)))
	}
	return append(lines, e.menu.view(e.width)...), at
}
