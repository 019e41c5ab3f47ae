//go:build unix

package api

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/storage/runfile"
	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

var update = flag.Bool("update", false, "write the golden document")

const askGraph = `
name: ask
description: Greets a person.
start: first
nodes:
  first: {type: script, script: first.sh, next: ask}
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "Hello {{who}}"}
`

const waitGraph = `
name: wait
start: work
nodes:
  work: {type: script, script: work.sh, timeout: 60, next: done}
  done: {type: end, output: finished}
`

// A world is a service behind its API.
type world struct {
	*testing.T
	dir     string // in which runs work
	service *server.Service
	url     string
	caller  *server.Caller // nil: none
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return serveHome(t, servertest.NewHome(t, map[string]string{
		"ask/graph.yaml": askGraph, "ask/first.sh": "echo '{\"token\": \"'$0'\"}'\n# hunter2hunter2\n", "ask/.env": "SECRET=hunter2hunter2\n", "ask/notes.txt": "not a part of the agent\n",
		"wait/graph.yaml": waitGraph, "wait/work.sh": "touch working\nwhile [ ! -e go ]; do sleep 0.02; done\necho '{}'\n",
		"broken/graph.yaml": "name: broken\nstart: nowhere\nnodes: {}\n",
	}))
}

// serveHome returns a service for the agents of a home directory, behind its API.
func serveHome(t *testing.T, home *servertest.Home) *world {
	t.Helper()
	home.Timeout = 100 * time.Millisecond // the agent wait does not stop by itself
	w := &world{T: t, dir: home.Work}
	w.service, _ = home.Serve()
	w.service.Process().Tools.SecretSet().Add("hunter2hunter2")
	w.url = servertest.Listen(t, NewHandler(w.service), func() *server.Caller { return w.caller })
	return w
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// send sends a request with headers, each as NAME: VALUE, and returns the answer.
func (w *world) send(method, path, body string, headers ...string) *http.Response {
	w.Helper()
	if !strings.HasPrefix(path, "/api") {
		path = prefix + path
	}
	r, err := http.NewRequestWithContext(w.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// get sends a request that must succeed with a status, and returns the object of the answer.
func (w *world) get(status int, method, path, body string, headers ...string) (object map[string]any) {
	w.Helper()
	res := w.send(method, path, body, headers...)
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		w.Fatalf("%s %s: %s %s %v; want %d", method, path, res.Status, text, err, status)
	}
	if len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &object); err != nil {
			w.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return object
}

// refuse sends a request that must be refused with a status and a code.
func (w *world) refuse(status int, code, method, path, body string, headers ...string) {
	w.Helper()
	res := w.send(method, path, body, headers...)
	var p Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != status || p.Code != code || p.Status != status || p.Detail == "" {
		w.Errorf("%s %s: %s %+v %v; want %d %s", method, path, res.Status, p, err, status, code)
	}
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		w.Errorf("%s %s: the type of the problem is %s", method, path, got)
	}
}

// ask starts a run of the agent ask that waits for an answer.
func (w *world) ask() string {
	w.Helper()
	st := w.get(http.StatusCreated, "POST", "/runs?wait=60s", `{"agent": "ask", "prompt": "x"}`)
	if st["status"] != "waiting" {
		w.Fatalf("the run does not wait: %v", st)
	}
	return st["run"].(string)
}

func (w *world) awaitFile(name string) {
	w.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
			return
		}
		if time.Now().After(end) {
			w.Fatal("the script does not start")
		}
	}
}

// A message is one server-sent event.
type message struct{ event, id, data string }

// readMessages reads the messages of a stream, until its end or until it has most of them.
func (w *world) readMessages(res *http.Response, most int) (list []message) {
	w.Helper()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		w.Fatalf("%s, type %s", res.Status, got)
	}
	var m message
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			m.event = value
		case "id":
			m.id = value
		case "data":
			m.data = value
		case "":
			if m.data != "" {
				list = append(list, m)
			}
			if m = (message{}); len(list) == most {
				return list
			}
		}
	}
	return list
}

func ids(list []message) (all []string) {
	for _, m := range list {
		if m.id != "" {
			all = append(all, m.id)
		}
	}
	return all
}

