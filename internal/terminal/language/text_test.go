package language_test

import (
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"raddle.dev/internal/terminal/language"
)

func TestPositionsCountUnitsOfUTF16(t *testing.T) {
	text := language.NewText("a🎉b\r\nc\rd\ne")
	tests := map[language.Position]int{
		{Line: 0, Character: 0}: 0, {Line: 0, Character: 1}: 1, {Line: 0, Character: 3}: 5, {Line: 0, Character: 4}: 6,
		{Line: 1, Character: 0}: 8, {Line: 1, Character: 1}: 9, {Line: 2, Character: 0}: 10, {Line: 3, Character: 1}: 13,
	}
	for p, offset := range tests {
		if got := text.Offset(p); got != offset {
			t.Errorf("%+v is at %d, want %d", p, got, offset)
		}
		if got := text.Position(offset); got != p {
			t.Errorf("%d is %+v, want %+v", offset, got, p)
		}
	}
	for p, offset := range map[language.Position]int{{Line: 0, Character: 2}: 1, {Line: 0, Character: 99}: 6, {Line: 99, Character: 1}: 13, {Line: -1}: 0} {
		if got := text.Offset(p); got != offset {
			t.Errorf("%+v is at %d, want %d", p, got, offset)
		}
	}
}

func TestEditLinesMakesTheOtherText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "\n", "日🎉\n", "c"}), 0, 8)
		old := strings.Join(lines.Draw(t, "old"), "")
		want := strings.Join(lines.Draw(t, "want"), "")
		text := language.NewText(old)
		for _, e := range language.EditLines(text, want) {
			text = text.ReplaceRange(e.Range, e.NewText)
		}
		if text.String() != want {
			t.Errorf("%q became %q, want %q", old, text, want)
		}
	})
}

func TestPathsOfAddresses(t *testing.T) {
	tests := map[string]string{
		"file:///tmp/my%20agent/%E6%97%A5/graph.yaml": "/tmp/my agent/日/graph.yaml",
		"file:///tmp/a+b/c%2Bd/100%25.yaml":           "/tmp/a+b/c+d/100%.yaml",
		"file:///tmp/(a)/%28b%29":                     "/tmp/(a)/(b)",
		"file:///tmp/../etc/x":                        "/etc/x",
	}
	if runtime.GOOS == "windows" {
		tests = map[string]string{"file:///c%3A/a%20b/graph.yaml": `C:\a b\graph.yaml`, "file:///C:/x": `C:\x`, "file://server/share/x": `\\server\share\x`}
	}
	for uri, want := range tests {
		got, ok := language.PathOf(uri)
		if !ok || got != want {
			t.Errorf("%s is %q, want %q", uri, got, want)
		}
		if back, _ := language.PathOf(language.AddressOf(got)); back != want {
			t.Errorf("%s is not the address of %s", language.AddressOf(got), want)
		}
	}
	for _, uri := range []string{"untitled:Untitled-1", "https://example.org/graph.yaml", "%zz", "file:", "git:/a?{}"} {
		if path, ok := language.PathOf(uri); ok {
			t.Errorf("%s is the file %q", uri, path)
		}
	}
}
