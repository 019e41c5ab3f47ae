//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
)

// A served is a server of the real program.
type served struct {
	t     *testing.T
	w     *workplace
	cmd   *exec.Cmd
	url   string
	token string
	lines *bufio.Reader
}

// serve starts a server in a workplace. The end of the test kills it.
func (w *workplace) serve(args ...string) *served {
	w.t.Helper()
	return w.startServer("raddle serves at ", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
}

// startServer starts a command that serves, and prints first where, after a text. The end of the test kills it.
func (w *workplace) startServer(first string, args ...string) *served {
	w.t.Helper()
	return w.startServerBy(first, func(*exec.Cmd) {}, args...)
}

// startServerBy is startServer for a command that change has changed.
func (w *workplace) startServerBy(first string, change func(*exec.Cmd), args ...string) *served {
	w.t.Helper()
	s := &served{t: w.t, w: w, cmd: w.command(args...)}
	change(s.cmd)
	out, err := s.cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.kill() })
	s.lines = bufio.NewReader(out)
	line, _ := s.lines.ReadString('\n')
	_, rest, ok := strings.Cut(line, first)
	if !ok {
		more, _ := io.ReadAll(s.lines)
		w.t.Fatalf("the server printed %s%s", line, more)
	}
	s.url, _, _ = strings.Cut(rest, ";")
	text, err := os.ReadFile(s.tokenFile())
	if err != nil {
		w.t.Fatal(err)
	}
	s.token = string(text)
	return s
}