// A run is started, asks, is answered and read, over the API alone.
func TestRun(t *testing.T) {
	w := newWorld(t)
	run := w.ask()
	if got := w.get(200, "GET", "/questions", "")["items"].([]any); len(got) != 1 || got[0].(map[string]any)["run"] != run {
		t.Errorf("questions: %v", got)
	}
	if got := w.get(200, "POST", "/runs/"+run+"/answers", `{"answers": [{"id": "ask", "value": "Ada"}]}`)["open"].([]any); len(got) != 0 {
		t.Errorf("open: %v", got)
	}
	list := w.readMessages(w.send("GET", "/runs/"+run+"/events", ""), -1)
	if last := list[len(list)-1]; last.event != "end" || last.data != `{"reason":"ended","status":"done"}` {
		t.Errorf("the stream ends with %+v", last)
	}
	if got := w.get(200, "GET", "/runs/"+run, ""); got["output"] != "Hello Ada" || got["status"] != "done" {
		t.Errorf("%v", got)
	}
	// Connecting again after each event gives the rest.
	all := ids(list)
	for i, id := range all {
		if got := ids(w.readMessages(w.send("GET", "/runs/"+run+"/events", "", "Last-Event-ID: "+id), -1)); !slices.Equal(got, all[i+1:]) {
			t.Errorf("after %s: %v, want %v", id, got, all[i+1:])
		}
	}
	if got := ids(w.readMessages(w.send("GET", "/runs/"+run+"/events?after="+all[0], ""), 1)); !slices.Equal(got, all[1:2]) {
		t.Errorf("after the first: %v", got)
	}
	w.get(204, "DELETE", "/runs/"+run, "")
	w.refuse(404, "unknown-run", "GET", "/runs/"+run, "")
}

// A second answer to a question is a conflict that says who answered, and when; a run shows its answers with their names.
func TestSecondAnswer(t *testing.T) {
	w := newWorld(t)
	w.caller = &server.Caller{Name: "ann", Scopes: server.Scopes}
	run := "/runs/" + w.ask()
	const answer = `{"answers": [{"id": "ask", "value": "Ada"}]}`
	w.get(200, "POST", run+"/answers", answer)
	w.caller.Name = "bob"
	w.refuse(409, "already-answered", "POST", run+"/answers", answer)
	var p Problem
	if err := json.NewDecoder(w.send("POST", run+"/answers", answer).Body).Decode(&p); err != nil || p.Answer == nil || p.Answer.By != "ann" || time.Since(p.Answer.At) > time.Minute {
		t.Errorf("%+v, %v", p, err)
	}
	given := w.get(200, "GET", run, "")["answers"].([]any)
	if len(given) != 1 || given[0].(map[string]any)["by"] != "ann" || given[0].(map[string]any)["id"] != "ask" {
		t.Errorf("answers of the run: %v", given)
	}
	if got := jsonText(t, w.get(200, "GET", run+"/history", "")); !strings.Contains(got, `"by":"ann"`) {
		t.Errorf("the history does not name who answered: %s", got)
	}
	copied := w.get(201, "POST", run+"/fork", `{"at": 2}`)["run"].(string)
	if got := jsonText(t, w.get(200, "GET", "/runs/"+copied+"/history", "")); !strings.Contains(got, `"by":"bob"`) {
		t.Errorf("the history of a fork does not name who forked: %s", got)
	}
}

