package conversation_test

import (
	"fmt"
	"strings"
	"testing"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/testkit/llmtest"
)

// longConversation has a conversation of 500 turns of 2 KB, with calls in every tenth.
func longConversation(b *testing.B) (x *place, name string) {
	x = newPlace(b)
	x.write("file.txt", strings.Repeat("line\n", 100))
	x.answer = func(body []byte) llmtest.Turn {
		t := replyTo(b, body)
		if t.Calls == nil {
			t.Text = strings.Repeat("A word of the reply. ", 100)
		}
		return t
	}
	_, c := x.open("")
	for i := range 500 {
		text := fmt.Sprint("message ", i)
		if i%10 == 0 {
			text = `CALL fs_cat {"path":"file.txt"}`
		}
		x.say(c, text)
	}
	c.Close()
	return x, c.Name()
}

// BenchmarkLongConversation measures what a user waits for after 500 turns: opening the conversation in another process,
// its list, its turns, and the start of the next turn.
func BenchmarkLongConversation(b *testing.B) {
	x, name := longConversation(b)
	open := func() (*app.Process, *conversation.Conversation) {
		p, err := app.Open(app.Options{Work: x.work, Environ: x.env})
		must(b, err)
		c, err := conversation.Open(b.Context(), p, "helper", name)
		must(b, err)
		return p, c
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			p, c := open()
			c.Close()
			must(b, p.Close())
		}
	})
	p, c := open()
	defer func() {
		c.Close()
		_ = p.Close()
	}()
	b.Run("unfinished", func(b *testing.B) {
		for b.Loop() {
			_, _, err := c.OpenTurn(b.Context())
			must(b, err)
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			_, err := conversation.List(b.Context(), p, "")
			must(b, err)
		}
	})
	b.Run("latest", func(b *testing.B) {
		for b.Loop() {
			s, err := conversation.Latest(b.Context(), p, x.work)
			must(b, err)
			if s == nil || s.Name != name {
				b.Fatal(s)
			}
		}
	})
	b.Run("turns", func(b *testing.B) {
		for b.Loop() {
			turns, err := c.Turns(b.Context())
			must(b, err)
			if len(turns) < 500 {
				b.Fatal(len(turns))
			}
		}
	})
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			run, err := c.StartTurn(app.Request{Prompt: "next"})
			must(b, err)
			run.Close()
		}
	})
	b.Run("turn", func(b *testing.B) {
		for b.Loop() {
			x.say(c, "next")
		}
	})
	b.Run("undo and redo", func(b *testing.B) {
		for b.Loop() {
			must(b, c.Undo(b.Context(), 1))
			must(b, c.Redo(b.Context()))
		}
	})
}
