package setup

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A fakeOpenRouter refuses what OpenRouter refuses. The rules are those of https://openrouter.ai/docs/guides/overview/auth/oauth (the parameters of
// /auth and the redirect with code) and https://openrouter.ai/docs/api/api-reference/o-auth/exchange-auth-code-for-api-key: POST only (405), a body in
// JSON with code, code_verifier and code_challenge_method (400), and a code and verifier that belong together, once (403).
type fakeOpenRouter struct {
	t         *testing.T
	challenge string
	code      string // "" after it was exchanged
}

const fakeKey = "sk-or-v1-0123456789abcdef"

func (f *fakeOpenRouter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var body struct {
		Code      string `json:"code"`
		Verifier  string `json:"code_verifier"`
		Challenge string `json:"code_challenge_method"`
	}
	if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&body) != nil || body.Challenge != "S256" || len(body.Verifier) < 43 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	sum := sha256.Sum256([]byte(body.Verifier))
	if body.Code == "" || body.Code != f.code || base64.RawURLEncoding.EncodeToString(sum[:]) != f.challenge {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	f.code = ""
	_, _ = io.WriteString(w, `{"key":"`+fakeKey+`","user_id":"user_1"}`)
}

// agree checks the address that a person opens, and returns where the person is sent.
func (f *fakeOpenRouter) agree(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		f.t.Fatal(err)
	}
	q := u.Query()
	back, err := url.Parse(q.Get("callback_url"))
	if err != nil || back.Hostname() != "localhost" || back.Scheme != "http" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(back.Query().Get("state")) != 43 {
		f.t.Fatalf("the address is %s", address)
	}
	f.challenge, f.code = q.Get("code_challenge"), "the-code"
	back.Host = "127.0.0.1:" + back.Port() // as a browser resolves it
	values := back.Query()
	values.Set("code", f.code)
	back.RawQuery = values.Encode()
	return back
}

// get returns the status of a request.
func get(t *testing.T, address, host string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestOpenRouterLogin(t *testing.T) {
	f := &fakeOpenRouter{t: t}
	server := httptest.NewServer(f)
	defer server.Close()
	shown := make(chan string, 1)
	l := &BrowserLogin{Page: "https://openrouter.ai/auth", Exchange: server.URL, Wait: time.Minute, Show: func(address string) { shown <- address }}
	type result struct {
		key string
		err error
	}
	done := make(chan result, 1)
	go func() {
		key, err := l.FetchKey(t.Context())
		done <- result{key, err}
	}()
	back := f.agree(<-shown)
	with := func(name, value string) string {
		u := *back
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for address, status := range map[string]int{with("state", "wrong"): 403, with("state", ""): 403, with("code", ""): 400, with("code", strings.Repeat("a", 5000)): 400, "http://" + back.Host + "/": 404} {
		if got := get(t, address, ""); got != status {
			t.Errorf("%s: status %d, want %d", address, got, status)
		}
	}
	if got := get(t, back.String(), "evil.example:80"); got != 403 {
		t.Errorf("another host: status %d", got)
	}
	if got := get(t, back.String(), ""); got != 200 {
		t.Errorf("the answer: status %d", got)
	}
	r := <-done
	if r.key != fakeKey || r.err != nil {
		t.Errorf("%q, %v", r.key, r.err)
	}
	if got := get(t, back.String(), ""); got != 0 && got != 410 {
		t.Errorf("the answer again: status %d", got)
	}
}

func TestOpenRouterLoginFails(t *testing.T) {
	var status int
	var text string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	for _, test := range []struct {
		status int
		text   string
		want   string
	}{{403, "", "gives no key for its code (status 403)"}, {302, "", "status 302"}, {200, "{}", "answers without a key"}, {200, "<html>", "answers without a key"}} {
		status, text = test.status, test.text
		l := &BrowserLogin{Page: "https://openrouter.ai/auth", Exchange: server.URL, Wait: time.Minute, Show: func(address string) {
			back := (&fakeOpenRouter{t: t}).agree(address)
			go func() {
				if response, err := http.Get(back.String()); err == nil {
					_ = response.Body.Close()
				}
			}()
		}}
		if _, err := l.FetchKey(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "the-code") {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	l := &BrowserLogin{Wait: 10 * time.Millisecond, Show: func(string) {}}
	if _, err := l.FetchKey(t.Context()); err == nil || !strings.Contains(err.Error(), "was not confirmed") {
		t.Errorf("nobody: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Wait = time.Minute
	if _, err := l.FetchKey(ctx); err == nil {
		t.Error("cancelled: no error")
	}
}
