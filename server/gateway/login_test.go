package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/memory"
	"raddle.dev/server"
)

// stores are what gateways share, by their state directories.
var stores sync.Map

// sharedOf returns the store of what gateways with a state directory share.
func sharedOf(state string) memory.Store {
	st, _ := stores.LoadOrStore(state, memory.New())
	return st.(memory.Store)
}

// open starts a gateway that listens, without a service.
func open(t *testing.T, o Settings) *Gateway {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Shared == nil {
		o.Shared = sharedOf(o.State)
	}
	g, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	g.Handle("POST /act", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := server.CallerOf(r.Context())
		writeText(w, http.StatusOK, "done by "+c.Name)
	}))
	web := &http.Server{Handler: g}
	served := make(chan error, 1)
	go func() { served <- web.Serve(g.listener) }()
	t.Cleanup(func() {
		_ = web.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return g
}

// send sends a request with headers, each as NAME: VALUE.
func send(t *testing.T, g *Gateway, method, path, body string, headers ...string) (res *http.Response, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.listener.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	if res, err = http.DefaultTransport.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(res.Body)
	if _ = res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return res, string(all)
}

// logIn logs a browser in with the body of a request, and returns the header of its cookie.
func logIn(t *testing.T, g *Gateway, body string) string {
	t.Helper()
	res, text := send(t, g, "POST", "/login", body, "Origin: "+g.pages[0])
	if res.StatusCode != http.StatusNoContent || len(res.Cookies()) != 1 {
		t.Fatalf("%s %s", res.Status, text)
	}
	c := res.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge < 3600 {
		t.Errorf("the cookie is %v", c)
	}
	return "Cookie: " + c.Name + "=" + c.Value
}

// loginAddress returns the address at which a browser logs in.
func loginAddress(g *Gateway, page string) string {
	address, err := g.LoginAddress(context.Background(), page)
	if err != nil {
		panic(err)
	}
	return address
}

func newCode(g *Gateway) string {
	address, err := url.Parse(loginAddress(g, ""))
	if err != nil {
		panic(err)
	}
	return address.Fragment
}

// A code logs one browser in, once; the session acts as the first token, outlives the server, and ends with a log-out.
func TestLogin(t *testing.T) {
	state := t.TempDir()
	g := open(t, Settings{State: state})
	code := newCode(g)
	cookie := logIn(t, g, `{"code": "`+code+`"}`)
	own := "Origin: " + g.pages[0]
	if res, text := send(t, g, "POST", "/login", `{"code": "`+code+`"}`, own); res.StatusCode != 401 || !strings.Contains(text, `"wrong-code"`) || len(res.Cookies()) > 0 {
		t.Errorf("a code that was used: %s %s", res.Status, text)
	}
	if res, text := send(t, g, "POST", "/act", "", cookie, own); res.StatusCode != 200 || text != "done by first" {
		t.Errorf("%s %s", res.Status, text)
	}
	if res, text := send(t, g, "GET", "/session", "", cookie); res.StatusCode != 200 || !strings.Contains(text, `"name":"first"`) {
		t.Errorf("%s %s", res.Status, text)
	}
	if info, err := os.Stat(filepath.Join(state, "serve", "token")); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}

	again := open(t, Settings{State: state})
	cookie = strings.Replace(cookie, g.cookieName(), again.cookieName(), 1) // it listens at another port
	own = "Origin: " + again.pages[0]
	if res, text := send(t, again, "POST", "/act", "", cookie, own); res.StatusCode != 200 {
		t.Errorf("after a restart: %s %s", res.Status, text)
	}
	other := newCode(g)
	if res, text := send(t, again, "POST", "/login", `{"code": "`+other+`"}`, own); res.StatusCode != 204 {
		t.Errorf("a code of another server of the store: %s %s", res.Status, text)
	}
	if res, text := send(t, g, "POST", "/login", `{"code": "`+other+`"}`, "Origin: "+g.pages[0]); res.StatusCode != 401 {
		t.Errorf("a code that another server has used: %s %s", res.Status, text)
	}
	if res, text := send(t, again, "POST", "/logout", "", cookie, own); res.StatusCode != 204 || len(res.Cookies()) != 1 || res.Cookies()[0].MaxAge >= 0 {
		t.Errorf("log-out: %s %s %v", res.Status, text, res.Cookies())
	}
	third := open(t, Settings{State: state})
	for _, g := range []*Gateway{again, third} {
		kept := strings.Replace(cookie, again.cookieName(), g.cookieName(), 1)
		if res, text := send(t, g, "POST", "/act", "", kept, "Origin: "+g.pages[0]); res.StatusCode != 401 {
			t.Errorf("after the log-out: %s %s", res.Status, text)
		}
	}
}

