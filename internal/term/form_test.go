package term

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
)

func keyPress(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code, Text: string(code)} }

// update passes a form a message, and those that follow from it.
func (f *form) update(msg tea.Msg) {
	_, cmd := f.Update(msg)
	f.obey(cmd, 10)
}

func (f *form) obey(cmd tea.Cmd, depth int) {
	if cmd == nil || depth == 0 {
		return
	}
	switch msg := cmd().(type) {
	case nil, tea.QuitMsg:
	case tea.BatchMsg:
		for _, c := range msg {
			f.obey(c, depth-1)
		}
	default:
		_, next := f.Update(msg)
		f.obey(next, depth-1)
	}
}

// newTestForm is a form that chooses one of three, the second of which is preselected.
func newTestForm(guarded bool) (f *form, chosen *int) {
	chosen = new(1)
	f = newForm(huh.NewSelect[int]().Options(listOptions([]Choice{{Label: "a"}, {Label: "b"}, {Label: "c"}})...).Value(chosen), "the hint", guarded)
	f.fields.Init()
	f.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
	return f, chosen
}

// Keys do nothing until the form says that they count; then a line feed is Enter, and letters choose nothing.
func TestFormGrace(t *testing.T) {
	lineFeed := tea.KeyPressMsg{Code: 'j', Mod: tea.ModCtrl}
	f, _ := newTestForm(true)
	for _, msg := range []tea.Msg{tea.KeyPressMsg{Code: tea.KeyEnter}, lineFeed, tea.KeyPressMsg{Code: tea.KeyDown}, keyPress('j'), tea.PasteMsg{Content: "x"}, tea.KeyPressMsg{Code: tea.KeyEscape}} {
		f.update(msg)
		if shown := f.View().Content; f.fields.State != huh.StateNormal || !strings.Contains(shown, "> b") || strings.Contains(shown, "the hint") {
			t.Fatalf("%v counts: state %v\n%s", msg, f.fields.State, shown)
		}
	}
	f.update(keysReady{})
	for _, msg := range []tea.Msg{keyPress('j'), keyPress('k'), keyPress('g'), keyPress('G'), keyPress('y'), keyPress('/')} {
		f.update(msg)
		if shown := f.View().Content; f.fields.State != huh.StateNormal || !strings.Contains(shown, "> b") || !strings.Contains(shown, "the hint") {
			t.Fatalf("%v counts: state %v\n%s", msg, f.fields.State, shown)
		}
	}
	f.update(lineFeed)
	if f.fields.State != huh.StateCompleted {
		t.Errorf("a line feed is not Enter: state %v\n%s", f.fields.State, f.View().Content)
	}
}

// Ctrl-C leaves a form at once, and one that the person expects has no grace.
func TestFormKeys(t *testing.T) {
	f, _ := newTestForm(true)
	f.update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	if f.fields.State != huh.StateAborted {
		t.Errorf("Ctrl-C: state %v", f.fields.State)
	}
	f, chosen := newTestForm(false)
	f.update(tea.KeyPressMsg{Code: tea.KeyDown})
	f.update(tea.KeyPressMsg{Code: tea.KeyEnter})
	if f.fields.State != huh.StateCompleted || *chosen != 2 {
		t.Errorf("state %v, chosen %d", f.fields.State, *chosen)
	}
}

// A form that is over shows what it showed last: its rows are removed by their number.
func TestFormKeepsItsRows(t *testing.T) {
	for _, end := range []tea.KeyPressMsg{{Code: tea.KeyEnter}, {Code: tea.KeyEscape}} {
		f, _ := newTestForm(false)
		before := f.View().Content
		f.update(end)
		if after := f.View().Content; f.fields.State == huh.StateNormal || after != before || after != f.shown || strings.Count(after, "\n") != 3 {
			t.Errorf("%v: state %v, %q, then %q", end, f.fields.State, before, after)
		}
	}
}
