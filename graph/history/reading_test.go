package history_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// readEarlier returns a store with the journals of earlier versions, and their threads.
func readEarlier(t *testing.T) (st *journal.Memory, threads []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "earlier", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no journals of earlier versions: %v", err)
	}
	st = journal.NewMemory()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var recs []journal.Record
		for line := range bytes.Lines(content) {
			var r journal.Record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			recs = append(recs, r)
		}
		name := filepath.Base(file)
		if err := st.Append(t.Context(), name, 0, recs); err != nil {
			t.Fatal(err)
		}
		threads = append(threads, name)
	}
	return st, threads
}

// A reading says of each record what DecodeEntry, DecodeContent and Inspect say of it, and a snapshot stays as it was
// when it was taken.
func TestReadingAgrees(t *testing.T) {
	st, threads := readEarlier(t)
	for _, thread := range threads {
		reading := history.NewReading(thread)
		var taken []*history.Snapshot
		for rec, err := range st.Read(t.Context(), thread, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			e, c, err := reading.Add(rec)
			if err != nil {
				t.Fatalf("%s, record %d: %v", thread, rec.Seq, err)
			}
			line, _ := history.DecodeEntry(rec)
			content, _ := history.DecodeContent(rec)
			if d := cmp.Diff(line, e) + cmp.Diff(content, c); d != "" {
				t.Errorf("%s, record %d (-one record alone +reading):\n%s", thread, rec.Seq, d)
			}
			snap, err := reading.Snapshot(t.Context(), nil)
			if err != nil {
				t.Fatalf("%s, record %d: %v", thread, rec.Seq, err)
			}
			taken = append(taken, snap)
		}
		for _, is := range taken {
			want, err := history.Inspect(t.Context(), st, thread, is.Head)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, is); d != "" {
				t.Errorf("%s at %d (-Inspect +reading):\n%s", thread, is.Head, d)
			}
		}
	}
}
