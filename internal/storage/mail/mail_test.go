package mail

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/memory"
)

// Letters are read as they were written, and removed once.
func TestLetters(t *testing.T) {
	b := Box{Store: memory.New()}
	ctx := t.Context()
	answers, err := PackAnswers([]graph.Answer{{ID: "a/b", Value: map[string]any{"x": 1}, By: "ada"}, {ID: "c", Refused: "no"}})
	if err != nil {
		t.Fatal(err)
	}
	l := &Letter{Run: "r", ID: "1", Answers: answers}
	for _, letter := range []*Letter{l, {Run: "s", ID: "2", Stop: true}} {
		if err := b.PutLetter(ctx, letter); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.ListLetters(ctx)
	if diff := cmp.Diff([]Letter{*l, {Run: "s", ID: "2", Stop: true}}, list); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got := list[0].UnpackAnswers()
	if v, ok := got[0].Value.(json.RawMessage); !ok || string(v) != `{"x":1}` || got[0].By != "ada" || got[1].Refused != "no" {
		t.Errorf("the answers are %+v", got)
	}
	for _, want := range []bool{true, false} {
		if removed, err := b.RemoveLetter(ctx, l); removed != want || err != nil {
			t.Errorf("removed: %v, %v", removed, err)
		}
	}
	if _, found, err := b.ReadLetter(ctx, "r", "1"); found || err != nil {
		t.Errorf("it is still there: %v", err)
	}
}

// Events and waits have places of their own, whatever their names are.
func TestEventsAndWaits(t *testing.T) {
	b := Box{Store: memory.New()}
	ctx := t.Context()
	now := time.Now()
	for _, name := range []string{"paid", "paid/late", "../letters", "ü %"} {
		e := &Event{Name: name, Key: "k", Data: json.RawMessage(`1`), Sent: now.UTC(), Until: now.Add(time.Hour).UTC()}
		if err := b.PutEvent(ctx, e, e.RestOfLife(now)); err != nil {
			t.Fatal(err)
		}
		w := &Wait{Event: name, Run: "r", Question: strings.Repeat("deep/", 200) + name}
		if err := b.PutWait(ctx, w); err != nil {
			t.Fatal(err)
		}
		events, err := b.ListEvents(ctx, name)
		if err != nil || len(events) != 1 || events[0].Name != name {
			t.Errorf("%s: %+v, %v", name, events, err)
		}
		waits, err := b.ListWaits(ctx, name)
		if err != nil || len(waits) != 1 || waits[0] != *w {
			t.Errorf("%s: %+v, %v", name, waits, err)
		}
		if err := b.RemoveWait(ctx, w); err != nil {
			t.Error(err)
		}
		if waits, err = b.ListWaits(ctx, name); err != nil || len(waits) != 0 {
			t.Errorf("%s: %+v, %v", name, waits, err)
		}
	}
	if all, err := b.ListEvents(ctx, ""); err != nil || len(all) != 4 {
		t.Errorf("%+v, %v", all, err)
	}
	if letters, err := b.ListLetters(ctx); err != nil || len(letters) != 0 {
		t.Errorf("%+v, %v", letters, err)
	}
	if rest := (&Event{Until: now}).RestOfLife(now.Add(time.Hour)); rest != time.Second {
		t.Errorf("an event that is over lives for %v", rest)
	}
}
