//go:build unix

package postgres_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
)

// A thread that has lost records is still listed, and reading it says what is lost. The other threads can be read.
func TestExtraLostRecords(t *testing.T) {
	for _, test := range []struct {
		lost        string // condition
		first, last int64  // that are listed; 0: the record is lost
		seq         int64  // that is said to be lost
	}{
		{"true", 0, 0, 1},
		{"seq = 1", 0, 300, 1},
		{"seq = 7", 1, 300, 7},
		{"seq = 290", 1, 300, 290},
		{"seq = 300", 1, 0, 300},
	} {
		t.Run(test.lost, func(t *testing.T) {
			url := pgtest.NewDatabase(t)
			s := open(t, url)
			for _, thread := range []string{"a", "b", "c"} {
				if err := journal.Append(t.Context(), s, thread, 0, make([]journal.Record, 300)...); err != nil {
					t.Fatal(err)
				}
			}
			c, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close(t.Context()) }()
			if _, err := c.Exec(t.Context(), "DELETE FROM raddle_record WHERE thread = (SELECT id FROM raddle_thread WHERE name = 'b') AND "+test.lost); err != nil {
				t.Fatal(err)
			}
			var names []string
			for info, err := range s.Threads(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, info.Name)
				if info.Name == "b" && (info.First.Seq != test.first || info.Last.Seq != test.last) {
					t.Errorf("the records %d and %d of b are listed, want %d and %d", info.First.Seq, info.Last.Seq, test.first, test.last)
				}
			}
			if !slices.Equal(names, []string{"c", "b", "a"}) {
				t.Errorf("threads %v, want all three", names)
			}
			for _, thread := range names {
				var failed error
				for _, err := range s.Read(t.Context(), thread, journal.Range{}) {
					failed = err
				}
				damaged, is := errors.AsType[*journal.DamagedError](failed)
				if want := thread == "b"; want != is || is && damaged.Seq != test.seq || !want && failed != nil {
					t.Errorf("thread %s: %v", thread, failed)
				}
			}
		})
	}
}
