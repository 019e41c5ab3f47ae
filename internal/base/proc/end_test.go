//go:build unix

package proc

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// long is a grace that lasts longer than any test; short is one that is over at once.
const long, brief = time.Hour, 50 * time.Millisecond

type verdict struct {
	Result
	err error
}

// begin runs a command concurrently with the test.
func begin(ctx context.Context, c Command) <-chan verdict {
	done := make(chan verdict, 1)
	go func() {
		res, err := Run(ctx, c)
		done <- verdict{res, err}
	}()
	return done
}

func TestRunCancelled(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	c := bash(w.script("echo begun; say ready; forever"))
	c.Grace = long
	done := begin(ctx, c)
	w.expect("ready")
	because := errors.New("the user pressed Ctrl-C")
	cancel(because)

	got := <-done
	if !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, because) {
		t.Errorf("error %v, want context.Canceled and its cause", got.err)
	}
	if want := "bash was stopped: context canceled: the user pressed Ctrl-C"; errorText(got.err) != want {
		t.Errorf("error %q, want %q", got.err, want)
	}
	if string(got.Stdout) != "begun\n" || got.ExitCode != -1 || got.Signal != "SIGTERM" {
		t.Errorf("result %+v, want what was written until SIGTERM", got.Result)
	}
	w.expectEnd()
}

func TestRunDeadlineOfTheContextIsNotATimeout(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	c := bash(w.script("forever"))
	c.Timeout = long
	_, err := Run(ctx, c)
	if _, ok := errors.AsType[*TimeoutError](err); ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %#v, want context.DeadlineExceeded", err)
	}
}

func TestRunTimeout(t *testing.T) {
	w := newWire(t)
	c := bash(w.script("forever"))
	c.Timeout, c.Grace = brief, long
	got, err := Run(t.Context(), c)
	timeout, ok := errors.AsType[*TimeoutError](err)
	if !ok || timeout.After != brief || !timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %#v, want a TimeoutError", err)
	}
	if want := "bash timed out after 50ms"; errorText(err) != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if got.Signal != "SIGTERM" {
		t.Errorf("ended by %q, want SIGTERM", got.Signal)
	}
}

func TestRunEndsGently(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := bash(w.script("trap 'echo saved; exit 0' TERM; say ready; while :; do :; done")) // bash may miss a signal just before it blocks
	c.Grace = long
	done := begin(ctx, c)
	w.expect("ready")
	cancel()
	got := <-done
	if !errors.Is(got.err, context.Canceled) || got.ExitCode != 0 || string(got.Stdout) != "saved\n" {
		t.Errorf("%+v, want a cancelled child that could save", got)
	}
}

func TestRunContinuesAStoppedChildToEndIt(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := bash(w.script("say ready; kill -STOP $$; forever"))
	c.Grace = long
	done := begin(ctx, c)
	w.expect("ready")
	cancel()
	if got := <-done; got.Signal != "SIGTERM" {
		t.Errorf("ended by %q, want SIGTERM", got.Signal)
	}
}

func TestRunKillsTheWholeGroupThatIgnoresTheRequest(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := bash(w.script("trap '' TERM; (say word; forever) & say word; forever"))
	c.Grace = brief
	done := begin(ctx, c)
	w.expect("word")
	w.expect("word")
	cancel()
	got := <-done
	if got.Signal != "SIGKILL" || !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v, want SIGKILL", got)
	}
	w.expectEnd()
}

func TestRunKillsAGrandchildThatIgnoresWhatItsParentObeys(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := bash(w.script("(trap '' TERM; say ready; forever) & forever"))
	c.Grace = brief
	done := begin(ctx, c)
	w.expect("ready")
	cancel()
	if got := <-done; got.Signal != "SIGTERM" || !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v, want SIGTERM for the child", got)
	}
	w.expectEnd()
}

func TestRunDoesNotWaitForABackgroundProcess(t *testing.T) {
	w := newWire(t)
	c := bash(w.script("(say ready; forever) & echo done"))
	c.Grace = brief
	got, err := Run(t.Context(), c)
	if err != nil || string(got.Stdout) != "done\n" {
		t.Errorf("%+v, %v, want an ordinary end", got, err)
	}
	w.expectEnd()
}

func TestRunKillsABackgroundProcessWithoutOutputAtOnce(t *testing.T) {
	w := newWire(t)
	c := bash(w.script("(forever) >/dev/null 2>&1 & echo done"))
	c.Grace = long
	if got, err := Run(t.Context(), c); err != nil || string(got.Stdout) != "done\n" {
		t.Errorf("%+v, %v, want an ordinary end", got, err)
	}
	w.expectEnd()
}

func TestRunCancelledWhileTheOutputIsOpen(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithCancel(t.Context())
	// The grandchild sees the end of the child as the end of the gate's only writer.
	c := bash(w.script("(pause; say alone; forever) & exec 8>$gate; echo done"))
	c.Grace = long
	done := begin(ctx, c)
	w.expect("alone")
	cancel()
	// It is open which of the two is noticed first: the end of the child, or the cancellation.
	got := <-done
	if string(got.Stdout) != "done\n" || (got.err != nil && !errors.Is(got.err, context.Canceled)) {
		t.Errorf("%+v, want the output", got)
	}
	w.expectEnd()
}

func TestRunReadsWhatIsWrittenAfterTheEndOfTheChild(t *testing.T) {
	got, err := Run(t.Context(), bash("exec > >(read -r x; echo \"late $x\"); echo word"))
	if err != nil || string(got.Stdout) != "late word\n" {
		t.Errorf("%q, %v, want what the process substitution writes", got.Stdout, err)
	}
}

func TestRunStarted(t *testing.T) {
	var h Handle
	c := bash("echo $$")
	c.Started = func(started Handle) error { h = started; return nil }
	got, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(got.Stdout)); h.PID == 0 || strconv.Itoa(h.PID) != want || h.PGID != h.PID {
		t.Errorf("handle %+v of process %s", h, want)
	}
}

func TestRunThatCannotBeRecordedIsKilled(t *testing.T) {
	w := newWire(t)
	full := errors.New("disk full")
	c := bash(w.script("trap '' TERM; say ready; forever"))
	c.Grace = long
	c.Started = func(Handle) error {
		w.expect("ready")
		return full
	}
	got, err := Run(t.Context(), c)
	if !errors.Is(err, full) || got.Signal != "SIGKILL" {
		t.Errorf("%+v, %v, want a killed child and the error of Started", got, err)
	}
	w.expectEnd()
}
