package edit

import (
	"os"
	"strings"
	"testing"
)

// A corpusCase is one edit of testdata/edits.txt, which says what its parts are.
type corpusCase struct {
	name, form, path string
	section          map[string]string // file, old, new, edit, want
	refused          string
}

// readCorpus reads the cases of a file.
func readCorpus(t *testing.T, name string) (cases []*corpusCase) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	marks := strings.NewReplacer("␍", "\r", "␂", "\ufeff", "␖", "\xe9", "␠", " ")
	texts := map[string]string{}
	var c *corpusCase
	into := func(string) {}
	for line := range strings.Lines(string(data)) {
		head, isHead := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "§ ")
		key, value, _ := strings.Cut(head, ": ")
		switch {
		case !isHead:
			text, open := strings.CutSuffix(strings.TrimSuffix(line, "\n"), "␄")
			if text = marks.Replace(text); !open {
				text += "\n"
			}
			into(text)
		case key == "text":
			into = func(text string) { texts[value] += text }
		case key == "case":
			c = &corpusCase{name: value, section: map[string]string{}}
			cases = append(cases, c)
			into = func(string) {}
		case key == "form":
			c.form = value
		case key == "refused":
			c.refused = value
			into = func(string) {}
		case key == "file":
			path, shared, ok := strings.Cut(value, " = ")
			c.path = path
			own := c
			into = func(text string) { own.section["file"] += text }
			if ok {
				c.section["file"] = texts[shared]
			}
		case key == "old" || key == "new" || key == "edit" || key == "want":
			own := c
			into = func(text string) { own.section[key] += text }
		}
	}
	return cases
}

// apply makes the edit of a case as the tools do.
func (c *corpusCase) apply() (Result, error) {
	file, edit := c.section["file"], c.section["edit"]
	if form, all := strings.CutSuffix(c.form, " all"); form == "replace" {
		return Replace(file, c.section["old"], c.section["new"], all)
	}
	files, err := Parse(edit)
	if err != nil {
		return Result{}, err
	}
	var hunks []*Hunk
	for _, f := range files {
		hunks = append(hunks, f.Hunks...)
	}
	return Apply(file, hunks)
}

// Each edit of the corpus has the right result, or is refused with the reason; none does something else.
func TestCorpus(t *testing.T) {
	cases := readCorpus(t, "testdata/edits.txt")
	if len(cases) < 200 {
		t.Fatalf("there are only %d cases", len(cases))
	}
	for _, c := range cases {
		r, err := c.apply()
		want, has := c.section["want"]
		if c.refused != "" && !has {
			found := false
			for reason := range strings.SplitSeq(c.refused, "|") {
				found = found || err != nil && strings.Contains(err.Error(), reason)
			}
			if !found {
				t.Errorf("%s: %q, %v, want an error with %q", c.name, r.Text, err, c.refused)
			}
			continue
		}
		if err != nil || r.Text != want {
			t.Errorf("%s: %v\n%q\nwant\n%q", c.name, err, r.Text, want)
		}
	}
}
