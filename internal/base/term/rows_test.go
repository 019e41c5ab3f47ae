//go:build unix

package term

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/termtest"
)

// terminalText returns what a terminal gets of a text with marks.
func terminalText(text string) string { return renderMarks(text, CleanText, expandMark) }

// Whatever rows change to, the terminal shows the new ones, nothing above or below them, and the cursor where it must be.
func TestUpdateRows(t *testing.T) {
	words := []string{"one", "two words", "日本", "é", "", "a longer row of text", PaintText(Red, "red") + " and not", "half " + PaintText(Bold, "bold"),
		PaintText(Dim, "dim "+PaintText(Green, "green")), LinkText("https://example.org", "a link"), "👨‍👩‍👧 family", "x❤️y"}
	pick := func(rng *rand.Rand) []string {
		rows := make([]string, 1+rng.IntN(7))
		for i := range rows {
			rows[i] = words[rng.IntN(len(words))]
		}
		return rows
	}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		v := termtest.NewDisplay(30)
		rows := pick(rng)
		v.WriteText("above\n" + terminalText(strings.Join(rows, "\n")))
		at := len(rows) - 1
		for range 6 {
			next := pick(rng)
			switch rng.IntN(4) { // usually much stays
			case 0:
				next = append(slices.Clone(rows), next...)
			case 1:
				next = slices.Concat(rows[min(2, len(rows)-1):len(rows)-1], next[:1], rows[len(rows)-1:])
			case 2:
				next = slices.Clone(rows)
				next[rng.IntN(len(next))] += "."
			}
			to := Cursor{Row: rng.IntN(len(next)), Column: endOfRow}
			if rng.IntN(2) == 0 {
				to.Column = rng.IntN(8)
			}
			v.WriteText(terminalText(updateRows(rows, next, at, to)))
			rows, at = next, to.Row
			want := "above\n" + StripMarks(strings.Join(next, "\n"))
			if got := v.String(); stripSpaces(want) != stripSpaces(got) || v.Unknown != nil {
				t.Fatalf("seed %d: (-want +got)\n%s\nunknown: %q", seed, cmp.Diff(want, got), v.Unknown)
			}
			row, col := v.Cursor()
			if row != to.Row+1 || to.Column >= 0 && col != to.Column {
				t.Fatalf("seed %d: the cursor is at %d, %d, want %d, %d", seed, row, col, to.Row+1, to.Column)
			}
		}
	}
}

// stripSpaces removes what the display does not keep: blanks, and joiners, which take no column.
func stripSpaces(text string) string {
	return strings.TrimRight(strings.NewReplacer(" ", "", "\u200d", "", "\ufe0f", "").Replace(text), "\n")
}

// What changes costs bytes, and what stays does not: a text that grows, rows that move down or up, a number in the middle.
func TestUpdateRowsIsShort(t *testing.T) {
	long := func(n int) string { return fmt.Sprintf("row %d %s", n, strings.Repeat("x", 60)) }
	rows := []string{long(1), long(2), long(3), long(4), "status 1 of 9 " + strings.Repeat("y", 40)}
	for name, c := range map[string]struct {
		next []string
		most int
	}{
		"nothing":                    {slices.Clone(rows), 10},
		"one letter at the end":      {slices.Concat(rows[:3], []string{long(4) + "z"}, rows[4:]), 30},
		"a number in the middle":     {slices.Concat(rows[:4], []string{strings.Replace(rows[4], "1", "2", 1)}), 20},
		"a row is added":             {slices.Concat(rows[:4], []string{"new"}, rows[4:]), 40},
		"a row is added, one slides": {slices.Concat(rows[1:4], []string{"new"}, rows[4:]), 50},
		"a row is removed":           {slices.Concat(rows[:2], rows[3:]), 40},
		"all but one are removed":    {rows[4:], 40},
	} {
		if got := terminalText(updateRows(rows, c.next, len(rows)-1, Cursor{Row: len(c.next) - 1, Column: endOfRow})); len(got) > c.most {
			t.Errorf("%s: %d bytes, at most %d expected: %q", name, len(got), c.most, got)
		}
	}
}

// The complete lines of a reply stay where they were shown while they were not complete; whatever else is written comes after them.
func TestReplyLines(t *testing.T) {
	scr, _, written := onScreen(t, 40, 12)
	out := &Output{Writer: scr.Writer}
	scr.SetLive([]string{"status"})
	var want []string
	for i := range 20 {
		line := fmt.Sprintf("line %d of the reply", i)
		scr.allowDrawing()
		scr.PassReply(out, "", []string{line[:8]})
		scr.allowDrawing()
		scr.PassReply(out, "", []string{line})
		if i%2 == 0 {
			scr.allowDrawing()
		}
		scr.PassReply(out, line+"\n", nil)
		want = append(want, line)
		if i%5 == 0 {
			scr.PrintLine(fmt.Sprint("note ", i))
			want = append(want, fmt.Sprint("note ", i))
		}
	}
	scr.PassReply(out, "the last line\n", nil)
	scr.EndLine(out)
	scr.ClearLive()
	if !out.ends {
		t.Error("the output does not know that its last line has ended")
	}
	text := written()
	v := termtest.NewDisplay(40)
	v.WriteText(text)
	if d := cmp.Diff(strings.Join(append(want, "the last line"), "\n"), v.String()); d != "" || v.Unknown != nil {
		t.Errorf("%s\nunknown: %q", d, v.Unknown)
	}
	if n := strings.Count(text, "of the reply"); n > 25 {
		t.Errorf("20 lines were written %d times", n)
	}
}

// A result that goes to another place than the screen is written there, and completely.
func TestReplyOnAnotherStream(t *testing.T) {
	scr, _, written := onScreen(t, 40, 12)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := NewOutput(w)
	scr.SetLive([]string{"status"})
	scr.PassReply(out, "the answer\n", []string{"more"})
	scr.EndLine(out)
	_ = w.Close()
	if got, err := io.ReadAll(r); string(got) != "the answer\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if text := written(); strings.Contains(text, "answer") {
		t.Errorf("the screen shows it as well: %q", text)
	}
}
