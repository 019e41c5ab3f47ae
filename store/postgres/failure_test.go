//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/memory"
	"raddle.dev/store/postgres"
)

// expectError checks that an error says all of the words and not the password.
func expectError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), pgtest.Password) || strings.Contains(e.Error(), "wr0ng") {
			t.Errorf("the error has the password: %q", e)
		}
	}
}

// setDefault changes a setting for all later sessions of a database.
func setDefault(t *testing.T, url, setting string) {
	t.Helper()
	pgtest.Exec(t, url, "ALTER DATABASE "+url[strings.LastIndex(url, "/")+1:]+" SET "+setting)
}

func TestExtraOpenFails(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	url := pgtest.NewDatabase(t)
	newer, foreign, standby := pgtest.NewDatabase(t), pgtest.NewDatabase(t), pgtest.NewDatabase(t)
	if err := open(t, newer).Close(); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, newer, "UPDATE raddle_schema SET version = 99")
	pgtest.Exec(t, foreign, "CREATE TABLE raddle_schema (colour text)")
	setDefault(t, standby, "default_transaction_read_only = on")
	for name, c := range map[string]struct {
		url   string
		words []string
	}{
		"newer schema":   {newer, []string{"a newer version of raddle has written this database (schema 99, this one knows 7)", "update raddle"}},
		"foreign table":  {foreign, []string{"version"}},
		"read only":      {standby, []string{"name the primary server"}},
		"wrong password": {strings.Replace(url, pgtest.Password, "wr0ng", 1), []string{"refuses the user or the password", "PGPASSWORD"}},
		"no database":    {url + "none", []string{"the database does not exist", "createdb"}},
		"no server":      {"postgres://u:wr0ng@127.0.0.1:1/d", []string{"d at 127.0.0.1:1", "cannot be reached", "check that it runs"}},
		"no socket":      {"postgres://u:wr0ng@/d?host=/none", []string{"d in /none", "cannot be reached"}},
		"no URL":         {"postgres://u:wr0ng/x@h/d", []string{"the URL cannot be read", "%2F"}},
		"bad parameter":  {"postgres://u:wr0ng@h/d?sslmode=x", []string{"the URL cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := postgres.Open(t.Context(), c.url)
			if err == nil {
				_ = s.Close()
			}
			expectError(t, err, c.words...)
		})
	}
	s := open(t, url)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	expectError(t, s.Append(t.Context(), "t", 0, newRecords("a", 0, 1)), "the store is closed")
	expectError(t, open(t, url).Append(t.Context(), strings.Repeat("t", 2001), 0, newRecords("a", 0, 1)), "at most 2000 bytes")
}

