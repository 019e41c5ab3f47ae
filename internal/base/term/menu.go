package term

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// A menuField lets a person choose one or several choices.
type menuField struct {
	menu   Menu
	colors Colors
	keys   []string // of the choices; a key of several characters is none
	marked []bool   // of a menu from which several are chosen; nil: it is one from which one is chosen
	filter string   // only choices that contain it are shown
	fits   []int    // the indexes of these choices
	cursor int      // the index in fits of the current one
	top    int      // the index in fits of the first one on the screen
	rows   int      // how many of them the screen had room for last
	long   bool     // there were more than that
}

func newMenuField(m Menu, colors Colors) *menuField {
	f := &menuField{menu: m, colors: colors, keys: choiceKeys(m.Choices), rows: len(m.Choices)}
	f.applyFilter("")
	f.cursor = m.First
	return f
}

// at returns the index of the current choice.
func (f *menuField) at() int {
	if f.cursor >= len(f.fits) {
		return 0
	}
	return f.fits[f.cursor]
}

// applyFilter shows the choices that contain a text, in any case.
func (f *menuField) applyFilter(text string) {
	f.filter = text
	f.fits = nil
	f.cursor = 0
	f.top = 0
	for i, c := range f.menu.Choices {
		if strings.Contains(strings.ToLower(c.Label), strings.ToLower(text)) {
			f.fits = append(f.fits, i)
		}
	}
}

func (f *menuField) pasteText(string) {}

func (f *menuField) handleKey(key tea.KeyPressMsg) (done, used bool) {
	last := len(f.fits) - 1
	switch key.String() {
	case "enter", "ctrl+j": // a line feed, which a terminal may send for Enter
		return f.marked != nil || last >= 0, true
	case "up", "ctrl+p":
		if f.cursor--; f.cursor < 0 {
			f.cursor = max(last, 0)
		}
	case "down", "ctrl+n":
		if f.cursor++; f.cursor > last {
			f.cursor = 0
		}
	case "home":
		f.cursor = 0
	case "end":
		f.cursor = max(last, 0)
	case "pgup":
		f.cursor = max(f.cursor-f.rows, 0)
	case "pgdown":
		f.cursor = max(min(f.cursor+f.rows, last), 0)
	case "space":
		if f.marked == nil {
			return false, f.addToFilter(" ")
		}
		f.toggleMark()
	case "backspace":
		if f.filter == "" {
			return false, false
		}
		runes := []rune(f.filter)
		f.applyFilter(string(runes[:len(runes)-1]))
	default:
		return f.handleText(key)
	}
	return false, true
}

// handleText handles a key that is a character: it names a choice, or becomes part of the filter.
func (f *menuField) handleText(key tea.KeyPressMsg) (done, used bool) {
	if f.filter == "" {
		if i := slices.Index(f.keys, key.Text); i >= 0 {
			f.cursor = i
			if f.marked == nil {
				return true, true
			}
			f.toggleMark()
			return false, true
		}
	}
	return false, key.Text != "" && !strings.ContainsFunc(key.Text, unicode.IsControl) && f.addToFilter(key.Text)
}

// addToFilter reports whether the list is long enough to have a filter.
func (f *menuField) addToFilter(text string) bool {
	if !f.long && f.filter == "" {
		return false
	}
	f.applyFilter(f.filter + text)
	return true
}

func (f *menuField) toggleMark() {
	if len(f.fits) > 0 {
		f.marked[f.at()] = !f.marked[f.at()]
	}
}

// maxNumbers is how many choices have a number key.
const maxNumbers = 9

// countNumbers returns how many choices have a number key.
func (f *menuField) countNumbers() (n int) {
	for _, c := range f.menu.Choices {
		if c.Key == "" && n < maxNumbers {
			n++
		}
	}
	return n
}

// keyOf returns the key that chooses a choice; "": none.
func (f *menuField) keyOf(index int) string {
	if key := f.keys[index]; len(key) == 1 {
		return key
	}
	return ""
}