// The text of files follows the prompt as with raddle run --file; their names are names and never paths to read.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.dir, "notes.txt"), "of this machine")
	data := base64.StdEncoding.EncodeToString([]byte("eins\nzwei\n"))
	for body, want := range map[string]string{
		`{"agent": "ask", "prompt": "Read", "files": [{"name": "notes.txt", "data": "` + data + `"}, {"name": "/etc/passwd", "data": ""}]}`: "Read\n\nFile notes.txt:\neins\nzwei\n\nFile /etc/passwd:\n",
		`{"agent": "ask", "files": [{"name": "notes.txt", "data": "` + data + `"}]}`:                                                        "eins\nzwei",
	} {
		st := w.get(201, "POST", "/runs?wait=60s", body)
		if st["prompt"] != want {
			t.Errorf("the prompt is %q, want %q", st["prompt"], want)
		}
		if got := jsonText(t, w.get(200, "GET", "/runs/"+st["run"].(string), "")); !strings.Contains(got, `"files":["notes.txt"`) {
			t.Errorf("the start does not name its files: %s", got)
		}
	}
	for _, body := range []string{`{"name": "notes.txt"}`, `{"name": "", "data": ""}`, `{"name": "x", "data": "no base64"}`, `"notes.txt"`, `{"name": "x", "path": "/etc/passwd"}`} {
		w.refuse(422, "invalid-request", "POST", "/runs", `{"agent": "ask", "files": [`+body+`]}`)
	}
	for _, body := range []string{`{"name": "a\nb", "data": ""}`, `{"name": "x", "data": "//79"}`} {
		w.refuse(400, "usage", "POST", "/runs", `{"agent": "ask", "files": [`+body+`]}`)
	}
	zeros := func(bytes int) string { return strings.Repeat("AAAA", bytes/3) }
	w.refuse(413, "too-large", "POST", "/runs", `{"agent": "ask", "files": [{"name": "a", "data": "`+zeros(14<<20)+`"}, {"name": "b", "data": "`+zeros(11<<20)+`"}]}`)
	w.refuse(413, "too-large", "POST", "/runs", `{"agent": "ask", "prompt": "`+strings.Repeat("x", 4<<20+1)+`"}`)
	w.refuse(413, "too-large", "POST", "/runs/last/answers", `{"answers": [{"value": "`+strings.Repeat("x", 4<<20)+`"}]}`)
	large := strings.Repeat("0123456789abcdef", 6<<20/16)
	st := w.get(201, "POST", "/runs?wait=60s", `{"agent": "ask", "files": [{"name": "a", "data": "`+base64.StdEncoding.EncodeToString([]byte(large))+`"}]}`)
	if st["prompt"] != large {
		t.Errorf("a file of 6 MiB becomes a prompt of %d bytes", len(st["prompt"].(string)))
	}
}

// The answer to a start can be the stream of the run's events, and a key starts one run only.
func TestStartStreams(t *testing.T) {
	w := newWorld(t)
	res := w.send("POST", "/runs", `{"agent": "ask", "prompt": "x"}`, "Accept: text/event-stream", "Idempotency-Key: k")
	list := w.readMessages(res, -1)
	if last := list[len(list)-1]; res.StatusCode != 201 || last.data != `{"reason":"ended","status":"waiting"}` || len(ids(list)) < 3 {
		t.Errorf("%s %+v", res.Status, list)
	}
	run := res.Header.Get("X-Raddle-Run")
	if got := w.get(201, "POST", "/runs", `{"agent": "ask", "prompt": "x"}`, "Idempotency-Key: k")["run"]; got != run {
		t.Errorf("the key gave run %v, want %s", got, run)
	}
	w.refuse(422, "key-reused", "POST", "/runs", `{"agent": "ask", "prompt": "y"}`, "Idempotency-Key: k")
}

