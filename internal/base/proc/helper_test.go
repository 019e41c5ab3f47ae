//go:build unix

package proc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// parentScript, when set, makes the test binary a parent that runs this script until it is killed.
const parentScript = "RADDLE_TEST_PARENT_SCRIPT"

// parentTalks, when set as well, makes it one that talks to the script.
const parentTalks = "RADDLE_TEST_PARENT_TALKS"

func TestMain(m *testing.M) {
	if script := os.Getenv(lendingScript); script != "" {
		os.Exit(lendTerminal(script))
	}
	if script := os.Getenv(parentScript); script != "" {
		var err error
		if os.Getenv(parentTalks) == "" {
			_, err = Run(context.Background(), bash(script))
		} else if p, e := Start(bash(script), os.Stderr); e == nil {
			<-p.Done()
			err = p.Err()
		}
		fmt.Fprintln(os.Stderr, "the script ended before its parent was killed:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// bash returns a command that runs a script.
func bash(script string) Command {
	return Command{Path: "bash", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// A wire is a named pipe by which a script says that it has come to a point, and whose end means
// that no process of the script is left: everything it starts inherits the writing end as
// descriptor 9.
type wire struct {
	t    *testing.T
	path string
	end  chan struct{} // closed when no process holds the writing end any more
	line chan string   // what it says, closed with end
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{t: t, path: filepath.Join(t.TempDir(), "wire"), end: make(chan struct{}), line: make(chan string, 100)}
	if err := unix.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.end)
		defer close(w.line)
		f, err := os.Open(w.path) // waits for the writer
		if err != nil {
			return
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			w.line <- lines.Text()
		}
	}()
	return w
}

// script connects a script to the wire. In it `say` sends a word, `forever` blocks without a process of its own, and `pause` blocks
// until a process opens the pipe $gate for writing.
func (w *wire) script(text string) string {
	return fmt.Sprintf(`gate='%s.gate'; exec 9>'%[1]s'; mkfifo "$gate"
		say() { echo $1 >&9; }; forever() { read -r _ <>"$gate"; }; pause() { read -r _ <"$gate"; }
		%s`, w.path, text)
}

// open lets the script that pauses, or will pause, continue.
func (w *wire) open() {
	w.t.Helper()
	opened := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(w.path+".gate", os.O_WRONLY, 0) // waits for the reader
		f.Close()
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			w.t.Fatal(err)
		}
	case <-w.end: // no process will read any more; the output of the script shows whether it continued
	}
}

// expect waits for the next word.
func (w *wire) expect(want string) {
	w.t.Helper()
	got, ok := <-w.line
	if !ok {
		w.t.Fatalf("the script ended without saying %q", want)
	}
	if got != want {
		w.t.Fatalf("the script says %q, want %q", got, want)
	}
}

// expectEnd waits until everything the script started is gone.
func (w *wire) expectEnd() { <-w.end }

// openFiles counts the open files of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	dir, err := os.Open("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
