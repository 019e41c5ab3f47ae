package setup

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"raddle.dev/internal/failure"
)

// A BrowserLogin gets a key of OpenRouter through the person's browser: the person agrees on OpenRouter's page, which sends a code to an address of
// this machine; the code and a secret that only this process knows are exchanged for a key.
type BrowserLogin struct {
	Page     string        // where the person agrees
	Exchange string        // where the code is exchanged for a key
	Wait     time.Duration // for the person
	Show     func(address string)
}

// openRouterWait is how long a person may take to agree.
const openRouterWait = 5 * time.Minute

// NewOpenRouterLogin returns the login of OpenRouter. show is called once with the address that the person has to open.
func NewOpenRouterLogin(show func(address string)) *BrowserLogin {
	return &BrowserLogin{Page: "https://openrouter.ai/auth", Exchange: "https://openrouter.ai/api/v1/auth/keys", Wait: openRouterWait, Show: show}
}

// randomText returns a text that cannot be guessed, as addresses take it.
func randomText() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// FetchKey waits for the person to agree and returns the key. It listens only on this machine, for one answer.
func (l *BrowserLogin) FetchKey(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Wait)
	defer cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("the answer of OpenRouter cannot be waited for: %w", err)
	}
	verifier, state := randomText(), randomText()
	codes := make(chan string, 1)
	server := &http.Server{Handler: newCallback(state, codes), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the browser gets its page
		defer cancel()
		_ = server.Shutdown(ending)
		_ = server.Close()
	}()
	challenge := sha256.Sum256([]byte(verifier))
	callback := fmt.Sprintf("http://localhost:%d/callback?state=%s", listener.Addr().(*net.TCPAddr).Port, state)
	l.Show(l.Page + "?" + url.Values{
		"callback_url": {callback}, "code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode())
	select {
	case code := <-codes:
		return l.exchange(ctx, code, verifier)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", failure.NewUsage("try again: raddle login openrouter", "the login was not confirmed within %v", l.Wait)
		}
		return "", ctx.Err()
	}
}

// newCallback returns what takes the code: once, from a request to this machine that knows the state.
func newCallback(state string, codes chan<- string) http.Handler {
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
		case code == "" || len(code) > longest:
			http.Error(w, "OpenRouter has sent no code. Look at your terminal.", http.StatusBadRequest)
		case used.Swap(true):
			http.Error(w, "This answer was used already.", http.StatusGone)
		default:
			codes <- code
			_, _ = io.WriteString(w, "raddle has its answer. You can close this page and go back to your terminal.\n")
		}
	})
	return mux
}

// exchange returns the key for a code. Its errors quote neither.
func (l *BrowserLogin) exchange(ctx context.Context, code, verifier string) (string, error) {
	const wait, most = 30 * time.Second, 64 << 10
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	body, err := json.Marshal(map[string]string{"code": code, "code_verifier": verifier, "code_challenge_method": "S256"})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Exchange, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return "", fmt.Errorf("OpenRouter cannot be asked for the key: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", failure.NewUsage("try again: raddle login openrouter", "OpenRouter gives no key for its code (status %d)", response.StatusCode)
	}
	var reply struct{ Key string }
	if err := json.NewDecoder(io.LimitReader(response.Body, most)).Decode(&reply); err != nil || reply.Key == "" {
		return "", failure.NewUsage("try again: raddle login openrouter", "OpenRouter answers without a key")
	}
	return reply.Key, nil
}
