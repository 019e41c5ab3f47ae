package mcplogin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/keystore"
)

// A fakeAuthority is an MCP server with its authorization server. It refuses what the specification of MCP (2025-11-25, authorization) and the RFCs that it
// names refuse: a redirection that was not registered, a missing or plain challenge, a missing state (RFC 9700), another resource (RFC 8707), a code that was used, a
// verifier that does not belong to the challenge (RFC 7636), a refresh token that was used (OAuth 2.1, 4.3.1).
type fakeAuthority struct {
	*httptest.Server
	bad string // the way in which it misbehaves; "": it does not

	mu       sync.Mutex
	redirect string // registered
	asked    url.Values
	code     string
	refresh  string
	access   string
	n        int
	seen     []string // paths
}

func newFake(t *testing.T, bad string) *fakeAuthority {
	f := &fakeAuthority{bad: bad}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// paths returns the paths of the requests so far.
func (f *fakeAuthority) paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// tokens returns the tokens that count now.
func (f *fakeAuthority) tokens() (access, refresh string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.access, f.refresh
}

func (f *fakeAuthority) writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

type fields = map[string]any

func (f *fakeAuthority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r.URL.Path)
	pick := func(bad string, value, otherwise any) any {
		if f.bad == bad {
			return value
		}
		return otherwise
	}
	switch r.URL.Path {
	case "/mcp":
		if f.access != "" && r.Header.Get("Authorization") == "Bearer "+f.access {
			f.writeJSON(w, http.StatusOK, fields{"jsonrpc": "2.0", "id": 1, "result": fields{}})
			return
		}
		place := pick("metadata in a private network", "https://10.1.2.3/metadata", pick("metadata of the cloud", "http://169.254.169.254/latest/meta-data",
			pick("metadata of the cloud over https", "https://169.254.169.254/latest", pick("metadata redirect", f.URL+"/redirect", f.URL+"/.well-known/oauth-protected-resource/mcp"))))
		if f.bad != "no challenge" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="invalid_token", resource_metadata="%s", scope="read write"`, place))
		}
		w.WriteHeader(http.StatusUnauthorized)
	case "/redirect":
		http.Redirect(w, r, f.URL+"/.well-known/oauth-protected-resource/mcp", http.StatusFound)
	case "/.well-known/oauth-protected-resource/mcp":
		f.writeJSON(w, http.StatusOK, fields{"resource": pick("another resource", "https://bank.example/mcp", pick("a sibling", f.URL+"/mcp2", f.URL+"/mcp")),
			"authorization_servers": []any{pick("private issuer", "https://192.168.0.1/as", f.URL+"/as")}})
	case "/.well-known/oauth-authorization-server/as":
		f.writeJSON(w, http.StatusOK, fields{"issuer": pick("another issuer", "https://honest.example", f.URL+"/as"),
			"authorization_endpoint":           pick("page is a script", "javascript:alert(1)", pick("page is a file", "file:///etc/passwd", pick("page over http", "http://honest.example/authorize", pick("shell in the page", f.URL+"/authorize/$(touch%20x)/`id`;&'?x=\"<a>", f.URL+"/authorize")))),
			"token_endpoint":                   pick("token in a private network", "https://10.0.0.1/token", f.URL+"/token"),
			"registration_endpoint":            pick("no registration", "", f.URL+"/register"),
			"code_challenge_methods_supported": pick("no PKCE", []string{"plain"}, []string{"plain", "S256"}), "authorization_response_iss_parameter_supported": true})
	case "/register":
		var body struct {
			Redirects []string `json:"redirect_uris"`
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.Redirects) != 1 || !strings.HasPrefix(body.Redirects[0], "http://127.0.0.1:") {
			f.writeJSON(w, http.StatusBadRequest, fields{"error": "invalid_redirect_uri"})
			return
		}
		f.redirect = body.Redirects[0]
		f.writeJSON(w, http.StatusCreated, fields{"client_id": "made-for-raddle"})
	case "/token":
		f.answerToken(w, r)
	default:
		if strings.HasPrefix(r.URL.Path, "/authorize") {
			f.answerPage(w, r)
			return
		}
		http.NotFound(w, r)
	}
}

func (f *fakeAuthority) answerPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != "made-for-raddle" || q.Get("redirect_uri") != f.redirect || q.Get("response_type") != "code" || len(q.Get("state")) < 32 || len(q.Get("code_challenge")) != 43 ||
		q.Get("code_challenge_method") != "S256" || q.Get("resource") != f.URL+"/mcp" || q.Get("scope") != "read write" {
		http.Error(w, "invalid_request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	f.asked, f.code = q, "the-code"
	back := url.Values{"code": {f.code}, "state": {q.Get("state")}, "iss": {f.URL + "/as"}}
	switch f.bad {
	case "mix-up":
		back.Set("iss", "https://honest.example")
	case "no iss":
		back.Del("iss")
	case "wrong state":
		back.Set("state", strings.Repeat("x", 43))
	case "denied":
		back.Del("code")
		back.Set("error", "access_denied")
		back.Set("error_description", "no\x1b[31m way")
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (f *fakeAuthority) answerToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p := r.PostForm
	refuse := func(reason string) { f.writeJSON(w, http.StatusBadRequest, fields{"error": reason}) }
	if p.Get("client_id") != "made-for-raddle" || p.Get("resource") != f.URL+"/mcp" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		refuse("invalid_target")
		return
	}
	switch p.Get("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(p.Get("code_verifier")))
		if f.code == "" || p.Get("code") != f.code || p.Get("redirect_uri") != f.redirect || base64.RawURLEncoding.EncodeToString(sum[:]) != f.asked.Get("code_challenge") {
			refuse("invalid_grant")
			return
		}
		f.code = ""
	case "refresh_token":
		if f.refresh == "" || p.Get("refresh_token") != f.refresh {
			refuse("invalid_grant")
			return
		}
	default:
		refuse("unsupported_grant_type")
		return
	}
	f.n++
	f.access, f.refresh = fmt.Sprintf("access-token-%d-0123456789", f.n), fmt.Sprintf("refresh-token-%d-0123456789", f.n)
	f.writeJSON(w, http.StatusOK, fields{"access_token": f.access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": f.refresh})
}

// openPage opens a page as a browser does, and follows redirections.
func openPage(t *testing.T) func(string) {
	return func(address string) {
		go func() {
			if r, err := http.Get(address); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
		}()
	}
}

func TestLogin(t *testing.T) {
	f := newFake(t, "")
	g, err := (&Login{Server: f.URL + "/mcp", Show: openPage(t)}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if access, refresh := f.tokens(); g.Access != access || g.Refresh != refresh || g.Issuer != f.URL+"/as" || g.ClientID != "made-for-raddle" || time.Until(g.Expires) < 50*time.Minute {
		t.Errorf("the grant is %+v", g)
	}
	// A server that says nothing about its metadata has them at the known place.
	f = newFake(t, "no challenge")
	if _, err := (&Login{Server: f.URL + "/mcp", Show: openPage(t), Wait: 300 * time.Millisecond}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "was not confirmed") {
		t.Errorf("without a scope the fake refuses, after all metadata were read: %v", err)
	}
	if seen := f.paths(); !slices.Contains(seen, "/authorize") {
		t.Errorf("the paths were %v", seen)
	}
}

// Whatever a server says, nothing is asked that it must not lead to, and no answer counts that is not from the one that was asked.
func TestLoginIsRefused(t *testing.T) {
	for bad, want := range map[string]string{
		"metadata in a private network":    "10.1.2.3 is in a private network, and the server is not there",
		"metadata of the cloud":            "must begin with https://",
		"metadata of the cloud over https": "169.254.169.254 is in the network of this link",
		"metadata redirect":                "the metadata that it names are not there",
		"another resource":                 `about another server: "https://bank.example/mcp"`,
		"a sibling":                        "about another server",
		"private issuer":                   "192.168.0.1 is in a private network",
		"another issuer":                   `says that it is "https://honest.example"`,
		"no PKCE":                          "does not offer PKCE with S256",
		"no registration":                  "does not register programs by itself",
		"page is a script":                 `the endpoint "javascript:alert(1)" is not used`,
		"page is a file":                   "is not used",
		"page over http":                   "must begin with https://",
		"token in a private network":       "10.0.0.1 is in a private network",
		"mix-up":                           `but from "https://honest.example"`,
		"no iss":                           "is not from",
		"wrong state":                      "was not confirmed",
		"denied":                           "the login was refused: access_denied no[31m way",
	} {
		t.Run(bad, func(t *testing.T) {
			f := newFake(t, bad)
			l := &Login{Server: f.URL + "/mcp", Show: openPage(t), Wait: 2 * time.Second}
			if bad == "wrong state" {
				l.Wait = 200 * time.Millisecond
			}
			_, err := l.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "the-code") {
				t.Errorf("%v, want %q", err, want)
			}
			if access, _ := f.tokens(); access != "" {
				t.Error("a token was given")
			}
		})
	}
	for _, server := range []string{"http://mcp.example.org/", "ftp://127.0.0.1/", "https://user:pass@example.org/", "x", "https://example.org/ a"} {
		if _, err := (&Login{Server: server}).Run(t.Context()); err == nil {
			t.Errorf("%s is accepted", server)
		}
	}
}

// A server on the internet cannot lead raddle to this machine.
func TestLoginDoesNotReachThisMachine(t *testing.T) {
	f := newFake(t, "")
	l := &Login{Server: f.URL + "/mcp", Show: func(string) { t.Error("a page was shown") }}
	var err error
	if l.web, err = newWeb(t.Context(), &url.URL{Scheme: "https", Host: "192.0.2.1"}); err != nil {
		t.Fatal(err)
	}
	l.web.own = []netip.Addr{netip.MustParseAddr("203.0.113.1")}
	if _, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1 is this machine, and the server is not there") {
		t.Errorf("the error is %v", err)
	}
	if seen := f.paths(); len(seen) > 0 {
		t.Errorf("it was asked for %v", seen)
	}
}

// What is opened has no characters that mean something outside of an address.
func TestLoginPageIsAnAddress(t *testing.T) {
	f := newFake(t, "shell in the page")
	var shown string
	_, _ = (&Login{Server: f.URL + "/mcp", Show: func(a string) { shown = a }, Wait: 10 * time.Millisecond}).Run(t.Context())
	u, err := url.Parse(shown)
	if err != nil || u.Scheme != "http" || strings.ContainsAny(shown, " \"<>`\n") || u.Query().Get("state") == "" {
		t.Errorf("%s, %v", shown, err)
	}
}

