package owncommand

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// Commands are found with their descriptions; of several with one name the person's counts.
func TestList(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"config/commands/fix.md":          "---\ndescription: Fixes it: all\nargument-hint: '[ISSUE]'\n---\nFix $1.",
		"config/commands/two words.md":    "x",
		"config/commands/.hidden.md":      "x",
		"config/macros/day.yaml":          "description: Begins a day\nvariables:\n- {name: who}\n- {name: rest, rest: true, default: none}\nsteps: [a]\n",
		"config/macros/fix.yaml":          "steps: [a]",
		"work/.raddle/commands/fix.md":    "theirs",
		"work/.raddle/commands/deploy.md": "Deploy.",
		"secret.md":                       "secret",
	})
	if err := os.Symlink(filepath.Join(dir, "secret.md"), filepath.Join(dir, "work/.raddle/commands/link.md")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range List(filepath.Join(dir, "config"), filepath.Join(dir, "work")) {
		line := c.Name + "|" + c.Description + "|" + c.Hint
		if c.Project {
			line += "|project"
		}
		got = append(got, line)
		if c.Name == "link" {
			if _, err := c.Expand(""); err == nil {
				t.Error("a link out of the workspace was read")
			}
		}
	}
	if want := []string{"day|Begins a day|who [rest...]", "deploy|||project", "fix|Fixes it: all|[ISSUE]", "link|||project"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if list := List(filepath.Join(dir, "nothing"), filepath.Join(dir, "nothing")); list != nil {
		t.Errorf("%v", list)
	}
}

// Arguments are put into their places once.
func TestFillArguments(t *testing.T) {
	for _, c := range []struct{ body, args, want string }{
		{"Fix $1 in $2.", "it 'the file'", "Fix it in the file."},
		{"Fix $ARGUMENTS!", " a  'b' ", "Fix a  'b'!"},
		{"Fix $1$2.", "", "Fix ."},
		{"Say $1", "$ARGUMENTS", "Say $ARGUMENTS"},
		{"It costs $100", "x", "It costs $100\n\nARGUMENTS: x"},
		{"Plain", "", "Plain"},
		{"don't $1", "isn't", "don't isn't"},
	} {
		if got := fillArguments(c.body, c.args); got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.body, c.args, got, c.want)
		}
	}
	if words := SplitWords(`a "b c" 'd' "" e"f g`); !slices.Equal(words, []string{"a", "b c", "d", "", "ef g"}) {
		t.Errorf("%q", words)
	}
}

// The steps of a macro get its arguments; what is missing or wrong is an error.
func TestMacro(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.yaml")
	for _, c := range []struct{ text, args, want, err string }{
		{"variables: [{name: a}, {name: b, default: '2'}]\nsteps: ['.info', 'What is {{a}}+{{b}}?']", "{{b}}", ".info|What is {{b}}+2?", ""},
		{"variables: [{name: a, rest: true}]\nsteps: ['{{a}}']", "x y  z", "x y z", ""},
		{"variables: [{name: a}]\nsteps: ['{{a}}']", "", "", "a is missing"},
		{"steps: []", "", "", "it has no steps"},
		{"steps: {a: b}", "", "", "m.yaml"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		lines, err := Command{Name: "m", Path: path, Macro: true}.Expand(c.args)
		if got := strings.Join(lines, "|"); got != c.want || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s with %q: %q, %v", c.text, c.args, got, err)
		}
	}
}
