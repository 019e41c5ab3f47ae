package yamlformat_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/base/yamlformat"
)

func TestFormat(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"indentation":   {"a:\n    b: 1\n    c:\n        d: x\n", "a:\n  b: 1\n  c:\n    d: x\n"},
		"lists":         {"a:\n- b\n-   c: 1\n    d: 2\n-   - e\n    - f\n", "a:\n  - b\n  - c: 1\n    d: 2\n  - - e\n    - f\n"},
		"gaps":          {"a:    1\nbb:   x  # why\n\n\n\nc:\n", "a: 1\nbb: x  # why\n\nc:\n"},
		"quotes":        {"a: \"plain\"\nb: 'yes'\nc: \"{{x}}\"\nd: \"1\"\n\"e\": ['f', \"g h\", \"a: b\"]\n", "a: plain\nb: 'yes'\nc: \"{{x}}\"\nd: \"1\"\ne: [f, \"g h\", \"a: b\"]\n"},
		"literal":       {"a:\n    b: |\n          one\n            two\n\n          three\n    c: >-\n        x\n", "a:\n  b: |\n    one\n      two\n\n    three\n  c: >-\n    x\n"},
		"with a step":   {"a:\n    b: |2\n         one\n        two\n", "a:\n  b: |2\n       one\n      two\n"},
		"kept lines":    {"a: |+\n  x\n\n\nb: 1\n", "a: |+\n  x\n\n\nb: 1\n"},
		"item literal":  {"a:\n- |\n    x\n- b: |\n    y\n", "a:\n  - |\n    x\n  - b: |\n      y\n"},
		"comments":      {"# top\na:\n    # first\n    b: 1\n    # last\n# next\nc: 1\n    # end\n", "# top\na:\n  # first\n  b: 1\n  # last\n# next\nc: 1\n# end\n"},
		"flow":          {"a:\n    b: {x: 1,\n        y: [2,\n        3]}\n", "a:\n  b: {x: 1,\n      y: [2,\n      3]}\n"},
		"long texts":    {"a:\n    b: \"one\n      two\"\n    c: one\n      two\n", "a:\n  b: \"one\n    two\"\n  c: one\n    two\n"},
		"Windows":       {"a:\r\n    b: 1\r\n", "a:\r\n  b: 1\r\n"},
		"mark":          {"\ufeffa:  1\n", "\ufeffa: 1\n"},
		"no end":        {"a: 1", "a: 1\n"},
		"anchors":       {"a:  &x\n    b: 1\nc: *x\n", "a: &x\n  b: 1\nc: *x\n"},
		"only comments": {"# nothing\n", "# nothing\n"},
		"start":         {"---\na:  1\n", "---\na: 1\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := mustFormat(t, test.in)
			if got != test.want {
				t.Errorf("%q\n got %q\nwant %q", test.in, got, test.want)
			}
			if again := mustFormat(t, got); again != got {
				t.Errorf("formatted again: %q", again)
			}
		})
	}
}

func mustFormat(t testing.TB, text string) string {
	t.Helper()
	got, err := yamlformat.Format([]byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return string(got)
}

func TestFormatRefusesWhatItCannotRead(t *testing.T) {
	for _, text := range []string{"a: [1", "a: 1\n---\nb: 2\n", "a: x\rb: y\r"} {
		if got, err := yamlformat.Format([]byte(text)); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// The files of the repository are laid out as the formatter does, or can be: doing it twice is doing it once.
func TestFormatAllFiles(t *testing.T) {
	count := 0
	err := filepath.WalkDir("../../../examples", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(text), "# Made by raddle") {
			return nil
		}
		count++
		got, err := yamlformat.Format(text)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		if string(got) != string(text) {
			t.Errorf("%s is laid out in another way: %s", path, firstDifference(string(text), string(got)))
		}
		wide := mustFormat(t, widen(string(text)))
		if again := mustFormat(t, wide); again != wide {
			t.Errorf("%s: formatting is not stable: %s", path, firstDifference(wide, again))
		}
		return nil
	})
	if err != nil || count < 10 {
		t.Errorf("%d files: %v", count, err)
	}
}

// widen indents a text twice as far.
func widen(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, " ")
		out.WriteString(strings.Repeat(" ", 2*(len(line)-len(rest))))
		for strings.HasPrefix(rest, "- ") {
			out.WriteString("-   ")
			rest = rest[2:]
		}
		out.WriteString(rest)
	}
	return out.String()
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "before " + x[i] + "\n after " + y[i]
		}
	}
	return "the end"
}

func FuzzFormat(f *testing.F) {
	f.Add("a:\n- b: |\n    x\n  c: \"d\"\n# e\n")
	f.Add("a: {b: [1,\n 2]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := yamlformat.Format([]byte(text))
		if err != nil {
			return
		}
		if twice, err := yamlformat.Format(once); err != nil || string(twice) != string(once) {
			t.Errorf("%q became %q and then %q (%v)", text, once, twice, err)
		}
	})
}
