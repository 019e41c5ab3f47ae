package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/llm"
	"raddle.dev/llm/openai"
)

// faultyServer speaks the wire of chat completions over connections in memory, so that
// time in a test is not the machine's. It answers each request with the next answer
// of a list, the last one again and again, and refuses what strict providers refuse.
type faultyServer struct {
	t       testing.TB
	answers []http.HandlerFunc

	mu       sync.Mutex
	requests int
	refused  []string
}

// memoryListener hands out one end of a pipe for each connection.
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveFaults starts a server and returns a model that talks to it. stop ends both.
func serveFaults(t testing.TB, answers ...http.HandlerFunc) (s *faultyServer, m llm.Model, stop func()) {
	s = &faultyServer{t: t, answers: answers}
	l := &memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(l) }() // it ends with an error when it is closed
	transport := &http.Transport{DialContext: l.dial}
	m, err := openai.New(openai.Config{Model: "faulty", Endpoint: llm.Endpoint{BaseURL: "http://faulty.test/v1", HTTPClient: &http.Client{Transport: transport}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, m, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	}
}

func (s *faultyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = checkHistory(body)
	}
	s.mu.Lock()
	answer := s.answers[min(s.requests, len(s.answers)-1)]
	s.requests++
	if err != nil {
		s.refused = append(s.refused, err.Error()+"\n"+string(body))
	}
	s.mu.Unlock()
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, err.Error())
		return
	}
	answer(w, r)
}

var (
	strictName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	strictID   = regexp.MustCompile(`^(?s:.{1,40})$`)
)

// checkHistory refuses what OpenAI refuses, and also what only the strictest of the
// compatible servers do: an id that occurs twice in the whole history.
func checkHistory(body []byte) error {
	if err := llmtest.OpenAI().Check(body); err != nil {
		return err
	}
	var r struct {
		Messages []struct {
			Calls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			var args map[string]any
			switch {
			case !strictName.MatchString(c.Function.Name):
				return fmt.Errorf("the name %q does not match %s", c.Function.Name, strictName)
			case !strictID.MatchString(c.ID) || seen[c.ID]:
				return fmt.Errorf("the id %q is not valid, or not unique", c.ID)
			case json.Unmarshal([]byte(c.Function.Arguments), &args) != nil:
				return fmt.Errorf("the arguments %q are not an object", c.Function.Arguments)
			}
			seen[c.ID] = true
		}
	}
	return nil
}

// status refuses with a status, headers as names and values, and a body.
func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// events answers with events, as they are.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		stream(w, data...)
	}
}

// cut answers with events and then breaks the connection.
func cut(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		events(data...)(w, r)
		panic(http.ErrAbortHandler)
	}
}

// raw writes bytes to the connection and closes it.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// calls is a reply with the given tool_calls, as JSON.
func callsOf(list string) http.HandlerFunc {
	return events(append([]string{`{"id":"r","model":"faulty","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":` + list + `}}]}`}, endChunks("tool_calls")...)...)
}

func callOf(name, args string) http.HandlerFunc {
	return callsOf(fmt.Sprintf(`[{"index":0,"id":"call_0","type":"function","function":{"name":%s,"arguments":%s}}]`, quoted(name), quoted(args)))
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return string(b)
}

func looking() http.HandlerFunc { return callOf("look", `{"n":1}`) }

func answering() http.HandlerFunc {
	return events(append([]string{textChunk("fine")}, endChunks("stop")...)...)
}

// many is a list of calls without anything odd.
func many(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":"look","arguments":"{}"}}`, i, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}
