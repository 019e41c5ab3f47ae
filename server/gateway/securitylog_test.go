package gateway

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/memory"
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

// The last use of a token is right to the minute, whatever else uses tokens of the store, and when no further request comes.
func TestLastUse(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		st := memory.New()
		a := OpenTokens(dir, st)
		b := OpenTokens(dir, st)
		add := func(name string) string {
			token, err := a.Add(ctx, name, server.Scopes, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		one := add("one")
		two := add("two")
		use := func(s *Tokens, token string) time.Time {
			t.Helper()
			if _, ok, err := s.findCaller(ctx, token, "the first token"); !ok || err != nil {
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
			list, err := OpenTokens(dir, st).List(ctx)
			if err != nil || len(list) != 2 {
				t.Fatal(list, err)
			}
			for _, k := range list {
				last, err := OpenTokens(dir, st).LastUse(ctx, k)
				if off := used[k.Name].Sub(last); err != nil || off < 0 || off > usePeriod {
					t.Errorf("the last use of %s is wrong by %s: %v", k.Name, off, err)
				}
			}
		}
		if err := a.Remove(ctx, "two"); err != nil {
			t.Fatal(err)
		}
		if last, err := a.LastUse(ctx, Token{Hash: hashToken(two)}); err != nil || !last.IsZero() {
			t.Errorf("the use of a token that was removed is kept: %s, %v", last, err)
		}
	})
}
