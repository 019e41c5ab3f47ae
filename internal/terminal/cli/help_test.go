//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// A terminal shows a guide formatted: without the marks of Markdown, and within its width.
func TestGuidesOnATerminal(t *testing.T) {
	s := newWorkplace(t, "").screen([]string{"TERM=xterm-256color"}, "help", "models")
	s.ends(0, "the command has help of its own")
	text := s.seen.String()
	for _, mark := range []string{"# Models", "`net/http`", "|---", "#configuration)"} {
		if strings.Contains(text, mark) {
			t.Errorf("the terminal shows the mark %q:\n%s", mark, text)
		}
	}
	if !strings.Contains(text, "net/http") || !strings.Contains(text, "\x1b[1") {
		t.Errorf("the guide is not formatted:\n%s", text)
	}
}

// A word that is not a command is reported before its flags, which belong to the command that was meant.
func TestUnknownCommandsWithFlags(t *testing.T) {
	w := newWorkplace(t, "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"draw", "helper", "-o", "x.svg"}, "unknown command \"draw\"\nnext: use: raddle graph AGENT\n"},
		{[]string{"runs", "logs", "last", "--since", "1h"}, "unknown command \"logs\"\nnext: use: raddle runs history RUN\n"},
		{[]string{"--colour", "always", "draw"}, "unknown flag: --colour\nnext: did you mean --color?\n"},
		{[]string{"--role", "coder", "hello"}, "unknown role \"coder\": there is no such file in .config/raddle/roles\nnext: write its instructions into .config/raddle/roles/NAME.md\n"},
		{[]string{"-r", "coder", "hello"}, "unknown role \"coder\": there is no such file in .config/raddle/roles\nnext: write its instructions into .config/raddle/roles/NAME.md\n"},
		{[]string{"graph", "helper", "-x"}, "unknown shorthand flag: 'x' in -x\nnext: see: raddle graph --help\n"},
	} {
		if r := w.run(c.args...); r.code != 2 || r.err != "raddle: "+c.want {
			t.Errorf("%q: exit code %d\n%s", c.args, r.code, r.err)
		}
	}
}
