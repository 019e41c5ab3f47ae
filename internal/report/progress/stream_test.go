//go:build unix

package progress

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

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/markdown"
	"raddle.dev/internal/testkit/termtest"
)

// A terminal is a real terminal of some width, and what was written to it.
type terminal struct {
	tty  *os.File
	read chan []byte
}

// openTerminal must be called outside of a bubble of synctest, because what reads the terminal waits for real.
func openTerminal(t *testing.T, cols, rows uint16) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{tty: tty, read: make(chan []byte, 1)}
	x.resize(t, cols, rows)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error when the other side is closed
		x.read <- all
	}()
	t.Cleanup(func() { _ = master.Close() })
	return x
}

func (x *terminal) resize(t *testing.T, cols, rows uint16) {
	t.Helper()
	if err := pty.Setsize(x.tty, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
		t.Fatal(err)
	}
}

func (x *terminal) close() string {
	_ = x.tty.Close()
	return strings.ReplaceAll(string(<-x.read), "\r\n", "\n")
}

// longReply is a text with all sorts of blocks.
func longReply(sections int) string {
	var b strings.Builder
	for i := range sections {
		fmt.Fprintf(&b, "## Section %d\n\n", i)
		b.WriteString(strings.Repeat("This sentence is part of a paragraph that goes over several lines, with **bold** words and `code`. ", 6) + "\n\n")
		for n := range 8 {
			fmt.Fprintf(&b, "- item %d of the list, which says a little more than fits into a few words, so that it takes two lines on most terminals\n", n)
		}
		b.WriteString("\n```go\n")
		for n := range 10 {
			fmt.Fprintf(&b, "\tif x%d := f(%d); x%d != nil { // a comment\n", n, n, n)
		}
		b.WriteString("```\n\n")
	}
	return b.String()
}

// stream shows a reply that arrives in pieces, with live lines below it. pause is called after each piece.
func (x *terminal) stream(text string, size int, pause func(piece int)) {
	scr := term.NewScreen(x.tty)
	scr.Colors = true
	a := &flow.Agent{Name: "helper", Config: &spec.Config{}}
	look := NewLook(true, func(string) string { return "" })
	live := NewLiveLines(scr, look, a)
	live.Mute = true
	out := term.NewOutput(x.tty)
	s := NewReplyStream(scr, out, &markdown.Renderer{Theme: markdown.Default})
	s.ShowPending = true
	handle := func(node string, body graph.Body) {
		ev := graph.Event{Time: time.Now(), Node: node, Task: "1." + node + ".0", Body: body}
		live.HandleEvent(ev)
		s.HandleEvent(ev)
	}
	handle("think", graph.TaskStarted{Kind: "llm"})
	for i := 0; text != ""; i++ {
		n := min(size, len(text))
		handle("think", graph.ValueEmitted{Value: agent.TextDelta{Text: text[:n]}})
		text = text[n:]
		pause(i)
	}
	handle("think", graph.ValueEmitted{Value: agent.ReplyDone{}})
	handle("think", graph.TaskDone{})
	handle("", graph.RunEnded{})
	live.Close()
	scr.EndLine(out)
	scr.ClearLive()
}

// A long reply at 200 pieces a second costs at most three times its bytes, with all that is drawn below it, and each line of it is
// there once.
func TestStreamedReplyIsShort(t *testing.T) {
	for _, cols := range []uint16{40, 80, 200} {
		x := openTerminal(t, cols, 24)
		text := longReply(6)
		synctest.Test(t, func(t *testing.T) {
			x.stream(text, 5, func(int) { time.Sleep(5 * time.Millisecond) })
		})
		written := x.close()
		t.Logf("%d columns: %.2f bytes for each byte of text", cols, float64(len(written))/float64(len(text)))
		if most := 3 * len(text); len(written) > most {
			t.Errorf("%d columns: %d bytes for a text of %d, that is %.1f times as many", cols, len(written), len(text), float64(len(written))/float64(len(text)))
		}
		r := &markdown.Renderer{Width: int(cols) - 1, Theme: markdown.Default}
		want := termtest.Render(int(cols), term.StripMarks(r.RenderText(text)))
		if got := termtest.Render(int(cols), written); got != want {
			t.Errorf("%d columns: the terminal shows\n%s", cols, got)
		}
	}
}

