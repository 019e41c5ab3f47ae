// Package wiretest holds what the tests of the providers' packages share: a local server that
// speaks a prepared stream, and the failures that every provider must distinguish in the same way.
package wiretest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Server is a local HTTP server that keeps the requests it gets.
type Server struct {
	URL string

	mu       sync.Mutex
	requests []Request
}

// A Request is what the server has seen.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// StartServer starts a server that answers with h until the test ends.
func StartServer(t testing.TB, h http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the server cannot read the request: %v", err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, Request{
			Method: r.Method,
			Path:   r.URL.RequestURI(),
			Header: r.Header,
			Body:   body,
		})
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(inner.Close)
	s.URL = inner.URL
	return s
}

// Requests returns what the server has seen so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// StreamHandler answers with the text of an event stream.
func StreamHandler(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		SendText(w, text)
	}
}

// SendText writes text and sees that it leaves at once.
func SendText(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text) // a client that has left is no concern of the server's
	_ = http.NewResponseController(w).Flush()
}

// EqualJSON fails unless got and want are the same JSON value, numbers to the
// last digit.
func EqualJSON(t testing.TB, want, got []byte) {
	t.Helper()
	w := parseJSON(t, want)
	g := parseJSON(t, got)
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("JSON (-want +got):\n%s\nall of it: %s", d, got)
	}
}

func parseJSON(t testing.TB, data []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}
