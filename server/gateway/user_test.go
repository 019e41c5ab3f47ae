package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"raddle.dev/server"
)

// handleUser adds a path that answers with the user of the request.
func handleUser(g *Gateway) {
	g.Handle("GET /user", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := server.CallerOf(r.Context())
		writeText(w, http.StatusOK, "user "+c.User)
	}))
}

// The user of a request is that of its token; the first token has none.
func TestUserOfToken(t *testing.T) {
	g := open(t, Settings{State: t.TempDir()})
	handleUser(g)
	ann, err := g.tokens.Add(t.Context(), "ann", server.Scopes, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{g.first: "user ", ann: "user ann"} {
		if _, text := send(t, g, "GET", "/user", "", "Authorization: Bearer "+token, "X-User: bob"); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

// If a proxy names the user, each request needs one name, and a token of the server as well.
func TestUserOfProxy(t *testing.T) {
	g := open(t, Settings{State: t.TempDir(), UserHeader: "X-User"})
	handleUser(g)
	token := "Authorization: Bearer " + g.first
	for header, want := range map[string]string{
		"X-User: bob": "200 user bob", "X-User: Ада": "200 user Ада", "X-Other: x": `400 "no-user"`, "X-User: ": `400 "no-user"`, "X-User: b\xff": `400 "no-user"`,
		"X-User: " + strings.Repeat("b", maxUser+1): `400 "no-user"`,
	} {
		res, text := send(t, g, "GET", "/user", "", token, header)
		status, part, _ := strings.Cut(want, " ")
		if !strings.HasPrefix(res.Status, status) || !strings.Contains(text, part) {
			t.Errorf("%s: %s %s, want %s", header, res.Status, text, want)
		}
	}
	if res, _ := send(t, g, "GET", "/user", "", "X-User: bob"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", res.Status)
	}
}
