//go:build unix

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/tool"
)

// misread is what the model reads of a result that raddle cannot use.
const misread = "the tool has run, but its result cannot be read, and a repetition will not change that"

func TestOneCallOfAMisbehavingServerFailsAtMost(t *testing.T) {
	wants := map[string]string{ // the others answer "done"
		"unknown content type":       misread + `: calling \"tools/call\": unrecognized content type \"video\"`,
		"image that is no base64":    misread,
		"audio that is no base64":    misread,
		"blob that is no base64":     misread,
		"content without a type":     misread,
		"content that is null":       misread,
		"content that is a string":   misread,
		"text that is a number":      misread,
		"result that is a list":      misread,
		"result that is a string":    misread,
		"deep result":                misread,
		"result that is null":        "the answer cannot be read: it has neither a result nor an error",
		"neither result nor error":   "the answer cannot be read: it has neither a result nor an error",
		"error that is a string":     "no luck",
		"error with a code in words": "no luck",
		"error without a message":    "an error without a message",
		"error without an id":        "no luck",
		"error of our codes":         "no luck",
		"half a line and the end":    "ended with exit code 3; its last lines on stderr: the licence has run out",
		"the end without a word":     "ended with exit code 3; its last lines on stderr: the licence has run out",
		"huge result":                "the answer cannot be read: it has 18.0 MiB, and the limit is 16 MiB; ask for less at once",
		"huge result before an id":   "the answer cannot be read: it has 18.0 MiB",

		"huge result over several lines": "the answer cannot be read: it has 18.0 MiB, and the limit is 16 MiB; ask for less at once",
		"huge line of several":           "the answer cannot be read: it has 18.0 MiB",
		"the end of the output":          "was lost during the call (it has closed its output, and was ended; its last lines on stderr: the licence has run out)",
	}
	empty := []string{"no content", "resource that is null"}
	all := tools(t, open(t, entry(t, "raw"), Options{}), "raw")
	pid := func() string {
		r := run(t, all["mcp__raw__seen"], `{}`)
		if r.Error { // it has ended by itself, and that had not been noticed before
			want(t, r, true, "was lost during the call")
			r = run(t, all["mcp__raw__seen"], `{}`)
		}
		word, _, _ := strings.Cut(r.Text(), " ")
		return word
	}
	for _, how := range slices.Sorted(maps.Keys(ways())) {
		if how == "nothing" || strings.HasPrefix(how, "a flood") {
			continue // TestCallTimeout and TestCancelledIsSent wait for nothing, TestFloodsTakeNoMemory for floods
		}
		t.Run(how, func(t *testing.T) {
			before := pid()
			for name, args := range map[string]string{"mcp__raw__misbehave": `{"how":%q}`, "mcp_invoke_raw": `{"tool":"misbehave","arguments":{"how":%q}}`} {
				pid() // it runs
				r := run(t, all[name], fmt.Sprintf(args, how))
				text, failed := wants[how]
				if !failed && !slices.Contains(empty, how) {
					text = "done"
				}
				want(t, r, failed, text)
			}
			if ended := strings.Contains(how, "the end"); (pid() == before) == ended {
				t.Errorf("the server was started again: %v", !ended)
			}
		})
	}
}

// ways are all ways to misbehave.
func ways() map[string]bool {
	all := map[string]bool{}
	for how := range lines {
		all[how] = true
	}
	for how := range acts {
		all[how] = true
	}
	return all
}

// What a server writes without an end takes neither memory nor much time.
func TestFloodsTakeNoMemory(t *testing.T) {
	all := tools(t, open(t, entry(t, "raw"), Options{}), "raw")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, how := range []string{"a flood on stdout", "a flood on stderr"} {
		want(t, run(t, all["mcp__raw__misbehave"], fmt.Sprintf(`{"how":%q}`, how)), false, "done")
	}
	if runtime.ReadMemStats(&after); after.Sys > before.Sys+128<<20 {
		t.Errorf("%d MiB more memory", (after.Sys-before.Sys)>>20)
	}
}

