package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Streams are files in the place of the standard streams of a program.
type Streams struct {
	In, Out, Err *os.File
}

// OpenStreams makes the files, which are closed when the test ends.
func OpenStreams(t testing.TB) *Streams {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	return &Streams{
		In:  open("in"),
		Out: open("out"),
		Err: open("err"),
	}
}

// Read returns what was written to one of the files.
func Read(t testing.TB, f *os.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
