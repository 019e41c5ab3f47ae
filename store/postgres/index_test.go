//go:build unix

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
)

func openStore(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// queryText returns the one text that a statement returns.
func queryText(t *testing.T, s *Store, text string, args ...any) (value string) {
	t.Helper()
	err := s.runRead(t.Context(), func(c *pgx.Conn) error {
		_, err := queryRow(t.Context(), c, text, args, &value)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// countedLines returns how many lines have each status, by counting them.
func countedLines(t *testing.T, s *Store) map[string]int {
	t.Helper()
	list, err := s.ListLines(t.Context(), journal.LineRange{})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i := range list {
		count[list[i].Status]++
	}
	return count
}

// wantCounts compares the counts of a store with its lines.
func wantCounts(t *testing.T, s *Store) {
	t.Helper()
	got, err := s.CountLines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(countedLines(t, s), got); d != "" {
		t.Errorf("counts (-lines +counts):\n%s", d)
	}
}

// Threads of older schemas get lines without a status.
func TestExtraLinesOfOlderSchema(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	long := make([]byte, maxName) // that Postgres cannot compress
	random := rand.New(rand.NewPCG(1, 2))
	for i := range long {
		long[i] = byte(random.Uint32())
	}
	threads := []string{string(long), "b", "a"}
	for _, thread := range threads {
		if err := journal.Append(t.Context(), s, thread, 0, journal.Record{Kind: journal.KindStart}); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.Close()
	pgtest.Exec(t, url, "DROP TABLE raddle_line, raddle_line_count; UPDATE raddle_schema SET version = 3")
	s = openStore(t, url)
	list, err := s.ListLines(t.Context(), journal.LineRange{Statuses: []string{"done"}, Label: "x"})
	if err != nil || len(list) != 3 {
		t.Fatalf("the lines are %+v (%v)", list, err)
	}
	for _, l := range list {
		if d := cmp.Diff(journal.Line{Thread: l.Thread, Order: l.Thread}, l); d != "" || l.Thread == "" {
			t.Error(d)
		}
	}
	wantCounts(t, s)
	if got := countedLines(t, s); got[""] != 3 {
		t.Errorf("the lines are %v", got)
	}
	// What no index can hold is stored without a status.
	for _, l := range []journal.Line{
		{Thread: threads[0], Order: string(long) + "x", Status: "done"},
		{Thread: threads[0], Order: string(long), Status: "done", Label: string(long[:maxLabels])},
		{Thread: threads[0], Order: string(long), Status: "done", Label: string(long[:maxLabels-4])},
	} {
		if err := s.FillLine(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := s.ReadLine(t.Context(), threads[0])
	if !ok || err != nil || got.Status != "done" || len(got.Label) != maxLabels-4 {
		t.Errorf("the line is %+v, %v, %v", got, ok, err)
	}
	wantCounts(t, s)
}

// Many writers start, change, fill and delete threads at the same time. None waits for another in a circle, and the
// counts are those of the lines.
func TestExtraCountsOfConcurrentLines(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := openStore(t, url+"?pool_max_conns=24")
	statuses := []string{"", "done", "failed", "running", "waiting"}
	const deadlocks = "SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()"
	before := queryText(t, s, deadlocks)
	var writers sync.WaitGroup
	for n := range 24 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			own := ""
			for i := range 60 {
				thread := own
				if own == "" || random.IntN(4) == 0 {
					thread = fmt.Sprint("shared", random.IntN(6))
				}
				status := statuses[random.IntN(len(statuses))]
				if err := changeSomething(t.Context(), s, thread, status, random.IntN(8)); err != nil {
					t.Errorf("writer %d: %v", n, err)
					return
				}
				if i%10 == 0 {
					own = fmt.Sprintf("own%d-%d", n, i)
				}
			}
		})
	}
	writers.Wait()
	wantCounts(t, s)
	if after := queryText(t, s, deadlocks); after != before {
		t.Errorf("there were %s deadlocks, before %s", after, before)
	}
}

// A statement that changes two counts waits for the smaller status before it locks the other, in both directions: two
// of them never wait for each other.
func TestExtraCountsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := openStore(t, url+"?pool_max_conns=1") // so that all counts are in one stripe
	other, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.Background()) }()
	put := func(status string, after int64) error {
		line := journal.Line{Thread: "t", Order: "t", Status: status}
		return journal.Append(journal.WithLine(context.Background(), &line), s, "t", after, journal.Record{Kind: journal.KindEffect})
	}
	for after, status := range []string{"running", "done", "running"} { // each has a row of its own from then on
		if err := put(status, int64(after)); err != nil {
			t.Fatal(err)
		}
	}
	for after, status := range []string{"done", "running"} {
		tx, err := other.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const lock = "SELECT FROM raddle_line_count WHERE status = "
		if _, err := tx.Exec(t.Context(), lock+"'done' FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		written := make(chan error, 1)
		go func() { written <- put(status, int64(3+after)) }()
		for waits := false; !waits; {
			const find = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid)"
			if err := tx.QueryRow(t.Context(), find).Scan(&waits); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tx.Exec(t.Context(), lock+"'running' FOR UPDATE NOWAIT"); err != nil {
			t.Errorf("to %s: the other count is locked already: %v", status, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
	wantCounts(t, s)
}

// changeSomething does one thing with a thread that others may change at the same time.
func changeSomething(ctx context.Context, s *Store, thread, status string, what int) error {
	line := journal.Line{Thread: thread, Order: thread, Status: status}
	switch what {
	case 0:
		return s.FillLine(ctx, line)
	case 1:
		return s.Prune(ctx, thread, maxSeq)
	case 2:
		return s.Delete(ctx, thread, "shared0", "shared1", "shared2")
	}
	after := int64(0)
	for rec, err := range s.Read(ctx, thread, journal.Range{Newest: true, Limit: 1, Heads: true}) {
		if err != nil && !strings.Contains(err.Error(), errChanged.Error()) {
			return err
		}
		after = rec.Seq
	}
	err := s.Append(journal.WithLine(ctx, &line), thread, after, []journal.Record{{Kind: journal.KindEffect}})
	if err == journal.ErrConflict {
		return nil
	}
	return err
}

// plan is a node of a plan of the server.
type plan struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Plans    []plan  `json:"Plans"`
}

// linesRead returns how many lines a plan has read, and how it found them.
func (p *plan) linesRead() (n float64, by []string) {
	if p.Relation == "raddle_line" {
		n = (p.Rows + p.Removed) * p.Loops
		by = []string{p.Type + " " + p.Index}
	}
	for i := range p.Plans {
		more, how := p.Plans[i].linesRead()
		n += more
		by = append(by, how...)
	}
	return n, by
}

// A page of a list reads what it shows from an index, however many lines there are: also those of a status and of a label
// that only old ones have.
func TestExtraListsReadLittle(t *testing.T) {
	t.Parallel()
	s := openStore(t, pgtest.NewDatabase(t))
	const fill = `WITH l AS (INSERT INTO raddle_line(name, place, status, label, details)
			SELECT convert_to('t' || i, 'UTF8'), convert_to('o' || lpad((i / 3)::text, 6, '0'), 'UTF8'),
				CASE WHEN i < 50 THEN 'waiting' WHEN i % 4 = 0 THEN '' WHEN i % 3 = 0 THEN 'failed' ELSE 'done' END::bytea,
				CASE WHEN i % 4 = 0 THEN '' WHEN i < 5000 THEN 'x' ELSE 'y' END::bytea, 'details'
			FROM generate_series(1, 20000) i RETURNING status)
		INSERT INTO raddle_line_count SELECT status, 0, count(*) FROM l GROUP BY status`
	exec := func(text string) {
		t.Helper()
		err := s.runWrite(t.Context(), func(ctx context.Context, c *pgx.Conn) error {
			_, err := execStatement(ctx, c, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	exec(fill)
	exec("ANALYZE raddle_line, raddle_line_count") // as the server does by itself when a table has grown
	for _, r := range []journal.LineRange{
		{},
		{Below: "o003000"},
		{Statuses: []string{"done", "failed"}},
		{Statuses: []string{"nosuch"}},
		{Statuses: []string{"waiting"}, Below: "o003000", BelowThread: "t9001"},
		{Label: "x"},
		{Label: "x", Below: "o003000", BelowThread: "t9001"},
		{Label: "y", Statuses: []string{"running", "done"}},
		{Label: "nosuch"},
	} {
		r.Limit = 20
		text, args := selectLines(r)
		var explained []struct{ Plan plan }
		found := queryText(t, s, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+text, args...)
		if err := json.Unmarshal([]byte(found), &explained); err != nil {
			t.Fatal(err)
		}
		p := explained[0].Plan
		n, by := p.linesRead()
		if n > 300 || p.Hit+p.Read > 800 || strings.Contains(strings.Join(by, " "), "Seq Scan") {
			t.Errorf("%+v read %v lines in %d pages by %q:\n%s", r, n, p.Hit+p.Read, by, found)
		}
	}
}