// chain returns a graph of three nodes with one effect each, and how often each was made. before is called in the second node.
func chain(t *testing.T, before func()) (*graph.Graph, map[string]int) {
	t.Helper()
	ran := map[string]int{}
	add := func(name string, before func()) graph.Node {
		return graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			before()
			_, err := graph.Do(ctx, name, func(context.Context) (string, error) { ran[name]++; return name, nil })
			return graph.Update{}, err
		}}
	}
	g, err := graph.Compile(graph.Def{
		Name: "three", Start: []string{"a"},
		Nodes: []graph.Node{add("a", func() {}), add("b", before), add("c", func() {})},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{"b"}}, {From: []string{"b"}, To: []string{"c"}}, {From: []string{"c"}, To: []string{graph.End}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, ran
}

// If the server is killed while a run works, and is back after six seconds, the run continues by itself, and repeats nothing.
// Cancelled meanwhile, it ends with an error that says what to do.
func TestExtraServerKilled(t *testing.T) {
	server := pgtest.Start(t)
	s := open(t, server.NewDatabase(t))
	g, ran := chain(t, func() { server.Kill(t) })
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	r := &graph.Runner{Graph: g, Store: s, StoreAway: func(_ string, err error) { told = append(told, fmt.Sprint(err)); cancel() }}
	res, err := r.Invoke(ctx, graph.Input{Thread: "cancelled"})
	expectError(t, err, "postgres: append to thread \"cancelled\"", "the connection to the server broke")
	if len(told) != 1 || !errors.Is(err, journal.ErrUnavailable) {
		t.Errorf("%v: %v: %q", res.Status, err, told)
	}
	_, err = s.ReadLease(t.Context(), "cancelled")
	expectError(t, err, "cannot be reached")
	for name, read := range map[string]func(ctx context.Context) error{
		"ReadLease": func(ctx context.Context) error { _, err := s.ReadLease(ctx, "t"); return err },
		"Read":      func(ctx context.Context) error { return firstError(s.Read(ctx, "t", journal.Range{})) },
		"Threads":   func(ctx context.Context) error { return firstError(s.Threads(ctx, "")) },
		"GetEntry":  func(ctx context.Context) error { _, err := s.GetEntry(ctx, "n", "k"); return err },
	} {
		for _, deadline := range []bool{false, true} {
			want := context.Canceled
			if deadline {
				want = context.DeadlineExceeded
			}
			// It ends in a pause after the first attempt, which takes longer on a busy machine.
			err := endAfter(t, deadline, 20*time.Millisecond, read)
			for more := 40 * time.Millisecond; more < time.Second && !errors.Is(err, journal.ErrUnavailable); more *= 2 {
				err = endAfter(t, deadline, more, read)
			}
			if expectError(t, err, want.Error(), "connect"); !errors.Is(err, want) || !errors.Is(err, journal.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	server.Restart(t)

	clear(ran)
	back := make(chan struct{})
	r = &graph.Runner{Graph: g, Store: s, StoreAway: func(_ string, err error) {
		if err != nil {
			time.AfterFunc(6*time.Second, func() { defer close(back); server.Restart(t) })
		}
	}}
	if res, err = r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil || res.Status != graph.Done {
		t.Fatalf("%v: %v", res.Status, err)
	}
	<-back
	if got := fmt.Sprint(ran); got != "map[a:1 b:1 c:1]" {
		t.Errorf("%s: want each once", got)
	}
}

// endAfter reads with a context that ends after a time, by its deadline or because it is cancelled, and returns the error.
func endAfter(t *testing.T, deadline bool, after time.Duration, read func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(t.Context())
	if deadline {
		ctx, cancel = context.WithTimeout(t.Context(), after)
	} else {
		time.AfterFunc(after, cancel)
	}
	defer cancel()
	return read(ctx)
}

// firstError returns the first error of an iteration.
func firstError[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// cutter is a proxy before the server. Once armed, it drops the next answer of the server, and the connection.
type cutter struct {
	armed atomic.Bool
	cuts  atomic.Int32
}

// startCutter returns the URL of a proxy before the server of a URL.
func startCutter(t *testing.T, address string) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c, target := &cutter{}, u.Host
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, &answers{out, c}); _ = in.Close() }()
		}
	}()
	u.Host = l.Addr().String()
	return c, u.String()
}

// answers is what comes from the server.
type answers struct {
	io.Reader
	c *cutter
}

func (a *answers) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 && a.c.armed.CompareAndSwap(true, false) {
		a.c.cuts.Add(1)
		return 0, io.EOF
	}
	return n, err
}

// A connection that is cut after the server has stored an append, and before it has said so, repeats nothing and loses nothing.
func TestExtraAnswerLost(t *testing.T) {
	c, url := startCutter(t, pgtest.NewDatabase(t))
	s := open(t, url)
	g, ran := chain(t, func() { c.armed.Store(true) })
	for round := range 5 {
		clear(ran)
		res, err := (&graph.Runner{Graph: g, Store: s}).Invoke(t.Context(), graph.Input{Thread: fmt.Sprint("t", round)})
		if err != nil || res.Status != graph.Done || fmt.Sprint(ran) != "map[a:1 b:1 c:1]" || int(c.cuts.Load()) != round+1 {
			t.Fatalf("%v with %v after %d cuts: %v", res.Status, ran, c.cuts.Load(), err)
		}
		if heads := readHeads(t, s, fmt.Sprint("t", round)); int64(len(heads)) != res.Head {
			t.Errorf("%d records, and the head is %d", len(heads), res.Head)
		}
	}
	if err := s.PutEntry(t.Context(), memory.Entry{Namespace: "n", Key: "k", Value: []byte("1")}, 0); err != nil {
		t.Error(err)
	}
	c.armed.Store(true)
	if err := s.DeleteEntry(t.Context(), "n", "k"); err != nil {
		t.Errorf("a deletion whose answer was lost: %v", err)
	}
}

// After a restart of the server the connections of the pool lead nowhere; reads replace them.
func TestExtraServerRestarted(t *testing.T) {
	server := pgtest.Start(t)
	s := open(t, server.NewDatabase(t))
	for round := range int64(3) {
		if err := s.Append(t.Context(), "t", round, newRecords("a", round, 1)); err != nil {
			t.Fatal(err)
		}
		server.Kill(t)
		server.Restart(t)
		if heads := readHeads(t, s, "t"); len(heads) != int(round)+1 {
			t.Fatalf("%d records, want %d", len(heads), round+1)
		}
	}
}

