//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/storage/entries"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/memory"
	"raddle.dev/store/sqlite"
)

// asJSON says that the body of a request is JSON.
func asJSON(r *http.Request) { r.Header.Set("Content-Type", "application/json") }

// installHello installs the agent hello, which needs no model and runs a script.
func (w *workplace) installHello() {
	w.t.Helper()
	if err := os.CopyFS(filepath.Join(w.dir, ".config", "raddle", "agents", "hello"), os.DirFS("../../../examples/hello")); err != nil {
		w.t.Fatal(err)
	}
}

// However many slow connections are open, a server is healthy, and starts runs with their scripts.
func TestServeUnderSlowConnections(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	w := newWorkplace(t, "")
	w.installHello()
	const files = 128
	s := w.startServerBy("raddle serves at ", func(cmd *exec.Cmd) {
		shell, err := exec.LookPath("bash")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args = append([]string{"bash", "-c", fmt.Sprintf(`ulimit -n %d && exec -a raddle "$0" "$@"`, files), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = shell
	}, "serve", "--listen", "127.0.0.1:0")
	address := strings.TrimPrefix(s.url, "http://")
	heads := []string{
		"POST /login HTTP/1.1\r\nHost: %s\r\nOrigin: http://%[1]s\r\nContent-Length: 100\r\n\r\n{",
		"POST /api/v1/runs HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{",
		"GET / HTTP/1.1\r\nHost: %s\r\n",
	}
	for i := range 2 * files {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprintf(c, heads[i%len(heads)], address) // the server may have closed it
		if i%16 > 0 {
			continue
		}
		began := time.Now()
		if status, text := s.do("GET", "/healthz", "", func(r *http.Request) { r.Close = true }); status != 200 {
			t.Fatalf("with %d connections: %d %s", i, status, text)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("with %d connections, the health took %s", i, took)
		}
	}
	if status, text := s.do("POST", "/api/v1/runs?wait=60s", `{"agent": "hello", "prompt": "Ada"}`, asJSON); status != 201 || !strings.Contains(text, `"done"`) {
		t.Errorf("%d %s", status, text)
	}
}

// Starts, requests and streams of a token are bounded; the answer says when to come again. Other tokens are served.
func TestServeQuotas(t *testing.T) {
	w := newWorkplace(t, "")
	w.installHello()
	s := w.serve("--max-starts", "2", "--max-requests", "40", "--max-streams", "3")
	other := strings.TrimSpace(w.run("serve", "token", "add", "ci", "--scope", "read,start").out)
	as := func(r *http.Request) { asJSON(r); r.Header.Set("Authorization", "Bearer "+other) }
	expect := func(what string, res *http.Response, err error, status int, code string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != status || !strings.Contains(string(text), code) || (status == 429) != (res.Header.Get("Retry-After") != "") {
			t.Errorf("%s: %s %q %s; want %d with %s", what, res.Status, res.Header.Get("Retry-After"), text, status, code)
		}
	}
	const start = `{"agent": "hello", "prompt": "Ada"}`
	for i, status := range []int{201, 201, 429} {
		res, err := http.DefaultClient.Do(s.newRequest("POST", "/api/v1/runs?wait=30s", start, asJSON))
		expect(fmt.Sprint("start ", i), res, err, status, map[int]string{201: `"done"`, 429: `"too-many-starts"`}[status])
	}
	res, err := http.DefaultClient.Do(s.newRequest("POST", "/v1/chat/completions", `{"model": "hello", "messages": [{"role": "user", "content": "Ada"}]}`, asJSON))
	expect("a start over OpenAI's protocol", res, err, 429, "too_many_starts")
	res, err = http.DefaultClient.Do(s.newRequest("POST", "/agui/hello", `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"Ada"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`, asJSON))
	expect("a start over AG-UI", res, err, 429, "too_many_starts")
	res, err = http.DefaultClient.Do(s.newRequest("POST", "/api/v1/runs?wait=30s", start, as))
	expect("a start of another token", res, err, 201, `"done"`)

	mcp := func(r *http.Request) { asJSON(r); r.Header.Set("Accept", "application/json, text/event-stream") }
	var open []*http.Response
	for range 3 { // streams that do not end by themselves
		res, err := http.DefaultClient.Do(s.newRequest("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, mcp))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		res, err = http.DefaultClient.Do(s.newRequest("GET", "/mcp", "", func(r *http.Request) {
			mcp(r)
			r.Header.Set("Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"))
		}))
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		open = append(open, res)
	}
	res, err = http.DefaultClient.Do(s.newRequest("GET", "/api/v1/runs", "", nil))
	expect("beside three streams", res, err, 429, `"too-many-streams"`)
	res, err = http.DefaultClient.Do(s.newRequest("GET", "/api/v1/runs", "", as))
	expect("beside three streams of another token", res, err, 200, `"items"`)
	for _, res := range open {
		_ = res.Body.Close()
	}
	for status := 200; status != 429; {
		var text string
		if status, text = s.do("GET", "/api/v1/agents", "", nil); status == 429 && strings.Contains(text, "too-many-streams") {
			status = 200 // the server has not seen yet that they have ended
		} else if status == 429 && !strings.Contains(text, `"too-many-requests"`) {
			t.Errorf("%s", text)
		}
	}
}

