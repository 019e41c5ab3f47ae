package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"raddle.dev/graph/journal"
)

// A thread that has lost records is still listed, and reading it says what is lost. The other threads can be read.
func TestLostRecords(t *testing.T) {
	const n = pageRows + 10
	for _, test := range []struct {
		name  string
		lost  string // condition on the number of a record
		first int64  // that is listed; 0: the thread has no record
		seq   int64  // that is said to be lost; 0: nothing can be said
	}{
		{"all", "true", 0, 0},
		{"one of the first page", "seq = 7", 1, 7},
		{"one of the second page", "seq = " + fmt.Sprint(pageRows+3), 1, pageRows + 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			s := openImpatient(t, path)
			for _, thread := range []string{"a", "b", "c"} {
				if err := journal.Append(t.Context(), s, thread, 0, make([]journal.Record, n)...); err != nil {
					t.Fatal(err)
				}
			}
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			lose := "DELETE FROM record WHERE id IN (SELECT id FROM (SELECT id, id & 0xffffffff AS seq, id >> 32 AS thread FROM record) " +
				"WHERE thread = (SELECT id FROM thread WHERE name = 'b') AND " + test.lost + ")"
			if _, err := db.ExecContext(t.Context(), lose); err != nil {
				t.Fatal(err)
			}
			var names []string
			for info, err := range s.Threads(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, info.Name)
				if info.Name == "b" && info.First.Seq != test.first {
					t.Errorf("the first record of b is %d, want %d", info.First.Seq, test.first)
				}
			}
			if !slices.Equal(names, []string{"c", "b", "a"}) {
				t.Errorf("threads %v, want all three", names)
			}
			for _, thread := range names {
				for _, newest := range []bool{false, true} {
					var failed error
					for _, err := range s.Read(t.Context(), thread, journal.Range{Newest: newest}) {
						failed = err
					}
					damaged, is := errors.AsType[*journal.DamagedError](failed)
					switch {
					case thread != "b" || test.seq == 0:
						if failed != nil {
							t.Errorf("thread %s, newest first %v: %v", thread, newest, failed)
						}
					case !is || damaged.Seq != test.seq || damaged.Thread != "b":
						t.Errorf("newest first %v: %v, want a DamagedError of record %d", newest, failed, test.seq)
					}
				}
			}
		})
	}
}
