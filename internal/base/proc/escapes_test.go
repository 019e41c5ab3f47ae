package proc

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

var escapeCases = []struct{ name, text, want string }{
	{"plain", "a b\n\tc", "a b\n\tc"},
	{"empty", "", ""},
	{"colour", "\x1b[1;31mred\x1b[0m done", "red done"},
	{"cursor and modes", "\x1b[2J\x1b[?25l\x1b[10;20Hx\x1b[?25h", "x"},
	{"intermediate byte", "a\x1b[1 qb\x1b(Bc", "abc"},
	{"title ended by BEL", "\x1b]0;a title\x07text", "text"},
	{"link ended by ST", "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\.", "link."},
	{"clipboard over lines", "\x1b]52;c;YWJj\nZGVm\x07x", "x"},
	{"device control", "\x1bPq#0;2\nabc\x1b\\after", "after"},
	{"application command ended by BEL", "\x1b_Gf=100\x07after", "after"},
	{"two bytes", "\x1b7a\x1b8b\x1bcc\x1bMd", "abcd"},
	{"lone at the end", "text\x1b", "text"},
	{"lone before a line break", "a\x1b\nb", "a\nb"},
	{"lone before another character", "a\x1béb", "aéb"},
	{"doubled", "\x1b\x1b[31mx", "x"},
	{"parameters cut short", "a\x1b[31", "a"},
	{"parameters broken by a line", "a\x1b[31\nb", "a\nb"},
	{"title without an end", "a\x1b]0;title\nb", "a0;title\nb"},
	{"title broken by a colour", "\x1b]0;t\x1b[1mb", "0;tb"},
	{"title cancelled", "\x1b]0;t\x18b", "0;t\x18b"},
	{"one-character CSI", "a\u009b31mb", "ab"},
	{"one-character OSC", "a\u009d0;t\u009cb", "ab"},
	{"one-character controls", "a\u0080b\u0085c\u009cd", "ab\u0085cd"},
	{"characters with such bytes", "盛 ě œ ›", "盛 ě œ ›"},
	{"bytes that join to a control", "a\xc2\x1b[m\x9b\x9b31mb", "a\xc231mb"},
	{"other controls stay", "a\rb\bc\x00", "a\rb\bc\x00"},
	{"not UTF-8", "\xff\x1b[1m\xfe\x9b", "\xff\xfe\x9b"},
}

func TestStripEscapes(t *testing.T) {
	for _, c := range escapeCases {
		t.Run(c.name, func(t *testing.T) {
			if got := StripEscapes([]byte(c.text)); string(got) != c.want {
				t.Errorf("StripEscapes(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func FuzzStripEscapes(f *testing.F) {
	for _, c := range escapeCases {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		got := StripEscapes(text)
		if !bytes.Equal(text, before) {
			t.Fatalf("the argument %q was changed to %q", before, text)
		}
		if i := nextControl(got); i != len(got) {
			t.Errorf("StripEscapes(%q) = %q, a control is left at %d", text, got, i)
		}
		if again := StripEscapes(got); !bytes.Equal(again, got) {
			t.Errorf("StripEscapes(%q) = %q, and a second time %q", text, got, again)
		}
		if nextControl(text) == len(text) && !bytes.Equal(got, text) {
			t.Errorf("StripEscapes(%q) = %q, there was nothing to remove", text, got)
		}
		if utf8.Valid(text) && !utf8.Valid(got) {
			t.Errorf("StripEscapes(%q) = %q is no longer UTF-8", text, got)
		}
	})
}

func BenchmarkStripEscapes(b *testing.B) {
	text := []byte(strings.Repeat("\x1b[32mok\x1b[0m  raddle.dev/internal/base/proc\t0.412s\n", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		StripEscapes(text)
	}
}