func (f *menuField) describeKeys() []string {
	keys := "↑↓"
	short := "Enter"
	if n := f.countNumbers(); n > 1 {
		short = "1–" + strconv.Itoa(n) + " or Enter"
		keys += " or 1–" + strconv.Itoa(n)
	}
	hint := keys + ", Enter to choose"
	if f.marked != nil {
		hint = "Space chooses, Enter is done"
		short = "Space, Enter"
	}
	hint += " · Esc: answer later"
	list := []string{hint, short + " · Esc: later", "Esc: later"}
	if f.menu.Hint != "" {
		list = append([]string{hint + " · " + f.menu.Hint}, list...)
	}
	return list
}

// menuFrame is the frame of a menu that has no other one.
const menuFrame = "┃"

func (f *menuField) renderLines(cols, rows int) []string {
	frame := cmp.Or(f.menu.Frame, menuFrame)
	var lines []string
	if f.filter != "" {
		lines = append(lines, CutEnd(frame+" filter: "+f.filter, cols))
		rows--
	}
	blocks := make([][]string, len(f.fits))
	total := 0
	for i, index := range f.fits {
		blocks[i] = f.renderChoice(index, i == f.cursor, frame, cols)
		total += len(blocks[i])
	}
	if f.long = total > rows; !f.long {
		f.rows = max(len(f.fits), 1)
		f.top = 0
		for _, b := range blocks {
			lines = append(lines, b...)
		}
		if len(f.fits) == 0 {
			lines = append(lines, CutEnd(frame+"   nothing contains this", cols))
		}
		f.long = f.filter != ""
		return lines
	}
	const around = 2 // the lines that say how many more there are
	f.rows = max(rows-around, 1)
	f.top = max(min(f.top, f.cursor, len(blocks)-f.rows), f.cursor-f.rows+1, 0)
	end := min(f.top+f.rows, len(blocks))
	if f.top > 0 {
		lines = append(lines, CutEnd(fmt.Sprintf("%s   ↑ %d more", frame, f.top), cols))
	}
	for _, b := range blocks[f.top:end] {
		line := b[0]
		if len(b) > 1 {
			line += "…"
		}
		lines = append(lines, line)
	}
	note := "type to filter"
	if more := len(blocks) - end; more > 0 {
		note = fmt.Sprintf("↓ %d more · type to filter", more)
	}
	return append(lines, CutEnd(frame+"   "+note, cols))
}

// renderChoice returns the lines of a choice.
func (f *menuField) renderChoice(index int, current bool, frame string, cols int) []string {
	cursor := "  "
	if current {
		cursor = "> "
	}
	if f.marked != nil {
		cursor += map[bool]string{true: "[x] ", false: "[ ] "}[f.marked[index]]
	}
	head := frame + " " + cursor + cmp.Or(f.keyOf(index), " ") + " "
	if f.filter != "" {
		head = frame + " " + cursor
	}
	if cols < 2*TextWidth(head) {
		head = CutEnd(cursor, 2)
	}
	indent := frame + strings.Repeat(" ", max(TextWidth(head)-TextWidth(frame), 0))
	var lines []string
	for i, piece := range wrapText(f.menu.Choices[index].Label, cols-TextWidth(head)-1) {
		if current {
			piece = f.colors.paintDirectly(Bold, piece)
		}
		if i == 0 {
			lines = append(lines, head+piece)
		} else {
			lines = append(lines, indent+piece)
		}
	}
	return lines
}

// wrapText divides a text into lines that fit into a width, at spaces where possible.
func wrapText(text string, width int) []string {
	width = max(width, 1)
	var lines []string
	for text != "" {
		line := CutEnd(text, width)
		if line == "" { // a character that is wider than the line
			_, rest, _ := cutCharacter(text)
			line = text[:len(text)-len(rest)]
		}
		if at := strings.LastIndexByte(line, ' '); len(line) < len(text) && text[len(line)] != ' ' && at > 0 {
			line = line[:at]
		}
		lines = append(lines, line)
		text = strings.TrimPrefix(text[len(line):], " ")
	}
	if lines == nil {
		lines = []string{""}
	}
	return lines
}

// WrapPainted divides a line, which may be painted as a whole, into lines that fit into a width.
func WrapPainted(line string, width int) []string {
	plain := StripMarks(line)
	if TextWidth(plain) <= width {
		return []string{line}
	}
	before, after, _ := strings.Cut(line, plain)
	lines := wrapText(plain, width)
	for i, l := range lines {
		lines[i] = before + l + after
	}
	return lines
}
