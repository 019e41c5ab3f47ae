//go:build unix

package proc

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// A child that prints without an end is ended, and the beginning and the end of its output stay.
func TestOutputLimitEndsTheChild(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"echo first; exec yes", "trap '' TERM; echo first; while :; do echo yes; done", "echo first >&2; exec yes >&2"} {
		c := bash(script)
		c.MaxOutput, c.Limit, c.Grace, c.Timeout = 100_000, 1000, 50*time.Millisecond, time.Minute
		res, err := Run(t.Context(), c)
		var long *OutputError
		if !errors.As(err, &long) || long.After != c.MaxOutput {
			t.Fatalf("%s: %v", script, err)
		}
		out := string(res.Stdout) + string(res.Stderr)
		if !strings.HasPrefix(out, "first\n") || !strings.Contains(out, " bytes left out ...]") || len(out) > 1100 {
			t.Errorf("%s: %d bytes: %.80q", script, len(out), out)
		}
	}
	c := bash("printf 12345")
	c.MaxOutput = 5
	if _, err := Run(t.Context(), c); err != nil {
		t.Errorf("an output of the whole limit: %v", err)
	}
}

// The input of a child may come piece by piece.
func TestRunReadsFromAFile(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	asked := make(chan struct{})
	go func() {
		<-asked
		w.WriteString("answer\n")
		w.Close()
	}()
	c := bash("echo ask; read -r line; echo got $line; cat")
	c.StdinFile, c.Watch = r, watchFunc(func([]byte) {
		select {
		case <-asked:
		default:
			close(asked)
		}
	})
	res, err := Run(t.Context(), c)
	if err != nil || string(res.Stdout) != "ask\ngot answer\n" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
}

type watchFunc func(p []byte)

func (f watchFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

func TestHandleOfThisProcess(t *testing.T) {
	t.Parallel()
	h := CurrentHandle()
	if h.PID != os.Getpid() || !h.IsAlive() {
		t.Errorf("%+v is not alive", h)
	}
	if h.Start == "" {
		t.Skip("the system does not say when a process has started")
	}
	h.Start += "1"
	if h.IsAlive() {
		t.Error("a process with the same id and another start counts as the same one")
	}
	if ended, err := EndHandle(CurrentHandle()); ended || err == nil {
		t.Errorf("this process ends itself: %v, %v", ended, err)
	}
}

// What a Capture has returned stays as it is.
func TestCaptureReturnsACopy(t *testing.T) {
	t.Parallel()
	kept := NewCapture(8)
	kept.Write([]byte("abc"))
	before := kept.KeptBytes()
	kept.Write([]byte("defgh"))
	if after := string(kept.KeptBytes()); string(before) != "abc" || after != "abcdefgh" || kept.CountBytes() != 8 {
		t.Errorf("%q, then %q, of %d", before, after, kept.CountBytes())
	}
}
