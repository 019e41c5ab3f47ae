//go:build unix

package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/termtest"
)

// onScreen is a real terminal, and in the end what was written to it.
func onScreen(t *testing.T, cols, rows uint16) (scr *Screen, tty *os.File, written func() string) {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error when the other side is closed
		read <- all
	}()
	t.Cleanup(func() { _ = master.Close() })
	return NewScreen(tty), tty, func() string {
		_ = tty.Close()
		return strings.ReplaceAll(string(<-read), "\r\n", "\n")
	}
}

// allowDrawing makes the live lines be drawn at once.
func (t *Screen) allowDrawing() { t.drawn = time.Time{} }

// Each write of a line draws the live lines again, however soon it follows the
// last: they never disappear until the next update.
func TestChangingLinesDoNotBlink(t *testing.T) {
	scr, _, written := onScreen(t, 40, 12)
	scr.SetLive([]string{"worker one", "worker two"})
	const lines = 20
	for i := range lines {
		scr.PrintLine(fmt.Sprint("line ", i))
	}
	out := written()
	if got := strings.Count(out, "worker one"); got != lines+1 || !strings.HasSuffix(strings.TrimSuffix(out, "\x1b[?2026l"), "worker two") {
		t.Errorf("the changing lines were drawn %d times, want %d: %q", got, lines+1, out)
	}
}

// Permanent lines are never torn by the live lines, and none of these is left.
func TestChangingLines(t *testing.T) {
	scr, _, written := onScreen(t, 40, 12)
	for i := range 50 {
		scr.allowDrawing()
		scr.SetLive([]string{fmt.Sprint("… a ", i), strings.Repeat("b", i%40), "c"}[:1+i%3])
		scr.PrintLine(fmt.Sprint("line ", i))
	}
	out := &Output{Writer: scr.Writer}
	scr.PassThrough(out, "The ans")
	scr.allowDrawing()
	scr.SetLive([]string{"not now", "nor this"})
	scr.PassThrough(out, "wer.")
	scr.PrintLine("a line that waits for the end")
	scr.PassThrough(out, " And more")
	scr.EndLine(out)
	scr.PassThrough(out, "More.\n")
	scr.allowDrawing()
	scr.SetLive([]string{"… last", "two"})
	scr.ClearLive()
	scr.PrintLine("the end")
	v := termtest.NewDisplay(40)
	v.WriteText(written())
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprint("line ", i))
	}
	want = append(want, "The answer. And more", "a line that waits for the end", "More.", "the end")
	if d := cmp.Diff(strings.Join(want, "\n"), v.String()); d != "" || v.Unknown != nil {
		t.Errorf("%s\nunknown: %q", d, v.Unknown)
	}
}

// A terminal that becomes narrower has wrapped the live lines: all of that is removed.
func TestNarrowerTerminal(t *testing.T) {
	const narrower = "<narrower>"
	scr, tty, written := onScreen(t, 60, 12)
	show := func(line string, status ...string) {
		scr.status = status
		scr.PrintLine(line)
	}
	show("first", strings.Repeat("x", 59), strings.Repeat("y", 59), "z")
	if _, err := tty.WriteString(narrower); err != nil { // for the reader, where it happened
		t.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Cols: 25, Rows: 12}); err != nil {
		t.Fatal(err)
	}
	show("second", strings.Repeat("x", 24), "z")
	show("third")
	before, after, ok := strings.Cut(written(), narrower)
	v := termtest.NewDisplay(60)
	v.WriteText(before)
	v.Resize(25)
	v.WriteText(after)
	if got := v.String(); got != "first\nsecond\nthird" || !ok {
		t.Errorf("%s\n%q\n%q", got, before, after)
	}
}

// However much a model writes, the live lines are updated ten times a second at most; and each permanent line is followed by them.
func TestRedraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		scr := NewScreen(w)
		const seconds, each = 3, 5 * time.Millisecond
		const lines = int(seconds * time.Second / each)
		for n := range lines {
			time.Sleep(each)
			scr.SetLive([]string{fmt.Sprint("§ ", n)})
		}
		for range lines {
			scr.PrintLine("said")
		}
		_ = w.Close()
		all, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		updates, said, _ := strings.Cut(string(all), "said\n")
		if n := strings.Count(updates, "§"); n > 10*seconds || n < 5*seconds {
			t.Errorf("%d updates in %d seconds", n, seconds)
		}
		if want := fmt.Sprintf("§ %d", lines-1); strings.Count(said, want+"said\n") != lines-1 || !strings.HasSuffix(said, want) {
			t.Errorf("not every line is followed by the changing lines: %q", said)
		}
	})
}

// The input stays below everything, with the cursor in it, whatever is written above; it is never torn, and nothing of it is left.
func TestInput(t *testing.T) {
	scr, _, written := onScreen(t, 40, 12)
	scr.SetInput([]string{"> one", "  two", "status"}, Cursor{Row: 1, Column: 5})
	for i := range 30 {
		scr.allowDrawing()
		scr.SetLive([]string{fmt.Sprint("… a ", i), "b"}[:1+i%2])
		scr.PrintLine(fmt.Sprint("line ", i))
		scr.SetInput([]string{fmt.Sprint("> one", i), "  two", "status"}[i%3:], Cursor{Row: 0, Column: 2 + i%4})
		scr.allowDrawing()
		scr.SetReply([]string{fmt.Sprint("a reply ", i)})
	}
	out := &Output{Writer: scr.Writer}
	scr.PassReply(out, "The answer.\n", nil)
	scr.ClearLive()
	scr.SetInput([]string{"> one", "  two", "status"}, Cursor{Row: 1, Column: 5})
	v := termtest.NewDisplay(40)
	text := written()
	v.WriteText(text)
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint("line ", i))
	}
	want = append(want, "The answer.", "> one", "  two", "status")
	if d := cmp.Diff(strings.Join(want, "\n"), v.String()); d != "" || v.Unknown != nil {
		t.Errorf("%s\nunknown: %q", d, v.Unknown)
	}
	if row, col := v.Cursor(); row != 32 || col != 5 {
		t.Errorf("the cursor is at %d, %d", row, col)
	}
}

// A reply that is longer than the terminal is high loses no line, wherever it ends.
func TestReplyLongerThanTheTerminal(t *testing.T) {
	const cols, rows = 40, 10
	for _, lines := range []int{5, 9, 10, 11, 40} {
		scr, _, written := onScreen(t, cols, rows)
		out := &Output{Writer: scr.Writer}
		scr.SetInput([]string{"> text", "status"}, Cursor{Row: 0, Column: 6})
		scr.allowDrawing()
		scr.SetLive([]string{"… working"})
		var want, pending []string
		for i := range lines {
			line := fmt.Sprint("line ", i)
			want = append(want, line)
			if pending = append(pending, line); len(pending) > 4 {
				pending = pending[1:]
			}
			scr.allowDrawing()
			scr.SetReply(pending)
		}
		scr.allowDrawing()
		scr.PassReply(out, strings.Join(want, "\n")+"\n", nil)
		scr.ClearLive()
		v := termtest.NewTerminal(cols, rows)
		v.WriteText(written())
		if d := cmp.Diff(strings.Join(append(want, "> text", "status"), "\n"), v.String()); d != "" || v.Unknown != nil {
			t.Errorf("%d lines: %s\nunknown: %q", lines, d, v.Unknown)
		}
	}
}