// A session has the name and the scopes of the token that began it, and ends with that token.
func TestLoginWithToken(t *testing.T) {
	g := open(t, Settings{State: t.TempDir()})
	token, err := g.tokens.Add(t.Context(), "ann", []server.Scope{server.ScopeRead}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	cookie, own := logIn(t, g, `{"token": "`+token+`"}`), "Origin: "+g.pages[0]
	if res, text := send(t, g, "POST", "/act", "", cookie, own); res.StatusCode != 200 || text != "done by ann" {
		t.Errorf("%s %s", res.Status, text)
	}
	if err := g.tokens.Remove(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.tokens.Add(t.Context(), "ann", server.Scopes, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if res, text := send(t, g, "POST", "/act", "", cookie, own); res.StatusCode != 401 {
		t.Errorf("its token was removed: %s %s", res.Status, text)
	}
}

// What changes something needs a browser's word that a page of this server sends it; a log-in does, too.
func TestForeignPages(t *testing.T) {
	g := open(t, Settings{State: t.TempDir(), Origins: []string{"http://friend.example"}})
	cookie, own := logIn(t, g, `{"token": "`+g.first+`"}`), "Origin: "+g.pages[0]
	flipped := cookie[:len(cookie)-2] + string(cookie[len(cookie)-2]^1) + cookie[len(cookie)-1:]
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		code               string
	}{
		"own origin":                      {"POST", "/act", "", []string{cookie, own}, 200, "done"},
		"own page without an origin":      {"POST", "/act", "", []string{cookie, "Sec-Fetch-Site: same-origin"}, 200, "done"},
		"no origin":                       {"POST", "/act", "", []string{cookie}, 403, `"foreign-page"`},
		"another port of the machine":     {"POST", "/act", "", []string{cookie, "Sec-Fetch-Site: same-site"}, 403, `"foreign-page"`},
		"a foreign origin":                {"POST", "/act", "", []string{cookie, "Origin: https://evil.example"}, 403, `"foreign-origin"`},
		"an origin that has only a token": {"POST", "/act", "", []string{cookie, "Origin: http://friend.example"}, 403, `"foreign-page"`},
		"that origin with a token":        {"POST", "/act", "", []string{"Authorization: Bearer " + g.first, "Origin: http://friend.example"}, 200, "done"},
		"a foreign host":                  {"POST", "/act", "", []string{cookie, own, "Host: evil.example"}, 421, `"foreign-host"`},
		"a token beside the cookie":       {"POST", "/act", "", []string{cookie, own, "Authorization: Bearer raddle_wrong"}, 401, `"no-token"`},
		"a changed cookie":                {"POST", "/act", "", []string{flipped, own}, 401, `"no-token"`},
		"half a cookie":                   {"POST", "/act", "", []string{cookie[:len(cookie)/2], own}, 401, `"no-token"`},
		"reading by an own page":          {"GET", "/session", "", []string{cookie, "Sec-Fetch-Site: same-origin"}, 200, "first"},
		"reading by another page":         {"GET", "/session", "", []string{cookie, "Sec-Fetch-Site: same-site"}, 403, `"foreign-page"`},
		"log-in without an origin":        {"POST", "/login", `{"token": "` + g.first + `"}`, nil, 403, `"foreign-page"`},
		"log-in of another page":          {"POST", "/login", `{"token": "` + g.first + `"}`, []string{"Sec-Fetch-Site: cross-site"}, 403, `"foreign-page"`},
		"log-in with a wrong token":       {"POST", "/login", `{"token": "raddle_wrong"}`, []string{own}, 401, `"wrong-token"`},
		"log-in with a wrong code":        {"POST", "/login", `{"code": "wrong"}`, []string{own}, 401, `"wrong-code"`},
		"log-in with nothing":             {"POST", "/login", `{}`, []string{own}, 400, `"bad-request"`},
		"log-in with both":                {"POST", "/login", `{"code": "x", "token": "y"}`, []string{own}, 400, `"bad-request"`},
		"log-in with too much":            {"POST", "/login", `{"code": "` + strings.Repeat("x", maxOpenBody) + `"}`, []string{own}, 413, `"too-large"`},
		"log-out of another page":         {"POST", "/logout", "", []string{cookie, "Sec-Fetch-Site: cross-site"}, 403, `"foreign-page"`},
	} {
		res, text := send(t, g, c.method, c.path, c.body, c.headers...)
		if res.StatusCode != c.status || !strings.Contains(text, c.code) || len(res.Cookies()) > 0 {
			t.Errorf("%s: %s %s %v; want %d with %s", name, res.Status, text, res.Cookies(), c.status, c.code)
		}
	}
}

// Codes and sessions expire. A code is used once, and a session that was ended is over on all servers.
func TestLoginExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		st := memory.New()
		s := openSessions(st)
		other := openSessions(st)
		newCode := func() string {
			code, err := s.addCode(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
		start := func() string {
			cookie, err := s.startSession(ctx, "hash")
			if err != nil {
				t.Fatal(err)
			}
			return cookie
		}
		useCode := func(s *Sessions, code string) bool {
			ok, err := s.useCode(ctx, code)
			if err != nil {
				t.Error(err)
			}
			return ok
		}
		read := func(s *Sessions, cookie string) bool {
			found, ok, err := s.readSession(ctx, cookie)
			if err != nil || ok != (found.Token == "hash") {
				t.Error(found, ok, err)
			}
			return ok
		}
		late := newCode()
		cookie := start()
		time.Sleep(codeLife)
		if useCode(s, late) {
			t.Error("a code is valid after its time")
		}
		if !read(s, cookie) || !read(other, cookie) {
			t.Error("a session has ended with the codes")
		}
		code := newCode()
		if useCode(s, "wrong") || !useCode(other, code) || useCode(s, code) || useCode(other, code) {
			t.Error("a code is not valid once")
		}
		if err := other.endSession(ctx, cookie); err != nil || read(s, cookie) || read(other, cookie) {
			t.Errorf("a session that was ended is valid: %v", err)
		}
		second := start()
		time.Sleep(sessionLife)
		if read(s, second) {
			t.Error("a session is valid after its time")
		}
		if err := s.endSession(ctx, second); err != nil {
			t.Error(err)
		}
	})
}

// A failingStore is one that does not answer.
type failingStore struct{ memory.Store }

func (failingStore) GetEntry(context.Context, string, string) (memory.Entry, error) {
	return memory.Entry{}, errors.New("no answer")
}

func (failingStore) DeleteEntry(context.Context, string, string) error {
	return errors.New("no answer")
}

func (failingStore) PutEntry(context.Context, memory.Entry, time.Duration) error {
	return errors.New("no answer")
}

// A store that does not answer makes no token wrong, and no one a caller: the first token, which needs no store, counts.
func TestStoreAway(t *testing.T) {
	g := open(t, Settings{State: t.TempDir(), Shared: failingStore{memory.New()}})
	own := "Origin: " + g.pages[0]
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		status     int
	}{
		"a token":               {"/act", "", []string{"Authorization: Bearer raddle_x"}, 503},
		"no token":              {"/act", "", nil, 401},
		"an empty token":        {"/act", "", []string{"Authorization: Bearer "}, 401},
		"the first token":       {"/act", "", []string{"Authorization: Bearer " + g.first}, 200},
		"a session":             {"/act", "", []string{own, "Cookie: " + g.cookieName() + "=x"}, 503},
		"an empty cookie":       {"/act", "", []string{own, "Cookie: " + g.cookieName() + "="}, 401},
		"log-in with a code":    {"/login", `{"code": "x"}`, []string{own}, 503},
		"log-in with a token":   {"/login", `{"token": "x"}`, []string{own}, 503},
		"log-in with the first": {"/login", `{"token": "` + g.first + `"}`, []string{own}, 503},
		"log-out":               {"/logout", "", []string{own, "Authorization: Bearer " + g.first, "Cookie: " + g.cookieName() + "=x"}, 500},
	} {
		res, text := send(t, g, "POST", c.path, c.body, c.headers...)
		if res.StatusCode != c.status || len(res.Cookies()) > 0 || (res.Header.Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("%s: %s %s, want %d", name, res.Status, text, c.status)
		}
	}
	if !slices.ContainsFunc(readLog(t, g), func(e SecurityEntry) bool {
		return e.Code == "store-unavailable" && e.Detail == "no answer"
	}) {
		t.Errorf("the security log does not say why: %+v", readLog(t, g))
	}
}

