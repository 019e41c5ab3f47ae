package wiretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"raddle.dev/llm"
)

// Key is the API key of the tests.
const Key = "sk-very-secret-0123456789"

// A Provider is what CheckFailures needs to know of a wire.
type Provider struct {
	// New returns a model that talks to the server at base with Key.
	New     func(t testing.TB, base string, read time.Duration) llm.Model
	KeyName string // the name that an error about the key must hold
	Start   string // the beginning of a stream, up to the text "Hel"
	Rest    string // the rest of it, with the text "lo"
	// Error is a body in the provider's form that reports a failure.
	Error func(status int, message string) string
	// StreamError is an event, within a stream, that says the provider is overloaded.
	StreamError string
	Media       string // content type of its streams; "": server-sent events
	Malformed   string // an event that is not JSON; "": a server-sent one
}

// streamHandler answers with the text of a stream.
func (p Provider) streamHandler(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", cmp.Or(p.Media, "text/event-stream; charset=utf-8"))
		SendText(w, text)
	}
}

// long is a read timeout that no test reaches; short is one that the test waits for.
const (
	long  = time.Minute
	short = 50 * time.Millisecond
)

var request = llm.Request{Messages: []llm.Message{llm.User("hi")}}

// phrases are the texts by which a failure is known to be passing.
var phrases = []string{"timed out", "rate limit", "429", "Connection reset", "Connection refused", "produced no output"}

// CheckFailures checks that the wire classifies every kind of failure, says what the
// provider said, and never shows the key.
func CheckFailures(t *testing.T, p Provider) {
	t.Run("status", func(t *testing.T) { checkStatuses(t, p) })
	t.Run("stream", func(t *testing.T) { checkStreams(t, p) })
	t.Run("refused", func(t *testing.T) { checkRefused(t, p) })
	t.Run("hang", func(t *testing.T) { checkHangs(t, p) })
	t.Run("context", func(t *testing.T) { checkContexts(t, p) })
	t.Run("leave", func(t *testing.T) { checkLeave(t, p) })
	t.Run("single use", func(t *testing.T) { singleUse(t, p) })
}

// want is what an error must be like.
type want struct {
	class     llm.Class
	code      string // of class Network only
	prefix    string
	contains  []string
	transient bool
	after     time.Duration
}

func (w want) checkError(t *testing.T, err error) {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T) is no *llm.Error", err, err)
	}
	if e.Class != w.class || (w.class == llm.Network && e.Code != w.code) {
		t.Errorf("class is %q (code %q), want %q (%q): %v", e.Class, e.Code, w.class, w.code, err)
	}
	text := err.Error()
	if !strings.HasPrefix(text, w.prefix) {
		t.Errorf("text is %q, want the beginning %q", text, w.prefix)
	}
	for _, s := range append(w.contains, "127.0.0.1") {
		if !strings.Contains(text, s) {
			t.Errorf("text %q lacks %q", text, s)
		}
	}
	byText := false
	for _, s := range phrases {
		byText = byText || strings.Contains(text, s)
	}
	if byText != w.transient || e.IsTransient() != w.transient {
		t.Errorf("%q is transient by text: %v, by class: %v; want %v", text, byText, e.IsTransient(), w.transient)
	}
	if e.RetryAfter != w.after {
		t.Errorf("RetryAfter is %v, want %v", e.RetryAfter, w.after)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v looks like the end of the caller's context", err)
	}
	for err := error(e); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), Key) {
			t.Errorf("%q shows the key", err)
		}
	}
}

