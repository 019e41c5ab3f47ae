package chat

import (
	"path/filepath"
	"testing"

	"raddle.dev/internal/base/term/editor"
)

// An editor that consists of blanks is none: the file with the text must not be run as a program.
func TestEditElsewhereBlankEditor(t *testing.T) {
	t.Setenv("VISUAL", " ")
	t.Setenv("EDITOR", "")
	keep := func(text string) string { return text }
	s := &Session{edit: editor.New(editor.OpenHistory(filepath.Join(t.TempDir(), "history.jsonl"), keep))}
	s.editElsewhere()
	if want := "Set VISUAL or EDITOR to the program that you edit with."; s.notice.text != want {
		t.Errorf("notice = %q, want %q", s.notice.text, want)
	}
}
