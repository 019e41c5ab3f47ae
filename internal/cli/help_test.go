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
