package builtin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
)

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func TestFetch(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the other host was asked") })
	page := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, `<html><head><title>T</title><script>x()</script></head><body><h1>Head</h1><p>See <a href="/a">this</a>.<img src="x.png"></p>
				<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>`)
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"a":1}`)
		case "/here":
			http.Redirect(w, r, "/json", http.StatusFound)
		case "/there":
			http.Redirect(w, r, other+"/x", http.StatusFound)
		case "/binary":
			w.Header().Set("Content-Type", "image/png")
			w.Write([]byte{0x89, 0, 1, 2})
		default:
			http.Error(w, "nothing here", http.StatusNotFound)
		}
	})
	h := builtin.Host{}
	for path, want := range map[string]string{
		"/page":   "# Head\n\nSee [this](" + page + "/a).\n\n| A | B |\n|---|---|\n| 1 | 2 |",
		"/json":   `{"a":1}`,
		"/here":   `{"a":1}`,
		"/there":  "failed: " + page + "/there redirects to another host: fetch " + other + "/x",
		"/binary": "failed: " + page + "/binary: it is not a text but image/png, 4 bytes",
		"/none":   "failed: " + page + "/none answers 404 Not Found: nothing here",
	} {
		if diff := cmp.Diff(want, use(t, h, "fetch_url_via_curl", object{"url": page + path})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if got := use(t, h, "fetch_url_via_curl", object{"url": "ftp://x/y"}); !strings.HasPrefix(got, "error: the argument url must be") {
		t.Errorf("got %s", got)
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	asked, ctx := make(chan struct{}), t.Context()
	ctx, cancel := context.WithCancel(ctx)
	page := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	go func() { <-asked; cancel() }()
	_, err := lookup(t, builtin.Host{}, "fetch_url_via_curl").Run(ctx, tool.Call{Args: raw(t, object{"url": page})})
	if err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// TestServices plays the services on this machine, and looks at what each is asked.
func TestServices(t *testing.T) {
	env := []string{
		"WOLFRAM_API_ID=wkey", "PERPLEXITY_API_KEY=pkey", "TAVILY_API_KEY=tkey", "JINA_API_KEY=jkey",
		"TWILIO_ACCOUNT_SID=sid", "TWILIO_AUTH_TOKEN=token", "TWILIO_FROM_NUMBER=+1",
	}
	const tricky = `a "b" & c`
	for _, c := range []struct {
		tool, answer string
		args         object
		asked, want  string
	}{
		{"get_current_weather", "sunny", object{"location": "New York/x"}, "GET /New%20York%2Fx?M=&format=4", "sunny"},
		{"fetch_url_via_jina", "# page", object{"url": "https://example.com/x"}, "GET /https://example.com/x Bearer jkey", "# page"},
		{"search_arxiv", "<feed/>", object{"query": tricky}, "GET /api/query?max_results=3&search_query=all%3Aa+%22b%22+%26+c", "<feed/>"},
		{
			"search_wikipedia", `{"query":{"pages":[{"title":"T","extract":"E"}]}}`, object{"query": "x"},
			"GET /w/api.php?action=query&exintro=1&explaintext=1&format=json&formatversion=2&generator=search&gsrlimit=1&gsrsearch=x&prop=extracts&redirects=1",
			`{"output":"E","title":"T"}`,
		},
		{"search_wikipedia", `{"batchcomplete":true}`, object{"query": "x"}, "*", "failed: Wikipedia has nothing about x"},
		{
			"search_wolframalpha", `{"queryresult":{"pods":[{"title":"Result","subpods":[{"plaintext":"4"}]},{"title":"Plot","subpods":[{"plaintext":""}]}]}}`,
			object{"query": "2+2"}, "GET /v2/query?appid=wkey&format=plaintext&input=2%2B2&output=json", `[{"title":"Result","texts":["4"]}]`,
		},
		{
			"web_search_perplexity", `{"choices":[{"message":{"content":"yes"}}],"citations":["http://a"]}`, object{"query": tricky},
			`POST /chat/completions Bearer pkey {"messages":[{"content":"a \"b\" \u0026 c","role":"user"}],"model":"sonar"}`, "yes\n[1] http://a",
		},
		{
			"web_search_tavily", `{"answer":"yes","results":[{"title":"t","url":"http://a"}]}`, object{"query": tricky},
			`POST /search Bearer tkey {"include_answer":true,"query":"a \"b\" \u0026 c"}`, "yes\n- t http://a",
		},
		{
			"send_twilio", "{}", object{"to-number": "whatsapp:+2", "message": tricky},
			"POST /2010-04-01/Accounts/sid/Messages.json Basic c2lkOnRva2Vu Body=a+%22b%22+%26+c&From=whatsapp%3A%2B1&To=whatsapp%3A%2B2", "Message sent to whatsapp:+2",
		},
		{"web_search_tavily", `no json`, object{"query": "x"}, "*", "failed: the answer of the service is not JSON in the expected form: invalid character 'o' in literal null (expecting 'u')"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			var asked string
			base := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				asked = strings.TrimSpace(strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Authorization"), body)), " "))
				io.WriteString(w, c.answer)
			})
			h := builtin.Host{Env: env, Base: map[string]string{c.tool: base}}
			if diff := cmp.Diff(c.want, use(t, h, c.tool, c.args)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.asked != "*" && asked != c.asked {
				t.Errorf("asked %s\nwant  %s", asked, c.asked)
			}
			down := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "too many", http.StatusTooManyRequests) })
			h.Base[c.tool] = down
			if got := use(t, h, c.tool, c.args); got != "failed: "+strings.TrimPrefix(down, "http://")+" answers 429 Too Many Requests: too many" {
				t.Errorf("a service that refuses: %s", got)
			}
		})
	}
}

func TestKeysAreNeverInErrors(t *testing.T) {
	h := builtin.Host{Env: []string{"WOLFRAM_API_ID=wkey"}, Base: map[string]string{"search_wolframalpha": "http://127.0.0.1:1"}}
	got := use(t, h, "search_wolframalpha", object{"query": "x"})
	if !strings.HasPrefix(got, "failed: 127.0.0.1:1 cannot be reached: ") || strings.Contains(got, "wkey") {
		t.Errorf("got %s", got)
	}
	for name, key := range map[string]string{"search_wolframalpha": "WOLFRAM_API_ID", "web_search_tavily": "TAVILY_API_KEY", "web_search_perplexity": "PERPLEXITY_API_KEY"} {
		got := use(t, builtin.Host{}, name, object{"query": "x"})
		if got != "failed: the environment variable "+key+", which holds the key of the service, is not set" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// mailbox is a mail server for one message, which it returns.
func mailbox(t *testing.T) (addr string, got chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got = make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var b strings.Builder
		lines, data := bufio.NewScanner(conn), false
		io.WriteString(conn, "220 here\r\n")
		for lines.Scan() {
			line := lines.Text()
			b.WriteString(line + "\n")
			switch {
			case data && line != ".":
			case data:
				data = false
				io.WriteString(conn, "250 taken\r\n")
			case strings.HasPrefix(line, "EHLO"):
				io.WriteString(conn, "250-here\r\n250 AUTH PLAIN\r\n")
			case strings.HasPrefix(line, "AUTH"):
				io.WriteString(conn, "235 welcome\r\n")
			case line == "DATA":
				data = true
				io.WriteString(conn, "354 go on\r\n")
			case line == "QUIT":
				io.WriteString(conn, "221 bye\r\n")
				got <- b.String()
				return
			default:
				io.WriteString(conn, "250 fine\r\n")
			}
		}
	}()
	return l.Addr().String(), got
}

func TestSendMail(t *testing.T) {
	addr, got := mailbox(t)
	h := builtin.Host{Env: []string{"EMAIL_SMTP_ADDR=smtp://" + addr, "EMAIL_SMTP_USER=me@example.com", "EMAIL_SMTP_PASS=pw", "EMAIL_SENDER_NAME=Mé"}}
	mail := object{"recipient": "you@example.com", "subject": "Grüße", "body": "line\n.\nßend"}
	if got := use(t, h, "send_mail", mail); got != "Email sent to you@example.com" {
		t.Fatal(got)
	}
	text := <-got
	for _, want := range []string{
		"MAIL FROM:<me@example.com>", "RCPT TO:<you@example.com>", "From: =?utf-8?q?M=C3=A9?= <me@example.com>\n", "To: <you@example.com>\n",
		"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n", "\n\nline\n..\n=C3=9Fend\n.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for field, value := range map[string]string{"subject": "a\r\nBcc: x@y.z", "recipient": "x@y.z\r\nRCPT TO:<a@b.c>"} {
		bad := object{"recipient": "you@example.com", "subject": "s", "body": "b"}
		bad[field] = value
		if got := use(t, h, "send_mail", bad); !strings.HasPrefix(got, "failed: ") {
			t.Errorf("%s %q: %s", field, value, got)
		}
	}
	if got := use(t, builtin.Host{}, "send_mail", mail); !strings.Contains(got, "EMAIL_SMTP_ADDR") {
		t.Errorf("without settings: %s", got)
	}
}

func TestSchemaKeepsTheOrder(t *testing.T) {
	got := string(lookup(t, builtin.Host{}, "send_twilio").Schema)
	want := `{"type":"object","properties":{"to_number":{"type":"string","description":"Number with + and the code of the country"},` +
		`"message":{"type":"string","description":"Text of the message"}},"required":["to_number","message"]}`
	if got != want || !json.Valid([]byte(got)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
