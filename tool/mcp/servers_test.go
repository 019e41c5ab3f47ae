//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

const token = "tok-abcdef-123456"

// A logbook keeps what is logged and tells who waits for a line.
type logbook struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string
}

func newLogbook() *logbook { return &logbook{lines: make(chan string, 1000)} }

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.text.Write(p)
	l.mu.Unlock()
	l.lines <- string(p)
	return len(p), nil
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// wait waits for a line that holds a text.
func (l *logbook) wait(t *testing.T, text string) {
	t.Helper()
	for {
		select {
		case line := <-l.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("nothing with %q was logged", text)
		}
	}
}

// entry is an mcp.json with this test binary as the server of each mode.
func entry(t *testing.T, modes ...string) File {
	t.Helper()
	servers := map[string]any{}
	for _, m := range modes {
		servers[m] = map[string]any{"command": os.Args[0], "env": map[string]any{peerMode: m, "PEER_TOKEN": "{{TOKEN}}", "COUNT": 7, "FLAG": true}}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("mcp.json", data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func open(t *testing.T, f File, o Options) *Servers {
	t.Helper()
	if o.Lookup == nil {
		o.Lookup = func(name string) (string, bool) { return token, name == "TOKEN" }
	}
	s := Open(f, o)
	t.Cleanup(func() { s.Close() })
	return s
}

// tools starts servers that are known to work.
func tools(t *testing.T, s *Servers, ids ...string) map[string]tool.Tool {
	t.Helper()
	list, failed := s.Tools(t.Context(), ids)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	all := map[string]tool.Tool{}
	for _, v := range list {
		all[v.Name] = v
	}
	return all
}

// run runs a tool; an error is written as the loop would write it.
func run(t *testing.T, v tool.Tool, args string) tool.Result {
	t.Helper()
	if v.Run == nil {
		t.Fatal("there is no such tool")
	}
	r, err := v.Run(t.Context(), tool.Call{ID: "1", Args: json.RawMessage(args)})
	if err != nil {
		return tool.FailedResult("%v", err)
	}
	return r
}

func want(t *testing.T, r tool.Result, failed bool, text string) {
	t.Helper()
	if r.Error != failed || !strings.Contains(r.Text(), text) {
		t.Errorf("result %q (error %v), want %q (%v)", r.Text(), r.Error, text, failed)
	}
}

func TestToolsOfAServer(t *testing.T) {
	s := open(t, entry(t, "good"), Options{})
	list, failed := s.Tools(t.Context(), []string{"good", "good"})
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	var names []string
	for _, v := range list {
		names = append(names, v.Name)
	}
	wantNames := "mcp_invoke_good mcp_search_good mcp_describe_good mcp__good__die mcp__good__echo mcp__good__fail mcp__good__fetch " +
		"mcp__good__grow mcp__good__hang mcp__good__show mcp__good__whoami"
	if got := strings.Join(names, " "); got != wantNames {
		t.Errorf("tools are %s", got)
	}
	all := tools(t, s, "good")
	for name, effect := range map[string]tool.Effect{
		"mcp__good__echo": tool.ReadOnly, "mcp__good__fail": tool.Idempotent, "mcp__good__show": tool.Dangerous, "mcp__good__die": tool.Undeclared,
		"mcp_search_good": tool.ReadOnly, "mcp_invoke_good": tool.Undeclared,
	} {
		if v := all[name]; v.Effect != effect || v.Parallel != (effect == tool.ReadOnly) {
			t.Errorf("%s is %q, parallel %v", name, v.Effect, v.Parallel)
		}
	}
	want(t, run(t, all["mcp__good__echo"], `{"say":"žluť","n":12345678901234567890}`), false, `{"say":"žluť","n":12345678901234567890}`)
	want(t, run(t, all["mcp__good__echo"], ``), false, `{}`)
	want(t, run(t, all["mcp__good__fail"], `{}`), true, "no such ticket")
	want(t, run(t, all["mcp_invoke_good"], `{"tool":"echo","arguments":{"say":"x"}}`), false, `{"content":[{"type":"text","text":"{\"say\":\"x\"}"}]}`)
	want(t, run(t, all["mcp_invoke_good"], `{"tool":"echo","arguments":"{\"say\":\"y\"}"}`), false, `\"y\"`)
	want(t, run(t, all["mcp_invoke_good"], `{"tool":"fail"}`), true, `"isError":true`)
}

func TestFunctionsOfAServer(t *testing.T) {
	all := tools(t, open(t, entry(t, "good"), Options{Direct: -1}), "good")
	if len(all) != 3 {
		t.Errorf("%d tools, want three", len(all))
	}
	for _, c := range []struct {
		function, args string
		failed         bool
		want           string
	}{
		{"search", `{"query":"picture"}`, false, `[{"name":"show","server":"good","description":"Shows a picture."}]`},
		{"search", `{"query":"nothing fits"}`, false, `[]`},
		{"search", `{"query":"a tool","top_k":0}`, false, `[]`},
		{"search", `{}`, true, "Missing 'query' in arguments"},
		{"search", `{"query":1}`, true, "Invalid 'query' in arguments"},
		{"search", `{"query":"x","top_k":"many"}`, true, "Invalid 'top_k' in arguments"},
		{"describe", `{"tool":"echo"}`, false,
			`{"type":"object","properties":{"tool":{"type":"string"},"arguments":{"properties":{"say":{"type":"string"}},"type":"object"}}}`},
		{"describe", `{"tool":"ech"}`, true, "ech not found in good MCP server catalog. Near it: echo"},
		{"describe", `{}`, true, "Missing 'tool' in arguments"},
		{"invoke", `{"arguments":{}}`, true, "Missing 'tool' in arguments"},
		{"invoke", `{"tool":["echo"]}`, true, "Invalid 'tool' in arguments"},
		{"invoke", `{"tool":null}`, true, "Invalid 'tool' in arguments"},
		{"invoke", `{"tool":"echo","arguments":[1]}`, true, "Invalid 'arguments' in arguments"},
		{"invoke", `{"tool":"nope"}`, true, "nope not found in good MCP server catalog"},
		{"invoke", `no json`, true, "Missing 'tool' in arguments"},
	} {
		r := run(t, all["mcp_"+c.function+"_good"], c.args)
		text := c.want
		if c.failed {
			text = `{"tool_call_error":"` + c.want + `"}`
		}
		if r.Error != c.failed || r.Text() != text {
			t.Errorf("%s %s: %q (error %v), want %q", c.function, c.args, r.Text(), r.Error, text)
		}
	}
}

func TestContent(t *testing.T) {
	all := tools(t, open(t, entry(t, "good"), Options{}), "good")
	r := run(t, all["mcp__good__show"], `{}`)
	want(t, r, false, "a dot[4 bytes of audio/wav left out]\ninside\nResource b: file:///b.txt\n{\"dots\":1}")
	if len(r.Content) < 2 {
		t.Fatal("there is no picture")
	}
	if p, ok := r.Content[1].(llm.Image); !ok || p.MIME != "image/png" || !bytes.Equal(p.Data, dot) {
		t.Errorf("the picture is %+v", r.Content[1])
	}
	r = run(t, all["mcp_invoke_good"], `{"tool":"show"}`)
	want(t, r, false, `{"data":"attached","mimeType":"image/png","type":"image"}`)
	want(t, r, false, `"structuredContent":{"dots":1}`)
	if p, ok := r.Content[len(r.Content)-1].(llm.Image); !ok || !bytes.Equal(p.Data, dot) {
		t.Errorf("the last part is %+v", r.Content[len(r.Content)-1])
	}
}

func TestSecrets(t *testing.T) {
	log := newLogbook()
	s := open(t, entry(t, "complains"), Options{Log: log.logger(), Redact: strings.NewReplacer("outer-secret", "[redacted]").Replace})
	all := tools(t, s, "complains")
	log.wait(t, "using key [redacted] now")
	want(t, run(t, all["mcp__complains__whoami"], `{}`), false, "token [redacted], count 7, flag true")
	want(t, run(t, all["mcp__complains__echo"], `{"say":"outer-secret"}`), false, `{"say":"[redacted]"}`)
	f := entry(t, "complains")
	if got := f.Secrets(func(string) (string, bool) { return token, true }); len(got) != 1 || got[0] != token {
		t.Errorf("secrets are %q", got)
	}
	s.Close()
	if strings.Contains(log.text.String(), token) {
		t.Errorf("the log holds the secret:\n%s", &log.text)
	}
}

func TestBrokenServersAreLeftOut(t *testing.T) {
	f := entry(t, "good", "dies", "silent", "prints")
	more, err := Parse("other.json", []byte(`{"mcpServers":{
		"absent":{"command":"no-such-program"},"keyless":{"command":"x","args":["${NO_SUCH_KEY}","{{NOR_THIS}}"]},"wrong":{"command":3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	f.Servers = append(f.Servers, more.Servers...)
	s := open(t, f, Options{StartTimeout: 3 * time.Second})
	list, failed := s.Tools(t.Context(), []string{"wrong", "dies", "absent", "silent", "keyless", "good", "unknown", "prints"})
	if len(list) != 22 {
		t.Errorf("%d tools, want those of two servers", len(list))
	}
	texts := []string{
		"MCP server 'wrong': other.json:2:128: it has a \"command\" that is not a string",
		"MCP server 'dies': it could not be started: " + os.Args[0] + " ended with exit code 3",
		"MCP server 'absent': it could not be started: no-such-program could not be started",
		"MCP server 'silent': it was not ready within 3s",
		"MCP server 'keyless': other.json:2:42: it refers to variables that are not set: NOR_THIS, NO_SUCH_KEY; set them",
		"MCP server 'unknown': unknown MCP server not found in config, which has",
	}
	if len(failed) != len(texts) {
		t.Fatalf("failed are %v", failed)
	}
	for i, text := range texts {
		var e *ServerError
		if !errors.As(failed[i], &e) || !strings.HasPrefix(failed[i].Error(), text) {
			t.Errorf("error %q, want %q", failed[i], text)
		}
	}
}

func TestKilledDuringACall(t *testing.T) {
	s := open(t, entry(t, "good"), Options{})
	all := tools(t, s, "good")
	whoami := all["mcp__good__whoami"]
	before := run(t, whoami, `{}`).Text()
	want(t, run(t, all["mcp__good__die"], `{}`), true, "was lost during the call ("+os.Args[0]+" was ended by SIGKILL)")
	after := run(t, whoami, `{}`)
	want(t, after, false, "pid")
	if after.Text() == before {
		t.Error("the server was not started again")
	}
}

func TestKilledAgainAndAgain(t *testing.T) {
	s := open(t, entry(t, "good"), Options{Restarts: 1})
	all := tools(t, s, "good")
	for range 2 {
		want(t, run(t, all["mcp_invoke_good"], `{"tool":"die"}`), true, "SIGKILL")
	}
	want(t, run(t, all["mcp_invoke_good"], `{"tool":"die"}`), true, "it is not started again: 2 starts in a row failed")
}

func TestPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 0, 1: 0, 2: 500 * time.Millisecond, 3: time.Second, 100: 30 * time.Second} {
		if got := restartDelay(failures); got != want {
			t.Errorf("pause(%d) = %v, want %v", failures, got, want)
		}
	}
}

func TestCallTimeout(t *testing.T) {
	log := newLogbook()
	s := open(t, entry(t, "good"), Options{CallTimeout: time.Second, Log: log.logger()})
	all := tools(t, s, "good")
	before := run(t, all["mcp__good__whoami"], `{}`).Text()
	want(t, run(t, all["mcp__good__hang"], `{}`), true, "MCP server 'good' timed out after 1s")
	log.wait(t, "cancelled") // the server got the notice
	if run(t, all["mcp__good__whoami"], `{}`).Text() != before {
		t.Error("one slow call ended the server")
	}
	for range 2 {
		want(t, run(t, all["mcp__good__hang"], `{"say":"for good"}`), true, "timed out")
	}
	if run(t, all["mcp__good__whoami"], `{}`).Text() == before {
		t.Error("a server that hangs was not started again")
	}
}

func TestCancelledCall(t *testing.T) {
	log := newLogbook()
	s := open(t, entry(t, "good"), Options{Log: log.logger()})
	all := tools(t, s, "good")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := all["mcp__good__hang"].Run(ctx, tool.Call{Args: json.RawMessage(`{}`)})
		done <- err
	}()
	log.wait(t, "hanging")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	log.wait(t, "cancelled")
}

func TestManyToolsOnPages(t *testing.T) {
	all := tools(t, open(t, entry(t, "many"), Options{}), "many")
	if len(all) != 3 {
		t.Errorf("%d tools, want three", len(all))
	}
	want(t, run(t, all["mcp_describe_many"], `{"tool":"tool_299"}`), false, `"arguments"`)
	want(t, run(t, all["mcp_invoke_many"], `{"tool":"tool_150"}`), false, `done`)
	var hits []hit
	if err := json.Unmarshal([]byte(run(t, all["mcp_search_many"], `{"query":"thing number","top_k":100}`).Text()), &hits); err != nil || len(hits) != 20 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
	want(t, run(t, all["mcp_search_many"], `{"query":"number 217"}`), false, `[{"name":"tool_217"`)
}

func TestToolsThatChange(t *testing.T) {
	s := open(t, entry(t, "good"), Options{})
	all := tools(t, s, "good")
	run(t, all["mcp__good__grow"], `{}`)
	for deadline := time.Now().Add(30 * time.Second); ; { // the notice comes with the result
		if run(t, all["mcp_describe_good"], `{"tool":"grown"}`).Error == false {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new tool was not seen")
		}
	}
	if _, ok := tools(t, s, "good")["mcp__good__grown"]; !ok {
		t.Error("the new tool is not offered")
	}
}

func TestAgentsShareAConnection(t *testing.T) {
	s := open(t, entry(t, "good"), Options{})
	pids := make([]string, 8)
	var all sync.WaitGroup
	for i := range pids {
		all.Go(func() {
			list, _ := s.Tools(t.Context(), []string{"good"})
			if len(list) > 0 {
				pids[i] = run(t, list[len(list)-1], `{}`).Text()
			}
		})
	}
	all.Wait()
	for _, p := range pids {
		if p == "" || p != pids[0] {
			t.Errorf("%q and %q answered", p, pids[0])
		}
	}
}

func TestCloseEndsCallsAndServers(t *testing.T) {
	log := newLogbook()
	s := open(t, entry(t, "good", "silent"), Options{Log: log.logger()})
	all := tools(t, s, "good")
	go s.Tools(context.Background(), []string{"silent"})
	done := make(chan tool.Result, 1)
	go func() { done <- run(t, all["mcp__good__hang"], `{"say":"for good"}`) }()
	log.wait(t, "hanging")
	s.Close()
	want(t, <-done, true, "was lost during the call")
	want(t, run(t, all["mcp__good__echo"], `{}`), true, "closed")
	if left := children(t); left != "" {
		t.Errorf("left running: %s", left)
	}
}

// children lists the processes that this one has started and that are left.
func children(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=,args=", "--ppid", fmt.Sprint(os.Getpid())).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatalf("ps: %v", err)
	}
	var left []string
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "ps -o") {
			left = append(left, line)
		}
	}
	return strings.Join(left, "")
}

// A remote is a server of its own, on the network.
type remote struct {
	*exec.Cmd
	address string
}

func serve(t *testing.T, mode, port string) *remote {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerMode+"="+mode, "PEER_TOKEN="+token, "PEER_PORT="+port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &remote{Cmd: cmd, address: strings.TrimSpace(line)}
}

func TestServersOnTheNetwork(t *testing.T) {
	for _, mode := range []string{"http", "sse"} {
		t.Run(mode, func(t *testing.T) {
			r := serve(t, mode, "0")
			f, err := Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{
				"it":{"type":%q,"url":"http://%s","headers":{"Authorization":"Bearer ${TOKEN}"}},
				"keyless":{"type":%[1]q,"url":"http://%[2]s"}}}`, mode, r.address))
			if err != nil {
				t.Fatal(err)
			}
			s := open(t, f, Options{CallTimeout: 20 * time.Second, StartTimeout: 10 * time.Second})
			if _, failed := s.Tools(t.Context(), []string{"keyless"}); len(failed) != 1 {
				t.Errorf("without a key: %v", failed)
			}
			all := tools(t, s, "it")
			want(t, run(t, all["mcp__it__echo"], `{"say":"x"}`), false, `{"say":"x"}`)
			want(t, run(t, all["mcp__it__whoami"], `{}`), false, `token [redacted]`)
			want(t, run(t, all["mcp__it__die"], `{}`), true, "was lost during the call")
			r.Wait()
			_, port, _ := strings.Cut(r.address, ":")
			second := serve(t, mode, port)
			want(t, run(t, all["mcp__it__echo"], `{"say":"again"}`), false, `again`)
			if mode == "http" { // it may be replaced between calls, too
				second.Process.Kill()
				second.Wait()
				serve(t, mode, port)
				again := run(t, all["mcp__it__echo"], `{"say":"and again"}`)
				if again.Error { // its end had not been noticed before the call
					want(t, again, true, "was lost during the call")
					again = run(t, all["mcp__it__echo"], `{"say":"and again"}`)
				}
				want(t, again, false, `and again`)
			}
		})
	}
}

func TestRelativeDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := entry(t, "good")
	f.Servers[0].Dir = "sub"
	all := tools(t, open(t, f, Options{Dir: dir}), "good")
	want(t, run(t, all["mcp__good__whoami"], `{}`), false, filepath.Join(dir, "sub"))
}

// A server on the network to which no connection is made says why in words, once, and not what was sent.
func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"http", "sse"} {
		f, err := Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers": {"gone": {"type": %q, "url": "http://%s/mcp"}}}`, mode, gone.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		_, failed := open(t, f, Options{}).Tools(t.Context(), []string{"gone"})
		if want := "MCP server 'gone': " + gone.Addr().String() + " refuses connections: does the server run there?"; len(failed) != 1 || failed[0].Error() != want {
			t.Errorf("%s: %v, want %s", mode, failed, want)
		}
	}
}