func checkStatuses(t *testing.T, p Provider) {
	for _, c := range []struct {
		status int
		want   want
	}{
		{400, want{class: llm.BadRequest, prefix: "bad request (400): "}},
		{401, want{class: llm.Auth, prefix: "authentication failed (401): ", contains: []string{p.KeyName}}},
		{403, want{class: llm.Auth, prefix: "authentication failed (403): ", contains: []string{p.KeyName}}},
		{404, want{class: llm.BadRequest, prefix: "bad request (404): ", contains: []string{"name of the model"}}},
		{429, want{class: llm.RateLimited, prefix: "rate limit (429): ", transient: true, after: 7 * time.Second}},
		{500, want{class: llm.Server, prefix: "server error (500): "}},
		{503, want{class: llm.Overloaded, prefix: "provider overloaded (503): "}},
		{504, want{class: llm.Timeout, prefix: "request timed out (504): ", transient: true}},
		{529, want{class: llm.Overloaded, prefix: "provider overloaded (529): "}},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			s := StartServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if c.status == 429 {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(c.status)
				SendText(w, p.Error(c.status, "the key "+Key+" is\nnot liked\x1b[31m"))
			})
			_, err := llm.Generate(t.Context(), p.New(t, s.URL, long), request)
			c.want.contains = append(c.want.contains, "the key [redacted] is not liked[31m")
			c.want.checkError(t, err)
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests were sent, want 1: nothing may be retried", n)
			}
		})
	}
	t.Run("500 with a web page", func(t *testing.T) {
		s := StartServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			SendText(w, "<html><head><title>Bad luck</title></head></html>")
		})
		_, err := llm.Generate(t.Context(), p.New(t, s.URL, long), request)
		want{
			class:    llm.Server,
			prefix:   "server error (500): ",
			contains: []string{`web page with the title "Bad luck"`},
		}.checkError(t, err)
	})
	t.Run("503 without a body", func(t *testing.T) {
		s := StartServer(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
		_, err := llm.Generate(t.Context(), p.New(t, s.URL, long), request)
		want{
			class:    llm.Overloaded,
			prefix:   "provider overloaded (503): ",
			contains: []string{"Service Unavailable"},
		}.checkError(t, err)
	})
	t.Run("redirect", func(t *testing.T) {
		elsewhere := StartServer(t, p.streamHandler(p.Start+p.Rest))
		s := StartServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/login")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, err := llm.Generate(t.Context(), p.New(t, s.URL, long), request)
		want{class: llm.BadRequest, prefix: "bad request (307): ", contains: []string{"/login"}}.checkError(t, err)
		if n := len(elsewhere.Requests()); n != 0 {
			t.Error("the redirect was followed")
		}
	})
}

func checkStreams(t *testing.T, p Provider) {
	cut := want{class: llm.Network, code: llm.CodeReset, prefix: "Connection reset: ", transient: true}
	page := want{class: llm.BadRequest, prefix: "bad request: ", contains: []string{"text/html", "Welcome"}}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    want
	}{
		{"ends early", p.streamHandler(p.Start), cut},
		{"ends inside an event", p.streamHandler(p.Start + p.Rest[:len(p.Rest)/8]), cut},
		{"reset", func(w http.ResponseWriter, r *http.Request) {
			p.streamHandler(p.Start)(w, r)
			dropConnection(t, w)
		}, cut},
		{"reset before the answer", func(w http.ResponseWriter, r *http.Request) { dropConnection(t, w) }, cut},
		{"malformed", p.streamHandler(p.Start + cmp.Or(p.Malformed, "data: {\"oops\n\n") + p.Rest),
			want{class: llm.Server, prefix: "server error: ", contains: []string{"not JSON"}}},
		{"overloaded in the stream", p.streamHandler(p.Start + p.StreamError),
			want{class: llm.Overloaded, prefix: "provider overloaded", contains: []string{"too busy"}}},
		{"page", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			SendText(w, "<!doctype html><title>Welcome</title>")
		}, page},
		{"not streaming", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			SendText(w, ` {"id":"x","answer":"Hello"}`)
		}, want{
			class:    llm.BadRequest,
			prefix:   "bad request: ",
			contains: []string{"application/json", "event stream", `"answer":"Hello"`},
		}},
		{"failure with status 200", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			SendText(w, p.Error(401, "who are you"))
		}, want{class: llm.Auth, prefix: "authentication failed", contains: []string{"who are you", p.KeyName}}},
		{"nothing", func(w http.ResponseWriter, r *http.Request) {},
			want{class: llm.Server, prefix: "server error: ", contains: []string{"empty body"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := StartServer(t, c.handler)
			_, err := llm.Generate(t.Context(), p.New(t, s.URL, long), request)
			c.want.checkError(t, err)
		})
	}
	for _, kind := range []string{"", "text/plain", "application/json"} {
		if p.Media != "" {
			break // only its content type says what it is
		}
		t.Run("events as "+kind, func(t *testing.T) {
			s := StartServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = []string{kind}
				SendText(w, "\r\n"+strings.ReplaceAll(strings.ReplaceAll(p.Start+p.Rest, "\r", ""), "\n", "\r\n"))
			})
			reply, err := llm.Generate(t.Context(), p.New(t, s.URL, long), request)
			if err != nil || reply.Text() != "Hello" {
				t.Errorf("reply is %q, error %v", reply.Text(), err)
			}
		})
	}
}

