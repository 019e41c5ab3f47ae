// Package loopback takes the answers of logins in the browser: the browser is sent to an address of this machine, with
// a code for the process that waits.
package loopback

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// RandomText returns a text that cannot be guessed, as addresses take it.
func RandomText() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Challenge returns what is sent in place of a verifier (PKCE, S256).
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A Listener waits on this machine for one answer.
type Listener struct {
	State string // that the answer must have

	listener net.Listener
	server   *http.Server
	answers  chan url.Values
}

// Listen starts to listen; port 0 is any. The caller must Close the Listener.
func Listen(port int) (*Listener, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("the answer of the login cannot be waited for: %w", err)
	}
	l := &Listener{State: RandomText(), listener: listener, answers: make(chan url.Values, 1)}
	l.server = &http.Server{Handler: newCallback(l.State, l.answers), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = l.server.Serve(listener) }()
	return l, nil
}

// Address returns the address to which the browser must be sent. host is "localhost" or "127.0.0.1".
func (l *Listener) Address(host string) string {
	return fmt.Sprintf("http://%s:%d/callback", host, l.listener.Addr().(*net.TCPAddr).Port)
}

// Wait returns the parameters of the answer: a code, or an error.
func (l *Listener) Wait(ctx context.Context) (url.Values, error) {
	select {
	case values := <-l.answers:
		return values, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close stops listening, after the browser has its page.
func (l *Listener) Close() {
	ending, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.server.Shutdown(ending)
	_ = l.server.Close()
}

// newCallback returns what takes the answer: once, from a request to this machine that knows the state.
func newCallback(state string, answers chan<- url.Values) http.Handler {
	var used atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Connection", "close")
		host, _, _ := net.SplitHostPort(r.Host)
		q := r.URL.Query()
		const longest = 4096
		code := q.Get("code")
		switch {
		case host != "localhost" && host != "127.0.0.1", subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1:
			http.Error(w, "This is not the answer to the login that raddle waits for.", http.StatusForbidden)
		case code == "" && q.Get("error") == "" || len(code) > longest:
			http.Error(w, "This answer has no code. Look at your terminal.", http.StatusBadRequest)
		case used.Swap(true):
			http.Error(w, "This answer was used already.", http.StatusGone)
		default:
			answers <- q
			_, _ = io.WriteString(w, "raddle has its answer. You can close this page and go back to your terminal.\n")
		}
	})
	return mux
}