// Tokens in the file of an older program are valid, listed and removed as those of the store.
func TestOldTokens(t *testing.T) {
	state := t.TempDir()
	g := open(t, Settings{State: state})
	old := `[{"name": "old", "scopes": ["read"], "hash": "` + hashToken("raddle_old") + `"}, {"name": "zed", "scopes": ["read"], "hash": "x"}]`
	if err := os.WriteFile(g.tokens.listPath(), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.tokens.Add(t.Context(), "old", server.Scopes, time.Time{}); err == nil {
		t.Error("a second token has the name of an old one")
	}
	if _, err := g.tokens.Add(t.Context(), "new", server.Scopes, time.Time{}); err != nil {
		t.Fatal(err)
	}
	act := func(want int) {
		t.Helper()
		if res, text := send(t, g, "POST", "/act", "", "Authorization: Bearer raddle_old"); res.StatusCode != want {
			t.Errorf("%s %s, want %d", res.Status, text, want)
		}
	}
	act(200)
	list, err := g.tokens.List(t.Context())
	if err != nil || len(list) != 3 || list[0].Name != "new" || list[1].Name != "old" || list[2].Name != "zed" {
		t.Errorf("%+v, %v", list, err)
	}
	if used, err := g.tokens.LastUse(t.Context(), list[1]); err != nil || time.Since(used) > time.Hour {
		t.Error(used, err)
	}
	if err := g.tokens.Remove(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	act(401)
	if list, err := g.tokens.List(t.Context()); err != nil || len(list) != 2 || list[1].Name != "zed" {
		t.Errorf("%+v, %v", list, err)
	}
}

// The cookie is Secure behind a proxy with TLS, and belongs to its path.
func TestLoginBehindProxy(t *testing.T) {
	g := open(t, Settings{State: t.TempDir(), PublicURL: "https://agents.example.com/raddle"})
	if !strings.HasPrefix(loginAddress(g, ""), "https://agents.example.com/raddle/login#") {
		t.Errorf("the address is %s", loginAddress(g, ""))
	}
	if got := loginAddress(g, "runs/b3k@7"); !strings.HasPrefix(got, "https://agents.example.com/raddle/login?page=runs%2Fb3k%407#") {
		t.Errorf("the address is %s", got)
	}
	res, text := send(t, g, "POST", "/raddle/login", `{"code": "`+newCode(g)+`"}`, "Host: agents.example.com", "Origin: https://agents.example.com")
	if res.StatusCode != 204 || len(res.Cookies()) != 1 || !res.Cookies()[0].Secure || res.Cookies()[0].Path != "/raddle" {
		t.Errorf("%s %s %v", res.Status, text, res.Cookies())
	}
}

// The page of the log-in runs no inline script and loads nothing from elsewhere.
func TestLoginPage(t *testing.T) {
	g := open(t, Settings{State: t.TempDir()})
	for path, kind := range map[string]string{"/login": "text/html", "/login/login.js": "text/javascript", "/login/login.css": "text/css", "/favicon.ico": "image/svg+xml"} {
		res, text := send(t, g, "GET", path, "")
		h := res.Header
		if res.StatusCode != 200 || !strings.HasPrefix(h.Get("Content-Type"), kind) || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'self'; ") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %s %v", path, res.Status, h)
		}
		if strings.Contains(strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, ""), "http://") || strings.Contains(text, "https://") || strings.Contains(text, "<style") || strings.Contains(text, " style=") || strings.Contains(text, "onclick=") {
			t.Errorf("%s loads something else or has inline code:\n%s", path, text)
		}
	}
	for _, path := range []string{"/login/nothing.js", "/login/..%2fgateway.go"} {
		if res, _ := send(t, g, "GET", path, ""); res.StatusCode != 404 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
}

