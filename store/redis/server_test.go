package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/store/redis"
)

// records returns n records of a writer.
func records(writer string, n int) []journal.Record {
	l := make([]journal.Record, n)
	for i := range l {
		l[i] = journal.Record{Kind: journal.KindStep, Head: fmt.Appendf(nil, "%s %d", writer, i), Data: []byte(writer)}
	}
	return l
}

// readHeads returns the heads of a thread's records.
func readHeads(t *testing.T, s *redis.Store, thread string) (heads []string) {
	t.Helper()
	for rec, err := range s.Read(t.Context(), thread, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, string(rec.Head))
	}
	return heads
}

// connect returns a client that sees the keys behind the package's back.
func connect(t *testing.T, url string) *client.Client {
	t.Helper()
	o, err := client.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestExtraTwoClients(t *testing.T) {
	server := redistest.Start(t)
	stores := []*redis.Store{open(t, server.URL), open(t, server.URL)}
	const rounds = 100
	var wins [2]int
	for round := range int64(rounds) {
		var wg sync.WaitGroup
		var errs [2]error
		for i, s := range stores {
			wg.Go(func() { errs[i] = s.Append(t.Context(), "t", round, records(fmt.Sprint("writer ", i), 1)) })
		}
		wg.Wait()
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		if wins[winner]++; errs[winner] != nil || !errors.Is(errs[1-winner], journal.ErrConflict) {
			t.Fatalf("round %d: %v, want one nil and one conflict", round, errs)
		}
	}
	if n := len(readHeads(t, stores[0], "t")); n != rounds {
		t.Errorf("%d records, want %d; wins: %v", n, rounds, wins)
	}
}

// A cutter is between a client and the server, and can lose one request or its reply.
type cutter struct {
	net.Listener
	server string

	mu   sync.Mutex
	word []byte // a request with this text is cut
	then func() // called between the request and its reply; nil: the request is lost too
	cuts int
}

// cut loses the next request that has a word. If then is not nil, the server gets the request, and the reply is lost after then.
func (c *cutter) cut(word string, then func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.word, c.then = []byte(word), then
}

// startCutter starts a cutter, and returns it and the URL that leads through it.
func startCutter(t *testing.T, server *redistest.Server) (*cutter, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, server: strings.TrimSuffix(strings.TrimPrefix(server.URL, "redis://"), "/0")}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.forward(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return c, "redis://" + l.Addr().String()
}

func (c *cutter) forward(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer to.Close()
	replies := make(chan struct{})
	var drop sync.Mutex // held while replies are not passed on
	go func() {
		defer close(replies)
		b := make([]byte, 64<<10)
		for {
			n, err := to.Read(b)
			drop.Lock()
			if err == nil {
				_, err = from.Write(b[:n])
			}
			drop.Unlock()
			if err != nil {
				_ = from.Close()
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			break
		}
		c.mu.Lock()
		hit, then := c.word != nil && bytes.Contains(b[:n], c.word), c.then
		if hit {
			c.word = nil
			c.cuts++
		}
		c.mu.Unlock()
		if !hit {
			if _, err := to.Write(b[:n]); err != nil {
				break
			}
			continue
		}
		drop.Lock() // what is read from now on is never passed on
		if then != nil {
			_, _ = to.Write(b[:n])
			then()
		}
		_ = from.Close()
		drop.Unlock()
		break
	}
	_ = to.Close()
	<-replies
}

func TestExtraLostReplies(t *testing.T) {
	server := redistest.Start(t)
	direct := open(t, server.URL)
	cutter, url := startCutter(t, server)
	s := open(t, url)
	if err := s.Append(t.Context(), "t", 0, records("first", 1)); err != nil {
		t.Fatal(err)
	}
	// await waits until the server has run what was cut off.
	await := func(n int) {
		for end := time.Now().Add(10 * time.Second); len(readHeads(t, direct, "t")) < n && time.Now().Before(end); {
		}
	}
	want := []string{"first 0"}
	expect := func(what string, err error, added ...string) {
		t.Helper()
		want = append(want, added...)
		if got := readHeads(t, direct, "t"); err != nil || strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Fatalf("%s: %v, the journal has %q, want %q", what, err, got, want)
		}
	}

	cutter.cut("lost request", nil)
	err := s.Append(t.Context(), "t", 1, records("lost request", 2))
	expect("a lost request", err, "lost request 0", "lost request 1")

	cutter.cut("lost reply", func() { await(5) })
	err = s.Append(t.Context(), "t", 3, records("lost reply", 2))
	expect("a lost reply", err, "lost reply 0", "lost reply 1")

	// Another process appends before the first one tries again: its records stay, and so does the success.
	others := make(chan error, 1)
	cutter.cut("behind", func() {
		await(6)
		others <- direct.Append(t.Context(), "t", 6, records("other", 1))
	})
	err = s.Append(t.Context(), "t", 5, records("behind", 1))
	expect("a lost reply, and records behind", errors.Join(err, <-others), "behind 0", "other 0")

	// Another process is first: the same bytes under another mark are a conflict.
	cutter.cut("beaten", nil)
	if err := direct.Append(t.Context(), "t", 7, records("beaten", 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "t", 7, records("beaten", 1)); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("a lost request of the second: %v, want a conflict", err)
	}
	cutter.mu.Lock()
	defer cutter.mu.Unlock()
	if cutter.cuts != 4 {
		t.Errorf("%d requests were cut, want 4", cutter.cuts)
	}
}

// The server stays away and the context ends: the error says that the effect is not known.
func TestExtraUnknownEffect(t *testing.T) {
	server := redistest.Start(t)
	cutter, url := startCutter(t, server)
	s := open(t, url)
	if err := s.Append(t.Context(), "t", 0, records("first", 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cutter.cut("second", func() {
		_ = cutter.Close()
		server.Kill()
		cancel()
	})
	err := s.Append(ctx, "t", 1, records("second", 1))
	if err == nil || !strings.Contains(err.Error(), "it is not known whether the server has done it") || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// appendUntilKilled appends until an error, and returns how many records were acknowledged.
func appendUntilKilled(s *redis.Store, kill func()) (acked int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		if err := s.Append(ctx, "t", acked, records(fmt.Sprint(acked), 3)); err != nil {
			return acked
		}
		if acked += 3; acked == 300 {
			go func() {
				kill()
				cancel()
			}()
		}
	}
}

func TestExtraKilledServer(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "always")
	s := open(t, server.URL)
	acked := appendUntilKilled(s, server.Kill)
	server.Restart(t)
	heads := readHeads(t, s, "t")
	if n := int64(len(heads)); n < acked || n%3 != 0 {
		t.Fatalf("%d records after the restart, %d were acknowledged, in batches of 3", n, acked)
	}
	for i, head := range heads {
		if want := fmt.Sprintf("%d %d", i/3*3, i%3); head != want {
			t.Fatalf("record %d is %q, want %q", i+1, head, want)
		}
	}
	if infos := listThreads(t, s); len(infos) != 1 || infos[0].Head != int64(len(heads)) {
		t.Errorf("the listing has %+v", infos)
	}
	if err := s.Append(t.Context(), "t", int64(len(heads)), records("after", 1)); err != nil {
		t.Error(err)
	}
}

func listThreads(t *testing.T, s *redis.Store) (l []journal.ThreadInfo) {
	t.Helper()
	for info, err := range s.Threads(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, info)
	}
	return l
}

// A run continues while the server is killed and started again, at once or after a time that is longer than the patience of
// the store: the step that works meanwhile waits for it.
func TestExtraRunOverARestart(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "always")
	s := open(t, server.URL)
	for _, away := range []time.Duration{0, 6 * time.Second, 12 * time.Second} {
		back := make(chan struct{})
		r := &graph.Runner{Graph: countTo(t, 20, func(n int) {
			if n == 10 {
				server.Kill()
				time.AfterFunc(away, func() { defer close(back); server.Restart(t) })
			}
		}), Store: s}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: fmt.Sprint("t", away)})
		<-back
		if err != nil || res.Status != graph.Done || count.Get(res.State) != 20 {
			t.Fatalf("%v with %d steps: %v", res.Status, count.Get(res.State), err)
		}
	}
}

