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
	}
	empty := []string{"no content", "resource that is null"}
	all := tools(t, open(t, entry(t, "raw"), Options{}), "raw")
	pid := func() string {
		word, _, _ := strings.Cut(run(t, all["mcp__raw__seen"], `{}`).Text(), " ")
		return word
	}
	for _, how := range slices.Sorted(maps.Keys(lines)) {
		if how == "nothing" {
			continue // TestCallTimeout and TestCancelledIsSent wait for nothing
		}
		t.Run(how, func(t *testing.T) {
			before := pid()
			for name, args := range map[string]string{"mcp__raw__misbehave": `{"how":%q}`, "mcp_invoke_raw": `{"tool":"misbehave","arguments":{"how":%q}}`} {
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

func TestCancelledIsSent(t *testing.T) {
	all := tools(t, open(t, entry(t, "raw"), Options{}), "raw")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := all["mcp__raw__misbehave"].Run(ctx, tool.Call{Args: json.RawMessage(`{"how":"nothing"}`)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; { // the notice comes beside the next call
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

func TestServerOfANewProtocolThatStartsSlowly(t *testing.T) {
	s := open(t, entry(t, "late"), Options{Dir: t.TempDir()})
	all := tools(t, s, "late")
	want(t, run(t, all["mcp__late__echo"], `{"say":"x"}`), false, `{"say":"x"}`)
}

func TestServerThatDoesNotReadItsInput(t *testing.T) {
	s := open(t, entry(t, "raw deaf"), Options{CallTimeout: time.Second})
	all := tools(t, s, "raw deaf")
	for range 2 {
		want(t, run(t, all["mcp__raw_deaf__seen"], `{"how":"`+strings.Repeat("x", 1<<20)+`"}`), true, "timed out after 1s")
	}
}

// serveRawHTTP serves answers to calls as they stand in lines, by what the argument "how" says.
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

func TestWhyAServerDidNotStart(t *testing.T) {
	s := open(t, entry(t, "dies", "raw version"), Options{})
	_, failed := s.Tools(t.Context(), []string{"dies", "raw version"})
	for i, want := range []string{
		os.Args[0] + " ended with exit code 3; its last lines on stderr: no license",
		`it could not be started: unsupported protocol version: "1999-01-01"`,
	} {
		if len(failed) != 2 || !strings.HasSuffix(failed[i].Error(), want) {
			t.Errorf("errors %v, want %q", failed, want)
		}
	}
}
