//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// serveProtectedTools is an MCP server that wants a login, with its authorization server. What it refuses is tested in internal/process/mcplogin.
func serveProtectedTools(t *testing.T) *httptest.Server {
	var s *httptest.Server
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource":
			fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%[1]s"]}`, s.URL)
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":"%s","authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","registration_endpoint":"%[1]s/register","code_challenge_methods_supported":["S256"]}`, s.URL)
		case "/register":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"client_id":"made"}`)
		case "/authorize":
			q := r.URL.Query()
			http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"one"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
		case "/token":
			fmt.Fprint(w, `{"access_token":"token-of-a-login-1","token_type":"bearer"}`)
		case "/mcp":
			if r.Header.Get("Authorization") != "Bearer token-of-a-login-1" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			var m struct {
				ID     *int
				Method string
			}
			if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			result := map[string]string{
				"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`,
				"tools/list": `{"tools":[{"name":"look","description":"Looks.","inputSchema":{"type":"object"}}]}`,
			}[m.Method]
			if result == "" {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no such method"}}`, *m.ID)
				return
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, *m.ID, result)
		default:
			http.NotFound(w, r)
		}
	}))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

var loginPage = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/authorize\?[!-~]+`)

// A server that wants a login names the command; after the login its tools are there, and after the logout they are not.
func TestMCPLogin(t *testing.T) {
	server := serveProtectedTools(t)
	w := newWorkplace(t, "")
	w.run("mcp", "add", "docs", server.URL+"/mcp")
	r := w.run("mcp", "test", "docs")
	if r.code == 0 || !strings.Contains(r.err, "log in with: raddle mcp login docs") {
		t.Errorf("before: code %d, %s", r.code, r.err)
	}
	s := w.screen([]string{"DISPLAY=", "WAYLAND_DISPLAY="}, "mcp", "login", "docs")
	s.await("&state=")
	page := loginPage.FindString(strings.Join(strings.Fields(s.seen.String()), ""))
	answer, err := http.Get(page)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v", page, answer, err)
	}
	_ = answer.Body.Close()
	s.ends(0, "To remove it: raddle mcp logout docs")
	if strings.Contains(s.seen.String(), "token-of-a-login-1") {
		t.Error("the token is shown")
	}
	if r = w.run("mcp", "test", "docs"); r.code != 0 || !strings.Contains(r.out, "look  Looks.") {
		t.Errorf("after the login: code %d, %s%s", r.code, r.out, r.err)
	}
	if r = w.run("mcp", "logout", "docs"); r.code != 0 {
		t.Errorf("logout: %s", r.err)
	}
	if r = w.run("mcp", "test", "docs"); r.code == 0 {
		t.Error("the server is used after the logout")
	}
}