// Every wrong request is refused with its code, and records nothing.
func TestProblems(t *testing.T) {
	w := newWorld(t)
	start := func(status int, code, body string) { t.Helper(); w.refuse(status, code, "POST", "/runs", body) }
	start(400, "bad-request", "")
	start(400, "bad-request", "{")
	start(422, "invalid-request", `{"prompt": "x"}`)
	start(422, "invalid-request", `{"agent": "ask", "unknown": 1}`)
	start(422, "invalid-request", `{"agent": 7}`)
	start(404, "unknown-agent", `{"agent": "nothing"}`)
	start(400, "usage", `{"agent": "../ask"}`)
	start(422, "invalid-agent", `{"agent": "broken"}`)
	start(413, "too-large", `{"agent": "ask", "prompt": "`+strings.Repeat("x", maxBody)+`"}`)
	w.refuse(422, "invalid-request", "POST", "/runs?wait=long", `{"agent": "ask"}`)
	w.refuse(422, "invalid-request", "POST", "/runs?unknown=1", `{"agent": "ask"}`)
	w.refuse(422, "invalid-request", "GET", "/runs?limit=0", "")
	w.refuse(400, "wrong-cursor", "GET", "/runs?cursor=!", "")
	w.refuse(404, "not-found", "GET", "/nothing", "")
	w.refuse(405, "wrong-method", "DELETE", "/runs", "")
	if got := w.get(200, "GET", "/runs", "")["items"].([]any); len(got) != 0 {
		t.Fatalf("runs were recorded: %v", got)
	}
	for _, path := range []string{"/runs/x", "/runs/x/events", "/runs/x/history", "/runs/x/state", "/runs/x/diff?a=1", "/runs/x/blame"} {
		w.refuse(404, "unknown-run", "GET", path, "")
	}
	for _, verb := range []string{"resume", "pause", "cancel"} {
		w.refuse(404, "unknown-run", "POST", "/runs/x/"+verb, "")
	}
	run := "/runs/" + w.ask()
	w.refuse(422, "wrong-answer", "POST", run+"/answers", `{"answers": [{"id": "other", "value": "x"}]}`)
	w.refuse(422, "wrong-answer", "POST", run+"/answers", `{"answers": [{"id": "ask", "value": 7}]}`)
	w.refuse(422, "invalid-request", "POST", run+"/answers", `{"answers": []}`)
	w.refuse(400, "wrong-position", "GET", run+"/events?after=x", "")
	w.refuse(409, "stale", "POST", run+"/pause", "")
	w.get(200, "POST", run+"/cancel", "")
	w.refuse(409, "run-ended", "POST", run+"/cancel", "")
	w.refuse(409, "run-ended", "POST", run+"/resume", "")
	if got := w.get(200, "GET", "/questions", "")["items"].([]any); len(got) != 0 {
		t.Errorf("questions of a cancelled run: %v", got)
	}
}

// A run that works can be paused, continued and cancelled, and not deleted.
func TestControl(t *testing.T) {
	w := newWorld(t)
	run := "/runs/" + w.get(201, "POST", "/runs", `{"agent": "wait"}`)["run"].(string)
	w.awaitFile("working")
	w.refuse(409, "run-busy", "DELETE", run, "")
	w.get(200, "POST", run+"/pause", "")
	w.write(filepath.Join(w.dir, "go"), "")
	if st, err := w.service.WaitRun(t.Context(), strings.TrimPrefix(run, "/runs/")); err != nil || st.Status != "paused" {
		t.Fatalf("%+v %v", st, err)
	}
	w.get(200, "POST", run+"/resume", "")
	if list := w.readMessages(w.send("GET", run+"/events", ""), -1); list[len(list)-1].data != `{"reason":"ended","status":"done"}` {
		t.Errorf("%+v", list)
	}
}

// Pages do not change when runs are added, and filters select.
func TestPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for range 5 {
		want = append([]string{w.ask()}, want...)
	}
	var got []string
	for cursor := ""; ; {
		page := w.get(200, "GET", "/runs?limit=2&cursor="+cursor, "")
		for _, r := range page["items"].([]any) {
			got = append(got, r.(map[string]any)["run"].(string))
		}
		if len(got) == 2 {
			w.ask()
		}
		if page["next_cursor"] == nil {
			break
		}
		cursor = page["next_cursor"].(string)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for query, n := range map[string]int{
		"agent=ask": 6, "agent=wait": 0, "status=waiting": 6, "status=done": 0, "text=WHO": 6, "text=zebra": 0, "session=s": 0,
		"since=2001-01-01T00:00:00Z": 6, "since=2999-01-01T00:00:00Z": 0,
	} {
		if got := len(w.get(200, "GET", "/runs?"+query, "")["items"].([]any)); got != n {
			t.Errorf("%s: %d runs, want %d", query, got, n)
		}
	}
}

