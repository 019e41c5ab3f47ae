// Package gallery lists, copies and prepares the examples that are part of the program, for a person at a terminal.
package gallery

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"raddle.dev/examples"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
)

// ListNames returns the names of the examples.
func ListNames() (names []string) {
	for _, e := range examples.ListAll() {
		names = append(names, e.Name)
	}
	return names
}

// findExample returns the example with a name, also with the directory before it.
func findExample(name string) (examples.Example, error) {
	name = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "examples/")
	e, ok := examples.FindExample(name)
	if !ok {
		next := wording.SuggestNearest(name, ListNames(), "")
		if next == "" {
			next = "the examples are " + strings.Join(ListNames(), ", ")
		}
		return e, failure.NewUsage(next, "there is no example %q", name)
	}
	return e, nil
}

// PrintList lists the examples in a format.
func PrintList(con *console.Console, format string) error {
	if format == console.FormatJSON {
		return con.PrintJSON(examples.ListAll())
	}
	t := term.NewTable(
		term.NewColumn("EXAMPLE", func(e examples.Example) string { return e.Name }),
		term.NewColumn("WHAT IT SHOWS", func(e examples.Example) string { return e.About }),
		term.NewColumn("NEEDS", func(e examples.Example) string { return e.Needs }))
	for _, e := range examples.ListAll() {
		t.AddRow(e)
	}
	con.PrintTable(t)
	con.PrintNote("next: raddle examples run hello; to read and change it: raddle examples copy hello")
	return nil
}

// CopyExamples writes examples below the directory examples of dir, and says what to do next. Without names it writes all that
// are not there.
func CopyExamples(con *console.Console, dir string, names []string) error {
	all := len(names) == 0
	if all {
		names = ListNames()
	}
	for _, name := range names {
		e, err := findExample(name)
		if err != nil {
			return err
		}
		shown := filepath.Join("examples", filepath.FromSlash(e.Name))
		_, err = examples.CopyTo(e, filepath.Join(dir, "examples"))
		switch {
		case errors.Is(err, fs.ErrExist) && all:
			con.PrintNote("%s is there already", shown)
			continue
		case errors.Is(err, fs.ErrExist):
			return failure.NewUsage("remove it, or copy the example elsewhere: cd there first", "%s exists, and nothing was written to it", shown)
		case err != nil:
			return err
		}
		con.Out.PrintExact(shown)
		con.PrintNote("next: raddle run %s%s", shown, quotedPrompt(e))
	}
	return nil
}

// quotedPrompt returns the prompt of an example as a part of a command.
func quotedPrompt(e examples.Example) string {
	if e.Prompt == "" {
		return ""
	}
	return ` "` + e.Prompt + `"`
}

// A Prepared example can be run.
type Prepared struct {
	Work   string // the directory in which it works
	Agent  string // its path there
	Prompt string
}

// PrepareRun writes the examples to the cache of the program and returns how to run one of them. Without words, its prompt
// is the one that its transcript knows.
func PrepareRun(dirs config.Dirs, name string, words []string) (Prepared, error) {
	e, err := findExample(name)
	if err != nil {
		return Prepared{}, err
	}
	root, err := examples.UnpackAll(filepath.Join(dirs.Cache, "examples"))
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{
		Work:   root,
		Agent:  filepath.Join("examples", filepath.FromSlash(e.Name)),
		Prompt: strings.Join(words, " "),
	}
	if p.Prompt == "" {
		p.Prompt = e.Prompt
	}
	return p, nil
}
