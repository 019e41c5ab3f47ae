package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
)

// roundTrip is an http.RoundTripper made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newClient(t testing.TB, c Config) *Client {
	t.Helper()
	c.Name, c.Model, c.Default, c.KeyName = "test", "m", "https://api.example.org/v1/", "TEST_KEY"
	if c.APIKey == "" {
		c.APIKey = "secret-key"
	}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func do(t testing.TB, c *Client) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.BaseURL().String(), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func TestNetworkFailures(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"refused", dial(syscall.ECONNREFUSED), "Connection refused: api.example.org: cannot connect. Is the server running, and is the address right?"},
		{"reset", dial(syscall.ECONNRESET), "Connection reset: api.example.org: the server closed the connection without an answer"},
		{"broken pipe", dial(syscall.EPIPE), "Connection reset: api.example.org: the server closed the connection without an answer"},
		{"end", io.EOF, "Connection reset: api.example.org: the server closed the connection without an answer"},
		{"dial timeout", dial(syscall.ETIMEDOUT), "request timed out: api.example.org: no connection within the time limit"},
		{"no such host", dial(&net.DNSError{Err: "no such host", Name: "api.example.org", Server: "10.42.9.1:4290", IsNotFound: true}),
			"network error: api.example.org: cannot look up the host: no such host"},
		{"no route", dial(syscall.EHOSTUNREACH), "network error: api.example.org: no connection: no route to host"},
		{"no trust", &tls.CertificateVerificationError{Err: errors.New("x509: unknown authority")},
			"network error: api.example.org: no connection: tls: failed to verify certificate: x509: unknown authority"},
		{"other", dial(errors.New("odd secret-key")), "network error: api.example.org: no connection: odd [redacted]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newClient(t, Config{Endpoint: llm.Endpoint{HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, c.err })}}})
			err := do(t, client)
			var e *llm.Error
			if !errors.As(err, &e) || err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

// TestClientTimeout: the total timeout of a caller's client is no end of the
// caller's context.
func TestClientTimeout(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	err := do(t, newClient(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL, HTTPClient: &http.Client{Timeout: 20 * time.Millisecond}}}))
	var e *llm.Error
	if !errors.As(err, &e) || e.Class != llm.Timeout || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it does not like to be mistrusted
	s.StartTLS()
	defer s.Close()
	err := do(t, newClient(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}}))
	if err == nil || !strings.HasPrefix(err.Error(), "network error: 127.0.0.1: no connection: tls: failed to verify certificate: x509: ") {
		t.Errorf("error is %v", err)
	}
}

// TestHTTP2: the providers speak HTTP/2, whose failures have types of their own.
func TestHTTP2(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(r *http.Request)
		want string
	}{
		{"broken", func(*http.Request) { panic(http.ErrAbortHandler) }, "Connection reset: "},
		{"silent", func(r *http.Request) { <-r.Context().Done() }, "request timed out: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: "+r.Proto+"\n\n")
				_ = http.NewResponseController(w).Flush()
				c.end(r)
			}))
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			client := newClient(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL, HTTPClient: s.Client(), ReadTimeout: time.Second}})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			for ev, err := range client.ReadEvents(resp.Body) {
				switch {
				case err == nil && string(ev.Data) != "HTTP/2.0":
					t.Errorf("the server speaks %s", ev.Data)
				case err != nil && !strings.HasPrefix(err.Error(), c.want):
					t.Errorf("error is %v, want %s", err, c.want)
				case err != nil:
					return
				}
			}
			t.Error("the stream ended without an error")
		})
	}
}

// TestFailureOfOthers: an unknown failure counts as an error of the server.
func TestFailureOfOthers(t *testing.T) {
	err := newClient(t, Config{}).ClassifyError(t.Context(), errors.New("odd"))
	if err == nil || err.Error() != "server error: api.example.org: odd" {
		t.Errorf("error is %v", err)
	}
}

