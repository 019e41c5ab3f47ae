//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A sent is a request whose answer is looked at.
type sent struct{ method, path, body string }

// listRequests returns requests to all addresses of a server, with and without something there.
func listRequests(t *testing.T, s *served, run string) (list []sent) {
	t.Helper()
	for _, path := range []string{"/", "/inbox", "/agents/hello", "/runs/" + run, "/chat/hello", "/chat/hello/x", "/studio/studio.js", "/studio/studio.css", "/studio/icon.svg", "/studio/nothing",
		"/login", "/login/login.js", "/login/nothing", "/favicon.ico", "/session", "/healthz", "/readyz", "/metrics", "/nothing", "/api/openapi.json", "/api/nothing", "//api/v1/runs", "/api/v1/../v1/runs",
		"/.well-known/agent-card.json", "/.well-known/hello/agent-card.json", "/a2a/hello/.well-known/agent-card.json", "/a2a/nothing/.well-known/agent-card.json", "/v1/models", "/v1/models/nothing", "/mcp",
		"/api/v1/runs/" + run + "/picture.svg", "/api/v1/agents/hello/files/graph.yaml"} {
		list = append(list, sent{"GET", path, ""})
	}
	for _, path := range []string{"/a2a/hello", "/a2a/nothing", "/agui/hello", "/agui/nothing", "/v1/chat/completions", "/mcp", "/login", "/logout", "/healthz"} {
		list = append(list, sent{"POST", path, "{}"}, sent{"POST", path, "{"}, sent{"OPTIONS", path, ""})
	}
	list = append(list, sent{"POST", "/agui/hello", `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"Ada"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`},
		sent{"POST", "/v1/chat/completions", `{"model":"hello","stream":true,"messages":[{"role":"user","content":"Ada"}]}`},
		sent{"POST", "/a2a/hello", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Ada"}]}}}`},
		sent{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`})
	_, document := s.do("GET", "/api/openapi.json", "", nil)
	var api struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(document), &api); err != nil || len(api.Paths) < 30 {
		t.Fatal(len(api.Paths), err)
	}
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range api.Paths {
		path = strings.Replace(path, "/runs/{id}", "/runs/"+run, 1)
		path = parameter.ReplaceAllString(strings.Replace(path, "/agents/{name}", "/agents/hello", 1), "x")
		for method := range methods {
			list = append(list, sent{strings.ToUpper(method), path, `{"agent": "nothing", "answers": []}`})
		}
	}
	return list
}

// Every answer protects a browser against pages that frame, embed or open it, whatever it is: a page, a file, JSON, a stream, a picture, a redirect
// or a refusal.
func TestServeHeaders(t *testing.T) {
	w := newWorkplace(t, "")
	if err := os.CopyFS(filepath.Join(w.dir, ".config", "raddle", "agents", "hello"), os.DirFS("../../../examples/hello")); err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	_, text := s.do("POST", "/api/v1/runs?wait=30s", `{"agent": "hello", "prompt": "Ada"}`, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })
	var started struct{ Run, Status string }
	if err := json.Unmarshal([]byte(text), &started); err != nil || started.Status != "done" {
		t.Fatal(text)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	types := map[string]bool{}
	for name, change := range map[string]func(*http.Request){
		"with a token":    func(*http.Request) {},
		"without a token": func(r *http.Request) { r.Header.Del("Authorization") },
		"a foreign host":  func(r *http.Request) { r.Host = "evil.example" },
		"a foreign page":  func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		for _, q := range listRequests(t, s, started.Run) {
			res, err := client.Do(s.newRequest(q.method, q.path, q.body, func(r *http.Request) {
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				change(r)
			}))
			if err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("%s %s %s: %s", name, q.method, q.path, res.Status)
			if !strings.HasPrefix(q.path, "/mcp") || q.method != "GET" { // a stream without an end
				_, _ = io.Copy(io.Discard, res.Body)
			}
			_ = res.Body.Close()
			kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
			types[fmt.Sprint(res.StatusCode/100, " ", kind)] = true
			for header, want := range map[string]string{"X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
				if got := res.Header.Values(header); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %s: %q", where, header, got)
				}
			}
			policy := res.Header.Values("Content-Security-Policy")
			for _, part := range []string{"default-src 'self'", "frame-ancestors 'none'", "base-uri 'self'", "form-action 'self'", "object-src 'none'"} {
				if len(policy) != 1 || !strings.Contains(policy[0]+";", part+";") {
					t.Errorf("%s: the policy %q has no %s", where, policy, part)
				}
			}
			if policy := strings.Join(policy, ""); strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "data:") {
				t.Errorf("%s: the policy %q allows too much", where, policy)
			}
		}
	}
	for _, kind := range []string{"2 text/html", "2 text/javascript", "2 application/json", "2 image/svg+xml", "2 text/event-stream", "3 text/html", "4 application/problem+json", "4 application/json"} {
		if !types[kind] {
			t.Errorf("no answer was of the kind %s: %v", kind, types)
		}
	}
}