// dropConnection closes the connection in a way that the client sees as a reset.
func dropConnection(t *testing.T, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func checkRefused(t *testing.T, p Provider) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = llm.Generate(t.Context(), p.New(t, "http://"+address, long), request)
	want{
		class:     llm.Network,
		code:      llm.CodeRefused,
		prefix:    "Connection refused: " + address + ": ",
		transient: true,
	}.checkError(t, err)
}

func checkHangs(t *testing.T, p Provider) {
	for name, start := range map[string]string{"before the answer": "", "in the stream": p.Start} {
		t.Run(name, func(t *testing.T) {
			s := StartServer(t, func(w http.ResponseWriter, r *http.Request) {
				if start != "" {
					p.streamHandler(start)(w, r)
				}
				<-r.Context().Done()
			})
			_, err := llm.Generate(t.Context(), p.New(t, s.URL, short), request)
			want{
				class:     llm.Timeout,
				prefix:    "request timed out: ",
				contains:  []string{"50ms"},
				transient: true,
			}.checkError(t, err)
		})
	}
}

func checkContexts(t *testing.T, p Provider) {
	why := errors.New("enough")
	for _, c := range []struct {
		name string
		end  func(ctx context.Context) (context.Context, func())
		want error
	}{
		{"cancel", func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, context.Canceled},
		{"cause", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(why) }
		}, context.Canceled},
		{"deadline", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, short)
			t.Cleanup(cancel)
			return ctx, func() {}
		}, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			left := make(chan struct{})
			s := StartServer(t, func(w http.ResponseWriter, r *http.Request) {
				p.streamHandler(p.Start)(w, r)
				<-r.Context().Done()
				close(left)
			})
			ctx, end := c.end(t.Context())
			var got error
			for _, err := range p.New(t, s.URL, long).Stream(ctx, request) {
				if got = err; err == nil {
					end()
				}
			}
			if len(s.Requests()) > 0 { // else the deadline came first
				<-left
			}
			var e *llm.Error
			if !errors.Is(got, c.want) || errors.As(got, &e) {
				t.Errorf("error is %v, want one that is %v and no *llm.Error", got, c.want)
			}
			if c.name == "cause" && !errors.Is(got, why) {
				t.Errorf("error %v hides the cause", got)
			}
		})
	}
	t.Run("before the call", func(t *testing.T) {
		s := StartServer(t, p.streamHandler(p.Start+p.Rest))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := llm.Generate(ctx, p.New(t, s.URL, long), request)
		if !errors.Is(err, context.Canceled) || len(s.Requests()) != 0 {
			t.Errorf("error is %v after %d requests", err, len(s.Requests()))
		}
	})
}

func checkLeave(t *testing.T, p Provider) {
	left := make(chan struct{})
	s := StartServer(t, func(w http.ResponseWriter, r *http.Request) {
		p.streamHandler(p.Start)(w, r)
		<-r.Context().Done()
		close(left)
	})
	for d, err := range p.New(t, s.URL, long).Stream(t.Context(), request) {
		if err != nil || d.Text != "Hel" {
			t.Errorf("the first delta is %+v, error %v", d, err)
		}
		break
	}
	<-left // the connection is released though nothing was cancelled
}

func singleUse(t *testing.T, p Provider) {
	s := StartServer(t, p.streamHandler(p.Start+p.Rest))
	seq := p.New(t, s.URL, long).Stream(t.Context(), request)
	var texts []string
	for d, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if d.Text != "" {
			texts = append(texts, d.Text)
		}
	}
	if got := strings.Join(texts, "|"); got != "Hel|lo" {
		t.Errorf("text came as %q", got)
	}
	n := 0
	for _, err := range seq {
		if n++; err == nil {
			t.Error("a stream may be ranged over twice")
		}
	}
	if n != 1 || len(s.Requests()) != 1 {
		t.Errorf("the second use gave %d elements and made %d requests", n, len(s.Requests())-1)
	}
}