func TestStopped(t *testing.T) {
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	why := errors.New("enough")
	caused, end := context.WithCancelCause(t.Context())
	end(why)
	silent, end := context.WithCancelCause(t.Context())
	end(errSilent)
	for _, c := range []struct {
		ctx  context.Context
		want []error
		text string
	}{
		{t.Context(), nil, ""},
		{silent, nil, ""},
		{past, []error{context.DeadlineExceeded}, "model call stopped: context deadline exceeded"},
		{caused, []error{context.Canceled, why}, "model call stopped: context canceled (enough)"},
	} {
		err := StopError(c.ctx)
		if (err == nil) != (c.want == nil) {
			t.Errorf("error is %v, want %v", err, c.want)
			continue
		}
		for _, w := range c.want {
			if !errors.Is(err, w) || err.Error() != c.text {
				t.Errorf("error is %v, want %v", err, w)
			}
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in     string
		want   string
		codes  string
		status int
	}{
		{`{"error":{"message":"m","type":"t","code":"c"}}`, "m", "c,t", 0},
		{`{"error":{"message":"m","code":502}}`, "m", "", 502},
		{`{"error":{"message":"m","code":7}}`, "m", "", 0},
		{`{"error":{"message":"m","details":"none"}}`, "m", "", 0},
		{`{"error":{"message":["odd"]}}`, `{"message":["odd"]}`, "", 0},
		{`{"error":"model not found"}`, "model not found", "", 0},
		{`{"error":"m","code":"c"}`, "m", "c", 0},
		{`{"object":"error","message":"m","type":"t","code":400}`, "m", "t", 400},
		{`{"detail":"Not Found"}`, "Not Found", "", 0},
		{`{"detail":[{"loc":["body"],"msg":"field required"}]}`, `[{"loc":["body"],"msg":"field required"}]`, "", 0},
		{`[{"error":{"message":"m","status":"INTERNAL"}}]`, "m", "INTERNAL", 0},
		{`{"error":null,"message":"m"}`, "m", "", 0},
		{`{"error":""}`, "", "", 0},
		{`{}`, "", "", 0},
		{`3`, "", "", 0},
		{`oops`, "", "", 0},
	} {
		got, ok := parseErrorDocument([]byte(c.in))
		var codes []string
		for _, code := range got.codes {
			if code != "" {
				codes = append(codes, code)
			}
		}
		if ok != (c.want != "") || got.message != c.want || strings.Join(codes, ",") != c.codes || got.status != c.status {
			t.Errorf("%s: %+v, %v", c.in, got, ok)
		}
	}
}

func TestClassify(t *testing.T) {
	client := newClient(t, Config{})
	for _, c := range []struct {
		status int
		codes  []string
		want   llm.Class
	}{
		{400, nil, llm.BadRequest},
		{400, []string{"context_length_exceeded"}, llm.ContextLength},
		{400, []string{"", "API_KEY_INVALID", "INVALID_ARGUMENT"}, llm.Auth},
		{401, []string{"invalid_request_error"}, llm.Auth},
		{429, []string{"insufficient_quota"}, llm.RateLimited},
		{500, []string{"invalid_request_error"}, llm.Server},
		{500, []string{"overloaded_error"}, llm.Overloaded},
		{503, []string{"rate_limit_error"}, llm.Overloaded},
		{0, []string{"rate_limit_error"}, llm.RateLimited},
		{0, []string{"invalid_request_error"}, llm.BadRequest},
		{0, []string{"unknown"}, llm.Server},
		{0, nil, llm.Server},
	} {
		if got := client.buildError(providerError{codes: c.codes}, c.status); got.Class != c.want {
			t.Errorf("%d %v is %q, want %q", c.status, c.codes, got.Class, c.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "1.5", 1500 * time.Millisecond},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), time.Minute},
		{"Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT", 0},
		{"Retry-After", "-1", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 0},
		{"Retry-After", "soon", 0},
		{"X", "7", 0},
	} {
		got := retryAfter(http.Header{http.CanonicalHeaderKey(c.header): {c.value}})
		if d := got - c.want; d < -2*time.Second || d > 2*time.Second || (c.want == 0) != (got == 0) {
			t.Errorf("%s: %s means %v, want %v", c.header, c.value, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	client := newClient(t, Config{Endpoint: llm.Endpoint{APIKey: "secret-key", Headers: map[string]string{"Authorization": "Bearer secret-key-2", "X-Team": "blue"}}})
	for in, want := range map[string]string{
		"a\n\tb  c":                    "a b c",
		"\x1b[31mred\x07":              "[31mred",
		"key secret-key is bad":        "key [redacted] is bad",
		"Bearer secret-key-2 is bad":   "[redacted] is bad",
		"token secret-key-2 is bad":    "token [redacted] is bad",
		"blue":                         "blue",
		"\xff":                         "?",
		strings.Repeat("é", 1001):      strings.Repeat("é", 1000) + "...",
		"Incorrect key: s\u200becret.": "Incorrect key: s\u200becret.",
	} {
		if got := client.cleanText(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	var got http.Header
	client := newClient(t, Config{
		Endpoint: llm.Endpoint{
			Headers: map[string]string{"X-Team": "blue", "authorization": "Basic x"},
			HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				got = r.Header
				return nil, io.EOF
			})},
		},
	})
	req := &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "https", Host: "api.example.org"}, Header: http.Header{"Authorization": {"Bearer y"}}}
	if _, err := client.Do(req); err == nil {
		t.Fatal("no error")
	}
	if d := cmp.Diff(http.Header{"X-Team": {"blue"}, "Authorization": {"Basic x"}}, got); d != "" {
		t.Errorf("headers (-want +got):\n%s", d)
	}
	if d := cmp.Diff(http.Header{"Authorization": {"Bearer y"}}, req.Header); d != "" {
		t.Errorf("the caller's request has changed (-want +got):\n%s", d)
	}
}

