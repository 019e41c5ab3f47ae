package prompting

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/storage/attach"
)

// pipeWith returns the reading end of a real pipe that holds a text and is closed for writing.
func pipeWith(t *testing.T, text string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// read makes a prompt, and returns it as a model gets it.
func read(t *testing.T, in *Input, parts Parts) (text string, notes []string) {
	t.Helper()
	p, err := ReadPrompt(context.Background(), in, parts)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err = attach.Join(p.Text, p.Files)
	if err != nil {
		t.Fatal(err)
	}
	return text, p.Notes
}

func TestWordsAndPipesAreJoined(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.md")
	if err := os.WriteFile(notes, []byte("a note\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		piped string
		parts Parts
		want  string
		notes []string
	}{
		{
			name:  "words first",
			piped: "one\ntwo\nthree\n",
			parts: Parts{Words: []string{"explain", "this"}},
			want:  "explain this\n\nStandard input:\none\ntwo\nthree",
			notes: []string{"+ 3 lines from standard input"},
		},
		{
			name:  "one line",
			piped: "one",
			parts: Parts{Words: []string{"explain", "-"}},
			want:  "explain\n\nStandard input:\none",
			notes: []string{"+ 1 line from standard input"},
		},
		{
			name:  "alone",
			piped: "one\ntwo\r\n",
			want:  "one\ntwo",
		},
		{
			name:  "before files",
			piped: "piped",
			parts: Parts{Words: []string{"explain"}, Files: []string{notes}},
			want:  "explain\n\nStandard input:\npiped\n\nFile " + filepath.ToSlash(notes) + ":\na note",
			notes: []string{"+ 1 line from standard input"},
		},
		{
			name:  "left out",
			piped: "piped",
			parts: Parts{Words: []string{"explain"}, NoInput: true},
			want:  "explain",
		},
		{
			name:  "empty",
			piped: "\n\n",
			parts: Parts{Words: []string{"explain"}},
			want:  "explain",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text, notes := read(t, NewInput(pipeWith(t, test.piped), FirstByte), test.parts)
			if d := cmp.Diff(test.want, text); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(test.notes, notes); d != "" {
				t.Error(d)
			}
		})
	}
}

// A regular file counts like a pipe, and a device has nothing.
func TestFilesAndDevices(t *testing.T) {
	name := filepath.Join(t.TempDir(), "input.txt")
	if err := os.WriteFile(name, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{name: "words\n\nStandard input:\nfrom a file", os.DevNull: "words"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := read(t, NewInput(f, FirstByte), Parts{Words: []string{"words"}}); text != want {
			t.Errorf("%s: %q, want %q", path, text, want)
		}
		_ = f.Close()
	}
}

// A picture that comes through a pipe is attached.
func TestPipedPicture(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02"
	p, err := ReadPrompt(context.Background(), NewInput(pipeWith(t, png), FirstByte), Parts{Words: []string{"what", "is", "it"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Files) != 1 || p.Files[0].Media == nil || p.Text != "what is it" || len(p.Notes) != 1 {
		t.Errorf("%+v", p)
	}
}

func TestRefusedInput(t *testing.T) {
	for want, test := range map[string]struct {
		piped string
		parts Parts
	}{
		"is not UTF-8 text":          {"\xff\xfe", Parts{}},
		"standard input is larger":   {strings.Repeat("x", largestInput+1), Parts{}},
		"--no-stdin forbids reading": {"text", Parts{Words: []string{"-"}, NoInput: true}},
	} {
		in := &Input{reader: strings.NewReader(test.piped)}
		if _, err := ReadPrompt(context.Background(), in, test.parts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Input that does not start in time counts as none; input that has started is read completely, and only once.
func TestSilentPipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, writer := io.Pipe()
		in := &Input{reader: silent, wait: FirstByte}
		if f, ok, err := in.ReadSoon(); ok || err != nil {
			t.Errorf("%v %v", f, err)
		}
		go func() {
			_, _ = io.WriteString(writer, "a")
			synctest.Wait()
			_, _ = io.WriteString(writer, "bc\r\n")
			_ = writer.Close()
		}()
		for range 2 {
			if f, ok, err := in.ReadAll(); f.Text != "abc\r\n" || !ok || err != nil {
				t.Errorf("%v %v %v", f, ok, err)
			}
		}
	})
}

func TestReadText(t *testing.T) {
	if text, err := ReadText(strings.NewReader("key\r\n")); text != "key" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if _, err := ReadText(strings.NewReader("\xff\xfe")); err == nil {
		t.Error("bytes that are no text are taken")
	}
}