// A terminal that becomes narrower and wider while a reply arrives shows each word of it once.
func TestResizeWhileAReplyArrives(t *testing.T) {
	const mark = "<resized>"
	x := openTerminal(t, 80, 24)
	text := longReply(2)
	sizes := []uint16{50, 100, 30}
	synctest.Test(t, func(t *testing.T) {
		x.stream(text, 7, func(i int) {
			time.Sleep(5 * time.Millisecond)
			if i%100 == 99 && len(sizes) > 0 {
				time.Sleep(time.Millisecond) // so that no update of the live lines is due at this time
				synctest.Wait()
				if _, err := x.tty.WriteString(fmt.Sprintf("%s%03d", mark, sizes[0])); err != nil {
					t.Error(err)
				}
				x.resize(t, sizes[0], 24)
				sizes = sizes[1:]
			}
		})
	})
	v := termtest.NewDisplay(80)
	for i, part := range strings.Split(x.close(), mark) {
		if i > 0 {
			var cols int
			if _, err := fmt.Sscanf(part[:3], "%d", &cols); err != nil {
				t.Fatal(err)
			}
			v.Resize(cols)
			part = part[3:]
		}
		v.WriteText(part)
	}
	plain := strings.NewReplacer("**", "", "`", "", "```go", "", "## ", "", "- item", "• item").Replace(text)
	plain = strings.ReplaceAll(plain, "go if", "if")
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	if got, want := squeeze(v.String()), squeeze(strings.ReplaceAll(plain, "\ngo\n", "\n")); got != want {
		t.Errorf("the terminal shows\n%s", v)
	}
}

// timeReply shows a reply that comes in pieces of 4 KiB, and returns what was written and how long that took.
func timeReply(t *testing.T, text string) (written string, took time.Duration) {
	t.Helper()
	x := openTerminal(t, 80, 24)
	began := time.Now()
	x.stream(text, 4<<10, func(int) {})
	return x.close(), time.Since(began)
}

// A reply of a megabyte does not slow down, whatever its blocks are.
func TestHugeReply(t *testing.T) {
	for name, text := range map[string]string{
		"sections":      longReply(1 << 20 / len(longReply(1))),
		"one paragraph": strings.Repeat("word and ", 1<<20/9),
		"one list":      strings.Repeat("- an item\n", 1<<20/10),
	} {
		written, took := timeReply(t, text)
		if took > 20*time.Second { // slow, or on a busy machine: a quarter takes a quarter of the time there
			if _, quarter := timeReply(t, text[:len(text)/4]); took > 8*quarter {
				t.Errorf("%s: %v, a quarter of it %v", name, took, quarter)
			}
		}
		if len(written) > 3*len(text) {
			t.Errorf("%s: %d bytes for a text of %d", name, len(written), len(text))
		}
	}
}

// A reply of which a part was shown begins again below a line that says so and stays, whatever ends the first one; without a part of it there is
// no such line.
func TestReplyStartsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		first string
		again graph.Body
		note  string
	}{
		"a cut stream":        {"Half of it", graph.ValueEmitted{Value: agent.RetryScheduled{Reason: "connection lost", Request: 2}}, "connection lost, the reply starts again"},
		"an overloaded model": {"Half of it", graph.ValueEmitted{Value: agent.RetryScheduled{Reason: "the provider is overloaded", Request: 3}}, "the provider is overloaded, the reply starts again"},
		"a node that retries": {"Half of it", graph.TaskRetry{Attempt: 1, MaxAttempts: 2}, "the reply starts again"},
		"before a word":       {"", graph.ValueEmitted{Value: agent.RetryScheduled{Reason: "rate limited", Request: 2}}, ""},
	} {
		for _, look := range []*markdown.Renderer{nil, {Theme: markdown.Default}} {
			x := openTerminal(t, 80, 24)
			scr := term.NewScreen(x.tty)
			out := term.NewOutput(x.tty)
			s := NewReplyStream(scr, out, look)
			for _, body := range []graph.Body{
				graph.ValueEmitted{Value: agent.TextDelta{Text: c.first}}, c.again,
				graph.ValueEmitted{Value: agent.TextDelta{Text: "The whole reply."}}, graph.ValueEmitted{Value: agent.ReplyDone{}}, graph.RunEnded{},
			} {
				s.HandleEvent(graph.Event{Node: "think", Task: "1.think.0", Body: body})
			}
			scr.EndLine(out)
			var got []string
			for _, line := range strings.Split(x.close(), "\n") {
				if line = strings.TrimSpace(term.CleanText(line)); line != "" {
					got = append(got, line)
				}
			}
			want := []string{"The whole reply."}
			if c.note != "" {
				want = []string{c.first, c.note, "The whole reply."}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, Markdown %v (-want +got):\n%s", name, look != nil, d)
			}
			if !s.IsShownInFull("The whole reply.") {
				t.Errorf("%s: the whole reply does not count as shown", name)
			}
		}
	}
}
