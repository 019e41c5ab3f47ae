//go:build unix

package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/process/app"
	"raddle.dev/server"
)

// A narrowListener gives its connections small buffers, so that a client that does not read is noticed soon.
type narrowListener struct{ net.Listener }

func (l narrowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(4 << 10)
	}
	return c, err
}

// heapAfterGC returns how much memory is used after what can be freed was freed, in bytes.
func heapAfterGC() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A thousand clients over HTTP do not read the events of a run: what waits for them needs little memory, the run does not wait, and
// when too much waits all are dropped, with everything that they held.
func TestThousandSlowClients(t *testing.T) {
	const (
		clients = 1000
		piece   = 2 << 10
		waits   = 3 << 20 // is less than a subscriber may let wait
		most    = 9 << 20
		allowed = 150 << 20 // for all clients
	)
	writeTimeout = 2 * time.Second
	defer func() { writeTimeout = 30 * time.Second }()
	first, rest, written := make(chan struct{}), make(chan struct{}), make(chan struct{})
	model := startLongModel(most, waits, piece, first, rest, written)
	defer model.Close()
	dir := t.TempDir()
	settings := filepath.Join(dir, "home", ".config", "raddle")
	for path, text := range map[string]string{
		"config.yaml":            "model: slow:m\nclients:\n- {type: openai-compatible, name: slow, api_base: " + model.URL + "/v1, models: [{name: m}]}\n",
		"agents/long/graph.yaml": "name: long\nstart: write\nnodes:\n  write: {type: llm, prompt: p, state_updates: {text: '{{output}}'}, next: done}\n  done: {type: end, output: written}\n",
	} {
		path = filepath.Join(settings, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := app.Open(app.Options{Work: dir, Environ: []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "NO_PROXY=*"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	s, err := server.New(p, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	web := httptest.NewUnstartedServer(NewHandler(s))
	web.Listener = narrowListener{web.Listener}
	web.Start()
	defer web.Close()
	run, err := s.StartRun(t.Context(), server.StartRequest{Agent: "long", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	goroutines, heap := runtime.NumGoroutine(), heapAfterGC()
	narrow := net.Dialer{Timeout: 10 * time.Second}
	for range clients {
		c, err := narrow.DialContext(t.Context(), "tcp", web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := fmt.Fprintf(c, "GET %s/runs/%s/events HTTP/1.1\r\nHost: x\r\n\r\n", prefix, run); err != nil {
			t.Fatal(err)
		}
		if !readUntil(c, "hello") { // it gets what is live now, and reads no more
			t.Fatal("a client does not see the beginning of the reply")
		}
	}
	close(first)
	<-written
	awaitState(t, s, run, waits/piece)
	if held := heapAfterGC() - heap; held > allowed {
		t.Errorf("%d clients that do not read hold %d MiB, allowed are %d", clients, held>>20, allowed>>20)
	} else {
		t.Logf("%d clients hold %.1f MiB", clients, float64(held)/(1<<20))
	}
	close(rest)
	if st, err := s.WaitRun(t.Context(), run); err != nil || st.Output != "written" {
		t.Fatalf("%+v, %v", st, err)
	}
	model.CloseClientConnections()
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > goroutines+20; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
	if left := heapAfterGC() - heap; left > 40<<20 {
		t.Errorf("%d MiB are left", left>>20)
	}
}

// startLongModel starts a model whose reply has a size, in pieces: it says hello, waits for first, and at another size closes written and waits for rest.
func startLongModel(most, waits, piece int, first, rest, written chan struct{}) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n")
		w.(http.Flusher).Flush()
		for sent := 0; sent < most; sent += piece {
			wait := map[int]chan struct{}{0: first, waits: rest}[sent]
			if sent == waits {
				close(written)
			}
			if wait != nil {
				select {
				case <-wait:
				case <-r.Context().Done():
					return
				}
			}
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", strings.Repeat("x", piece))
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
	}))
}

// readUntil reads until a word comes, and reports whether it has come.
func readUntil(r io.Reader, word string) bool {
	var text []byte
	part := make([]byte, 1<<10)
	for !bytes.Contains(text, []byte(word)) {
		n, err := r.Read(part)
		if text = append(text, part[:n]...); err != nil {
			return false
		}
	}
	return true
}

// awaitState waits until a subscriber of a run has seen a number of pieces of text: all subscribers have them then.
func awaitState(t *testing.T, s *server.Service, run string, pieces int) {
	t.Helper()
	sub, err := s.Subscribe(t.Context(), run, server.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for ev, err := range sub.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.ID == "" { // the text so far comes as one piece
			if seen += strings.Count(string(ev.Line), strings.Repeat("x", 2<<10)); seen >= pieces {
				return
			}
		}
	}
	t.Fatalf("the run ended after %d pieces", seen)
}
