package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/testkit/testfile"
)

// Names in a question cannot add lines to it.
func TestQuoteNames(t *testing.T) {
	if got, want := quoteNames([]string{
		"a b.sh", "x\nUse it? It is safe.\x1b[8m",
	}), `a b.sh, "x\nUse it? It is safe.\x1b[8m"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Each kind of directory says what it is, what is asked, and what happens without a yes. Names cannot add lines.
func TestImplicitDirsAreDescribed(t *testing.T) {
	g, _, screen := newGuide(t)
	dir := filepath.Join(g.Process.Dirs.Work, "x")
	evil := "a\nb"
	for _, tt := range []struct {
		u                        toolbox.ImplicitDir
		what, request, otherwise string
	}{
		{toolbox.ImplicitDir{Packages: true}, "The programs and packages in ", "Use them, until one of the files changes? After a no", " raddle does not use them"},
		{toolbox.ImplicitDir{Skills: true, Files: []string{evil}}, "The skills in ", "Use them, until one of the files changes? After a no", "; the agent does not see them"},
		{toolbox.ImplicitDir{Servers: true, Files: []string{evil}}, "The MCP servers in ", "Start them, until this file changes? After a no", "; they are not started"},
		{toolbox.ImplicitDir{Agent: true, Files: []string{evil}}, "x was not named by you", "Use it, until one of these files changes?", "; until you consent at a terminal, its tools"},
		{toolbox.ImplicitDir{Agent: true, Files: []string{evil}, Hooks: []string{evil}}, "x was not named by you", "Use it,", "its servers are not started; raddle refuses the calls that its hooks"},
		{toolbox.ImplicitDir{Files: []string{evil}}, "This project brings its own rules (", "Trust them,", " Until you trust them at a terminal, they can only deny or ask."},
		{toolbox.ImplicitDir{Files: []string{evil}, Hooks: []string{evil}}, "This project brings its own rules and hooks (", "Trust them,", "raddle refuses the calls that hooks should look at first."},
	} {
		tt.u.Dir = dir
		what, request, otherwise := g.describeImplicitDir(tt.u)
		if !strings.Contains(what, tt.what) || !strings.HasPrefix(request, tt.request) ||
			!strings.Contains(otherwise, tt.otherwise) || strings.Contains(what+request+otherwise, "\n") {
			t.Errorf("%+v:\n%q\n%q\n%q", tt.u, what, request, otherwise)
		}
		if n := strings.Count(what, `a\nb`); n != len(tt.u.Files)+len(tt.u.Hooks) {
			t.Errorf("%+v: %d of the names are in %q", tt.u, n, what)
		}
		g.WarnImplicitDirs([]toolbox.ImplicitDir{tt.u})
		if !strings.HasSuffix(screen(), "raddle: warning: "+what+otherwise+"\n") {
			t.Errorf("the warning is %s", screen())
		}
	}
}

// The person decides about all of it or about each, a no to skills is remembered, and leaving a question decides nothing
// about what comes after it.
func TestAskConsent(t *testing.T) {
	for _, tt := range []struct {
		dirs            int
		answers         []string
		given           bool
		asked, recorded int
		left            bool
	}{
		{1, []string{"yes"}, true, 1, 1, false}, {1, []string{"no"}, false, 1, 1, false}, {1, nil, false, 1, 0, true},
		{3, []string{"yes"}, true, 1, 3, false}, {3, []string{"no"}, false, 1, 3, false}, {3, nil, false, 1, 0, true},
		{3, []string{eachAlone, "no", "yes", "no"}, true, 4, 3, false},
		{3, []string{eachAlone, "yes"}, true, 3, 1, true}, {3, []string{eachAlone, "no"}, false, 3, 1, true},
	} {
		g, who, screen := newGuide(t, tt.answers...)
		var list []toolbox.ImplicitDir
		for i := range tt.dirs {
			dir := filepath.Join(g.Process.Dirs.Work, fmt.Sprint("skills", i))
			testfile.WriteFile(t, filepath.Join(dir, "SKILL.md"), "x")
			list = append(list, toolbox.ImplicitDir{Dir: dir, Skills: true, Files: []string{"s"}})
		}
		given, err := g.AskConsent(t.Context(), list)
		text, _ := os.ReadFile(g.Process.Tools.ConsentFile())
		if recorded := strings.Count(string(text), "skills"); given != tt.given ||
			errors.Is(err, term.ErrLeftOpen) != tt.left || len(who.asked) != tt.asked || recorded != tt.recorded {
			t.Errorf("%+v: %t, %v, %d recorded\nasked %q\n%s", tt, given, err, recorded, who.asked, text)
		}
		if several := strings.Contains(screen(), fmt.Sprintf("This run would use %d things", tt.dirs)); several != (tt.dirs > 1) {
			t.Errorf("%+v: %s", tt, screen())
		}
	}
}

// What has changed is shown up to a limit, and nothing of it can write to the terminal.
func TestChangesOfDirs(t *testing.T) {
	since := time.Date(2026, 11, 3, 9, 5, 0, 0, time.Local)
	change := func(n, lines int) (list []toolbox.FileChange) {
		for i := range n {
			list = append(list, toolbox.FileChange{
				Path: fmt.Sprint("f", i), Kind: "changed", Diff: strings.Repeat("+x\n", lines),
			})
		}
		return list
	}
	head := "  d has changed since you agreed to it on 3 November 2026, 09:05."
	for _, tt := range []struct {
		changes []toolbox.FileChange
		want    string
	}{
		{nil, head},
		{change(1, 0), head + "\n  f0 was changed"},
		{change(1, 40), head + "\n  f0 was changed" + strings.Repeat("\n    +x", 40)},
		{change(1, 41), head + "\n  f0 was changed" + strings.Repeat("\n    +x", 40) + "\n    (1 line more: read the file)"},
		{[]toolbox.FileChange{{Path: "a\nb", Kind: "added", Diff: "+\x1b[8mx"}}, head + "\n  \"a\\nb\" was added\n    +" + strings.TrimPrefix(term.RevealText("+\x1b[8mx"), "+")},
	} {
		got := formatChanges(toolbox.ImplicitDir{Dir: "/w/d", Since: since, Changes: tt.changes}, false)
		if got != tt.want || strings.Contains(got, "\x1b") {
			t.Errorf("got %q\nwant %q", got, tt.want)
		}
	}
	for n, want := range map[int]string{
		20: "  f19 was changed", 21: "  (1 more file: read the directory)",
		25: "  (5 more files: read the directory)",
	} {
		lines := strings.Split(formatChanges(toolbox.ImplicitDir{
			Dir: "/w/d", Since: since, Changes: change(n, 0),
		}, false), "\n")
		if last := lines[len(lines)-1]; last != want || len(lines) != min(n, 21)+1 {
			t.Errorf("%d files: %d lines, the last is %q", n, len(lines), last)
		}
	}
	if got := formatChanges(toolbox.ImplicitDir{Changes: change(1, 1)}, false); got != "" {
		t.Errorf("the person has never agreed: %s", got)
	}
}
