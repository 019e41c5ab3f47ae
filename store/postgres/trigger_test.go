//go:build unix

package postgres

import (
	"testing"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
)

// A database of schema 6 gets triggers.
func TestExtraTriggersOfOlderSchema(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	if err := journal.Append(t.Context(), s, "a", 0, journal.Record{Kind: journal.KindStart}); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	pgtest.Exec(t, url, "DROP TABLE raddle_tick, raddle_trigger; UPDATE raddle_schema SET version = 6")
	s = openStore(t, url)
	if _, err := s.PutTrigger(t.Context(), journal.Trigger{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.ListTriggers(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("the triggers are %+v (%v)", list, err)
	}
}