var count = graph.Sum[int]("count")

// countTo returns a graph of one node that adds 1 until it has n.
func countTo(t testing.TB, n int, before func(n int)) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(graph.Def{
		Name: "count", Keys: []graph.AnyKey{count}, Start: []string{"add"},
		Nodes: []graph.Node{{Name: "add", Routes: []string{"add", graph.End}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if before != nil {
				before(count.Get(s))
			}
			u := graph.Put(count.Set(1))
			u.Goto = []string{"add"}
			if count.Get(s) == n-1 {
				u.Goto = []string{graph.End}
			}
			return u, nil
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestExtraRefusedServers(t *testing.T) {
	const password = "hunter2-%2F-secret"
	const plain = "hunter2-/-secret"
	server := redistest.Start(t, "--requirepass", plain)
	url := server.WithPassword("", password)
	c := connect(t, url)
	configure := func(name, value string) {
		t.Helper()
		if err := c.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refuse := func(url, want string) {
		t.Helper()
		s, err := redis.Open(url)
		if err == nil {
			_ = s.Close()
			t.Errorf("opened, want an error with %q", want)
			return
		}
		text := err.Error()
		if !strings.Contains(text, want) || strings.Contains(text, "hunter2") || strings.Contains(text, "\n") {
			t.Errorf("%s\nwant %q, and no password", text, want)
		}
	}
	refuse(server.URL, "asks for a password")
	refuse(server.WithPassword("", "wrong-hunter2"), "does not accept the user or the password")
	open(t, url)

	configure("maxmemory-policy", "allkeys-lru")
	open(t, url) // without a limit of memory, nothing is removed
	configure("maxmemory", "100mb")
	for _, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-ttl"} {
		configure("maxmemory-policy", policy)
		refuse(url, "(maxmemory-policy "+policy+"): set maxmemory-policy noeviction")
	}
	// A user who may not ask for the configuration.
	users := map[string]string{"plain": "-config", "blind": "-@dangerous"}
	for name, rule := range users {
		if err := c.Do(t.Context(), "ACL", "SETUSER", name, "on", ">"+plain, "~{raddle}:*", "+@all", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refuse(server.WithPassword("plain", password), "set maxmemory-policy noeviction")
	configure("maxmemory-policy", "noeviction")
	open(t, server.WithPassword("plain", password))
	refuse(server.WithPassword("blind", password), "allow the user CONFIG GET or INFO")

	for value, want := range map[string]string{"4": "a newer version has written this database (format 4", "x": "belongs to another program"} {
		if err := c.Set(t.Context(), "{raddle}:format", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		refuse(url, want)
	}
}

// A newer version may begin to use a database that is open.
func TestExtraNewerFormatMeanwhile(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, server.URL), connect(t, server.URL)
	if err := c.Set(t.Context(), "{raddle}:format", "4", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "t", 0, records("t", 1)); err == nil || !strings.Contains(err.Error(), "update raddle") {
		t.Errorf("%v", err)
	}
	if n := len(listThreads(t, s)); n > 0 {
		t.Errorf("%d threads, want none", n)
	}
}

// A server whose memory is full refuses appends as a whole, and lets runs be removed.
func TestExtraFullServer(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, server.URL), connect(t, server.URL)
	for _, thread := range []string{"a", "b"} {
		if err := s.Append(t.Context(), thread, 0, records("first", 4)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.ConfigSet(t.Context(), "maxmemory", "1mb").Err(); err != nil {
		t.Fatal(err)
	}
	err := s.Append(t.Context(), "a", 4, records("second", 50))
	if err == nil || !strings.Contains(err.Error(), "memory is full (maxmemory) and nothing was written") {
		t.Errorf("%v", err)
	}
	if n := len(readHeads(t, s, "a")); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
	if err := errors.Join(s.Prune(t.Context(), "a", 3), s.Delete(t.Context(), "b", "unknown")); err != nil {
		t.Error(err)
	}
	if l := listThreads(t, s); len(l) != 1 || l[0].First.Seq != 3 {
		t.Errorf("%+v", l)
	}
}

// Prune frees the memory of what it hides, in several batches, and a deletion leaves no key.
func TestExtraPruneFrees(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, server.URL), connect(t, server.URL)
	const n, kept = 5000, 10
	if err := s.Append(t.Context(), "t", 0, records("t", n)); err != nil {
		t.Fatal(err)
	}
	if err := s.Prune(t.Context(), "t", n-kept+1); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"{raddle}:h:t", "{raddle}:d:t"} {
		if got := c.LLen(t.Context(), key).Val(); got != kept {
			t.Errorf("%s has %d elements, want %d", key, got, kept)
		}
	}
	if err := s.Delete(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if keys := c.Keys(t.Context(), "*").Val(); len(keys) != 2 { // the format and the newest id
		t.Errorf("the keys %q are left", keys)
	}
}

// Keys that another program has removed are an error, not a gap.
func TestExtraDamage(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, server.URL), connect(t, server.URL)
	if err := s.Append(t.Context(), "t", 0, records("t", 5)); err != nil {
		t.Fatal(err)
	}
	if err := c.LTrim(t.Context(), "{raddle}:d:t", 0, 2).Err(); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Read(t.Context(), "t", journal.Range{}) {
		if err == nil || !strings.Contains(err.Error(), "another program has changed keys") {
			t.Errorf("%v", err)
		}
	}
}

// A server that is not Redis, or has gone, does not show the password either.
func TestPasswordStaysOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			for n, err := conn.Read(b); err == nil; n, err = conn.Read(b) {
				for part := range strings.SplitSeq(string(b[1:n]), "\r\n*") { // a server that does not know a command repeats its arguments
					_, _ = io.WriteString(conn, "-ERR unknown command with args beginning with: "+strings.ReplaceAll(part, "\r\n", " ")+"\r\n")
				}
			}
			_ = conn.Close()
		}
	}()
	address := l.Addr().String()
	for range 2 { // the second time, the port is closed
		_, err := redis.Open("redis://ann:hunter2@" + address)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "redis: open: redis://"+address+"/0: ") {
			t.Errorf("%v", err)
		}
		t.Log(err)
		_ = l.Close()
		<-done
	}
}

func TestAddress(t *testing.T) {
	for url, want := range map[string]string{
		"redis://localhost":                   "redis://localhost:6379/0",
		"rediss://ann:hunter2@db.example:7/3": "rediss://db.example:7/3",
		"redis://:hunter2@[::1]/":             "redis://[::1]:6379/0",
		"redis:x":                             "not the URL of a Redis server",
		"redis://":                            "not the URL of a Redis server",
		"redis://:hunter2@h:x":                "not the URL of a Redis server",
		"redis://:hun/ter2@h":                 "not the URL of a Redis server",
		"http://h":                            "not the URL of a Redis server",
		"redis://hunter2@h":                   "a user without a password",
		"redis://:hunter2@h/x":                "the number of a database",
		"redis://:hunter2@h/-1":               "the number of a database",
		"redis://h?password=hunter2":          "no options",
		"redis://h#hunter2":                   "no options",
	} {
		got, err := redis.Address(url)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || err == nil && got != want || strings.Contains(got, "hunter2") || strings.Contains(got, "ter2") {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
