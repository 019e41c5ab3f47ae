package markdown

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"raddle.dev/internal/base/term"
)

var update = flag.Bool("update", false, "write the expected screens")

// show returns what a terminal without colours displays.
func show(r *Renderer, source string) string { return term.StripMarks(r.RenderText(source)) }

// TestScreens compares testdata/NAME.md at four widths with testdata/NAME.WIDTH.
func TestScreens(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.md")
	if len(files) == 0 {
		t.Fatal("there are no files")
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{20, 40, 80, 200} {
			t.Run(filepath.Base(file)+"/"+strconv.Itoa(width), func(t *testing.T) {
				got := show(&Renderer{Width: width}, string(source))
				for line := range strings.Lines(got) {
					if n := term.TextWidth(strings.TrimSuffix(line, "\n")); n > width {
						t.Errorf("a line has %d columns: %q", n, line)
					}
				}
				path := strings.TrimSuffix(file, ".md") + "." + strconv.Itoa(width)
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("the screen differs from %s:\n%s", path, got)
				}
			})
		}
	}
}

// TestPiecesMakeTheSameText streams each file in pieces of several sizes.
func TestPiecesMakeTheSameText(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.md")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source := string(data)
		r := &Renderer{Width: 60, Theme: Default, Links: true}
		want := r.RenderText(source)
		for _, size := range []int{1, 7, 100} {
			s := NewStream(r)
			var got strings.Builder
			for rest := source; rest != ""; {
				n := min(size, len(rest))
				got.WriteString(s.AddText(rest[:n]))
				if lines := s.Pending(5); len(lines) > 5 {
					t.Errorf("%d lines are pending, 5 are allowed", len(lines))
				}
				rest = rest[n:]
			}
			got.WriteString(s.Close())
			if got.String() != want {
				t.Errorf("%s in pieces of %d bytes is not what it is as a whole:\n%s", file, size, term.StripMarks(got.String()))
			}
		}
	}
}

// TestHostileText holds that no text adds control sequences. Texts that would take a careless reader long are among them: they would exceed the time of the test.
func TestHostileText(t *testing.T) {
	for name, source := range map[string]string{
		"escapes":       "a \x1b[31mred\x1b[0m \x1b]8;;http://evil\x07link\x1b]8;;\x07 `\x1b[2J` \u202eabc",
		"link":          "[safe](javascript:alert(1)) [x](http://a/\x1b[2J) <http://b/\x1b[1m> [https://bank.example](https://evil.example/>)",
		"code":          "```go\nx := \"\x1b[2J\"\n\x1b]0;title\x07\n```\n",
		"quotes":        strings.Repeat(">", 50_000) + " deep",
		"lists":         strings.Repeat("- ", 50_000) + "deep",
		"nested lists":  nestedList(2_000),
		"emphasis":      strings.Repeat("*a _b ", 20_000),
		"brackets":      strings.Repeat("[", 50_000) + strings.Repeat("](x)", 1_000),
		"one word":      strings.Repeat("x", 1<<20),
		"cells":         "|" + strings.Repeat("a|", 10_000) + "\n|" + strings.Repeat("-|", 10_000) + "\n",
		"rows":          "|a|b|\n|-|-|\n" + strings.Repeat("|x|y|\n", 20_000),
		"backticks":     strings.Repeat("`a``", 30_000),
		"fences":        strings.Repeat("```\n", 20_000),
		"wide":          strings.Repeat("漢", 100_000),
		"not UTF-8":     "caf\xe9 \xff\xfe",
		"angle bracket": strings.Repeat("<a ", 30_000),
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Renderer{Width: 40, Theme: Default, Links: true}).RenderText(source)
			if strings.ContainsAny(term.CleanText(term.StripMarks(got)), "\x1b\x07\u202e") {
				t.Errorf("%.200q", got)
			}
		})
	}
}

func nestedList(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat("  ", i) + "- x\n")
	}
	return b.String()
}

