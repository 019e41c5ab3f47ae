package term

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

func keyPress(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code, Text: string(code)} }

var (
	enterKey  = tea.KeyPressMsg{Code: tea.KeyEnter}
	downKey   = tea.KeyPressMsg{Code: tea.KeyDown}
	escapeKey = tea.KeyPressMsg{Code: tea.KeyEscape}
	lineFeed  = tea.KeyPressMsg{Code: 'j', Mod: tea.ModCtrl}
	altEnter  = tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt}
)

// pause lets the form notice that no key was pressed for a while.
func (f *form) pause() { f.Update(keysReady{f.awaitedPause}) }

// press passes keys to a form.
func (f *form) press(keys ...tea.KeyPressMsg) {
	for _, k := range keys {
		f.Update(k)
		f.View()
	}
}

// typeText passes a text to a form, one key for each character.
func (f *form) typeText(text string) {
	for _, r := range text {
		f.press(keyPress(r))
	}
}

// newTestForm is a form that chooses one of three, the second of which is preselected.
func newTestForm(guarded bool) (*form, *menuField) {
	return newMenuForm(Menu{Choices: []Choice{{Label: "a"}, {Label: "b"}, {Label: "c"}}, First: 1}, guarded, 40, 10)
}

func newMenuForm(m Menu, guarded bool, cols, rows int) (*form, *menuField) {
	field := newMenuField(m, false)
	f := newForm(field, false, guarded)
	f.Update(tea.WindowSizeMsg{Width: cols, Height: rows})
	f.View()
	return f, field
}

// Keys do nothing until the form says that they count; then a line feed is Enter.
func TestFormGrace(t *testing.T) {
	f, _ := newTestForm(true)
	for _, msg := range []tea.Msg{enterKey, lineFeed, downKey, keyPress('j'), keyPress('1'), tea.PasteMsg{Content: "x"}, escapeKey} {
		f.Update(msg)
		if shown := f.View().Content; f.state != formOpen || !strings.Contains(shown, "> 2 b") || strings.Contains(shown, "Enter") {
			t.Fatalf("%v counts: state %v\n%s", msg, f.state, shown)
		}
	}
	f.pause()
	if shown := f.View().Content; !strings.Contains(shown, "1–3 or Enter · Esc: later") {
		t.Errorf("no hint:\n%s", shown)
	}
	f.press(lineFeed)
	if f.state != formDone {
		t.Errorf("a line feed is not Enter: state %v\n%s", f.state, f.View().Content)
	}
}

// What a person types is no answer as long as the first letter means nothing here: keys count again after a pause.
func TestFormIgnoresTypedText(t *testing.T) {
	f, _ := newTestForm(true)
	f.pause()
	f.typeText("git log -1 3")
	f.press(enterKey, lineFeed, downKey, escapeKey, keyPress('y'), keyPress('1'))
	if shown := f.View().Content; f.state != formOpen || !strings.Contains(shown, "> 2 b") {
		t.Fatalf("typed text counts: state %v\n%s", f.state, shown)
	}
	f.Update(keysReady{f.awaitedPause - 1}) // the pause after an earlier key
	f.press(keyPress('1'))
	if f.state != formOpen {
		t.Fatal("an earlier pause counts")
	}
	f.pause()
	if f.press(keyPress('3')); f.state != formDone || f.field.(*menuField).at() != 2 {
		t.Errorf("state %v, chosen %d", f.state, f.field.(*menuField).at())
	}
}

