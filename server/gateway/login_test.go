package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/server"
)

// open starts a gateway that listens, without a service.
func open(t *testing.T, o Settings) *Gateway {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
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

func newCode(g *Gateway) string {
	address, err := url.Parse(g.LoginAddress(""))
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
	for _, name := range []string{"session.key", "token"} {
		if info, err := os.Stat(filepath.Join(state, "serve", name)); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}

	again := open(t, Settings{State: state})
	cookie = strings.Replace(cookie, g.cookieName(), again.cookieName(), 1) // it listens at another port
	own = "Origin: " + again.pages[0]
	if res, text := send(t, again, "POST", "/act", "", cookie, own); res.StatusCode != 200 {
		t.Errorf("after a restart: %s %s", res.Status, text)
	}
	if res, text := send(t, again, "POST", "/login", `{"code": "`+newCode(g)+`"}`, own); res.StatusCode != 401 {
		t.Errorf("a code of another process: %s %s", res.Status, text)
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
	token, err := g.tokens.Add("ann", []server.Scope{server.ScopeRead}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	cookie, own := logIn(t, g, `{"token": "`+token+`"}`), "Origin: "+g.pages[0]
	if res, text := send(t, g, "POST", "/act", "", cookie, own); res.StatusCode != 200 || text != "done by ann" {
		t.Errorf("%s %s", res.Status, text)
	}
	if err := g.tokens.Remove("ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.tokens.Add("ann", server.Scopes, time.Time{}); err != nil {
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

// Codes and sessions expire; only so many codes are valid.
func TestLoginExpires(t *testing.T) {
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := openSessions(state)
		if err != nil {
			t.Fatal(err)
		}
		late, cookie := s.addCode(), s.start("hash")
		time.Sleep(codeLife)
		if s.useCode(late) {
			t.Error("a code is valid after its time")
		}
		if found, ok := s.read(cookie); !ok || found.Token != "hash" {
			t.Error("a session has ended with the codes")
		}
		var codes []string
		for range maxCodes + 1 {
			codes = append(codes, s.addCode())
			time.Sleep(time.Second)
		}
		if s.useCode(codes[0]) || !s.useCode(codes[1]) || s.useCode(codes[1]) || !s.useCode(codes[maxCodes]) {
			t.Error("not the newest codes are valid, each once")
		}
		over, _ := s.read(cookie)
		if err := s.end(over); err != nil {
			t.Fatal(err)
		}
		second := s.start("hash")
		time.Sleep(sessionLife)
		if _, ok := s.read(second); ok {
			t.Error("a session is valid after its time")
		}
		if err := s.end(session{ID: "x", Expires: time.Now().Add(time.Hour)}); err != nil || len(s.ended) != 1 {
			t.Errorf("%v: the ended sessions are %v", err, s.ended)
		}
	})
}

// The cookie is Secure behind a proxy with TLS, and belongs to its path.
func TestLoginBehindProxy(t *testing.T) {
	g := open(t, Settings{State: t.TempDir(), PublicURL: "https://agents.example.com/raddle"})
	if !strings.HasPrefix(g.LoginAddress(""), "https://agents.example.com/raddle/login#") {
		t.Errorf("the address is %s", g.LoginAddress(""))
	}
	if got := g.LoginAddress("runs/b3k@7"); !strings.HasPrefix(got, "https://agents.example.com/raddle/login?page=runs%2Fb3k%407#") {
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
	if err := g.OpenBrowser(""); err != nil {
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
	if err := g.OpenBrowser(""); err == nil || !strings.Contains(err.Error(), "xdg-open") {
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
