package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/server"
)

// A pipeListener gives a server connections that a test makes: with them, the clock of a bubble decides about time limits.
type pipeListener struct {
	conns chan net.Conn
	over  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.over); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7777} }

// dial returns a new connection to the server, and a reader of what it answers.
func (l *pipeListener) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	client, own := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	l.conns <- own
	return client, bufio.NewReader(client)
}

// serveInBubble serves a gateway over pipes. The test must be in a bubble of synctest.
func serveInBubble(t *testing.T, o Settings) (*Gateway, *pipeListener) {
	t.Helper()
	o.Listen, o.State, o.Token = "127.0.0.1:0", t.TempDir(), strings.Repeat("t", 32)
	g, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	_ = g.listener.Close()
	g.hosts = append(g.hosts, "raddle")
	l := &pipeListener{make(chan net.Conn), make(chan struct{})}
	for _, path := range []string{"/api/", "/v1/", "/a2a/", "/agui/", "/mcp"} {
		g.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			writeText(w, http.StatusOK, fmt.Sprint(len(text), err))
		}))
	}
	g.Handle("/stream", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeText(w, http.StatusOK, "begin\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Hour):
			_, _ = io.WriteString(w, "end\n")
		}
	}))
	g.AllowBody("/api/v1/runs", 1<<20+maxBody)
	web := g.newServer()
	served := make(chan error, 1)
	go func() { served <- g.accept(web, l) }()
	t.Cleanup(func() {
		_ = web.Close()
		<-served
	})
	return g, l
}

// writeHead writes the head of a request whose body has a length.
func writeHead(t *testing.T, c net.Conn, method, path string, length int, headers ...string) {
	t.Helper()
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: raddle\r\nOrigin: %s\r\nContent-Length: %d\r\n", method, path, "http://raddle", length)
	for _, h := range headers {
		head += h + "\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		t.Fatal(err)
	}
}

// A body that comes slowly ends in a bounded time, at every address, with and without a token, the one who reads it. The connection is closed.
func TestSlowBodies(t *testing.T) {
	token := "Authorization: Bearer " + strings.Repeat("t", 32)
	for _, path := range []string{"/login", "/logout", "/healthz", "/session", "/metrics", "/nothing", "/api/v1/runs", "/api/v1/runs/x/answers", "/v1/chat/completions", "/a2a/x", "/agui/x", "/mcp"} {
		for _, with := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", path[1:], with), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g, l := serveInBubble(t, Settings{})
					g.origins, g.pages = append(g.origins, "http://raddle"), append(g.pages, "http://raddle")
					c, answer := l.dial(t)
					headers, within := []string(nil), openBodyTime
					if with {
						headers, within = []string{token}, largeBodyTime
					}
					began := time.Now()
					writeHead(t, c, "POST", path, 100, headers...)
					var sender sync.WaitGroup
					defer sender.Wait()
					defer func() { _ = c.Close() }()
					sender.Go(func() { // a byte now and then, for ever
						for {
							if _, err := c.Write([]byte(" ")); err != nil {
								return
							}
							time.Sleep(10 * time.Second)
						}
					})
					res, err := http.ReadResponse(answer, nil)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > within+time.Second {
						t.Errorf("the answer came after %s", took)
					}
					reads := with && path != "/nothing" && path != "/metrics" && path != "/session"
					if reads && path != "/healthz" && res.StatusCode != http.StatusRequestTimeout {
						t.Errorf("%s", res.Status)
					}
					if _, err := io.Copy(io.Discard, answer); err != nil {
						t.Error(err)
					}
					if took := time.Since(began); took > within+time.Minute {
						t.Errorf("the connection was closed after %s", took)
					}
				})
			})
		}
	}
}

// A stream continues for longer than any body may take, also after a request with a body.
func TestStreamsOutliveTheTimesOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := serveInBubble(t, Settings{})
		g.origins = append(g.origins, "http://raddle")
		c, answer := l.dial(t)
		writeHead(t, c, "POST", "/stream", 2, "Authorization: Bearer "+g.first)
		go func() { _, _ = io.WriteString(c, "{}") }()
		res, err := http.ReadResponse(answer, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(res.Body); err != nil || string(text) != "begin\nend\n" {
			t.Errorf("%q %v", text, err)
		}
	})
}