// A database with a stricter isolation level rolls transactions back that come between others: the
// store repeats them, and still exactly one writer wins.
func TestExtraSerializable(t *testing.T) {
	urls := map[string]string{}
	var mu sync.Mutex
	graphtest.TestDurable(t, func(t *testing.T, place string) journal.Store {
		mu.Lock()
		defer mu.Unlock()
		if urls[place] == "" {
			urls[place] = pgtest.NewDatabase(t)
			setDefault(t, urls[place], "default_transaction_isolation = 'serializable'")
		}
		return open(t, urls[place])
	})
}

// countRows returns the numbers of rows with records and of notes about pruned ones.
func countRows(t *testing.T, url string) (records, pruned int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	err = c.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM raddle_record), (SELECT count(*) FROM raddle_pruned)").Scan(&records, &pruned)
	if err != nil {
		t.Fatal(err)
	}
	return records, pruned
}

// Prune deletes the rows of pruned records in batches, and what an earlier process has left.
func TestExtraPruneInBatches(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := open(t, url)
	const n = 3500
	for _, thread := range []string{"a", "b", "c", "d"} {
		if err := s.Append(t.Context(), thread, 0, newRecords(thread, 0, n)); err != nil {
			t.Fatal(err)
		}
	}
	// This is what a process leaves that has pruned b and was killed before it deleted any row.
	pgtest.Exec(t, url, "UPDATE raddle_thread SET first_seq = 3001 WHERE name = 'b'; INSERT INTO raddle_pruned(thread, below) SELECT id, 3001 FROM raddle_thread WHERE name = 'b'")
	if heads, err := countHeads(t.Context(), s, "b"); err != nil || heads != 500 {
		t.Errorf("%d records of b, want 500: %v", heads, err)
	}
	if err := s.Prune(t.Context(), "a", 2501); err != nil {
		t.Fatal(err)
	}
	if records, pruned := countRows(t, url); records != 1000+500+2*n || pruned != 0 {
		t.Errorf("%d rows of records and %d of pruned ones are left", records, pruned)
	}
	if err := s.Delete(t.Context(), "d", "unknown", "c"); err != nil {
		t.Fatal(err)
	}
	if records, pruned := countRows(t, url); records != 1500 || pruned != 0 {
		t.Errorf("%d rows of records and %d of pruned ones are left", records, pruned)
	}
	if heads, err := countHeads(t.Context(), s, "c"); err != nil || heads != 0 {
		t.Errorf("%d records of a deleted thread: %v", heads, err)
	}
}

func countHeads(ctx context.Context, s journal.Store, thread string) (n int, err error) {
	for _, err := range s.Read(ctx, thread, journal.Range{Heads: true}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// A reader whose records are pruned while it reads gets an error and no gap.
func TestExtraPrunedWhileReading(t *testing.T) {
	s := open(t, pgtest.NewDatabase(t))
	if err := s.Append(t.Context(), "t", 0, newRecords("a", 0, 1000)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for rec, err := range s.Read(t.Context(), "t", journal.Range{}) {
		if err != nil {
			expectError(t, err, "pruned or deleted while it was being read")
			if n == 0 {
				t.Error("it has read nothing")
			}
			return
		}
		if n++; rec.Seq != int64(n) {
			t.Fatalf("record %d follows %d", rec.Seq, n-1)
		}
		if n == 10 {
			if err := s.Prune(t.Context(), "t", 900); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Error("no error")
}

// A large value is stored outside of the table's rows, and a page of large values is short.
func TestExtraLargeValues(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := open(t, url)
	data := make([]byte, 300<<10)
	for i := range data { // bytes that cannot be compressed
		data[i] = byte(uint64(i+1) * 0x9E3779B97F4A7C15 >> 56)
	}
	recs := make([]journal.Record, 20)
	for i := range recs {
		recs[i] = journal.Record{Kind: journal.KindStep, Data: data}
	}
	if err := s.Append(t.Context(), "t", 0, recs); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	var main int64
	if err := c.QueryRow(t.Context(), "SELECT pg_relation_size('raddle_record')").Scan(&main); err != nil || main > 16<<10 {
		t.Errorf("the table has %d bytes beside its values: %v", main, err)
	}
	start, n := time.Now(), 0
	for rec, err := range s.Read(t.Context(), "t", journal.Range{}) {
		if err != nil || len(rec.Data) != len(data) {
			t.Fatalf("%d bytes: %v", len(rec.Data), err)
		}
		n++
	}
	if n != len(recs) {
		t.Errorf("%d records, want %d", n, len(recs))
	}
	t.Logf("6 MB read in %v", time.Since(start))
}
