//go:build unix

package cli_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/testkit/llmtest"
)

// These are a picture and a document, as far as raddle looks at them.
const (
	testPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
	testPDF = "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"
)

// A viewer is a strict provider that keeps what it was sent.
type viewer struct {
	url    string
	mu     sync.Mutex
	bodies []string
	fail   atomic.Bool // it refuses all requests
}

func startViewer(t *testing.T, v llmtest.Vendor) *viewer {
	m := &viewer{}
	server := httptest.NewServer(v.NewHandler(func(body []byte) (llmtest.Turn, int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.bodies = append(m.bodies, string(body))
		if m.fail.Load() {
			return llmtest.Turn{Text: "not now"}, http.StatusForbidden
		}
		return llmtest.Turn{Text: "seen"}, http.StatusOK
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *viewer) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.bodies...)
}

// workplace returns a directory with agents and files, whose model is the viewer behind a client of a type.
func (m *viewer) workplace(t *testing.T, client string) *workplace {
	w := newWorkplace(t, `
-- helper/config.yaml --
name: helper
instructions: You help.
-- sees/graph.yaml --
name: sees
start: look
nodes:
  look: {type: llm, prompt: "{{initial_prompt}}", state_updates: {said: "{{output}}"}, next: call}
  call: {type: agent, agent: below, prompt: "Again: {{initial_prompt}}", next: think}
  think: {type: llm, prompt: "Think about {{said}}", next: done}
  done: {type: end, output: "{{said}}"}
-- below/config.yaml --
name: below
instructions: You are asked.
-- blind/graph.yaml --
name: blind
start: done
nodes:
  done: {type: end, output: "{{initial_prompt}}"}
-- docs/a.md --
text a
-- docs/deep/b.md --
text b
-- docs/.env --
SECRET=1
-- docs/node_modules/c.md --
text c
`)
	w.write(".config/raddle/config.yaml", "model: local:small\nclients: [{name: local, type: "+client+", api_base: \""+m.url+"\", api_key: k}]\n")
	w.write("pic.png", testPNG)
	w.write("docs/pic.png", testPNG)
	w.write("docs/data.bin", "\xff\xfe\x00")
	w.write("paper.pdf", testPDF)
	return w
}

func in64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// The bytes of a picture and of a document reach each provider, and a later run of the session sends them again.
func TestRunSendsPictures(t *testing.T) {
	for client, c := range map[string]struct {
		vendor llmtest.Vendor
		want   []string
	}{
		"openai-compatible": {llmtest.OpenAI(), []string{`"url":"data:image/png;base64,` + in64(testPNG) + `"`, `"file_data":"data:application/pdf;base64,` + in64(testPDF) + `"`, `"filename":"paper.pdf"`}},
		"claude":            {llmtest.Anthropic(), []string{`"media_type":"image/png"`, in64(testPNG), `"media_type":"application/pdf"`, in64(testPDF)}},
		"gemini":            {llmtest.Gemini(), []string{`"mimeType":"image/png"`, in64(testPNG), `"mimeType":"application/pdf"`, in64(testPDF)}},
	} {
		t.Run(client, func(t *testing.T) {
			m := startViewer(t, c.vendor)
			w := m.workplace(t, client)
			r := w.run("run", "./helper", "-s", "talk", "-f", "pic.png", "-f", "paper.pdf", "What is this?")
			if r.code != 0 || strings.TrimSpace(r.out) != "seen" || !strings.Contains(r.err, "📎 pic.png · 33 bytes") {
				t.Fatalf("%+v", r)
			}
			if r := w.run("run", "./helper", "-s", "talk", "and now?"); r.code != 0 {
				t.Fatalf("%+v", r)
			}
			all := m.requests()
			for i, body := range all {
				for _, want := range append(c.want, "What is this?", "File pic.png is attached.") {
					if strings.Count(body, want) != 1 {
						t.Errorf("request %d has %q %d times: %s", i, want, strings.Count(body, want), body)
					}
				}
			}
			if len(all) != 2 {
				t.Errorf("%d requests", len(all))
			}
		})
	}
}

// A run that failed sends the same picture when it is resumed, a fork of it has it, and so has its replay after an export and an import.
func TestPicturesAreInTheJournal(t *testing.T) {
	m := startViewer(t, llmtest.OpenAI())
	w := m.workplace(t, "openai-compatible")
	m.fail.Store(true)
	if r := w.run("run", "./helper", "-f", "pic.png", "What is this?"); r.code == 0 {
		t.Fatalf("%+v", r)
	}
	m.fail.Store(false)
	if err := os.Remove(filepath.Join(w.dir, "pic.png")); err != nil {
		t.Fatal(err)
	}
	if r := w.run("resume", "last"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if all := m.requests(); len(all) != 2 || !strings.Contains(all[1], in64(testPNG)) {
		t.Fatalf("%d requests: %s", len(all), all)
	}
	run := w.runs()[0].Run
	for _, args := range [][]string{{"runs", "export", run, "-o", "x.raddle"}, {"replay", run}, {"replay", "x.raddle"}, {"runs", "rm", run}, {"runs", "import", "x.raddle"}} {
		if r := w.run(args...); r.code != 0 {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if n := len(m.requests()); n != 2 {
		t.Errorf("%d requests: a replay sends none", n)
	}
	r := w.run("runs", "show", run)
	if !strings.Contains(r.out, "pic.png") || strings.Contains(r.out, in64(testPNG)) {
		t.Errorf("%+v", r)
	}
}

// A graph gives what is attached to the nodes whose prompt has that of the run, to agents below them too, and to no other node. Scripts
// and the output never see the bytes; a graph without such a node refuses before the run.
func TestGraphsTakePictures(t *testing.T) {
	m := startViewer(t, llmtest.OpenAI())
	w := m.workplace(t, "openai-compatible")
	r := w.run("run", "./sees", "-f", "pic.png", "What is this?", "--output", "json")
	if r.code != 0 || strings.Contains(r.out, in64(testPNG)) {
		t.Fatalf("%+v", r)
	}
	all := m.requests()
	if len(all) != 3 {
		t.Fatalf("%d requests", len(all))
	}
	for i, want := range []int{1, 1, 0} {
		if got := strings.Count(all[i], in64(testPNG)); got != want {
			t.Errorf("request %d has the picture %d times, want %d: %s", i, got, want, all[i])
		}
	}
	if r := w.run("replay", "last"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	r = w.run("run", "./blind", "-f", "pic.png", "What is this?")
	if r.code != 2 || !strings.Contains(r.err, "takes no pictures or documents") || !strings.Contains(r.err, "next: write {{initial_prompt}} into the prompt") {
		t.Errorf("%+v", r)
	}
	if n := len(w.runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// -f takes directories, patterns and addresses, says what it took, and what it left out and why.
func TestRunTakesDirectories(t *testing.T) {
	m := startViewer(t, llmtest.OpenAI())
	w := m.workplace(t, "openai-compatible")
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pic":
			fmt.Fprint(rw, testPNG)
		case "/page":
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprint(rw, "<h1>A page</h1>")
		case "/away":
			http.Redirect(rw, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(web.Close)
	if err := os.Symlink("/etc/hosts", filepath.Join(w.dir, "docs", "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(w.dir, "docs", "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		sent, not []string
		told      []string
	}{
		{"docs", []string{"File docs/a.md:", "text a", "File docs/deep/b.md:"}, []string{"SECRET", "text c", in64(testPNG)},
			[]string{"2 files of docs, 14 bytes", "left out: docs/pic.png: of a directory, only text is taken", "left out: docs/data.bin: is not UTF-8 text", "left out: docs/link.md:", "leads out of", "left out: docs/pipe.md:", "a pipe"}},
		{"docs/**/*.md", []string{"text a", "text b"}, []string{"SECRET", in64(testPNG)}, []string{"2 files of docs/**/*.md"}},
		{"docs/*.png", []string{in64(testPNG), "File docs/pic.png is attached."}, []string{"text a"}, []string{"1 file of docs/*.png, 33 bytes"}},
		{web.URL + "/pic", []string{in64(testPNG)}, nil, []string{"📎 pic · 33 bytes · http://127.0.0.1"}},
		{web.URL + "/page", []string{"# A page"}, nil, nil},
	} {
		r := w.run("run", "./helper", "-f", c.name, "Read")
		if r.code != 0 {
			t.Errorf("%s: %+v", c.name, r)
			continue
		}
		all := m.requests()
		for _, want := range c.sent {
			if !strings.Contains(all[len(all)-1], want) {
				t.Errorf("%s: the request lacks %q: %s", c.name, want, all[len(all)-1])
			}
		}
		for _, not := range c.not {
			if strings.Contains(all[len(all)-1], not) {
				t.Errorf("%s: the request has %q", c.name, not)
			}
		}
		for _, want := range c.told {
			if !strings.Contains(r.err, want) {
				t.Errorf("%s: standard error lacks %q: %s", c.name, want, r.err)
			}
		}
	}
	w.write("lie.png", "text")
	w.write("empty.png", "")
	w.write("large.png", testPNG+strings.Repeat("\x00", 30<<20))
	for name, wrong := range map[string]string{
		"lie.png": "named like a picture", "empty.png": "is empty", "large.png": "larger than 10 MB", "docs/pipe.md": "it is a pipe", "docs/none/*.md": "no such file",
		"docs/*.zip": "no file that can be attached", "none.png": "no such file", web.URL + "/none": "404", web.URL + "/away": "redirects to",
		"http://example.com/x": "use https://", "docs/[a.md": "is not a pattern",
	} {
		if r := w.run("run", "./helper", "-f", name, "Read"); r.code != 2 || !strings.Contains(r.err, wrong) {
			t.Errorf("%s: %+v, want %q", name, r, wrong)
		}
	}
}

// In a conversation a picture is attached with @, by the path that a terminal pastes, with /file, and by /retry again.
func TestChatAttachesPictures(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	w.write("my pic.png", testPNG)
	w.write("bin/wl-paste", "#!/bin/sh\ncase \"$*\" in *image/png*) cat \"$HOME/my pic.png\";; *) exit 1;; esac\n")
	if err := os.Chmod(filepath.Join(w.dir, "bin/wl-paste"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"), "WAYLAND_DISPLAY=wayland-0", "HOME="+w.dir)
	s := w.chat(100, "chat", "./helper")
	s.shows(100, chatPrompt)
	s.press(`look at @"my pic.png"`, enter)
	s.shows(100, "📎 my pic.png · 33 bytes")
	s.shows(100, "heard: look at")
	s.press("/retry", enter)
	s.seen.until(t, "the reply again", func(all string) bool { return strings.Count(all, "heard: look at") >= 2 })
	s.press("see ", "\x1b[200~"+strings.ReplaceAll(filepath.Join(w.dir, "my pic.png"), " ", `\ `)+"\x1b[201~", enter)
	s.shows(100, "heard: see @")
	s.press("\x16")
	s.shows(100, "Your next message gets 📎 clipboard-1.png · 33 bytes")
	s.press("and this", enter)
	s.shows(100, "heard: File clipboard-1.png is attached.")
	s.leave()
	all := m.requests()
	if len(all) != 4 {
		t.Fatalf("%d requests", len(all))
	}
	for i, want := range []int{1, 1, 2, 3} {
		if got := strings.Count(all[i], in64(testPNG)); got != want {
			t.Errorf("request %d has the picture %d times, want %d: %s", i, got, want, all[i])
		}
	}
}

// Clients of the server attach pictures and documents in the form of each protocol. What is declared as a picture and is none, is too large, or
// lies behind an address is refused before a run.
func TestServersTakePictures(t *testing.T) {
	m := startViewer(t, llmtest.OpenAI())
	w := m.workplace(t, "openai-compatible")
	w.installAgent("helper")
	s := w.serve()
	png, pdf := in64(testPNG), in64(testPDF)
	a2aCall := func(part string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Look"},` + part + `]}}}`
	}
	aguiCall := func(id, part string) string {
		return `{"threadId":"t` + id + `","runId":"r` + id + `","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[{"id":"m","role":"user","content":[{"type":"text","text":"Look"},` + part + `]}]}`
	}
	openaiCall := func(part string) string {
		return `{"model":"helper","messages":[{"role":"user","content":[{"type":"text","text":"Look"},` + part + `]}]}`
	}
	apiCall := func(file string) string { return `{"agent":"helper","prompt":"Look","files":[` + file + `]}` }
	const api, openai, agui, a2a = "/api/v1/runs?wait=30s", "/v1/chat/completions", "/agui/helper", "/a2a/helper"
	for name, c := range map[string]struct{ path, body, want string }{
		"api":           {api, apiCall(`{"name":"a.png","data":"` + png + `","type":"image/png"}`), png},
		"api document":  {api, apiCall(`{"name":"a.pdf","data":"` + pdf + `"}`), pdf},
		"openai":        {openai, openaiCall(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}`), png},
		"openai file":   {openai, openaiCall(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`), pdf},
		"agui":          {agui, aguiCall("1", `{"type":"binary","mimeType":"image/png","data":"`+png+`"}`), png},
		"agui data URL": {agui, aguiCall("2", `{"type":"binary","mimeType":"image/png","url":"data:image/png;base64,`+png+`"}`), png},
		"agui source":   {agui, aguiCall("3", `{"type":"document","source":{"type":"data","value":"`+pdf+`","mimeType":"application/pdf"}}`), pdf},
		"a2a":           {a2a, a2aCall(`{"raw":"` + png + `","mediaType":"image/png","filename":"a.png"}`), png},
	} {
		before := len(m.requests())
		status, text := s.do("POST", c.path, c.body, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("A2A-Version", "1.0")
		})
		all := m.requests()
		if status/100 != 2 || len(all) != before+1 || strings.Count(all[len(all)-1], c.want) != 1 {
			t.Errorf("%s: %d %s; %d requests", name, status, text, len(all)-before)
		}
		if strings.Contains(text, c.want) && c.path != agui { // whose snapshots repeat the messages of the client
			t.Errorf("%s: the answer has the bytes: %s", name, text)
		}
	}
	before := len(m.requests())
	large := strings.Repeat("A", 15<<20)
	for name, c := range map[string]struct{ path, body, want string }{
		"api":              {api, apiCall(`{"name":"a.png","data":"` + in64("text") + `","type":"image/png"}`), "its content is something else"},
		"api large":        {api, apiCall(`{"name":"a.png","data":"` + png + large + `"}`), "may have 10 MB"},
		"openai":           {openai, openaiCall(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + in64("text") + `"}}`), "its content is something else"},
		"openai large":     {openai, openaiCall(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + large + `"}}`), "may have 10 MB"},
		"openai address":   {openai, openaiCall(`{"type":"image_url","image_url":{"url":"` + m.url + `"}}`), "nothing is fetched"},
		"agui":             {agui, aguiCall("4", `{"type":"binary","mimeType":"image/png","data":"`+in64("text")+`"}`), "its content is something else"},
		"agui address":     {agui, aguiCall("5", `{"type":"image","source":{"type":"url","value":"`+m.url+`"}}`), "nothing is fetched"},
		"a2a":              {a2a, a2aCall(`{"raw":"` + in64("text") + `","mediaType":"image/png"}`), "its content is something else"},
		"agui long text":   {agui, aguiCall("6", `{"type":"text","text":"`+strings.Repeat("x", 5<<20)+`"}`), "the prompt has 5242885 bytes, and may have 4194304"},
		"a2a address":      {a2a, a2aCall(`{"url":"` + m.url + `","mediaType":"image/png"}`), "nothing is fetched"},
		"too large a body": {openai, openaiCall(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + large + large + large + `"}}`), "the largest that this address takes"},
	} {
		status, text := s.do("POST", c.path, c.body, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("A2A-Version", "1.0")
		})
		if status/100 == 2 && c.path != a2a && c.path != agui || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %.500s, want %q", name, status, text, c.want)
		}
	}
	if n := len(m.requests()) - before; n != 0 {
		t.Errorf("%d requests", n)
	}
}

// installAgent copies an agent of the workplace to the agents directory.
func (w *workplace) installAgent(name string) {
	w.t.Helper()
	if err := os.CopyFS(filepath.Join(w.dir, ".config/raddle/agents", name), os.DirFS(filepath.Join(w.dir, name))); err != nil {
		w.t.Fatal(err)
	}
}

// What people and programs read of a run names what is attached and how large it is, and never has the bytes.
func TestPicturesAreNotPrinted(t *testing.T) {
	m := startViewer(t, llmtest.OpenAI())
	w := m.workplace(t, "openai-compatible")
	for _, args := range [][]string{
		{"run", "./helper", "-f", "pic.png", "Look", "--output", "json"}, {"run", "./helper", "-f", "pic.png", "Look", "--output", "stream-json"},
		{"run", "./sees", "-f", "pic.png", "Look", "--output", "stream-json"},
		{"run", "./helper", "-f", "pic.png", "Look", "--dry-run"},
		{"runs", "show", "last"}, {"runs", "show", "last", "--output", "json"}, {"runs", "history", "last"}, {"runs", "history", "last", "--raw"}, {"runs", "ls"},
	} {
		if r := w.run(args...); r.code != 0 || strings.Contains(r.out+r.err, in64(testPNG)) {
			t.Errorf("%v: %d %s %s", args, r.code, r.out, r.err)
		}
	}
}

// A picture that a tool returns goes to the model, and is saved as a file of the run that is named on the terminal; what only says that it is a picture
// is not. The file goes with the run.
func TestPicturesOfTools(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "cam", Version: "1"}, nil)
	spec := &sdk.Tool{Name: "shot", InputSchema: map[string]any{"type": "object"}, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}
	server.AddTool(spec, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte(testPNG)}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("text")}}}, nil
	})
	w := newWorkplace(t, `
-- shop/config.yaml --
name: Shop
model: script:t.yaml
mcp_servers: [cam]
-- shop/t.yaml --
- tool_calls: [{name: mcp__cam__shot, args: {}}]
- text: There it is.
`)
	w.write("shop/mcp.json", fmt.Sprintf(`{"mcpServers": {"cam": {"type": "http", "url": %q}}}`, serveTools(t, server)))
	r := w.run("run", "./shop", "look")
	found := regexp.MustCompile(`📎 [0-9a-f]{16}\.png · 33 bytes · (.+)`).FindAllStringSubmatch(r.err, -1)
	if r.code != 0 || len(found) != 1 {
		t.Fatalf("%+v", r)
	}
	path := found[0][1]
	if content, err := os.ReadFile(path); err != nil || string(content) != testPNG {
		t.Fatalf("%q %v", content, err)
	}
	if r := w.run("runs", "rm", w.runs()[0].Run); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", path, err)
	}
}