func TestCancelledIsSent(t *testing.T) {
	all := tools(t, open(t, entry(t, "raw"), Options{}), "raw")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := all["mcp__raw__misbehave"].Run(ctx, tool.Call{Args: json.RawMessage(`{"how":"nothing"}`)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; { // the notice comes with the next call
		seen := run(t, all["mcp__raw__seen"], `{}`).Text()
		if strings.Contains(seen, "notifications/cancelled") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server has seen %s", seen)
		}
	}
}

func TestStrayLines(t *testing.T) {
	log := newLogbook()
	s := open(t, entry(t, "raw strays"), Options{Log: log.logger()})
	all := tools(t, s, "raw strays")
	before := run(t, all["mcp__raw_strays__seen"], `{}`).Text()
	after := run(t, all["mcp__raw_strays__seen"], `{}`).Text()
	if word, _, _ := strings.Cut(before, " "); !strings.HasPrefix(after, word+" ") || word == "" {
		t.Errorf("first %q, then %q", before, after)
	}
	log.wait(t, "Server is starting")
}

func TestServerThatIgnoresWhatItDoesNotKnow(t *testing.T) {
	s := open(t, entry(t, "raw quiet"), Options{})
	all := tools(t, s, "raw quiet")
	seen := run(t, all["mcp__raw_quiet__seen"], `{}`).Text()
	if !strings.Contains(seen, "[server/discover ") || !strings.Contains(seen, " initialize ") {
		t.Errorf("the server has seen %s", seen)
	}
}

// A server that needs longer than it has for its first answer is not started again: its late answer counts.
func TestServerOfANewProtocolThatStartsSlowly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, entry(t, "late"), Options{Dir: dir})
	all := tools(t, s, "late")
	want(t, run(t, all["mcp__late__echo"], `{"say":"x"}`), false, `{"say":"x"}`)
	if starts, err := os.ReadFile(filepath.Join(dir, "starts")); err != nil || string(starts) != "started\n" {
		t.Errorf("its starts: %q, %v", starts, err)
	}
}

func TestServerThatDoesNotReadItsInput(t *testing.T) {
	s := open(t, entry(t, "raw deaf"), Options{CallTimeout: time.Second})
	all := tools(t, s, "raw deaf")
	for range 2 {
		want(t, run(t, all["mcp__raw_deaf__seen"], `{"how":"`+strings.Repeat("x", 1<<20)+`"}`), true, "timed out after 1s")
	}
}

