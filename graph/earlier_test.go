package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// earlierJournals are journals that earlier versions have written, by the name of their file in
// testdata/earlier: one record a line, without checksums.
func earlierJournals(t testing.TB) map[string][]journal.Record {
	files, err := filepath.Glob(filepath.Join("testdata", "earlier", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no journals of earlier versions: %v", err)
	}
	list := map[string][]journal.Record{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		for line := range bytes.Lines(b) {
			var r journal.Record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			list[name] = append(list[name], r)
		}
	}
	return list
}

// describeJournal writes down all that package history shows of a journal, and what RewriteRecord makes of its records.
func describeJournal(t *testing.T, recs []journal.Record) []byte {
	ctx := t.Context()
	st := journal.NewMemory()
	if err := st.Append(ctx, thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	put := func(what string, v any, err error) {
		b, jsonErr := json.Marshal(v)
		if err != nil || jsonErr != nil {
			t.Errorf("%s: %v, %v", what, err, jsonErr)
		}
		fmt.Fprintf(&out, "%s %s\n", what, b)
	}
	for _, r := range recs {
		e, err := history.DecodeEntry(r)
		put(r.Kind.String(), e, err)
		c, err := history.DecodeContent(r)
		put("  content", c, err)
		same, err := journal.RewriteRecord(thread, r, func(b []byte) []byte { return b })
		if err != nil || !bytes.Equal(same.Head, r.Head) || !bytes.Equal(same.Data, r.Data) {
			t.Errorf("record %d (%s) is rewritten as %q %q (%v), without a change", r.Seq, r.Kind, same.Head, same.Data, err)
		}
		long, err := journal.RewriteRecord(thread, r, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("e"), []byte("ee")) })
		put("  rewritten", fmt.Sprintf("%q %q", long.Head, long.Data), err)
	}
	for info, err := range st.Threads(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		i, err := history.Describe(info)
		put("line", i, err)
	}
	s, err := history.Inspect(ctx, st, thread, 0)
	put("state", s, err)
	p, err := history.Parts(ctx, st, thread)
	put("parts", p, err)
	b, err := history.BlameAll(ctx, st, thread)
	put("blame", b, err)
	return out.Bytes()
}

// A journal that an earlier version has written is shown, and rewritten, as that version did.
func TestJournalsOfEarlierVersions(t *testing.T) {
	kinds := map[journal.Kind]bool{}
	for name, recs := range earlierJournals(t) {
		for _, r := range recs {
			kinds[r.Kind] = true
		}
		is := describeJournal(t, recs)
		file := filepath.Join("testdata", "earlier", name+".txt")
		if *update {
			if err := os.WriteFile(file, is, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(is)); d != "" {
			t.Errorf("%s is shown in another way (-want +got):\n%s", name, d)
		}
	}
	for k := journal.KindStart; k.IsKnown(); k++ {
		if !kinds[k] {
			t.Errorf("no journal has a record of the kind %s", k)
		}
	}
}
