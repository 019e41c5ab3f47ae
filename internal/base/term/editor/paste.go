package editor

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"raddle.dev/internal/base/term"
)

// A paste is a long text that was pasted. The editor shows its mark instead.
type paste struct{ mark, text string }

// foldAbove is the largest number of lines, and foldBytes the largest number of bytes, of a paste that is shown as it
// is.
const (
	foldAbove = 5
	foldBytes = 4096
)

// insertPaste inserts a text. A long text is folded.
func (e *Editor) insertPaste(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if lines <= foldAbove && len(text) <= foldBytes {
		e.area.InsertString(strings.ReplaceAll(term.CleanText(text), "\t", "    "))
		return
	}
	mark := fmt.Sprintf("[pasted %d lines]", lines)
	if lines == 1 {
		mark = fmt.Sprintf("[pasted %d characters]", len([]rune(text)))
	}
	for n := 2; strings.Contains(e.area.Value(), mark); n++ {
		mark = fmt.Sprintf("[pasted %d lines, #%d]", lines, n)
	}
	e.pastes = append(e.pastes, paste{mark, text})
	e.area.InsertString(mark)
}

// expandPastes returns a text with the pastes in place of their marks.
func (e *Editor) expandPastes(text string) string {
	for _, p := range e.pastes {
		before, after, ok := strings.Cut(text, p.mark)
		if !ok {
			continue // the person removed it
		}
		text = before + p.text + after
	}
	return text
}

// removePaste removes a folded paste that ends at the cursor. It reports whether there is one.
func (e *Editor) removePaste() bool {
	before := e.beforeCursor()
	for _, p := range e.pastes {
		if !strings.HasSuffix(before, p.mark) {
			continue
		}
		for range []rune(p.mark) {
			e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
		}
		return true
	}
	return false
}

// beforeCursor returns the text before the cursor.
func (e *Editor) beforeCursor() string {
	lines := strings.Split(e.area.Value(), "\n")
	row := min(e.area.Line(), len(lines)-1)
	line := []rune(lines[row])
	last := string(line[:min(e.area.Column(), len(line))])
	return strings.Join(append(lines[:row:row], last), "\n")
}
