package gateway

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/server"
)

// readLog returns the entries of the security log.
func readLog(t *testing.T, g *Gateway) (list []SecurityEntry) {
	t.Helper()
	text, err := os.ReadFile(g.tokens.SecurityLogPath())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e SecurityEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// Each entry about a request of a proxy has the user that the proxy names.
func TestUsersInTheLog(t *testing.T) {
	g := open(t, Settings{State: t.TempDir(), UserHeader: "X-User"})
	g.Handle("POST /grant", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := server.CallerOf(r.Context())
		c.NoteGrant(server.Grant{Run: "r", Answer: "always"})
		w.WriteHeader(http.StatusNoContent)
	}))
	g.Handle("POST /refuse", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	for _, path := range []string{"/grant", "/refuse"} {
		send(t, g, "POST", path, "", "Authorization: Bearer "+g.first, "X-User: bob")
	}
	list := readLog(t, g)
	if len(list) != 2 || list[0].Event != "granted" || list[1].Event != "refused" {
		t.Fatalf("%+v", list)
	}
	for _, e := range list {
		if e.User != "bob" || e.Token != "first" {
			t.Errorf("%+v", e)
		}
	}
}

// No caller can fill the log: of what one can cause at will there are sixty entries a minute, each kind with a bound of its own. A log-out is one
// only if there was a log-in.
func TestTheLogCannotBeFilled(t *testing.T) {
	g := open(t, Settings{State: t.TempDir()})
	g.Handle("POST /ahead", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := server.CallerOf(r.Context())
		c.NoteGrant(server.Grant{Run: "r", Answer: "always", Unasked: true})
	}))
	g.Handle("POST /grant", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := server.CallerOf(r.Context())
		c.NoteGrant(server.Grant{Run: "r", Answer: "always"})
	}))
	own := "Origin: " + g.pages[0]
	token := "Authorization: Bearer " + g.first
	for range 3 * maxOfKind {
		send(t, g, "POST", "/ahead", "", token)
		send(t, g, "POST", "/logout", "", token)
		send(t, g, "GET", "/metrics", "", "Authorization: Bearer wrong")
		send(t, g, "POST", "/login", `{"token": "`+g.first+`"}`, own)
	}
	send(t, g, "POST", "/grant", "", token)
	count := map[string]int{}
	for _, e := range readLog(t, g) {
		count[e.Event]++
	}
	const slack = 10 // the minute continues during the test
	for event, n := range count {
		if n > maxOfKind+slack {
			t.Errorf("%d entries %s", n, event)
		}
	}
	if count["log-out"] > 0 || count["log-in"] < maxOfKind || count["refused"] < maxOfKind || count["granted"] < maxOfKind+1 {
		t.Errorf("%v", count)
	}
}

// The last use of a token is right to the minute, whatever else uses tokens of the same files, and when no further request comes.
func TestLastUse(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a, b := OpenTokens(dir), OpenTokens(dir)
		one, err := a.Add("one", server.Scopes, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		two, err := a.Add("two", server.Scopes, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		use := func(s *Tokens, token string) time.Time {
			t.Helper()
			if _, ok, err := s.findCaller(token, "the first token"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			return time.Now()
		}
		used := map[string]time.Time{}
		for range 3 {
			used["one"] = use(a, one)
			used["two"] = use(b, two)
			time.Sleep(25 * time.Second)
			used["one"] = use(a, one)
			time.Sleep(3 * time.Hour)
			used["two"] = use(b, two)
			time.Sleep(usePeriod)
			list, err := OpenTokens(dir).List()
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range list {
				if off := used[k.Name].Sub(OpenTokens(dir).LastUse(k)); off.Abs() > time.Second {
					t.Errorf("the last use of %s is wrong by %s", k.Name, off)
				}
			}
		}
		if err := a.Remove("two"); err != nil {
			t.Fatal(err)
		}
		use(a, one)
		time.Sleep(usePeriod)
		if text, err := os.ReadFile(filepath.Join(dir, "serve", "tokens-used.json")); err != nil || strings.Contains(string(text), hashToken(two)) {
			t.Errorf("the use of a token that was removed is kept: %s, %v", text, err)
		}
	})
}
