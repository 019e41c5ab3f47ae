package app

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// A run that has no person to inform, such as one of a server, says in the log what its knowledge base could not read, each time it starts.
func TestUnreadDocumentsAreInTheLog(t *testing.T) {
	p := process(t)
	testfile.WriteFiles(t, filepath.Join(p.Dirs.Work, "a"), map[string]string{
		"config.yaml": "name: a\nmodel: script:t.yaml\ndocuments: [d.md, none.md]\nembedding_model: keyword\n", "d.md": "The zebra grazes.\n", "t.yaml": "- {text: ok, repeat: true}\n"})
	for i := range 2 {
		var log bytes.Buffer
		run, err := p.StartRun(Request{Agent: "./a", Prompt: "hello", UIHooks: UIHooks{Log: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Drive(t.Context(), Driver{}); err != nil {
			t.Fatal(err)
		}
		run.Close()
		if !strings.Contains(log.String(), "none.md: no documents found here") {
			t.Errorf("run %d: %s", i+1, log.String())
		}
		bases, err := p.Knowledge().ListBases(t.Context(), "./a")
		if err != nil || len(bases) != 1 || len(bases[0].Unread) != 1 || bases[0].Status.Documents != 1 {
			t.Errorf("run %d: %+v, %v", i+1, bases, err)
		}
	}
}
