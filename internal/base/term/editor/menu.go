package editor

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"raddle.dev/internal/base/term"
)

// A Candidate is one way to complete a text.
type Candidate struct {
	Text string // replaces the word
	Help string // explains it; may be ""
}

// A Completion is what could replace the last word before the cursor.
type Completion struct {
	Word       string // the end of the text before the cursor that a candidate replaces
	Candidates []Candidate
	Always     bool // show the candidates while the person types, not only after Tab
}

// A menu shows candidates below the text. The zero value is closed.
type menu struct {
	Completion
	chosen int // -1: none
	asked  bool
}

// menuRows is the largest number of candidates that are shown at once.
const menuRows = 6

func (m *menu) isOpen() bool { return len(m.Candidates) > 0 }

func (m *menu) move(up bool) {
	n := len(m.Candidates)
	if up {
		m.chosen = (max(m.chosen, 0) + n - 1) % n
		return
	}
	m.chosen = (m.chosen + 1) % n
}

// updateMenu finds the candidates for the text before the cursor. Without asked, the menu only stays open or opens for
// completions that are always shown.
func (e *Editor) updateMenu(asked bool) {
	open := asked || e.menu.asked
	e.menu = menu{}
	if e.Complete == nil {
		return
	}
	before := e.beforeCursor()
	c := e.Complete(before)
	if !open && !c.Always || len(c.Candidates) == 1 && c.Candidates[0].Text == c.Word {
		return
	}
	e.menu = menu{Completion: c, chosen: -1, asked: open}
}

// handleTab completes as far as the candidates agree; then it moves in the menu.
func (e *Editor) handleTab() {
	if e.menu.isOpen() && e.menu.chosen >= 0 {
		e.menu.move(false)
		return
	}
	e.updateMenu(true)
	switch common := commonPrefix(e.menu.Candidates); {
	case !e.menu.isOpen():
	case len(e.menu.Candidates) == 1:
		e.menu.chosen = 0
		e.acceptChoice()
	case len(common) > len(e.menu.Word) && strings.HasPrefix(common, e.menu.Word):
		e.replaceWord(e.menu.Word, common)
		e.updateMenu(true)
	default:
		e.menu.chosen = 0
	}
}

// commonPrefix returns the longest text that all candidates begin with.
func commonPrefix(list []Candidate) string {
	if len(list) == 0 {
		return ""
	}
	common := []rune(list[0].Text)
	for _, c := range list[1:] {
		common = common[:term.CountCommonStart(common, []rune(c.Text))]
	}
	return string(common)
}

// acceptChoice replaces the word with the chosen candidate.
func (e *Editor) acceptChoice() {
	e.replaceWord(e.menu.Word, e.menu.Candidates[e.menu.chosen].Text)
	e.menu = menu{}
}

// replaceWord replaces the word that ends at the cursor.
func (e *Editor) replaceWord(word, text string) {
	for range []rune(word) {
		e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	e.area.InsertString(text)
}

// view returns the lines of the menu.
func (m *menu) view(width int) []string {
	wide := 0
	most := width - len(menuMargin)
	for _, c := range m.Candidates {
		if c.Help != "" {
			most = width / 2
		}
	}
	for _, c := range m.Candidates {
		wide = max(wide, min(term.TextWidth(term.CleanLine(c.Text)), most))
	}
	var lines []string
	for i := max(0, m.chosen-menuRows+1); i < len(m.Candidates) && len(lines) < menuRows; i++ {
		c := m.Candidates[i]
		line := term.PadText(term.CleanLine(c.Text), wide)
		if help := term.CleanLine(c.Help); help != "" {
			line += menuMargin + help
		}
		line = term.CutEnd(strings.TrimRight(line, " "), width-len(menuMargin))
		if i == m.chosen {
			line = term.PaintText(term.Bold, "▸ "+line)
		} else {
			line = term.PaintText(term.Dim, menuMargin+line)
		}
		lines = append(lines, line)
	}
	return lines
}

// menuMargin stands before a candidate that is not chosen.
const menuMargin = "  "