func TestLinks(t *testing.T) {
	for source, want := range map[string]string{
		"[docs](https://a.example/x)":                  "docs (https://a.example/x)",
		"<https://a.example>":                          "https://a.example",
		"https://a.example":                            "https://a.example",
		"[a.example](https://evil.example)":            "a.example (https://evil.example)",
		"[run](javascript:x)":                          "run (javascript:x)",
		"![a cat](cat.png)":                            "[image: a cat] (cat.png)",
		"<me@a.example>":                               "me@a.example",
		"[https://bank.example](https://evil.example)": "https://bank.example (https://evil.example)",
	} {
		if got := strings.TrimSpace(show(&Renderer{}, source)); got != want {
			t.Errorf("%s is shown as %q, want %q", source, got, want)
		}
	}
	linked := (&Renderer{Links: true}).RenderText("[docs](https://a.example/x) [run](javascript:x) [a.example](https://evil.example)")
	if !strings.Contains(linked, "]8;;https://a.example/x") || strings.Contains(linked, "]8;;javascript") {
		t.Errorf("%q", linked)
	}
	if got := strings.TrimSpace(term.StripMarks(linked)); got != "docs run (javascript:x) a.example (https://evil.example)" {
		t.Errorf("%q", got)
	}
}

func TestHighlighting(t *testing.T) {
	theme := Theme{Keyword: "K", Text: "T", Comment: "C", Name: "N", Added: "A", Removed: "R", Hunk: "H"}
	for name, test := range map[string]struct{ language, code, want string }{
		"go":     {"go", "func f() { /* a\nb */ return \"x\\\"y\" // end", "K[func] f() { C[/* a]\nC[b */] K[return] T[\"x\\\"y\"] C[// end]"},
		"python": {"py", "x = '''a\nb''' # c\nif 12:", "x = T['''a]\nT[b'''] C[# c]\nK[if] T[12]:"},
		"json":   {"json", `{"a": "b", "n": 1, "t": true}`, `{N["a"]: T["b"], N["n"]: T[1], N["t"]: K[true]}`},
		"yaml":   {"yml", "key: value # c", "N[key]: value C[# c]"},
		"diff":   {"diff", "@@ -1 +1 @@\n-a\n+b\n c", "H[@@ -1 +1 @@]\nR[-a]\nA[+b]\n c"},
		"sql":    {"sql", "SELECT a FROM b -- c", "K[SELECT] a K[FROM] b C[-- c]"},
		"none":   {"", "if 1 'x'", "if 1 'x'"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHighlighter(theme, test.language)
			var lines []string
			for line := range strings.SplitSeq(test.code, "\n") {
				var b strings.Builder
				for _, s := range h.splitLine(line) {
					if s.style == "" {
						b.WriteString(s.text)
					} else {
						b.WriteString(string(s.style) + "[" + s.text + "]")
					}
				}
				lines = append(lines, b.String())
			}
			if got := strings.Join(lines, "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func FuzzStream(f *testing.F) {
	data, err := os.ReadFile("testdata/all.md")
	if err != nil {
		f.Fatal(err)
	}
	for block := range strings.SplitSeq(string(data), "\n\n") {
		f.Add(block+"\n\nend", 3)
	}
	f.Fuzz(func(t *testing.T, source string, size int) {
		r := &Renderer{Width: 30, Theme: Default, Links: true}
		s := NewStream(r)
		var got strings.Builder
		for rest := source; rest != ""; {
			n := min(max(size, 1), len(rest))
			got.WriteString(s.AddText(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(s.Close())
		if want := r.RenderText(source); got.String() != want {
			t.Errorf("in pieces:\n%q\nas a whole:\n%q", got.String(), want)
		}
		for line := range strings.Lines(term.StripMarks(got.String())) {
			if n := term.TextWidth(strings.TrimSuffix(line, "\n")); n > 30 {
				t.Errorf("a line has %d columns: %q", n, line)
			}
		}
	})
}

func TestFillJoinsLines(t *testing.T) {
	const source = "one\ntwo\\\nthree\n\n- four\n  five\n"
	for fill, want := range map[bool]string{false: "one\ntwo\nthree\n\n• four\n  five\n", true: "one two\nthree\n\n• four five\n"} {
		r := &Renderer{Width: 40, Fill: fill}
		if got := r.RenderText(source); got != want {
			t.Errorf("Fill %v: %q, want %q", fill, got, want)
		}
	}
}