// Tokens expire, and raddle serve token ls says when, and when they were used last.
func TestServeTokensExpire(t *testing.T) {
	w := newWorkplace(t, "")
	s := w.serve()
	for expires, code := range map[string]int{"30d": 0, "2999-12-31": 0, "yesterday": 2, "2001-01-01": 2, "-1d": 2, "0d": 2} {
		if r := w.run("serve", "token", "add", "t"+expires, "--expires="+expires); r.code != code {
			t.Errorf("--expires %s: %+v", expires, r)
		}
	}
	token := strings.TrimSpace(w.run("serve", "token", "add", "ci", "--scope", "read", "--expires", "1h").out)
	unused := w.run("serve", "token", "ls", "--output", "json")
	use := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	if status, text := s.do("GET", "/api/v1/runs", "", use); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	var list []struct {
		Name                       string
		Created, Expires, LastUsed time.Time
		Last                       time.Time `json:"last_used"`
	}
	used := w.run("serve", "token", "ls", "--output", "json")
	if err := json.Unmarshal([]byte(used.out), &list); err != nil || len(list) != 3 {
		t.Fatal(used, err)
	}
	for _, l := range list {
		if time.Since(l.Created) > time.Hour || l.Expires.IsZero() || (l.Name == "ci") != (time.Since(l.Last) < time.Hour) {
			t.Errorf("%+v", l)
		}
	}
	if strings.Contains(unused.out, "last_used") {
		t.Errorf("used before it was: %s", unused.out)
	}
	db, err := sqlite.Open(filepath.Join(w.state(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tokens, err := memory.ReadEntries(t.Context(), db, entries.Root+"/tokens")
	if err != nil || len(tokens) != 3 {
		t.Fatal(tokens, err)
	}
	for _, e := range tokens {
		var token map[string]any
		if err := json.Unmarshal(e.Value, &token); err != nil {
			t.Fatal(err)
		}
		token["expires"] = time.Now().Add(-time.Minute)
		e.Value, _ = json.Marshal(token)
		if err := db.PutEntry(t.Context(), e, 0); err != nil {
			t.Fatal(err)
		}
	}
	if status, text := s.do("GET", "/api/v1/runs", "", use); status != 401 || !strings.Contains(text, `"expired-token"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := s.do("POST", "/login", `{"token": "`+token+`"}`, func(r *http.Request) { r.Header.Set("Origin", s.url) }); status != 401 || !strings.Contains(text, `"expired-token"`) {
		t.Errorf("%d %s", status, text)
	}
	if r := w.run("serve", "token", "ls"); strings.Count(r.out, "expired ") != 3 {
		t.Errorf("%+v", r)
	}
}

// readSecurityLog returns the entries of the security log, each as EVENT TOKEN STATUS CODE RUN ANSWER DETAIL, and fails the test if one of the texts is in it.
func (s *served) readSecurityLog(secrets ...string) (list []string) {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.tokenFile()), "security.jsonl")
	file, err := os.Open(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.Mode() != 0o600 {
		s.t.Errorf("%v %v", info.Mode(), err)
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		for _, secret := range secrets {
			if strings.Contains(lines.Text(), secret) {
				s.t.Errorf("the security log has %q: %s", secret, lines.Text())
			}
		}
		var e struct {
			Time                                                        time.Time
			Event, Token, From, Method, Path, Code, Run, Answer, Detail string
			Status                                                      int
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || time.Since(e.Time) > time.Hour {
			s.t.Errorf("%s: %v", lines.Text(), err)
		}
		list = append(list, strings.Join(strings.Fields(fmt.Sprint(e.Event, " ", e.Token, " ", e.Status, " ", e.Code, " ", e.Run, " ", e.Answer, " ", e.Detail)), " "))
	}
	return list
}

// Log-ins, refusals, and what is done to tokens have a log, without the tokens.
func TestServeSecurityLog(t *testing.T) {
	w := newWorkplace(t, "")
	dir := filepath.Join(w.dir, ".config", "raddle", "agents", "clerk")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.yaml": "name: clerk\nmodel: script:t.yaml\nglobal_tools: [execute_command]\n",
		"t.yaml": "- {tool_calls: [{name: execute_command, args: {command: touch seen}}]}\n- {tool_calls: [{name: execute_command, args: {command: touch other}}]}\n- {text: done}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := w.serve()
	token := strings.TrimSpace(w.run("serve", "token", "add", "ci", "--scope", "read").out)
	own := func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Origin", s.url) }
	ci := func(r *http.Request) { asJSON(r); r.Header.Set("Authorization", "Bearer "+token) }
	s.do("POST", "/login", `{"token": "`+token+`"}`, own)
	s.do("POST", "/login", `{"token": "raddle_wrong"}`, own)
	s.do("POST", "/login", `{"code": "wrongcode"}`, own)
	s.do("GET", "/api/v1/runs?secret=inthequery", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer raddle_unknown") })
	s.do("GET", "/api/v1/runs", "", func(r *http.Request) { r.Host = "evil.example" })
	s.do("GET", "/api/v1/runs", "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") })
	s.do("POST", "/api/v1/runs", `{"agent": "hello"}`, ci) // a handler refuses this
	w.run("serve", "token", "rm", "ci")
	var run struct{ Run, Status string }
	_, text := s.do("POST", "/api/v1/runs?wait=30s", `{"agent": "clerk", "prompt": "x", "session": "temp"}`, asJSON)
	if err := json.Unmarshal([]byte(text), &run); err != nil || run.Status != "waiting" {
		t.Fatal(text)
	}
	for _, answer := range []string{"once", "no"} {
		for status := 0; status != 200; {
			if status, text = s.do("POST", "/api/v1/runs/"+run.Run+"/answers", `{"answers": [{"value": "`+answer+`"}]}`, asJSON); status != 200 && status != 409 && status != 422 {
				t.Fatal(status, text) // the second question is asked soon
			}
		}
	}
	want := []string{"token-added ci 0 [read]", "log-in ci 0", "log-in-failed 401 wrong-token", "log-in-failed 401 wrong-code", "refused 401 no-token", "refused 421 foreign-host", "refused 403 foreign-origin", "refused ci 403", "token-removed ci 0", "granted first 0 " + run.Run + " once May execute_command be called"}
	got := s.readSecurityLog(token, s.token, "wrongcode", "raddle_", "inthequery")
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " with ")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q\nwant %q", got, want)
	}
}