// Ctrl-C leaves a form at once, and one that the person expects has no grace.
func TestFormKeys(t *testing.T) {
	f, _ := newTestForm(true)
	f.press(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	if f.state != formInterrupted {
		t.Errorf("Ctrl-C: state %v", f.state)
	}
	f, m := newTestForm(false)
	f.press(downKey, enterKey)
	if f.state != formDone || m.at() != 2 {
		t.Errorf("state %v, chosen %d", f.state, m.at())
	}
	for keys, want := range map[string]int{"1": 0, "2": 1, "3": 2} {
		f, m := newTestForm(false)
		if f.typeText(keys); f.state != formDone || m.at() != want {
			t.Errorf("%s: state %v, chosen %d", keys, f.state, m.at())
		}
	}
	f, _ = newTestForm(false)
	if f.typeText("4"); f.state != formOpen {
		t.Errorf("the number of no choice: state %v", f.state)
	}
}

// A form that is over shows what it showed last: its rows are removed by their number.
func TestFormKeepsItsRows(t *testing.T) {
	for _, end := range []tea.KeyPressMsg{enterKey, escapeKey} {
		f, _ := newTestForm(false)
		before := f.View().Content
		f.Update(end)
		if after := f.View().Content; f.state == formOpen || after != before || after != f.shown || strings.Count(after, "\n") != 3 {
			t.Errorf("%v: state %v, %q, then %q", end, f.state, before, after)
		}
	}
}

// A choice with a key of its own has no number, and the others count without it.
func TestMenuKeys(t *testing.T) {
	menu := Menu{Choices: []Choice{{Label: "once"}, {Label: "edit", Key: "e"}, {Label: "no"}, {Label: "why", Key: "?"}}, First: 2, Frame: "│", Hint: "in ~/shop"}
	for key, want := range map[string]int{"1": 0, "e": 1, "2": 2, "?": 3} {
		f, m := newMenuForm(menu, false, 60, 20)
		if f.typeText(key); f.state != formDone || m.at() != want {
			t.Errorf("%s: state %v, chosen %d", key, f.state, m.at())
		}
	}
	f, _ := newMenuForm(menu, false, 100, 20)
	want := "│   1 once\n│   e edit\n│ > 2 no\n│   ? why\n↑↓ or 1–2, Enter to choose · Esc: answer later · in ~/shop"
	if got := f.View().Content; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A list that is longer than the screen says so, scrolls, and can be filtered.
func TestLongMenu(t *testing.T) {
	var m Menu
	for i := range 31 {
		m.Choices = append(m.Choices, Choice{Label: fmt.Sprintf("option %d", i+1)})
	}
	page := tea.KeyPressMsg{Code: tea.KeyPgDown}
	f, field := newMenuForm(m, false, 40, 12)
	if got := f.View().Content; !strings.Contains(got, "┃ > 1 option 1\n") || !strings.Contains(got, "┃     option 8\n") && !strings.Contains(got, "option 8") || !strings.Contains(got, "↓ 23 more · type to filter") || strings.Count(got, "\n") != 9 {
		t.Errorf("the first page is\n%s", got)
	}
	f.press(page)
	if got := f.View().Content; field.at() != 8 || !strings.Contains(got, "↑ 1 more") || !strings.Contains(got, "↓ 22 more") {
		t.Errorf("after a page (%d)\n%s", field.at(), got)
	}
	f.press(tea.KeyPressMsg{Code: tea.KeyEnd})
	if got := f.View().Content; field.at() != 30 || strings.Contains(got, "↓") && !strings.Contains(got, "↑↓") || !strings.Contains(got, "↑ 23 more") {
		t.Errorf("at the end (%d)\n%s", field.at(), got)
	}
	f.press(tea.KeyPressMsg{Code: tea.KeyPgUp}, tea.KeyPressMsg{Code: tea.KeyHome})
	if field.at() != 0 {
		t.Errorf("at home: %d", field.at())
	}
	f.typeText("n 2")
	if got := f.View().Content; !strings.Contains(got, "filter: n 2") || !strings.Contains(got, "> option 2\n") || strings.Contains(got, "option 3\n") {
		t.Errorf("filtered\n%s", got)
	}
	f.typeText("9")
	f.press(enterKey)
	if f.state != formDone || field.at() != 28 {
		t.Errorf("state %v, chosen %d", f.state, field.at())
	}
	f, field = newMenuForm(m, false, 40, 12)
	f.typeText("zzz")
	f.press(enterKey)
	if f.state != formOpen || !strings.Contains(f.View().Content, "nothing contains this") {
		t.Errorf("state %v\n%s", f.state, f.View().Content)
	}
	back := tea.KeyPressMsg{Code: tea.KeyBackspace}
	f.press(back, back, back, enterKey)
	if f.state != formDone || field.at() != 0 {
		t.Errorf("state %v, chosen %d", f.state, field.at())
	}
}

func TestSeveralChoices(t *testing.T) {
	f, m := newMenuForm(Menu{Choices: []Choice{{Label: "bow"}, {Label: "card"}, {Label: "ink"}}}, false, 40, 10)
	m.marked = make([]bool, 3)
	f.press(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}, keyPress('3'))
	if got := f.View().Content; f.state != formOpen || !strings.Contains(got, "┃   [x] 1 bow\n┃   [ ] 2 card\n┃ > [x] 3 ink\n") {
		t.Errorf("state %v\n%s", f.state, got)
	}
	if f.press(enterKey); f.state != formDone {
		t.Errorf("state %v", f.state)
	}
}

// No line is wider than the terminal, and no text is lost where there is room for all lines.
func TestMenuFitsEveryWidth(t *testing.T) {
	long := "Always allow execute_command(go vet ./... && staticcheck ./...) and 日本語 in this project"
	for cols := 20; cols <= 200; cols++ {
		f, _ := newMenuForm(Menu{Choices: []Choice{{Label: "yes"}, {Label: long}}, Hint: "in /a/rather/long/directory"}, false, cols, 40)
		f.press(downKey)
		shown := f.View().Content
		for line := range strings.SplitSeq(shown, "\n") {
			if TextWidth(line) > cols {
				t.Fatalf("%d columns: %q", cols, line)
			}
		}
		letters := func(s string) string {
			return strings.NewReplacer(" ", "", "\n", "", "┃", "", ">", "").Replace(s)
		}
		if !strings.Contains(letters(shown), letters(long)) {
			t.Fatalf("%d columns: a part of the label is missing\n%s", cols, shown)
		}
	}
}

// A text keeps the lines that are pasted; Enter sends it, Alt-Enter and a line feed add a line.
func TestTextForm(t *testing.T) {
	field := newTextField("Your answer: ", "")
	f := newForm(field, false, true)
	f.Update(tea.WindowSizeMsg{Width: 60, Height: 20})
	f.Update(tea.PasteMsg{Content: "early"})
	f.typeText("early")
	f.press(lineFeed, enterKey)
	if f.pause(); field.text() != "" || f.state != formOpen {
		t.Fatalf("%q, state %v", field.text(), f.state)
	}
	f.Update(tea.PasteMsg{Content: "first\r\nsecond\n  third\n"})
	f.typeText("x?1")
	f.press(altEnter, lineFeed)
	f.typeText("end")
	shown := f.View().Content
	if want := "first\nsecond\n  third\nx?1\n\nend"; field.text() != want || f.state != formOpen {
		t.Errorf("%q, state %v, want %q", field.text(), f.state, want)
	}
	if !strings.Contains(shown, "┃ Your answer: first") || !strings.Contains(shown, "┃              second") || !strings.Contains(shown, "Enter sends, Alt-Enter adds a line") {
		t.Errorf("the form shows\n%s", shown)
	}
	if f.press(enterKey); f.state != formDone {
		t.Errorf("state %v", f.state)
	}
	for _, cols := range []int{20, 21, 40, 200} {
		f := newForm(newTextField("A rather long question for a text: ", "a\nb"), false, false)
		f.Update(tea.WindowSizeMsg{Width: cols, Height: 10})
		f.typeText(strings.Repeat("word ", 30))
		for line := range strings.SplitSeq(f.View().Content, "\n") {
			if ansi.StringWidth(line) > cols {
				t.Errorf("%d columns: %q", cols, line)
			}
		}
	}
}

func TestWrapText(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""}, {"one two", 10, "one two"}, {"one two", 5, "one|two"}, {"one two", 3, "one|two"}, {"abcdef", 4, "abcd|ef"}, {"日本語", 2, "日|本|語"}, {"日本", 1, "日|本"}, {"a  b", 2, "a |b"},
	} {
		if got := strings.Join(wrapText(c.text, c.width), "|"); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