// The past of a run is read, and a copy of it with other values continues.
func TestTravel(t *testing.T) {
	w := newWorld(t)
	run := w.ask()
	w.get(200, "POST", "/runs/"+run+"/edit", `{"state": {"who": "Eve"}}`)
	if got := w.get(200, "GET", "/runs/"+run+"/state", "")["state"].(map[string]any)["who"]; got != "Eve" {
		t.Errorf("who is %v", got)
	}
	points := w.get(200, "GET", "/runs/"+run, "")["checkpoints"].([]any)
	first := points[len(points)-1].(map[string]any)["at"].(float64)
	at := strings.TrimSuffix(jsonText(t, first), ".0")
	if got := w.get(200, "GET", "/runs/"+run+"/state?at="+at, "")["state"].(map[string]any)["who"]; got != nil {
		t.Errorf("at the start who was %v", got)
	}
	if got := jsonText(t, w.get(200, "GET", "/runs/"+run+"/diff?a="+at, "")["changes"]); !strings.Contains(got, `"is":"Eve","key":"who"`) {
		t.Errorf("changes: %s", got)
	}
	if text, _ := io.ReadAll(w.send("GET", "/runs/"+run+"/blame?key=who", "").Body); !bytes.Contains(text, []byte(`"kind":"edit"`)) {
		t.Errorf("blame: %s", text)
	}
	if text, _ := io.ReadAll(w.send("GET", "/runs/"+run+"/blame?at=1", "").Body); !bytes.Contains(text, []byte(`"kind":"start"`)) || bytes.Contains(text, []byte(`"kind":"edit"`)) {
		t.Errorf("blame at the start: %s", text)
	}
	file := w.send("GET", "/runs/"+run+"/export", "")
	if f, err := runfile.Read(file.Body); err != nil || f.Run.Run != run || !strings.Contains(file.Header.Get("Content-Disposition"), run+".raddle") {
		t.Errorf("export: %v %v", err, file.Header)
	}
	if got := w.get(200, "GET", "/runs/"+run+"/history?limit=3", ""); len(got["items"].([]any)) != 3 || got["next_cursor"] == nil {
		t.Errorf("history: %v", got)
	}
	copied := w.get(201, "POST", "/runs/"+run+"/fork", `{"at": `+at+`, "state": {"who": "Bob"}, "prompt": "other", "start": true}`)["run"].(string)
	st, err := w.service.WaitRun(t.Context(), copied)
	if err != nil || st.Status != "waiting" {
		t.Fatalf("%+v %v", st, err)
	}
	if got := w.get(200, "GET", "/runs/"+copied+"/state", "")["state"].(map[string]any); got["who"] != "Bob" || got["initial_prompt"] != "other" {
		t.Errorf("the state of the copy: %v", got)
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The catalogue shows agents and their own files, and no others.
func TestCatalogue(t *testing.T) {
	w := newWorld(t)
	text := jsonText(t, w.get(200, "GET", "/agents?limit=500", ""))
	for _, name := range []string{"ask", "wait", "broken"} {
		if !strings.Contains(text, `"name":"`+name+`"`) {
			t.Errorf("no agent %s in %s", name, text)
		}
	}
	got := w.get(200, "GET", "/agents/ask", "")
	if jsonText(t, got["files"]) != `["first.sh","graph.yaml"]` || got["description"] != "Greets a person." || got["structure"] == nil {
		t.Errorf("%v", got)
	}
	picture, _ := io.ReadAll(w.send("GET", "/agents/ask/picture.svg", "").Body)
	if !bytes.HasPrefix(picture, []byte("<svg")) {
		t.Errorf("picture: %.100s", picture)
	}
	script, _ := io.ReadAll(w.send("GET", "/agents/ask/files/first.sh", "").Body)
	if !strings.Contains(string(script), "# [redacted]") || strings.Contains(string(script), "hunter2") {
		t.Errorf("file: %s", script)
	}
	for _, path := range []string{".env", "notes.txt", "%2e%2e/wait/graph.yaml", "..%2fwait%2fgraph.yaml", "nothing"} {
		w.refuse(404, "unknown-file", "GET", "/agents/ask/files/"+path, "")
	}
	w.refuse(404, "unknown-agent", "GET", "/agents/nothing", "")
	w.refuse(422, "invalid-agent", "GET", "/agents/broken", "")
	w.refuse(400, "usage", "GET", "/agents/..%2Fask", "")
	w.get(200, "GET", "/sessions", "")
	w.refuse(404, "unknown-session", "GET", "/sessions/ask/none", "")
	w.get(200, "GET", "/models", "")
	w.get(200, "GET", "/tools", "")
	w.get(200, "GET", "/bases?agent=wait", "")
	w.refuse(400, "usage", "POST", "/bases/rag/search", `{"agent": "ask", "query": "x"}`)
}

// A caller may do only what its scopes say, whatever the operation.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	run := "/runs/" + w.ask()
	w.caller = &server.Caller{Name: "ci", Scopes: []server.Scope{server.ScopeRead}}
	w.get(200, "GET", run, "")
	w.refuse(403, "missing-scope", "POST", "/runs", `{"agent": "ask"}`)
	w.refuse(403, "missing-scope", "POST", run+"/fork", `{}`)
	w.refuse(403, "missing-scope", "POST", run+"/answers", `{"answers": [{"value": "x"}]}`)
	w.refuse(403, "missing-scope", "POST", run+"/edit", `{"state": {"who": "x"}}`)
	w.refuse(403, "missing-scope", "DELETE", run, "")
	w.caller.Scopes = []server.Scope{server.ScopeStart, server.ScopeAnswer, server.ScopeAdmin}
	w.refuse(403, "missing-scope", "GET", run, "")
	w.refuse(403, "missing-scope", "GET", run+"/events", "")
}

// The document is the golden one: a change of the API is seen. -update writes it.
func TestOpenAPI(t *testing.T) {
	got, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the document differs from %s (%v): go test ./server/api -update writes it, and build/apitypes the types of the Studio", path, err)
	}
	w := newWorld(t)
	served, _ := io.ReadAll(w.send("GET", "/api/openapi.json", "").Body)
	if !bytes.Equal(append(served, '\n'), got) {
		t.Error("the server serves another document")
	}
}

