package cli

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

func keyPress(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code, Text: string(code)} }

// update passes a form a message, and those that follow from it.
func (f *shownForm) update(msg tea.Msg) {
	_, cmd := f.Update(msg)
	f.obey(cmd, 10)
}

func (f *shownForm) obey(cmd tea.Cmd, depth int) {
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
func newTestForm(guarded bool) (f *shownForm, chosen *int) {
	chosen = new(1)
	options := []option{{value: "a", label: "a"}, {value: "b", label: "b"}, {value: "c", label: "c"}}
	f = newShownForm(form{field: huh.NewSelect[int]().Options(shownOptions(options)...).Value(chosen), hint: "the hint", guarded: guarded})
	f.form.Init()
	f.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
	return f, chosen
}

// Keys do nothing until the form says that they count; then a line feed is Enter, and letters choose nothing.
func TestFormGrace(t *testing.T) {
	lineFeed := tea.KeyPressMsg{Code: 'j', Mod: tea.ModCtrl}
	f, _ := newTestForm(true)
	for _, msg := range []tea.Msg{tea.KeyPressMsg{Code: tea.KeyEnter}, lineFeed, tea.KeyPressMsg{Code: tea.KeyDown}, keyPress('j'), tea.PasteMsg{Content: "x"}, tea.KeyPressMsg{Code: tea.KeyEscape}} {
		f.update(msg)
		if shown := f.View().Content; f.form.State != huh.StateNormal || !strings.Contains(shown, "> b") || strings.Contains(shown, "the hint") {
			t.Fatalf("%v counts: state %v\n%s", msg, f.form.State, shown)
		}
	}
	f.update(keysReady{})
	for _, msg := range []tea.Msg{keyPress('j'), keyPress('k'), keyPress('g'), keyPress('G'), keyPress('y'), keyPress('/')} {
		f.update(msg)
		if shown := f.View().Content; f.form.State != huh.StateNormal || !strings.Contains(shown, "> b") || !strings.Contains(shown, "the hint") {
			t.Fatalf("%v counts: state %v\n%s", msg, f.form.State, shown)
		}
	}
	f.update(lineFeed)
	if f.form.State != huh.StateCompleted {
		t.Errorf("a line feed is not Enter: state %v\n%s", f.form.State, f.View().Content)
	}
}

// Ctrl-C leaves a form at once, and one that the person expects has no grace.
func TestFormKeys(t *testing.T) {
	f, _ := newTestForm(true)
	f.update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	if f.form.State != huh.StateAborted {
		t.Errorf("Ctrl-C: state %v", f.form.State)
	}
	f, chosen := newTestForm(false)
	f.update(tea.KeyPressMsg{Code: tea.KeyDown})
	f.update(tea.KeyPressMsg{Code: tea.KeyEnter})
	if f.form.State != huh.StateCompleted || *chosen != 2 {
		t.Errorf("state %v, chosen %d", f.form.State, *chosen)
	}
}

func TestPreselectedDefault(t *testing.T) {
	for want, q := range map[int]graph.Question{
		0: {Options: []string{"yes", "no"}},
		1: {Options: []string{"once", "no"}, Kind: agent.KindPermission},
		2: {Options: []string{"a", "b", "c"}, Default: "c"},
	} {
		if got := defaultOption(q, optionsOf(q)); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
	if got := defaultOption(graph.Question{Options: []string{"a", "b"}, Default: "own words"}, optionsOf(graph.Question{Options: []string{"a", "b"}})); got != 0 {
		t.Errorf("a default that is no option: %d", got)
	}
}