// The browser is opened at a private file, so that the code is not among the arguments of a program; the log-in removes the file.
func TestOpenBrowser(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a program that stands in for xdg-open is found on Linux only")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	g := open(t, Settings{State: t.TempDir()})
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$*\" > '"+dir+"/arguments'\ncat \"$1\" > '"+dir+"/page'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := g.OpenBrowser(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	arguments, _ := os.ReadFile(filepath.Join(dir, "arguments"))
	page, _ := os.ReadFile(filepath.Join(dir, "page"))
	_, address, _ := strings.Cut(string(page), "url=")
	address, _, _ = strings.Cut(address, `"`)
	_, code, ok := strings.Cut(address, "/login#")
	if string(arguments) != g.openerPath() || !ok {
		t.Fatalf("arguments %q, page %q", arguments, page)
	}
	if info, err := os.Stat(g.openerPath()); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	logIn(t, g, `{"code": "`+code+`"}`)
	if _, err := os.Stat(g.openerPath()); err == nil {
		t.Error("the file is still there after the log-in")
	}
	if err := os.Remove(filepath.Join(dir, "xdg-open")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if err := g.OpenBrowser(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "xdg-open") {
		t.Errorf("without a program: %v", err)
	}
}

// A browser whose address leads to no page gets a page, and a program a problem.
func TestAddressesWithoutAPage(t *testing.T) {
	g := open(t, Settings{State: t.TempDir()})
	token := "Authorization: Bearer " + g.first
	for accept, want := range map[string]string{"text/html,application/xhtml+xml": "This address leads to no page", "*/*": `"not-found"`} {
		if res, text := send(t, g, "GET", "/foo/bar", "", token, "Accept: "+accept); res.StatusCode != 404 || !strings.Contains(text, want) {
			t.Errorf("Accept: %s: %s %s", accept, res.Status, text)
		}
	}
}