// The events of steps carry the state after the step, or what it wrote, if the client wants that.
func TestValuesOfSteps(t *testing.T) {
	w := newWorld(t)
	run := w.ask()
	w.get(http.StatusOK, "POST", "/runs/"+run+"/answers", `{"answers": [{"value": "Ada"}]}`)
	type step struct {
		Kind string
		Data struct {
			Nodes           []string
			Values, Updates map[string]any
		}
	}
	read := func(query string) (steps []step) {
		for _, m := range w.readMessages(w.send("GET", "/runs/"+run+"/events"+query, ""), 1<<30) {
			var s step
			if json.Unmarshal([]byte(m.data), &s) == nil && s.Kind == "step.committed" {
				steps = append(steps, s)
			}
		}
		return steps
	}
	for _, s := range read("") {
		if s.Data.Values != nil || s.Data.Updates != nil {
			t.Errorf("a step has values that were not wanted: %+v", s)
		}
	}
	steps := read("?values=true&updates=true")
	if len(steps) != 3 {
		t.Fatalf("%d steps", len(steps))
	}
	asked := steps[1].Data
	if _, whole := asked.Values["initial_prompt"]; asked.Updates["who"] != "Ada" || asked.Values["who"] != "Ada" || !whole || len(asked.Updates) >= len(asked.Values) {
		t.Errorf("the step of the question: %+v", asked)
	}
	if _, early := steps[0].Data.Values["who"]; early {
		t.Errorf("the first step: %+v", steps[0].Data)
	}
}

// A request can limit what its run may use, and how long the run waits.
func TestLimitsOfARun(t *testing.T) {
	w := newWorld(t)
	run := w.get(201, "POST", "/runs?wait=30s", `{"agent": "ask", "deadline": "2h", "budget": {"calls": 3, "cost": 0.5}}`)
	if due, _ := run["due"].(string); run["status"] != "waiting" || due == "" {
		t.Errorf("%v", run)
	}
	for _, wrong := range []string{`"deadline": "soon"`, `"deadline": "0s"`, `"budget": {"calls": 0}`, `"budget": {"cost": -1}`, `"budget": {"dollars": 1}`} {
		w.refuse(422, "invalid-request", "POST", "/runs", `{"agent": "ask", `+wrong+`}`)
	}
}