// serveRawHTTP serves answers to calls as they are in lines, by what the argument "how" says.
func serveRawHTTP(t *testing.T, kind string) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     *int
			Method string
			Params struct{ Arguments struct{ How string } }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		text := map[string]string{
			"initialize": `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`,
			"tools/list": `{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"misbehave","inputSchema":{"type":"object"}}]}}`,
			"tools/call": lines[m.Params.Arguments.How],
		}[m.Method]
		text = fmt.Sprintf(cmp.Or(text, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no such method"}}`), *m.ID)
		w.Header().Set("Content-Type", kind)
		if kind == "text/event-stream" {
			text = ": hello\n\ndata: {\"level\":\"info\"}\n\nevent: message\ndata: []\n\nevent: other\ndata: {}\n\ndata: " + strings.Replace(text, ",", "\ndata: ,", 1) + "\n\n"
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

func TestOneCallFailsAtMostOverHTTP(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		f, err := Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{"it":{"url":%q}}}`, serveRawHTTP(t, kind)))
		if err != nil {
			t.Fatal(err)
		}
		log := newLogbook()
		all := tools(t, open(t, f, Options{Log: log.logger(), Restarts: -1}), "it")
		for how, text := range map[string]string{
			"unknown content type":    misread,
			"image that is no base64": misread,
			"result that is a list":   misread,
			"error that is a string":  "no luck",
			"error without an id":     "no luck",
			"result that is null":     "it has neither a result nor an error",
			"huge result":             "and the limit is 16 MiB",
			"no version":              "",
			"another version":         "",
			"id that is a string":     "",
			"error that is null":      "",
		} {
			r := run(t, all["mcp__it__misbehave"], fmt.Sprintf(`{"how":%q}`, how))
			if want := cmp.Or(text, "done"); r.Error != (text != "") || !strings.Contains(r.Text(), want) {
				t.Errorf("%s, %s: %q (error %v), want %q", kind, how, r.Text(), r.Error, want)
			}
		}
		if n := strings.Count(log.text.String(), "MCP server started"); n != 1 {
			t.Errorf("%s: started %d times", kind, n)
		}
	}
}

// Each failure to start has its reason and what the server last said about it.
func TestWhyAServerDidNotStart(t *testing.T) {
	reasons := map[string]string{
		"dies":                        os.Args[0] + " ended with exit code 3; its last lines on stderr: no license",
		"raw start ends":              "it ended by itself",
		"raw start closed":            "it has closed its output, and was ended",
		"raw start refuses":           "no seat is free",
		"raw start a string":          "cannot unmarshal",
		"raw start an old version":    `unsupported protocol version: "1999-01-01"`,
		"raw start no tools":          "the catalog is locked",
		"raw start tools, no list":    "listing its tools",
		"raw start a tool, no object": "listing its tools",
	}
	ids := slices.Sorted(maps.Keys(reasons))
	s := open(t, entry(t, ids...), Options{Restarts: -1})
	_, failed := s.Tools(t.Context(), ids)
	if len(failed) != len(ids) {
		t.Fatalf("errors %v, want %d", failed, len(ids))
	}
	for i, id := range ids {
		text := failed[i].Error()
		if !strings.HasPrefix(text, "MCP server '"+id+"': it could not be started: ") || !strings.Contains(text, reasons[id]) {
			t.Errorf("%s: error %q, want %q", id, text, reasons[id])
		}
		if id != "dies" && !strings.HasSuffix(text, "; its last lines on stderr: the licence has run out") {
			t.Errorf("%s: error %q does not end with the server's stderr", id, text)
		}
	}
	_, failed = s.Tools(t.Context(), []string{"raw start refuses"})
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "it is not started again: 1 starts in a row failed; the last one: ") || !strings.Contains(failed[0].Error(), "no seat is free") {
		t.Errorf("errors %v", failed)
	}
}

// An answer that comes after its call was cancelled is none of the next call's.
func TestLateAnswer(t *testing.T) {
	log := newLogbook()
	all := tools(t, open(t, entry(t, "raw"), Options{Log: log.logger()}), "raw")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := all["mcp__raw__misbehave"].Run(ctx, tool.Call{Args: json.RawMessage(`{"how":"held"}`)})
		done <- err
	}()
	for !strings.Contains(run(t, all["mcp__raw__seen"], `{}`).Text(), "held") {
		if t.Context().Err() != nil {
			t.Fatal("the server has not seen the call")
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	log.wait(t, "answer to ") // it has come, and is not a message
	want(t, run(t, all["mcp__raw__misbehave"], `{"how":"line ends of Windows"}`), false, "done")
}

// Answers belong to calls by their ids, in whatever order they come.
func TestAnswersInAnotherOrder(t *testing.T) {
	all := tools(t, open(t, entry(t, "raw"), Options{}), "raw")
	first := make(chan tool.Result, 1)
	go func() { first <- run(t, all["mcp__raw__misbehave"], `{"how":"held"}`) }()
	for !strings.Contains(run(t, all["mcp__raw__seen"], `{}`).Text(), "held") {
		if t.Context().Err() != nil {
			t.Fatal("the server has not seen the call")
		}
	}
	second := run(t, all["mcp__raw__misbehave"], `{"how":"held, and the last first"}`)
	number := func(r tool.Result) (n int) {
		if _, err := fmt.Sscanf(r.Text(), "answer to %d", &n); err != nil || r.Error {
			t.Errorf("result %q", r.Text())
		}
		return n
	}
	if a, b := number(<-first), number(second); a >= b {
		t.Errorf("the answers are to %d and %d", a, b)
	}
}

// Lists that go in circles end; one that has no end is an error that says so.
func TestPagesWithoutAnEnd(t *testing.T) {
	for _, how := range []string{"with one cursor", "with two cursors", "with one tool"} {
		mode := "raw pages " + how
		name := strings.ReplaceAll(mode, " ", "_")
		all := tools(t, open(t, entry(t, mode), Options{}), mode)
		if _, ok := all["mcp__"+name+"__misbehave"]; !ok || len(all) != 6 {
			t.Errorf("%s: %d tools", how, len(all))
		}
		want(t, run(t, all["mcp_resources_"+name], `{}`), false, `{"resources":[{"name":"misbehave","uri":"a:misbehave"}],"templates":[{"name":"misbehave","uriTemplate":"a:misbehave{x}"}]}`)
		want(t, run(t, all["mcp_prompts_"+name], `{}`), false, `{"prompts":[{"name":"misbehave"}]}`)
	}
	s := open(t, entry(t, "raw pages without an end"), Options{Restarts: -1})
	_, failed := s.Tools(t.Context(), []string{"raw pages without an end"})
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "listing its tools: the server's list has no end: raddle has read 1000 pages") {
		t.Errorf("errors %v", failed)
	}
}
