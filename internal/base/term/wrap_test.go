package term_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"raddle.dev/internal/base/term"
)

// Lines that do not fit are broken between words, and continue below their words, also if they are painted.
func TestWrapText(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"fits", "one two three", "one two three"},
		{"words", "one two three four five six", "one two three four\nfive six"},
		{"ends", "one two three four five six\nseven\n", "one two three four\nfive six\nseven\n"},
		{"blanks", "  one two three four five", "  one two three four\n  five"},
		{"list", "- one two three four five", "- one two three four\n  five"},
		{"number", "12. one two three four five", "12. one two three\n    four five"},
		{"name", "name    a text of words", "name    a text of\n        words"},
		{"late name", "a-long-name-here  a text of words", "a-long-name-here  a\ntext of words"},
		{"long word", "see https://example.com/a/b now", "see\nhttps://example.com/a/b\nnow"},
		{"long word that fits alone", "    abc 12345678901234567890", "    abc\n12345678901234567890"},
		{"far right", "                    abcde", "               abcde"},
		{"wide", "日本語日本語日 日本語", "日本語日本語日\n日本語"},
		{"added line", "+one two three four -five", "+one two three four\n -five"},
		{"removed line", "  -one two three four +five", "  -one two three\n   four +five"},
		{"empty", "\n\n", "\n\n"},
	} {
		if got := term.WrapText(c.text, 20); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	painted := "- " + term.PaintText(term.Red, "one two three four") + " five"
	if got := term.StripMarks(term.WrapText(painted, 20)); got != "- one two three four\n  five" {
		t.Errorf("painted: %q", got)
	}
}

// No word is lost, doubled or broken that fits into the terminal, and no line is wider than it but for one long word.
func TestWrapTextKeepsWords(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	pieces := []string{"a", "be", "word", "longer", "日本", "👩‍👩‍👧", "-", "1.", "  ", "\n", "    ", "extraordinarily", strings.Repeat("x", 30)}
	for range 3000 {
		var b strings.Builder
		for range random.IntN(25) {
			piece := pieces[random.IntN(len(pieces))]
			if random.IntN(4) == 0 && strings.TrimSpace(piece) != "" {
				piece = term.PaintText(term.Bold, piece+" "+piece)
			}
			b.WriteString(piece + " ")
		}
		text, width := b.String(), 8+random.IntN(40)
		got := term.WrapText(text, width)
		if want, have := strings.Fields(term.StripMarks(text)), strings.Fields(term.StripMarks(got)); strings.Join(want, " ") != strings.Join(have, " ") {
			t.Fatalf("%d columns: %q became %q", width, text, got)
		}
		for line := range strings.SplitSeq(term.StripMarks(got), "\n") {
			if trimmed := strings.TrimRight(line, " "); term.TextWidth(trimmed) > width && len(strings.Fields(trimmed)) > 1 {
				t.Fatalf("%d columns: the line %q of %q", width, line, got)
			}
		}
	}
}
