package history_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A line that follows a thread says after each record what a look at the whole thread up to there says.
func TestLineFollowsAThread(t *testing.T) {
	st, threads := readEarlier(t)
	kinds := map[journal.Kind]bool{}
	open := 0
	for _, thread := range threads {
		line := &history.Line{RunInfo: history.RunInfo{Thread: thread}}
		for rec, err := range st.Read(t.Context(), thread, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			kinds[rec.Kind] = true
			if err := line.Add(&rec); err != nil {
				t.Fatalf("%s, record %d: %v", thread, rec.Seq, err)
			}
			snap, err := history.Inspect(t.Context(), st, thread, rec.Seq)
			if err != nil {
				t.Fatal(err)
			}
			want := snap.RunInfo
			if want.Status != graph.Crashed { // those that were open when the drive stopped
				for _, q := range snap.Questions {
					want.Questions = append(want.Questions, graph.Question{ID: q.ID, Prompt: q.Prompt})
				}
			} else {
				want.Reason = ""
			}
			if d := cmp.Diff(want, line.RunInfo, cmpopts.IgnoreFields(history.RunInfo{}, "Lease"), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s, record %d (%v) (-whole +line):\n%s", thread, rec.Seq, rec.Kind, d)
			}
			var asked []graph.Question
			for _, q := range line.Asked {
				if q.Since.IsZero() || q.Since.After(want.Updated) {
					t.Errorf("%s, record %d: %s was asked at %v", thread, rec.Seq, q.Question.ID, q.Since)
				}
				asked = append(asked, q.Question)
			}
			if want.Status == graph.Crashed { // their order may be another one
				byID := func(a, b graph.Question) int { return strings.Compare(a.ID, b.ID) }
				slices.SortFunc(asked, byID)
				slices.SortFunc(snap.Questions, byID)
			}
			open += len(asked)
			if d := cmp.Diff(snap.Questions, asked, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s, record %d (%v): what is asked (-whole +line):\n%s", thread, rec.Seq, rec.Kind, d)
			}
			if line.Active != snap.Active || string(line.Meta) != string(snap.Meta) {
				t.Errorf("%s, record %d (%v): %v, %q, want %v, %q", thread, rec.Seq, rec.Kind, line.Active, line.Meta, snap.Active, snap.Meta)
			}
		}
	}
	if open < 20 {
		t.Errorf("there were %d open questions", open)
	}
	for _, kind := range []journal.Kind{journal.KindStart, journal.KindClaim, journal.KindEdit, journal.KindFork, journal.KindEnd, journal.KindSnapshot, journal.KindQuestion} {
		if !kinds[kind] {
			t.Errorf("no thread has a record of the kind %v", kind)
		}
	}
}
