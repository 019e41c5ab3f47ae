package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"raddle.dev/internal/base/term"
)

// keys are the keys that a test names.
var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"left": {Code: tea.KeyLeft}, "home": {Code: tea.KeyHome}, "backspace": {Code: tea.KeyBackspace}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
	"ctrl+j": {Code: 'j', Mod: tea.ModCtrl}, "ctrl+a": {Code: 'a', Mod: tea.ModCtrl}, "ctrl+k": {Code: 'k', Mod: tea.ModCtrl},
	"ctrl+r": {Code: 'r', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+w": {Code: 'w', Mod: tea.ModCtrl},
	"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "ctrl+g": {Code: 'g', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl},
	"ctrl+z": {Code: 'z', Mod: tea.ModCtrl}, "ctrl+l": {Code: 'l', Mod: tea.ModCtrl},
}

// press types keys: the names of keys in <>, and letters. It returns what the last key asks for.
func press(t *testing.T, e *Editor, text string) (last Action) {
	t.Helper()
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "<"); ok {
			name, after, _ := strings.Cut(rest, ">")
			key, ok := keys[name]
			if !ok {
				t.Fatalf("the test knows no key %q", name)
			}
			last, text = e.HandleKey(key), after
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		last = e.HandleKey(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return last
}

func TestKeysOfTheEditor(t *testing.T) {
	for _, c := range []struct {
		keys, want string
		action     Action
	}{
		{"hello<enter>", "hello", Send},
		{"one<alt+enter>two<enter>", "one\ntwo", Send},
		{"one<ctrl+j>two<enter>", "one\ntwo", Send},
		{`one\<enter>two<enter>`, "one\ntwo", Send},
		{":::<enter>one<enter>two:::<enter>", ":::\none\ntwo:::", Send},
		{"  <enter>", "  ", None},
		{"<enter>", "", None},
		{"wrong<ctrl+a><ctrl+k>right<enter>", "right", Send},
		{"two words<ctrl+w>lines", "two lines", None},
		{"bc<home>a", "abc", None},
		{"日本語 🎉 שלום<enter>", "日本語 🎉 שלום", Send},
		{"<ctrl+d>", "", EndInput},
		{"ab<left><ctrl+d>", "a", None},
		{"a<ctrl+c>", "a", Interrupt},
		{"a<esc>", "a", Cancel},
		{"<shift+tab>", "", NextMode},
		{"a<ctrl+g>", "a", OpenEditor},
		{"a<ctrl+o>", "a", ShowMore},
		{"a<ctrl+z>", "a", Suspend},
		{"a<ctrl+l>", "a", ClearScreen},
		{"<up>", "", Earlier},
	} {
		e := New(nil)
		if got := press(t, e, c.keys); got != c.action || e.Text() != c.want {
			t.Errorf("%s: action %d, text %q, want %d, %q", c.keys, got, e.Text(), c.action, c.want)
		}
	}
}

func TestTrimBlock(t *testing.T) {
	for text, want := range map[string]string{":::\none\ntwo\n:::": "one\ntwo", ":::a:::": "a", "a ::: b": "a ::: b", ":::": ":::"} {
		if got := TrimBlock(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A long paste is folded, and sent whole. It is removed as one.
func TestPastes(t *testing.T) {
	long := strings.Repeat("a line of a log\n", 120)
	e := New(nil)
	press(t, e, "look: ")
	e.HandleKey(tea.PasteMsg{Content: long})
	lines, _ := e.View()
	if got := strings.Join(lines, "\n"); got != "> look: [pasted 120 lines]" {
		t.Errorf("shown: %q", got)
	}
	e.HandleKey(tea.PasteMsg{Content: long + "more\n"})
	if want := "look: " + long + long + "more\n"; e.Text() != want {
		t.Errorf("text has %d bytes, want %d", len(e.Text()), len(want))
	}
	press(t, e, "<backspace><backspace>")
	if e.Text() != "look: " {
		t.Errorf("after two backspaces: %q", e.Text())
	}
	e.SetText("")
	e.HandleKey(tea.PasteMsg{Content: "one\r\ntwo\rthree\x1b[31m"})
	if got := e.Text(); !strings.HasPrefix(got, "one\ntwo\nthree") || strings.Contains(got, "\x1b") {
		t.Errorf("a short paste: %q", got)
	}
}

// A paste of 10,000 lines takes less than 200 ms, with the drawing.
func TestLargePasteIsFast(t *testing.T) {
	e := New(nil)
	text := strings.Repeat(strings.Repeat("x", 80)+"\n", 10_000)
	start := time.Now()
	e.HandleKey(tea.PasteMsg{Content: text})
	e.View()
	if got := e.Text(); got != text {
		t.Errorf("%d bytes, want %d", len(got), len(text))
	}
	if took := time.Since(start); took > 200*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history.jsonl")
	redact := func(text string) string { return strings.ReplaceAll(text, "s3cret", "***") }
	e := New(OpenHistory(path, redact))
	for _, text := range []string{"first", "second\nline", "second\nline", "with s3cret"} {
		e.SetText(text)
		e.Take()
	}
	saved, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(saved); got != "\"first\"\n\"second\\nline\"\n\"with ***\"\n" {
		t.Errorf("saved: %s", got)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	e = New(OpenHistory(path, redact))
	press(t, e, "draft<up>")
	if e.Text() != "with ***" {
		t.Errorf("up: %q", e.Text())
	}
	press(t, e, "<up><up><up>")
	if e.Text() != "first" {
		t.Errorf("the oldest: %q", e.Text())
	}
	press(t, e, "<down><down><down><down>")
	if e.Text() != "draft" {
		t.Errorf("the draft: %q", e.Text())
	}
	e.SetText("")
	press(t, e, "<ctrl+r>line")
	lines, at := e.View()
	if lines[0] != "history: line" || at.Column != len(lines[0]) || !strings.Contains(strings.Join(lines, "\n"), "second line") {
		t.Errorf("search: %q, %v", lines, at)
	}
	press(t, e, "<enter>")
	if e.Text() != "second\nline" {
		t.Errorf("found: %q", e.Text())
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	var all []byte
	for i := range maxHistory + 50 {
		all = fmt.Appendf(all, "%q\n", fmt.Sprint("text ", i))
	}
	if err := os.WriteFile(path, append([]byte("not JSON\n"), all...), 0o600); err != nil {
		t.Fatal(err)
	}
	h := OpenHistory(path, nil)
	if h.Len() != maxHistory || h.texts[0] != "text 50" {
		t.Errorf("%d texts, the first %q", h.Len(), h.texts[0])
	}
	if again := OpenHistory(path, nil); !slices.Equal(again.texts, h.texts) {
		t.Error("the file was not shortened")
	}
}

// words completes words that begin with a slash.
func words(list ...string) func(string) Completion {
	return func(before string) Completion {
		word := before[strings.LastIndexByte(before, ' ')+1:]
		c := Completion{Word: word, Always: strings.HasPrefix(word, "/")}
		for _, w := range list {
			if strings.HasPrefix(w, word) {
				c.Candidates = append(c.Candidates, Candidate{Text: w, Help: "about " + w})
			}
		}
		return c
	}
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"/he<tab>", "/help"},
		{"/re<tab>", "/re"},          // three candidates have that in common
		{"/re<tab><tab>", "/re"},     // chosen, and not accepted yet
		{"/re<tab><enter>", "/redo"}, // the first one
		{"/re<down><down><enter>", "/retry"},
		{"/re<up><enter>", "/rewind"}, // upwards begins at the end
		{"/rew<tab> x", "/rewind x"},
		{"/re<tab><esc><enter>", "/re"},
		{"say wo<tab>", "say word"},
	} {
		e := New(nil)
		e.Complete = words("/help", "/redo", "/retry", "/rewind", "word")
		press(t, e, c.keys)
		if e.Text() != c.want {
			t.Errorf("%s: %q, want %q", c.keys, e.Text(), c.want)
		}
	}
	e := New(nil)
	e.Complete = words("/help", "/redo", "word")
	press(t, e, "/")
	if lines, _ := e.View(); len(lines) != 3 {
		t.Errorf("a slash shows %q", lines)
	}
	press(t, e, "<backspace>w")
	if lines, _ := e.View(); len(lines) != 1 {
		t.Errorf("a word shows %q before Tab", lines)
	}
}

// No line is wider than the editor, and the cursor is inside.
func TestWidths(t *testing.T) {
	texts := []string{"", "a short text", strings.Repeat("long ", 60), strings.Repeat("x", 300), strings.Repeat("日本", 40), strings.Repeat("🏳️‍🌈", 30), "שלום עולם", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm"}
	for _, width := range []int{6, 20, 40, 80, 200} {
		for _, text := range texts {
			e := New(nil)
			e.Hint = "Ask or describe a task."
			e.Complete = words("/help", "word")
			e.SetWidth(width)
			e.area.InsertString(text)
			lines, at := e.View()
			for _, line := range lines {
				if n := term.TextWidth(term.StripMarks(line)); n > width {
					t.Errorf("width %d: a line of %q has %d columns: %q", width, text, n, line)
				}
			}
			if at.Row < 0 || at.Row >= len(lines) || at.Column < 0 || at.Column >= width {
				t.Errorf("width %d, %q: the cursor is at %v of %d lines", width, text, at, len(lines))
			}
			if len(lines) > maxRows {
				t.Errorf("width %d: %d lines", width, len(lines))
			}
		}
	}
}
