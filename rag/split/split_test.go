package split

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	cases := []struct {
		name string
		in   string
		o    Options
		want []string
	}{
		{name: "nothing", in: "", want: nil},
		{name: "blank", in: " \n\n\t ", want: nil},
		{name: "short", in: "  one two  ", want: []string{"one two"}},
		{name: "paragraphs first", in: "aaa bbb\n\nccc ddd\n\neee", o: Options{Size: 12}, want: []string{"aaa bbb", "ccc ddd\n\neee"}},
		{name: "then lines, then words", in: "aaaa\nbbbb cccc dddd", o: Options{Size: 9}, want: []string{"aaaa", "bbbb cccc", "dddd"}},
		{name: "then characters", in: "abcdefghij", o: Options{Size: 4}, want: []string{"abcd", "efgh", "ij"}},
		{name: "characters stay whole", in: "ééééé", o: Options{Size: 4}, want: []string{"éé", "éé", "é"}},
		{name: "overlap", in: "a b c d e f", o: Options{Size: 5, Overlap: 2}, want: []string{"a b c", "b c d", "c d e", "d e f"}},
		{name: "a piece as long as a chunk is cut further", in: "aa bb\ncc", o: Options{Size: 5}, want: []string{"aa bb", "cc"}},
		{name: "separators with letters stay", in: "x\nfunc a() {}\nfunc b() {}", o: Options{Size: 15, Separators: Separators("go")},
			want: []string{"x\nfunc a() {}", "func b() {}"}},
		{name: "headings begin chunks", in: "intro\n## One\ntext\n## Two\nmore", o: Options{Size: 14, Separators: Separators("md")},
			want: []string{"intro", "## One\ntext", "## Two\nmore"}},
		{name: "without the empty separator nothing is torn", in: "abcdefgh ij", o: Options{Size: 3, Separators: []string{" "}},
			want: []string{"abcdefgh", "ij"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Text(c.in, c.o)); diff != "" {
				t.Errorf("chunks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeparators(t *testing.T) {
	for ext, want := range map[string][]string{
		"txt":  {"\n\n", "\n", " ", ""},
		"":     {"\n\n", "\n", " ", ""},
		"PY":   {"\nclass ", "\ndef ", "\n\tdef ", "\n\n", "\n", " ", ""},
		"go":   {"\nfunc ", "\nvar ", "\nconst ", "\ntype ", "\nif ", "\nfor ", "\nswitch ", "\ncase ", "\n\n", "\n", " ", ""},
		"rst":  {"\n===\n", "\n---\n", "\n***\n", "\n.. ", "\n\n", "\n", " ", ""},
		"cpp":  Separators("c"),
		"cjs":  Separators("js"),
		"mkd":  Separators("md"),
		"html": Separators("htm"),
	} {
		if diff := cmp.Diff(want, Separators(ext)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ext, diff)
		}
	}
	if html := Separators("html"); html[0] != "<body>" || strings.Join(html[len(html)-3:], "|") != "<title>| |" {
		t.Errorf("HTML is cut at %q", html)
	}
	if sol := strings.Join(Separators("sol"), ""); !strings.Contains(sol, "\ndo while \nassembly ") {
		t.Errorf("Solidity is cut at %q", sol)
	}
}

func FuzzText(f *testing.F) {
	f.Add("one two\n\nthree\n## four", 7, 3, "md")
	f.Add("\xff\xfe", 1, 1, "")
	f.Add("<p>a<p>b", 3, 0, "html")
	f.Fuzz(func(t *testing.T, text string, size, overlap int, ext string) {
		if size > 1<<16 || size < 8 || overlap > size || len(text) > 1<<12 {
			return
		}
		var all strings.Builder
		for _, chunk := range Text(text, Options{Size: size, Overlap: overlap, Separators: Separators(ext)}) {
			if chunk == "" || strings.TrimSpace(chunk) != chunk {
				t.Errorf("chunk %q is not trimmed", chunk)
			}
			if len(chunk) > size && utf8.RuneCountInString(chunk) > 1 {
				t.Errorf("chunk of %d bytes, at most %d are wanted: %q", len(chunk), size, chunk)
			}
			if !strings.Contains(strip(text), strip(chunk)) {
				t.Errorf("chunk %q is not in %q", chunk, text)
			}
			all.WriteString(chunk)
		}
		if overlap <= 0 && strip(all.String()) != strip(text) {
			t.Errorf("the chunks of %q are %q", text, all.String())
		}
	})
}

func strip(text string) string { return strings.Join(strings.Fields(text), "") }
