package conversation_test

import (
	"testing"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/storage/readtest"
)

// Each operation passes over the journals of a conversation as often as this says, and no more: once over each branch,
// and once more where the engine copies it.
func TestPassesOfConversations(t *testing.T) {
	x := newPlace(t)
	st := &readtest.Counting{Memory: journal.NewMemory()}
	p, err := app.Open(app.Options{Work: x.work, Environ: x.env})
	must(t, err)
	must(t, p.Runs.AttachStore(st))
	c, err := conversation.Open(t.Context(), p, "helper", "talk")
	must(t, err)
	defer c.Close()
	for _, text := range []string{"one", `CALL fs_write {"path":"a.txt","content":"1"}`, "three", "four"} {
		x.say(c, text)
	}
	first, second := "session/helper/talk", "session/helper/talk~2"
	check := func(what string, ofFirst, ofSecond int, operate func() error) {
		t.Helper()
		st.Take(first)
		st.Take(second)
		must(t, operate())
		if a, b := st.Take(first), st.Take(second); a.Passes != ofFirst || b.Passes != ofSecond {
			t.Errorf("%s: %s of the first branch and %s of the second, want %d and %d passes", what, a, b, ofFirst, ofSecond)
		}
	}
	ctx := t.Context()
	check("turns", 1, 0, func() error { _, err := c.Turns(ctx); return err })
	check("what a rewind would do", 1, 0, func() error { _, err := c.PreviewRewind(ctx, 2); return err })
	check("undo", 2, 0, func() error { return c.Undo(ctx, 1) })
	x.say(c, "five")
	check("turns of a branch", 1, 1, func() error { _, err := c.Turns(ctx); return err })
	check("branches", 1, 1, func() error { _, err := c.Branches(ctx); return err })
	check("branches with runs", 1, 1, func() error { _, err := conversation.ListBranches(ctx, p, "helper", "talk"); return err })
	check("redo", 1, 1, func() error {
		if err := c.Redo(ctx); err == nil {
			t.Error("there was something to redo")
		}
		return nil
	})
	check("another branch", 1, 0, func() error { return c.SwitchBranch(ctx, "main") })
	check("rewind", 2, 1, func() error { _, err := c.Rewind(ctx, 3, conversation.RewindBoth); return err })
}
