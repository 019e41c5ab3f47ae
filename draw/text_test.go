package draw

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"raddle.dev/graph"
)

// labelled is a structure that shows a text in all places where a text can stand.
func labelled(text string) graph.Structure {
	return graph.Structure{
		Name:  text,
		Start: []string{"a"},
		Nodes: []graph.NodeInfo{
			{Name: "a", Title: text, Doc: text, Kind: text},
			{Name: "b" + text, Kind: "llm", Child: &graph.Structure{Nodes: []graph.NodeInfo{{Name: text + "c"}}}},
		},
		Edges: []graph.EdgeInfo{branch("a", "b"+text, text), failure("b"+text, "b"+text, text)},
	}
}

func seedTexts(f *testing.F) {
	for _, s := range []string{
		"", "x", `"`, `\`, `\"`, `\N`, "<b>&amp;</b>", "]]>", "a|b", "#35;", "%%{init: {}}%%", "`code`", "end", "1. x", "- x",
		"a\nb", "a\r\nb", "\u2028", "\x00", "\xff\xfe", "日本", "e\u0301", "style x:#f;", "classDef y:#f;", "_a_", "*a*", "$$x$$", "--> n0",
	} {
		f.Add(s)
	}
}

// FuzzSVG checks that no text breaks out of its place: the SVG is well-formed, has the known elements only, and says
// the text back.
func FuzzSVG(f *testing.F) {
	seedTexts(f)
	known := map[string]bool{"svg": true, "title": true, "rect": true, "g": true, "path": true, "text": true}
	f.Fuzz(func(t *testing.T, text string) {
		var b bytes.Buffer
		if err := WriteSVG(&b, labelled(text), Options{}); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range parseSVG(t, b.Bytes()) {
			if !known[e.name] {
				t.Errorf("element %q", e.name)
			}
			found = found || e.name == "title" && e.text == cleanLabel(text)
		}
		if !found && cleanLabel(text) != "" {
			t.Errorf("the title %q is not there", cleanLabel(text))
		}
	})
}

var dotString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// FuzzDOT checks that no text changes the lines of a DOT file, and that each can be read back.
func FuzzDOT(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		var b bytes.Buffer
		if err := WriteDOT(&b, labelled(text), Options{}); err != nil {
			t.Fatal(err)
		}
		strs := dotString.FindAllString(b.String(), -1)
		rest := dotString.ReplaceAllString(b.String(), "_")
		if strings.ContainsAny(rest, "\"\\<&") || !utf8.ValidString(rest) {
			t.Errorf("a text is not quoted:\n%s", rest)
		}
		found := false
		for _, s := range strs {
			found = found || undotQuote(t, s) == cleanLabel(text)
		}
		if !found {
			t.Errorf("the text %q is not there:\n%s", cleanLabel(text), b.String())
		}
	})
}

// undotQuote reads a string as Graphviz reads that of a label.
func undotQuote(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	in := strings.ReplaceAll(s[1:len(s)-1], "&amp;", "\x00")
	if strings.Contains(in, "&") {
		t.Errorf("%q has a bare &", s)
	}
	for i := 0; i < len(in); i++ {
		switch {
		case in[i] == 0:
			b.WriteByte('&')
		case in[i] != '\\':
			b.WriteByte(in[i])
		default:
			i++
			switch in[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(in[i])
			default:
				t.Errorf("%q has an escape of Graphviz", s)
			}
		}
	}
	return b.String()
}

var (
	mermaidString = regexp.MustCompile(`"[^"\n]*"`)
	mermaidEntity = regexp.MustCompile(`#([0-9]+);`)
)

// FuzzMermaid checks that no text changes the lines of a Mermaid file, that labels hold no sign that Mermaid reads as
// anything but text, and that each can be read back.
func FuzzMermaid(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		var b, plainText bytes.Buffer
		if err := WriteMermaid(&b, labelled(text), Options{}); err != nil {
			t.Fatal(err)
		}
		if err := WriteMermaid(&plainText, labelled("x"), Options{}); err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(b.String(), "flowchart")
		_, plainBody, _ := strings.Cut(plainText.String(), "flowchart")
		if cleanLabel(text) != "" && !isKind(text) {
			got, want := mermaidString.ReplaceAllString(body, "_"), mermaidString.ReplaceAllString(plainBody, "_")
			if got != want {
				t.Errorf("the text %q changes the flowchart:\n%s", text, got)
			}
		}
		found := cleanLabel(text) == ""
		for _, s := range mermaidString.FindAllString(body, -1) {
			label := s[1 : len(s)-1]
			bare := mermaidEntity.ReplaceAllString(strings.ReplaceAll(label, "<br/>", ""), "")
			if strings.ContainsAny(bare, "#&<>`|[](){}\\\";:*$%@~^=+/") {
				t.Errorf("label %s has a sign with a meaning", s)
			}
			found = found || unMermaid(label) == cleanLabel(text)
		}
		if !found {
			t.Errorf("the text %q is not there:\n%s", cleanLabel(text), body)
		}
	})
}

func isKind(s string) bool {
	_, ok := kindStyles[s]
	return ok
}

// unMermaid reads a label as Mermaid does.
func unMermaid(s string) string {
	s = strings.ReplaceAll(s, "<br/>", "\n")
	return mermaidEntity.ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.Atoi(e[1 : len(e)-1])
		if err != nil {
			return e
		}
		return string(rune(n))
	})
}

func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"a\r\nb\rc\u2028d", "a\nb\nc\nd"},
		{"tab\tbed ", "tab bed"},
		{"\x1b[31m\xff", "\uFFFD[31m\uFFFD"},
		{"größe 日本", "größe 日本"},
	}
	for _, tt := range tests {
		if got := cleanLabel(tt.in); got != tt.want {
			t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
