package term

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCells(t *testing.T) {
	for text, want := range map[string]int{"abc": 3, "日本": 4, "é": 1, "e\u0301": 1, "👍x": 3, "": 0} {
		if got := TextWidth(text); got != want {
			t.Errorf("cells(%q) = %d, want %d", text, got, want)
		}
	}
	if got := PadText("日本語", 5); got != "日本…" {
		t.Errorf("%q", got)
	}
}

// A character of several code points counts as what the widest display of it takes, and is never cut into parts.
func TestWideCharacters(t *testing.T) {
	const family, heart, flag = "👨‍👩‍👧", "❤️", "🇩🇪"
	for text, want := range map[string]int{family: 6, heart: 2, flag: 2, "e\u0301" + heart: 3} {
		if got := TextWidth(text); got != want {
			t.Errorf("TextWidth(%q) = %d, want %d", text, got, want)
		}
	}
	if got := CutEnd("ab"+family, 7) + "|" + CutStart(heart+"ab", 3) + "|" + CutEnd(heart+"ab", 3); got != "ab|ab|"+heart+"a" {
		t.Errorf("%q", got)
	}
}

// The lines of a table fit into a terminal: the last column is cut, and before it disappears, the widest of the others.
func TestTable(t *testing.T) {
	type row struct{ run, agent, waits string }
	table := func(agent string) *Table[row] {
		l := NewTable(
			NewColumn("RUN", func(r row) string { return r.run }),
			NewColumn("AGENT", func(r row) string { return r.agent }),
			NewColumn("WAITS FOR", func(r row) string { return r.waits }),
		)
		l.AddRow(row{"1m82", agent, "ask:\nReally delete all of it?"})
		l.AddRow(row{"1m83", "b", ""})
		return l
	}
	for _, test := range []struct {
		agent string
		width int
		want  string
	}{
		{"日本", 0, "RUN   AGENT  WAITS FOR\n1m82  日本   ask: Really delete all of it?\n1m83  b\n"},
		{"a", 24, "RUN   AGENT  WAITS FOR\n1m82  a      ask: Reall…\n1m83  b\n"},
		{strings.Repeat("x", 30) + "\x1b[2J", 32, "RUN   AGENT             WAITS F…\n1m82  xxxxxxxxxxxxxxx…  ask: Re…\n1m83  b\n"},
		{"a", 5, "RUN …\n1m82…\n1m83…\n"},
	} {
		if d := cmp.Diff(test.want, table(test.agent).Format(test.width)); d != "" {
			t.Errorf("%q in %d columns (-want +got):\n%s", test.agent, test.width, d)
		}
	}
}