func TestTokensAreRenewed(t *testing.T) {
	f := newFake(t, "")
	g, err := (&Login{Server: f.URL + "/mcp", Show: openPage(t)}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys := keystore.New(t.TempDir(), environ.Environ{})
	if _, _, err := SaveGrant(keys, g); err != nil {
		t.Fatal(err)
	}
	var secrets []string
	tokens := &Tokens{Keys: keys, Secret: func(values ...string) { secrets = append(secrets, values...) }}
	token := func(server, rejected string) string {
		t.Helper()
		text, err := tokens.Token(t.Context(), server, rejected)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := token(g.Server, "")
	if first != g.Access || token(g.Server+"/other", "") != "" {
		t.Errorf("the tokens are %q and %q", first, token(g.Server+"/other", ""))
	}
	second := token(g.Server, first)
	access, refresh := f.tokens()
	if second == first || second != access || token(g.Server, first) != second || token(g.Server, "") != second {
		t.Errorf("the second token is %q", second)
	}
	for _, want := range []string{first, second, refresh} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%q is not kept secret", want)
		}
	}
	// Another process has what was renewed; one with an old refresh token looks again.
	other := &Tokens{Keys: keys, known: map[string]Grant{g.Server: g}}
	if text, err := other.Token(t.Context(), g.Server, first); err != nil || text != second {
		t.Errorf("the other process: %q, %v", text, err)
	}
	// A grant that is stored for another server is none for this one.
	g.Server = "https://evil.example/mcp"
	text, _ := json.Marshal(g)
	if _, _, err := keys.Save(keyOf(f.URL+"/x"), string(text), true); err != nil {
		t.Fatal(err)
	}
	if text, err := tokens.Token(t.Context(), f.URL+"/x", ""); text != "" || err == nil {
		t.Errorf("%q, %v", text, err)
	}
	f.mu.Lock()
	f.refresh = ""
	f.mu.Unlock()
	if text, err := tokens.Token(t.Context(), f.URL+"/mcp", second); text != "" || err == nil || !strings.Contains(err.Error(), "cannot be renewed") || strings.Contains(err.Error(), "refresh-token") {
		t.Errorf("%q, %v", text, err)
	}
	if place, err := RemoveGrant(keys, f.URL+"/mcp"); place == keystore.Nowhere || err != nil {
		t.Error(place, err)
	}
}
