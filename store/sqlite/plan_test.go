package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// TestQueryPlans: no statement looks at more rows than it needs.
func TestQueryPlans(t *testing.T) {
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	if graph.KindFork != 12 || graph.KindSnapshot != 14 {
		t.Fatal("the index is for other kinds")
	}
	for range s.Read(t.Context(), "a", graph.Range{FromSnapshot: true}) {
		t.Fatal("the store is empty")
	}
	if err := s.Append(t.Context(), "a", 0, append(one(), one()...)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []graph.Range{{}, {Newest: true, Heads: true}} {
		for _, err := range s.Read(t.Context(), "a", r) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for range s.Threads(t.Context(), "") {
		break
	}
	texts := []string{buildInsert(1), buildInsert(3)}
	for text := range s.read.byText {
		texts = append(texts, text)
	}
	if len(texts) != 7 {
		t.Errorf("%d statements, want 7", len(texts))
	}
	for _, text := range texts {
		plan := explain(t, s, text)
		for _, bad := range []string{"SCAN record", "SCAN r", "SCAN f", "SCAN l", "SCAN p", "SCAN t", "TEMP B-TREE"} {
			if strings.Contains(plan, bad) {
				t.Errorf("%s\nhas the plan\n%s", text, plan)
				break
			}
		}
		if strings.Contains(text, "kind IN") && !strings.Contains(plan, "INDEX base") {
			t.Errorf("%s\ndoes not use the index of snapshots:\n%s", text, plan)
		}
	}
}

func explain(t *testing.T, s *Store, text string) (plan string) {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	if strings.Contains(text, "?1") {
		args = make([]any, 14)
	}
	rows, err := s.db.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan += detail + "\n"
	}
	return plan
}
