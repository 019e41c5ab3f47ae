//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serveProtected is a server that takes one token.
func serveProtected(t *testing.T, token string) (address string) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var m struct {
			ID     *int
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}`,
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		if result == "" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no such method"}}`, *m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, *m.ID, result)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

func openAt(t *testing.T, address, headers string, token func(context.Context, string, string) (string, error)) *Servers {
	t.Helper()
	f, err := Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{"it":{"url":%q%s}}}`, address, headers))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, f, Options{Restarts: -1, Token: token})
}

// A token that the server refuses is renewed once, and the request is sent again.
func TestLoginIsUsed(t *testing.T) {
	address := serveProtected(t, "new")
	var asked []string
	s := openAt(t, address, "", func(_ context.Context, at, rejected string) (string, error) {
		asked = append(asked, rejected)
		if at != address {
			t.Errorf("a token is wanted for %s", at)
		}
		if rejected == "" && len(asked) == 1 {
			return "old", nil
		}
		return "new", nil
	})
	if tools(t, s, "it")["mcp__it__look"].Name == "" || asked[0] != "" || asked[1] != "old" {
		t.Errorf("the tokens were asked for with %q", asked)
	}
}

// A server that wants a login says which command makes one. The credential of an entry counts first.
func TestLoginIsMissing(t *testing.T) {
	address := serveProtected(t, "new")
	none := func(context.Context, string, string) (string, error) { return "", nil }
	_, failed := openAt(t, address, "", none).Tools(t.Context(), []string{"it"})
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "requires authentication (401): log in with: raddle mcp login it") {
		t.Errorf("the error is %v", failed)
	}
	_, failed = openAt(t, address, "", func(context.Context, string, string) (string, error) { return "wrong", nil }).Tools(t.Context(), []string{"it"})
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "raddle mcp login it") {
		t.Errorf("the error is %v", failed)
	}
	s := openAt(t, address, `,"headers":{"authorization":"Bearer new"}`, func(context.Context, string, string) (string, error) {
		t.Error("the login is used")
		return "", nil
	})
	if tools(t, s, "it")["mcp__it__look"].Name == "" {
		t.Error("there is no tool")
	}
}

func TestLoginOfAnEntry(t *testing.T) {
	f, err := Parse("mcp.json", []byte(`{"mcpServers":{"a":{"url":"https://a.example","oauth":{"client_id":"me","client_secret":"{{S}}","port":8123}},"b":{"url":"https://a.example","oauth":{"port":"x"}},"c":{"url":"https://a.example","oauth":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Servers[0].ExpandReferences(func(name string) (string, bool) { return "hidden-secret-1", name == "S" })
	if want := (Login{ClientID: "me", ClientSecret: "hidden-secret-1", Port: 8123}); err != nil || a.Login != want {
		t.Errorf("%+v, %v", a.Login, err)
	}
	if f.Servers[1].problem == nil || f.Servers[2].problem != nil || len(f.Problems) != 1 {
		t.Errorf("the problems are %v", f.Problems)
	}
	if list := f.Secrets(func(string) (string, bool) { return "hidden-secret-1", true }); len(list) != 1 {
		t.Errorf("the secrets are %v", list)
	}
}
