//go:build unix

package proc

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// talk starts a script as a Process, and closes it with the test.
func talk(t *testing.T, c Command, stderr io.Writer) *Process {
	t.Helper()
	p, err := Start(c, stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestProcessTalks(t *testing.T) {
	var stderr strings.Builder
	p := talk(t, bash(`echo grumble >&2; while read -r line; do echo "heard $line"; done`), &stderr)
	lines := bufio.NewScanner(p)
	for _, word := range []string{"one", "two"} {
		io.WriteString(p, word+"\n")
		if !lines.Scan() || lines.Text() != "heard "+word {
			t.Fatalf("read %q, %v", lines.Text(), lines.Err())
		}
	}
	p.Close() // the end of its input is the end of the script
	if err := p.Err(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if got := stderr.String(); got != "grumble\n" {
		t.Errorf("stderr is %q", got)
	}
	if _, err := p.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("writing after the end: %v", err)
	}
}

func TestProcessEndsTheWholeGroup(t *testing.T) {
	w := newWire(t)
	c := bash(w.script("trap '' TERM; (say word; forever) & say word; forever"))
	c.Grace = brief
	p := talk(t, c, io.Discard)
	w.expect("word")
	w.expect("word")
	p.Close()
	w.expectEnd()
	var exit *ExitError
	if err := p.Err(); !errors.As(err, &exit) || exit.Signal != "SIGKILL" {
		t.Errorf("it ended with %v, want SIGKILL", err)
	}
}

func TestProcessThatDiesTakesItsGroupAlong(t *testing.T) {
	w := newWire(t)
	p := talk(t, bash(w.script("(say ready; forever) & read -r word; echo last; kill -9 $$")), io.Discard)
	w.expect("ready")
	io.WriteString(p, "go\n")
	<-p.Done()
	w.expectEnd()
	if rest, err := io.ReadAll(p); err != nil || string(rest) != "last\n" {
		t.Errorf("after the end there was %q to read, %v", rest, err)
	}
	if err := p.Err(); err == nil || err.Error() != "bash was ended by SIGKILL" {
		t.Errorf("it ended with %v", err)
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	before := openFiles(t)
	var start *StartError
	if _, err := Start(Command{Path: "no-such-program"}, io.Discard); !errors.As(err, &start) {
		t.Errorf("error %v, want a StartError", err)
	}
	full := errors.New("disk full")
	c := bash("read -r forever")
	c.Started = func(Handle) error { return full }
	if _, err := Start(c, io.Discard); !errors.Is(err, full) {
		t.Errorf("error %v, want that of Started", err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}