func TestEvents(t *testing.T) {
	type event struct { // an Event that compares fast
		Name, Data string
		Cut        bool
	}
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, in string
		want     []event
	}{
		{"usual", "event: a\ndata: 1\n\ndata:2\n\n", []event{{Name: "a", Data: "1"}, {Data: "2"}}},
		{"carriage returns, comments, ids", ": hi\r\nid: 7\r\nretry: 3\r\ndata: 1\r\n\r\n", []event{{Data: "1"}}},
		{"several lines", "data: 1\ndata:  2\ndata\n\n", []event{{Data: "1\n 2\n"}}},
		{"byte order mark", "\ufeffdata: 1\n\n", []event{{Data: "1"}}},
		{"without data", "event: a\n\n\n\nevent: b\ndata:\n\n", []event{{Name: "b", Data: ""}}},
		{"cut", "data: 1\n\ndata: 2", []event{{Data: "1"}, {Data: "2", Cut: true}}},
		{"cut name", "data: 1\n\nevent: b", []event{{Data: "1"}}},
		{"long", "data: " + long + "\n\n", []event{{Data: long}}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []event
			for ev, err := range newClient(t, Config{}).ReadEvents(strings.NewReader(c.in)) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, event{ev.Name, string(ev.Data), ev.Cut})
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
		})
	}
}

func TestEventTooLong(t *testing.T) {
	var got error
	for _, err := range newClient(t, Config{}).ReadEvents(io.LimitReader(endless{}, maxEvent+100)) {
		got = err
	}
	if got == nil || !strings.Contains(got.Error(), "too long") {
		t.Errorf("error is %v", got)
	}
}

// endless reads as a line without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, xs), nil }

var xs = strings.Repeat("x", 1<<20)

// A field that a provider's package leaves out is reported, or has a default.
func TestNewNeedsAModel(t *testing.T) {
	if _, err := New(Config{Name: "test", Default: "https://api.example.org/v1/", Endpoint: llm.Endpoint{APIKey: "k"}}); err == nil || err.Error() != "test: no model is set" {
		t.Errorf("without a model: %v", err)
	}
	_, err := New(Config{Name: "test", Model: "m", Default: "https://api.example.org/v1/"})
	if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Class != llm.Auth || failed.Message != "no API key: set TEST_API_KEY" {
		t.Errorf("without a key: %v", err)
	}
}
