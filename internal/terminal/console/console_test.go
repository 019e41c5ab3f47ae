package console_test

import (
	"bytes"
	"testing"

	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/testkit/testfile"
)

// newConsole returns a console on files, and what returns all that it has written to standard output and to standard error.
func newConsole(t *testing.T, clean func([]byte) []byte) (con *console.Console, written func() (out, err string)) {
	t.Helper()
	f := testfile.OpenStreams(t)
	return console.New(f.In, f.Out, f.Err, clean), func() (string, string) { return testfile.Read(t, f.Out), testfile.Read(t, f.Err) }
}

// Results go to standard output, notes and warnings to standard error, and quiet leaves out the notes only.
func TestWhatIsWrittenWhere(t *testing.T) {
	con, written := newConsole(t, bytes.Clone)
	con.PrintNote("done: %d", 1)
	con.Quiet = true
	con.PrintNote("done: %d", 2)
	con.PrintWarning("careful")
	for _, format := range []string{console.FormatText, console.FormatJSON} {
		if err := con.PrintResult(format, []int{1, 2}, func() string { return "one, two" }); err != nil {
			t.Fatal(err)
		}
	}
	out, err := written()
	if out != "one, two\n[1,2]\n" || err != "done: 1\nraddle: warning: careful\n" {
		t.Errorf("standard output: %q, standard error: %q", out, err)
	}
}

// Both streams lose the secrets.
func TestWhatIsWrittenIsCleaned(t *testing.T) {
	con, written := newConsole(t, func(p []byte) []byte { return bytes.ReplaceAll(p, []byte("hunter2"), []byte("[…]")) })
	con.PrintNote("key: hunter2")
	con.Out.PrintText("hunter2")
	if out, err := written(); out != "[…]\n" || err != "key: […]\n" {
		t.Errorf("standard output: %q, standard error: %q", out, err)
	}
}

// Off a terminal there is no person, no prompter, no formatting and no sign before the status.
func TestOffATerminal(t *testing.T) {
	con, _ := newConsole(t, bytes.Clone)
	con.Out.Colors = true
	if con.HasPerson() || con.NewPrompter() != nil || con.ShowsBlocks() || con.MarksStatus() {
		t.Error("a file is taken for a terminal")
	}
	if text := con.RenderReply("a **b**", false); text != "a **b**" {
		t.Errorf("the text is %q", text)
	}
}

// An unknown theme changes nothing.
func TestThemes(t *testing.T) {
	con, _ := newConsole(t, bytes.Clone)
	if !con.SetTheme("mono") {
		t.Fatal("there is no theme mono")
	}
	before := con.Theme
	if con.SetTheme("pink") || con.Theme != before {
		t.Error("an unknown theme was set")
	}
}
