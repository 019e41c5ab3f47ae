//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/store/postgres"
)

// raceVar names the database for a test binary that is run again as another process.
const raceVar = "RADDLE_POSTGRES_TEST_RACE"

// raced is the number of records for which the processes race.
const raced = 300

func TestMain(m *testing.M) {
	url := os.Getenv(raceVar)
	if url == "" {
		os.Exit(m.Run())
	}
	if err := appendWhereTheHeadIs(url, fmt.Sprint(os.Getpid())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// appendWhereTheHeadIs appends after the newest record until there are enough, and prints the numbers
// of the records that it was allowed to append.
func appendWhereTheHeadIs(url, name string) error {
	ctx := context.Background()
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	for {
		at, err := findHead(ctx, s, "t")
		if err != nil || at >= raced {
			return errors.Join(err, s.Close())
		}
		switch err := s.Append(ctx, "t", at, newRecords(name, at, 1)); {
		case err == nil:
			fmt.Println(at + 1)
		case !errors.Is(err, journal.ErrConflict):
			return err
		}
	}
}

// findHead returns the newest Seq of a thread.
func findHead(ctx context.Context, s journal.Store, thread string) (int64, error) {
	for rec, err := range s.Read(ctx, thread, journal.Range{Newest: true, Limit: 1, Heads: true}) {
		return rec.Seq, err
	}
	return 0, nil
}

// newRecords returns n records, each of which says whose it is and where it belongs.
func newRecords(name string, after int64, n int) []journal.Record {
	l := make([]journal.Record, n)
	for i := range l {
		l[i] = journal.Record{Kind: journal.KindStep, Head: fmt.Appendf(nil, "%s %d", name, after+int64(i)+1), Data: bytes.Repeat([]byte(name), 50)}
	}
	return l
}

// readHeads returns the heads of all records of a thread, and fails if their numbers have a gap.
func readHeads(t *testing.T, s journal.Store, thread string) (heads []string) {
	t.Helper()
	for rec, err := range s.Read(t.Context(), thread, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, string(rec.Head))
		if rec.Seq != int64(len(heads)) {
			t.Fatalf("record %d has number %d", len(heads), rec.Seq)
		}
	}
	return heads
}

// Processes that start at the same time on an empty database create its tables once, and each
// record is acknowledged to exactly one of them.
func TestExtraProcessesRace(t *testing.T) {
	url := pgtest.NewDatabase(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	outs, pids := make([]string, 3), make([]int, 3)
	var wg sync.WaitGroup
	for i := range outs {
		c := exec.CommandContext(t.Context(), exe)
		c.Env = append(os.Environ(), raceVar+"="+url)
		wg.Go(func() {
			var stderr bytes.Buffer
			c.Stderr = &stderr
			out, err := c.Output()
			if err != nil {
				t.Errorf("process %d: %v\n%s", i, err, &stderr)
			}
			outs[i], pids[i] = string(out), c.Process.Pid
		})
	}
	wg.Wait()
	want := make([]string, raced)
	for i, out := range outs {
		t.Logf("process %d has won %d times", i, strings.Count(out, "\n"))
		for line := range strings.Lines(out) {
			var seq int
			if _, err := fmt.Sscan(line, &seq); err != nil || want[seq-1] != "" {
				t.Fatalf("record %q was acknowledged to two processes: %v", line, err)
			}
			want[seq-1] = fmt.Sprintf("%d %d", pids[i], seq)
		}
	}
	if got := readHeads(t, open(t, url), "t"); !slices.Equal(got, want) {
		t.Errorf("the thread does not hold what was acknowledged:\n%q\n%q", got, want)
	}
}