// tokenFile returns the file of the first token.
func (s *served) tokenFile() (path string) {
	s.t.Helper()
	err := filepath.WalkDir(s.w.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "token" && filepath.Base(filepath.Dir(name)) == "serve" {
			path = name
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *served) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// newRequest returns a request with the token. change may be nil.
func (s *served) newRequest(method, path, body string, change func(*http.Request)) *http.Request {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if change != nil {
		change(req)
	}
	return req
}

// do sends a request. change may be nil.
func (s *served) do(method, path, body string, change func(*http.Request)) (status int, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	res, err := http.DefaultClient.Do(s.newRequest(method, path, body, change).WithContext(ctx))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(got)
}

// Who may call is checked before anything else, and the answer says what is missing.
func TestServeRefuses(t *testing.T) {
	w := newWorkplace(t, "")
	s := w.serve()
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
		code   string
	}{
		"health without a token":  {"/healthz", func(r *http.Request) { r.Header.Del("Authorization") }, 200, "ok"},
		"ready without a token":   {"/readyz", func(r *http.Request) { r.Header.Del("Authorization") }, 200, "ready"},
		"metrics":                 {"/metrics", nil, 200, "raddle_drives 0"},
		"no token":                {"/metrics", func(r *http.Request) { r.Header.Del("Authorization") }, 401, `"no-token"`},
		"a wrong token":           {"/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer raddle_x") }, 401, `"no-token"`},
		"another way of log-in":   {"/metrics", func(r *http.Request) { r.SetBasicAuth("first", s.token) }, 401, `"no-token"`},
		"a foreign host":          {"/healthz", func(r *http.Request) { r.Host = "evil.example" }, 421, `"foreign-host"`},
		"a page of another site":  {"/metrics", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, `"foreign-origin"`},
		"a page of this server":   {"/metrics", func(r *http.Request) { r.Header.Set("Origin", s.url) }, 200, "raddle_drives 0"},
		"a page without a origin": {"/metrics", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, `"foreign-origin"`},
		"OpenAI without a token":  {"/v1/models", func(r *http.Request) { r.Header.Del("Authorization") }, 401, `{"error":{"message":"the request needs the header Authorization`},
		"OpenAI, another site":    {"/v1/models", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, `"type":"permission_error","code":"foreign-origin"`},
		"nothing there":           {"/nothing", nil, 404, `"not-found"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := s.do("GET", c.path, "", c.change)
			if status != c.status || !strings.Contains(text, c.code) {
				t.Errorf("%d %s; want %d with %s", status, text, c.status, c.code)
			}
		})
	}
	if info, err := os.Stat(s.tokenFile()); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file of the token: %v %v", info, err)
	}
}

// Tokens have scopes, work at once, and are refused when they were removed.
func TestServeTokens(t *testing.T) {
	w := newWorkplace(t, "")
	s := w.serve()
	added := w.run("serve", "token", "add", "ci", "--scope", "start")
	token := strings.TrimSpace(added.out)
	use := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	if status, text := s.do("GET", "/metrics", "", use); added.code != 0 || status != 403 || !strings.Contains(text, `the token \"ci\" does not have the scope \"read\"`) {
		t.Errorf("%+v: %d %s", added, status, text)
	}
	if r := w.run("serve", "token", "ls"); !strings.Contains(r.out, "ci") || strings.Contains(r.out, token) {
		t.Errorf("%+v", r)
	}
	if r := w.run("serve", "token", "add", "ci"); r.code != 2 || !strings.Contains(r.err, "raddle serve token rm ci") {
		t.Errorf("%+v", r)
	}
	if r := w.run("serve", "token", "rm", "ci"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if status, _ := s.do("GET", "/metrics", "", use); status != 401 {
		t.Errorf("a removed token: %d", status)
	}
}

// The address that the server prints logs a browser in.
func TestServeLogsIn(t *testing.T) {
	s := newWorkplace(t, "").serve()
	s.logIn("")
}

// The Studio is a server that one browser logs in to, which is then led to the run that was named. It has no protocol but the API, and does not
// continue runs by itself.
func TestStudioLogsIn(t *testing.T) {
	w := newWorkplace(t, "")
	hello, err := filepath.Abs("../../../examples/hello")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.run("run", hello, "Ada"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	s := w.startServer("the Studio is at ", "studio", "last@2", "--no-open", "--listen", "127.0.0.1:0")
	runs := w.run("runs", "ls", "--output", "json")
	_, id, _ := strings.Cut(runs.out, `"run"`)
	id = strings.Split(id, `"`)[1]
	s.logIn("?page=runs%2F" + id + "%402")
	if status, text := s.do("GET", "/runs/"+id+"@2", "", nil); status != http.StatusOK || !strings.Contains(text, "studio/studio.js") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := s.do("GET", "/v1/models", "", nil); status != http.StatusNotFound {
		t.Errorf("the Studio offers OpenAI's protocol: %d", status)
	}
}

// logIn logs a browser in with the address that the server prints next, which leads to a page, and reads the runs.
func (s *served) logIn(page string) {
	t := s.t
	t.Helper()
	line, _ := s.lines.ReadString('\n')
	_, code, ok := strings.Cut(strings.TrimSpace(line), s.url+"/login"+page+"#")
	if !ok {
		t.Fatalf("the server printed %s", line)
	}
	res, err := http.DefaultClient.Do(s.newRequest("POST", "/login", `{"code": "`+code+`"}`, func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if len(res.Cookies()) != 1 {
		t.Fatal(res.Status, res.Cookies())
	}
	if status, text := s.do("GET", "/api/v1/runs", "", func(r *http.Request) {
		r.Header.Del("Authorization")
		r.AddCookie(res.Cookies()[0])
	}); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

// The examples with curl of the guide work as they are written.
func TestServerGuideExamples(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "curl", "base64", "tr")
	guide, err := os.ReadFile("../../../docs/guide/server.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(guide), "\n## The API\n")
	text, _, _ = strings.Cut(text, "\n## ")
	script := "set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body --max-time 60 \"$@\"; echo; }\n"
	commands := 0
	for block := range strings.SplitSeq(text, "```sh\n") {
		if code, _, ok := strings.Cut(block, "\n```"); ok && strings.Contains(code, "curl ") {
			script += code + "\n"
			commands += strings.Count(code, "curl ")
		}
	}
	if commands < 8 {
		t.Fatalf("%d examples in the guide:\n%s", commands, script)
	}
	w := newWorkplace(t, "")
	if err := os.CopyFS(filepath.Join(w.dir, ".config", "raddle", "agents", "triage"), os.DirFS("../../../examples/triage")); err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(script, "http://127.0.0.1:7777", s.url))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "TOKEN="+s.token, "no_proxy=*")
	if err := os.WriteFile(filepath.Join(cmd.Dir, "report.txt"), []byte("The login page is blank.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	for _, want := range []string{`"status":"waiting"`, `"question":{"id":"page"`, `"kind":"question.asked"`, `"open":[]`, `{"reason":"ended","status":"done"}`, `"by":"first"`, "File report.txt:"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output has no %s\n%s", want, out)
		}
	}
}

// A server that others can reach needs TLS, or a person who says that a proxy has it.
func TestServeListens(t *testing.T) {
	w := newWorkplace(t, "")
	for _, args := range [][]string{{"--listen", "0.0.0.0:0"}, {"--listen", ":0"}, {"--listen", "7777"}, {"--tls-cert", "x"}, {"--public-url", "agents"}, {"--max-runs", "0"}, {"--disable", "nothing"}} {
		if r := w.run(append([]string{"serve"}, args...)...); r.code != 2 {
			t.Errorf("%v: %+v", args, r)
		}
	}
	w.env = append(w.env, "RADDLE_STORE=memory:")
	if r := w.run("serve", "--listen", "127.0.0.1:0"); r.code != 2 || !strings.Contains(r.err, "a server needs a store that saves runs") {
		t.Errorf("%+v", r)
	}
}

// A signal ends the server with exit code 0.
func TestServeEnds(t *testing.T) {
	s := newWorkplace(t, "").serve()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(s.lines)
	if err := s.cmd.Wait(); err != nil || !strings.Contains(string(rest), "the server ends and saves its runs") {
		t.Errorf("%v\n%s", err, rest)
	}
	if res, err := http.Get(s.url + "/healthz"); err == nil {
		_ = res.Body.Close()
		t.Error("the server still answers at " + s.url)
	}
}

// follow reads the stream of a run's events until it ends, in the background.
func (s *served) follow(run string) (wait func() string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+"/api/v1/runs/"+run+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatal(res, err)
	}
	text := make(chan string, 1)
	go func() {
		defer func() { _ = res.Body.Close() }()
		all, _ := io.ReadAll(res.Body)
		text <- string(all)
	}()
	return func() string {
		select {
		case all := <-text:
			return all
		case <-time.After(patience):
			s.t.Error("the stream does not end")
			return ""
		}
	}
}

// startTriage starts examples/triage, waits for its first question, and returns the run and the question.
func (s *served) startTriage() (run, question string) {
	s.t.Helper()
	status, text := s.do("POST", "/api/v1/runs?wait=60s", `{"agent": "`+s.w.dir+`/triage"}`, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })
	var state struct {
		Run       string
		Status    string
		Questions []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil || status != http.StatusCreated || state.Status != "waiting" || len(state.Questions) != 1 {
		s.t.Fatalf("%d %s (%v)", status, text, err)
	}
	return state.Run, state.Questions[0].ID
}

// A run that was started over HTTP is answered at a command line, and a subscriber of the server sees its end; and the reverse.
func TestServeAndResume(t *testing.T) {
	w := newWorkplace(t, "")
	if err := os.CopyFS(filepath.Join(w.dir, "triage"), os.DirFS("../../../examples/triage")); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--allow-paths")
	run, _ := s.startTriage()
	wait := s.follow(run)
	answered := w.run("resume", run, "--answer", "yes", "--answer", "Call the bank first")
	if answered.code != 0 {
		t.Fatalf("%+v", answered)
	}
	if got := wait(); !strings.Contains(got, `"kind":"run.ended"`) || !strings.Contains(got, `event: end`) || !strings.Contains(got, `"status":"done"`) {
		t.Errorf("the stream is\n%s", got)
	}

	parked := w.run("run", "./triage", "--output", "json")
	var report struct {
		Run       string
		Questions []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(parked.out), &report); err != nil || parked.code != 5 && len(report.Questions) != 1 {
		t.Fatalf("%v %+v", err, parked)
	}
	wait = s.follow(report.Run)
	for _, answer := range []string{`"yes"`, `"Call the bank first"`} {
		status, text := s.do("POST", "/api/v1/runs/"+report.Run+"/answers", `{"answers": [{"value": `+answer+`}]}`, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	if got := wait(); !strings.Contains(got, `"status":"done"`) {
		t.Errorf("the stream is\n%s", got)
	}
}

// A run belongs to the trace of the request that starts it, whichever process continues it.
func TestServeContinuesTraces(t *testing.T) {
	const caller, above = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	r := newReceiver(t)
	w := newWorkplace(t, "").export(r)
	if err := os.CopyFS(filepath.Join(w.dir, "triage"), os.DirFS("../../../examples/triage")); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--allow-paths")
	status, text := s.do("POST", "/api/v1/runs?wait=60s", `{"agent": "`+w.dir+`/triage"}`, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Traceparent", "00-"+caller+"-"+above+"-01")
	})
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	w.run("resume", "-q", "last", "--answer", "page=no")
	spans := r.take()
	if len(spans) == 0 {
		t.Error("nothing was exported")
	}
	for _, span := range spans {
		if span.TraceID != caller {
			t.Errorf("%s belongs to the trace %s", span.Name, span.TraceID)
		}
	}
}

// A client that does not finish its request is cut off, and costs nothing else.
func TestServeSlowHeaders(t *testing.T) {
	t.Parallel()
	s := newWorkplace(t, "").serve()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: "); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || strings.Contains(string(answer), " 200 ") {
		t.Errorf("%v %s", err, answer)
	}
	if status, _ := s.do("GET", "/healthz", "", nil); status != http.StatusOK {
		t.Errorf("the server answers with %d", status)
	}
}

// A body without an end is refused when it is too long, and nothing is started.
func TestServeEndlessBody(t *testing.T) {
	s := newWorkplace(t, "").serve()
	body := io.MultiReader(strings.NewReader(`{"agent": "assistant", "prompt": "`), endless{})
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/v1/runs", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err == nil { // the server may close the connection while the client still writes
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), `"too-large"`) {
			t.Errorf("%s %s", res.Status, text)
		}
	}
	if status, text := s.do("GET", "/api/v1/runs", "", nil); status != http.StatusOK || !strings.Contains(text, `"items":[]`) {
		t.Errorf("%d %s", status, text)
	}
}

// endless is a text that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A server that ends says so to the readers of events.
func TestServeEndsStreams(t *testing.T) {
	w := newWorkplace(t, "")
	if err := os.CopyFS(filepath.Join(w.dir, "triage"), os.DirFS("../../../examples/triage")); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--allow-paths")
	run, _ := s.startTriage()
	wait := s.follow(run)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := wait(); !strings.Contains(got, "event: end\ndata: {\"reason\":\"draining\"") {
		t.Errorf("the stream is\n%s", got)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
