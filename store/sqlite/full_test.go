package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// TestFullDisk: what does not fit leaves nothing behind, and afterwards all works.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	limit := func(pages int) {
		t.Helper()
		if _, err := s.w.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count=%d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(t.Context(), "a", 0, one()); err != nil {
		t.Fatal(err)
	}
	limit(20)
	big := graph.Record{Kind: graph.KindStep, Data: make([]byte, 200_000)}
	for _, batch := range [][]graph.Record{{big}, append(one(), big), append(make([]graph.Record, 100), big)} {
		for thread, after := range map[string]int64{"a": 1, "b": 0} {
			err := s.Append(t.Context(), thread, after, batch)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "the disk is full and nothing was written: free some space and try again") {
				t.Errorf("%d records to %q: %v", len(batch), thread, err)
			}
		}
	}
	limit(1 << 30)
	if err := s.Append(t.Context(), "a", 1, []graph.Record{big}); err != nil {
		t.Error(err)
	}
	var heads []string
	for info, err := range s.Threads(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, fmt.Sprint(info.Name, info.Head))
	}
	if got := strings.Join(heads, " "); got != "a2" {
		t.Errorf("the store has %s, want a2", got)
	}
}
