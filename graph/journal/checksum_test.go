package journal_test

import (
	"errors"
	"strings"
	"testing"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// A record that differs anywhere from what was written is damaged; readers of heads do not see its data.
func TestDamagedRecords(t *testing.T) {
	sums := journal.NewChecksums("t")
	recs := []journal.Record{newRecord("a"), newRecord("b")}
	sums.Set(4, recs)
	if recs[0].Seq != 5 || recs[1].Seq != 6 || recs[0].Sum == recs[1].Sum {
		t.Fatalf("%+v", recs)
	}
	for name, c := range map[string]struct {
		change  func(*journal.Record)
		visible bool // to readers of heads
	}{
		"seq":  {func(r *journal.Record) { r.Seq++ }, true},
		"time": {func(r *journal.Record) { r.Time-- }, true},
		"kind": {func(r *journal.Record) { r.Kind = journal.KindEnd }, true},
		"head": {func(r *journal.Record) { r.Head = []byte("A") }, true},
		"data": {func(r *journal.Record) { r.Data = nil }, false},
		"both": {func(r *journal.Record) { r.Head, r.Data = append(r.Head, r.Data[0]), r.Data[1:] }, true},
	} {
		rec := newRecord("b")
		rec.Seq = 6
		rec.Sum = recs[1].Sum
		if err := errors.Join(sums.Verify(&rec, false), sums.Verify(&rec, true)); err != nil {
			t.Fatal(err)
		}
		c.change(&rec)
		var damaged *journal.DamagedError
		if err := sums.Verify(&rec, false); name != "both" && (!errors.As(err, &damaged) || damaged.Seq != rec.Seq) {
			t.Errorf("%s: %v", name, err)
		}
		if err := sums.Verify(&rec, true); (err != nil) != c.visible {
			t.Errorf("%s, of the head: %v", name, err)
		}
		if rec.Sum = 0; sums.Verify(&rec, false) != nil {
			t.Errorf("%s: a record without a checksum is checked", name)
		}
	}
	others := journal.NewChecksums("u")
	if others.Verify(&recs[0], false) == nil {
		t.Error("a record of another thread is not damaged")
	}
	again := recs[0]
	st := journal.NewMemory()
	bad := again
	bad.Data = []byte("x")
	if err := st.Append(t.Context(), "t", 0, []journal.Record{bad}); err != nil {
		t.Fatal(err)
	}
	for rec, err := range journal.Records(t.Context(), st, "t", journal.Range{}) {
		if !errors.As(err, new(*journal.DamagedError)) || rec.Seq != 0 {
			t.Errorf("%+v, %v", rec, err)
		}
	}
	for _, err := range journal.Records(t.Context(), nil, "t", journal.Range{}) {
		if !errors.Is(err, journal.ErrNoStore) {
			t.Error(err)
		}
	}
}

// An error about damage says where it is, and what to do.
func TestTextsOfDamage(t *testing.T) {
	why := errors.New("it is odd")
	for want, err := range map[string]*journal.DamagedError{
		"the journal of thread t is damaged: it is odd; restore the store from a copy": {Thread: "t", Err: why},
		"record 2 of thread t cannot be read: it is odd":                               {Thread: "t", Seq: 2, Err: why},
		"record 2 of thread t (step) cannot be read: it is odd": {
			Thread: "t",
			Seq:    2,
			Kind:   journal.KindStep,
			Err:    why,
		},
	} {
		if err.Error() != want || !errors.Is(err, why) {
			t.Errorf("%q, want %q", err, want)
		}
	}
	first := "record 1 of thread t is damaged: its checksum does not match (start); restore the store from a copy"
	if err := (&journal.DamagedError{Thread: "t", Seq: 1, Kind: journal.KindStart}); err.Error() != first {
		t.Errorf("%q, want %q", err, first)
	}
	later := "record 3 of thread t is damaged: its checksum does not match (unknown); restore the store from a copy, " +
		"or fork the thread at record 2, before it"
	if err := (&journal.DamagedError{Thread: "t", Seq: 3, Kind: 99}); err.Error() != later {
		t.Errorf("%q, want %q", err, later)
	}
}

// A rewritten record can be verified, and says which record could not be rewritten.
func TestRewriteRecord(t *testing.T) {
	parts := record.Parts{Path: "p/", Void: []string{"1.a.0"}}
	rec := journal.Record{Seq: 7, Kind: journal.KindVoid, Time: 9}
	rec.Head, rec.Data = parts.Append(uint8(rec.Kind), nil, nil)
	list := []journal.Record{rec}
	sums := journal.NewChecksums("t")
	sums.Set(6, list)
	shout := func(b []byte) []byte { return append([]byte("!"), b...) }
	same, err := journal.RewriteRecord("t", list[0], func(b []byte) []byte { return b })
	if err != nil || same.Sum != list[0].Sum {
		t.Errorf("a change of nothing: %+v, %v", same, err)
	}
	got, err := journal.RewriteRecord("t", list[0], shout)
	var read record.Parts
	if err != nil || sums.Verify(&got, false) != nil || read.ReadHead(uint8(got.Kind), got.Head) != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Seq != 7 || got.Time != 9 || read.Path != "!p/" || read.Void[0] != "!1.a.0" {
		t.Errorf("%+v, %+v", got, read)
	}
	longer := list[0]
	longer.Data = []byte("more")
	unknown := list[0]
	unknown.Kind = 99
	for want, r := range map[string]journal.Record{
		"thread t, record 7 (void): it has more parts than this version knows: journal: a newer version": longer,
		"thread t, record 7 (unknown): journal: a newer version":                                         unknown,
	} {
		_, err := journal.RewriteRecord("t", r, shout)
		if !errors.Is(err, journal.ErrNewer) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A range of lines selects by all that it says; a line without a status only by its thread and its place.
func TestRangesOfLines(t *testing.T) {
	line := journal.Line{Thread: "team/a", Order: "5", Status: "done", Label: "nightly"}
	empty := journal.Line{Thread: "team/a", Order: "5"}
	for _, c := range []struct {
		r           journal.LineRange
		full, plain bool
	}{
		{journal.LineRange{}, true, true},
		{journal.LineRange{Prefix: "team/"}, true, true},
		{journal.LineRange{Prefix: "team/ab"}, false, false},
		{journal.LineRange{Below: "6"}, true, true},
		{journal.LineRange{Below: "4"}, false, false},
		{journal.LineRange{Below: "5"}, false, false},
		{journal.LineRange{Below: "5", BelowThread: "team/b"}, true, true},
		{journal.LineRange{Below: "5", BelowThread: "team/a"}, false, false},
		{journal.LineRange{Statuses: []string{"failed", "done"}}, true, true},
		{journal.LineRange{Statuses: []string{"failed"}}, false, true},
		{journal.LineRange{Statuses: []string{}}, false, true},
		{journal.LineRange{Label: "nightly"}, true, true},
		{journal.LineRange{Label: "other"}, false, true},
	} {
		if c.r.Selects(&line) != c.full || c.r.Selects(&empty) != c.plain {
			t.Errorf("%+v selects %v and, without a status, %v", c.r, c.r.Selects(&line), c.r.Selects(&empty))
		}
	}
	ctx := journal.WithLine(t.Context(), &line)
	step := []journal.Record{{Kind: journal.KindStep}}
	blank := journal.Line{Thread: "t", Order: "t"}
	if got := journal.LineOf(ctx, "team/a", 3, step); got != &line {
		t.Errorf("the line of the context: %+v", got)
	}
	if got := journal.LineOf(ctx, "t", 3, step); got != nil {
		t.Errorf("a step of another thread: %+v", got)
	}
	if got := journal.LineOf(ctx, "t", 0, step); got == nil || got.Order != blank.Order || got.Status != "" {
		t.Errorf("a new thread: %+v", got)
	}
	edit := journal.Record{Kind: journal.KindEdit}
	if got := journal.LineOf(t.Context(), "t", 3, append(step, edit)); got == nil || got.Thread != "t" {
		t.Errorf("an edit without a line: %+v", got)
	}
}
