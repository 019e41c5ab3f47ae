package term

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// plain is text that stays as it is: with joined emoji, and joiners as Persian has them.
const plain = "a b\n\tc \u00e9 日本 \U0001F468\u200d\U0001F469 \u0645\u06cc\u200c\u062e"

// hostile are texts with one thing each that must not reach a terminal, what is left of them, and how they are revealed.
var hostile = []struct{ name, text, clean, revealed string }{
	{"plain", plain, plain, plain},
	{"clipboard (OSC 52)", "a\x1b]52;c;ZXZpbA==\x07b", "ab", `a\x1b]52;c;ZXZpbA==\ab`},
	{"title (OSC 0)", "a\x1b]0;title\x1b\\b", "ab", `a\x1b]0;title\x1b\b`},
	{"link (OSC 8)", "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "here", `\x1b]8;;http://evil\x1b\here\x1b]8;;\x1b\`},
	{"erase (ED)", "a\x1b[2Jb", "ab", `a\x1b[2Jb`},
	{"cursor (CUP)", "a\x1b[1;1Hb", "ab", `a\x1b[1;1Hb`},
	{"colour (SGR)", "a\x1b[31mb\x1b[0m", "ab", `a\x1b[31mb\x1b[0m`},
	{"reset (RIS)", "a\x1bcb", "ab", `a\x1bcb`},
	{"device control (DCS)", "a\x1bP$q\"p\x1b\\b", "ab", `a\x1bP$q"p\x1b\b`},
	{"APC, PM, SOS", "a\x1b_x\x1b\\b\x1b^y\x1b\\c\x1bXz\x1b\\d", "abcd", `a\x1b_x\x1b\b\x1b^y\x1b\c\x1bXz\x1b\d`},
	{"C1 as a character", "a\u009b2Jb\u009d0;t\u009cc\u0090x\u009cd", "abcd", `a\u009b2Jb\u009d0;t\u009cc\u0090x\u009cd`},
	{"C1 as a byte", "a\x9b2Jb", "a\uFFFD2Jb", `a\x9b2Jb`},
	{"backspace, delete", "safe\b\b\b\bevil\x7f", "safeevil", `safe\b\b\b\bevil\x7f`},
	{"carriage return", "safe\revil\r\nnext", "safe\nevil\nnext", "safe\\revil\nnext"},
	{"NUL, BEL, VT, FF, SO", "a\x00\a\v\f\x0eb", "ab", `a\x00\a\v\f\x0eb`},
	{"line breaks of other kinds", "a\u0085b\u2028c\u2029d", "a\nb\nc\nd", `a\u0085b\u2028c\u2029d`},
	{"direction overrides", "a\u202eb\u202cc", "abc", `a\u202eb\u202cc`},
	{"direction isolates and marks", "a\u2066b\u2069\u200e\u200f\u061cc", "abc", `a\u2066b\u2069\u200e\u200f\u061cc`},
	{"tags", "a\U000E0041\U000E007Fb", "ab", `a\U000e0041\U000e007fb`},
	{"hidden selectors", "a\U000E0100b", "ab", `a\U000e0100b`},
	{"zero width", "a\u200bb\ufeffc\u2060d", "abcd", `a\u200bb\ufeffc\u2060d`},
	{"not UTF-8", "a\xffb\xc3", "a\uFFFDb\uFFFD", `a\xffb\xc3`},
	{"a sequence without an end", "a\x1b]0;title\nb\x1b[", "a0;title\nb", "a\\x1b]0;title\nb\\x1b["},
	{"sequences inside each other", "\x1b\x1b[31[31mx\x1b]0;\x1b[2Jy", "31mx0;y", `\x1b\x1b[31[31mx\x1b]0;\x1b[2Jy`},
}

func TestClean(t *testing.T) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			if got := CleanText(test.text); got != test.clean {
				t.Errorf("Clean(%q) = %q, want %q", test.text, got, test.clean)
			}
			if got := RevealText(test.text); got != test.revealed {
				t.Errorf("Reveal(%q) = %q, want %q", test.text, got, test.revealed)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"docs/a b.md":        "docs/a b.md",
		"docs/é日本":           "docs/é日本",
		"a\x1b[31mb\nc.md":   `"a\x1b[31mb\nc.md"`,
		"report\u202efdp.sh": `"report\u202efdp.sh"`,
		"tab\there":          `"tab\there"`,
	} {
		if got := QuoteName(name); got != want {
			t.Errorf("QuoteName(%q) = %s, want %s", name, got, want)
		}
	}
	if got := CleanLine("a\nb\tc\x1b[2Jd\r\ne"); got != "a b cd e" {
		t.Errorf("%q", got)
	}
}

// A judge is a parser for what a terminal understands. It lists everything that is neither text nor a line break or a tab.
type judge struct {
	parser *ansi.Parser
	found  []string
}

func newJudge() *judge {
	j := &judge{parser: ansi.NewParser()}
	j.parser.SetHandler(ansi.Handler{
		Execute: func(b byte) {
			if b != '\n' && b != '\t' {
				j.found = append(j.found, strconv.QuoteRune(rune(b)))
			}
		},
		HandleCsi: func(cmd ansi.Cmd, params ansi.Params) {
			var list []string
			params.ForEach(0, func(_, p int, _ bool) { list = append(list, strconv.Itoa(p)) })
			j.found = append(j.found, "CSI "+strings.Join(list, ";")+string(rune(cmd)))
		},
		HandleEsc: func(cmd ansi.Cmd) { j.found = append(j.found, "ESC "+string(rune(cmd))) },
		HandleDcs: func(cmd ansi.Cmd, _ ansi.Params, _ []byte) { j.found = append(j.found, "DCS") },
		HandleOsc: func(cmd int, _ []byte) { j.found = append(j.found, "OSC") },
		HandlePm:  func([]byte) { j.found = append(j.found, "PM") },
		HandleApc: func([]byte) { j.found = append(j.found, "APC") },
		HandleSos: func([]byte) { j.found = append(j.found, "SOS") },
	})
	return j
}

func (j *judge) read(text string) []string {
	j.parser.Parse([]byte(text))
	return j.found
}

func FuzzClean(f *testing.F) {
	for _, test := range hostile {
		f.Add(test.text)
		f.Add(test.text + "\x1b")
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, got := range map[string]string{"Clean": CleanText(text), "CleanLine": CleanLine(text), "Reveal": RevealText(text), "QuoteName": QuoteName(text)} {
			if found := newJudge().read(got); found != nil {
				t.Errorf("%s(%q) = %q: a terminal sees %q", name, text, got, found)
			}
			if !utf8.ValidString(got) || !isClean(got) {
				t.Errorf("%s(%q) = %q is not clean", name, text, got)
			}
			if again := CleanText(got); again != got {
				t.Errorf("%s(%q) = %q, and clean again %q", name, text, got, again)
			}
			if (name == "CleanLine" || name == "QuoteName") && strings.ContainsAny(got, "\n\t") {
				t.Errorf("%s(%q) = %q is not one line", name, text, got)
			}
		}
		if isClean(text) && CleanText(text) != text {
			t.Errorf("Clean changes %q", text)
		}
	})
}

func BenchmarkClean(b *testing.B) {
	text := strings.Repeat("A line of an answer, with é and 日本.\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		CleanText(text)
	}
}