// A client that does not read its answer is gone after a time, also if nothing knows its sender.
func TestUnreadAnswersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := serveInBubble(t, Settings{})
		over := make(chan error, 1)
		g.HandleOpen("GET /large", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			over <- err
		}))
		c, answer := l.dial(t)
		began := time.Now()
		if _, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: raddle\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		for range 3 { // a slow reader that continues is served
			time.Sleep(writeTime / 2)
			if _, err := io.CopyN(io.Discard, answer, writePiece); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-over; err == nil || time.Since(began) > 3*writeTime {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// Sizes are checked before a body is read, and the structure of JSON before it is decoded.
func TestLargeBodies(t *testing.T) {
	g := open(t, Settings{State: t.TempDir()})
	g.AllowBody("/large", 2*maxBody)
	token := "Authorization: Bearer " + g.first
	for _, path := range []string{"POST /large", "POST /small"} {
		g.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writeText(w, http.StatusOK, "read") }))
	}
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"as large as others":          {"/small", strings.Repeat(" ", maxBody), 200},
		"larger":                      {"/small", strings.Repeat(" ", maxBody+1), 413},
		"large, where it may be":      {"/large", strings.Repeat(" ", 2*maxBody), 200},
		"too large there":             {"/large", strings.Repeat(" ", 2*maxBody+1), 413},
		"deep":                        {"/small", strings.Repeat("[", maxDepth+1), 413},
		"deep objects":                {"/large", strings.Repeat(`{"a":`, maxDepth+1), 413},
		"deep, but allowed":           {"/small", strings.Repeat("[", maxDepth), 200},
		"many items":                  {"/small", "[" + strings.Repeat("1,", maxItems) + "1]", 413},
		"many files":                  {"/large", `{"files":[` + strings.Repeat(`{"name":"a"},`, maxItems/2) + `{}]}`, 413},
		"many brackets that are text": {"/small", `["` + strings.Repeat(`[,\"`, maxItems) + `"]`, 200},
	} {
		res, text := send(t, g, "POST", c.path, c.body, token)
		if res.StatusCode != c.status || c.status == 413 && !strings.Contains(text, `"too-large"`) {
			t.Errorf("%s: %s %s", name, res.Status, text)
		}
	}
	c, err := net.Dial("tcp", g.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprintf(c, "POST /small HTTP/1.1\r\nHost: %s\r\n%s\r\nContent-Length: 1000000000000\r\n\r\n", g.listener.Addr(), token); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil) // nothing of the body was sent
	if err != nil || res.StatusCode != 413 {
		t.Fatal(res, err)
	}
}

// Connections that have shown no token make room for new ones, those that wait longest first; others do not, unless they only wait for a request.
func TestConnectionsMakeRoom(t *testing.T) {
	s := newConnectionSet(80) // 40 connections, 10 of strangers
	dial := func() (*connection, net.Conn) {
		client, own := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		return s.add(own), client
	}
	isOpen := func(c *connection) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, ok := s.open[c]
		return ok
	}
	var known []*connection
	for range 5 {
		c, _ := dial()
		s.mu.Lock()
		s.trust(c)
		s.mu.Unlock()
		known = append(known, c)
	}
	var strangers []*connection
	for i := range 1100 {
		c, _ := dial()
		if c == nil {
			t.Fatalf("connection %d has no place", i)
		}
		strangers = append(strangers, c)
		if s.unknown.Len() > 10 || len(s.open) > 15 {
			t.Fatalf("%d of %d connections are of strangers", s.unknown.Len(), len(s.open))
		}
	}
	for i, c := range strangers {
		if open := isOpen(c); open != (i >= 1090) {
			t.Fatalf("stranger %d is open: %v", i, open)
		}
	}
	for i := range 30 { // known ones fill all places
		c, _ := dial()
		s.mu.Lock()
		s.trust(c)
		s.mu.Unlock()
		if known = append(known, c); len(s.open) > 40 {
			t.Fatalf("%d connections after %d", len(s.open), i)
		}
	}
	for s.unknown.Len() > 0 {
		c, _ := dial()
		s.mu.Lock()
		s.trust(c)
		s.mu.Unlock()
	}
	if c, _ := dial(); c != nil {
		t.Error("a connection has a place although all others work for somebody")
	}
	s.noteState(known[7], http.StateIdle)
	s.noteState(known[3], http.StateIdle)
	s.noteState(known[7], http.StateActive)
	if c, _ := dial(); c == nil || isOpen(known[3]) || !isOpen(known[7]) {
		t.Error("the connection that waits for a request makes no room")
	}
	for c := range s.open {
		_ = c.Close()
	}
	if len(s.open)+s.unknown.Len()+s.idle.Len() > 0 {
		t.Errorf("closed connections have places: %d %d %d", len(s.open), s.unknown.Len(), s.idle.Len())
	}
}

// Each token has its own quotas: one that is used up keeps no other from being served, and is free again after a time.
func TestQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newQuotaSet(TokenLimits{Requests: 5, Starts: 2, Streams: 3}, 100)
		var leave []func()
		enter := func(token string) string {
			l, err := s.enter(token)
			if err != nil {
				return err.(*server.QuotaError).Code
			}
			leave = append(leave, l)
			return ""
		}
		for i, want := range []string{"", "", "", "too-many-streams", "too-many-streams", "too-many-requests"} {
			if got := enter("a"); got != want {
				t.Errorf("request %d: %q, want %q", i, got, want)
			}
		}
		if got := enter("b"); got != "" {
			t.Errorf("another token: %q", got)
		}
		leave[0]()
		_, err := s.enter("a")
		wait := err.(*server.QuotaError).RetryAfter
		if wait < time.Second || wait > 12*time.Second {
			t.Errorf("try again after %s", wait)
		}
		time.Sleep(wait)
		if got := enter("a"); got != "" {
			t.Errorf("after %s: %q", wait, got)
		}
		for i, want := range []bool{true, true, false} {
			if err := s.takeStart("a"); (err == nil) != want {
				t.Errorf("start %d: %v", i, err)
			}
		}
		if err := s.takeStart("b"); err != nil {
			t.Error(err)
		}
	})
}
