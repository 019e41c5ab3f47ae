package gateway

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/entries"
	"raddle.dev/server"
)

// Settings say who may call a server, and where.
type Settings struct {
	Listen    string        // HOST:PORT
	PublicURL string        // address behind a proxy; "": there is none
	TLSCert   string        // file of the certificate; "": no TLS
	TLSKey    string        // file of its key
	Insecure  bool          // listen for other machines without TLS
	Origins   []string      // of pages that may call, in addition to the server's own
	Grace     time.Duration // for the steps that work when the server ends
	// UserHeader is the header in which a proxy names the user of a request; "": the user is that of the token. The
	// proxy must remove the header from what it gets.
	UserHeader string

	State  string        // state directory of raddle
	Shared entries.Store // what all servers of a store know: tokens and log-ins
	Token  string        // replaces the first token; "": that of the state directory
	Limits TokenLimits   // of each token
}

// A Gateway is an HTTP server around a service.
type Gateway struct {
	settings Settings
	service  *server.Service
	tokens   *Tokens
	first    string // the first token
	listener net.Listener
	public   *url.URL         // nil: there is no address behind a proxy
	hosts    []string         // that requests may name
	pages    []string         // origins of the server's own pages
	origins  []string         // whose pages may call
	sessions *Sessions        // of browsers
	closed   *http.ServeMux   // what needs a token
	open     *http.ServeMux   // what does not
	unread   []unreadHandler  // what reads its requests itself
	large    map[string]int64 // sizes of the largest bodies at paths that take more than others, in bytes
	refusals []refusal        // of protocols
	counts   runCounts        // of the store, for the metrics
	network  *connectionSet
	quotas   *quotaSet
	log      *securityLog
}

// A refusal writes refusals in the form of a protocol.
type refusal struct {
	prefix string
	write  func(w http.ResponseWriter, status int, code, detail string)
}

// Open checks the settings, starts to listen, and makes the first token if there is none. Requests wait until
// [Gateway.Serve]. The caller must call Close.
func Open(o Settings) (*Gateway, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	g := &Gateway{settings: o, tokens: OpenTokens(o.State, o.Shared), sessions: openSessions(o.Shared), closed: http.NewServeMux(), open: http.NewServeMux(), network: newConnectionSet(countFiles())}
	g.log = g.tokens.log
	g.quotas = newQuotaSet(o.Limits, g.network.all)
	var err error
	if o.PublicURL != "" {
		if g.public, err = url.Parse(o.PublicURL); err != nil || g.public.Host == "" || g.public.Scheme != "http" && g.public.Scheme != "https" {
			return nil, failure.NewUsage("for example: https://agents.example.com/raddle", "--public-url %s: it must be an address with http:// or https://", o.PublicURL)
		}
	}
	if g.first, err = g.tokens.ReadFirst(o.Token); err != nil {
		return nil, err
	}
	if g.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, &failure.Error{Kind: failure.Usage, Msg: "cannot listen at " + o.Listen, Err: err, Next: "choose another address with --listen"}
	}
	g.hosts = allowedHosts(g.listener.Addr().String(), g.public)
	for _, h := range g.hosts {
		g.pages = append(g.pages, g.scheme()+h)
	}
	if g.public != nil {
		g.pages = append(g.pages, g.public.Scheme+"://"+g.public.Host)
	}
	g.origins = slices.Concat(g.pages, o.Origins)
	g.addLogin()
	g.open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	g.open.HandleFunc("GET /readyz", g.serveReady)
	g.closed.HandleFunc("GET /metrics", g.serveMetrics)
	return g, nil
}

// check returns what is wrong with settings.
func (o Settings) check() error {
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return failure.NewUsage("give both", "--tls-cert and --tls-key need each other")
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return failure.NewUsage("for example: --listen 127.0.0.1:7777", "--listen %s: it must be HOST:PORT", o.Listen)
	}
	ip := net.ParseIP(host)
	if o.TLSCert != "" || o.Insecure || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return failure.NewUsage("give --tls-cert and --tls-key, or --insecure-listen if a proxy in front of raddle does it", "other machines can reach %s, and tokens would cross the network unprotected", o.Listen)
}

func (g *Gateway) scheme() string {
	if g.settings.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// Address returns where clients reach the server, without a slash at its end.
func (g *Gateway) Address() string {
	if g.public != nil {
		return strings.TrimSuffix(g.public.String(), "/")
	}
	return g.scheme() + g.listener.Addr().String()
}

// FirstToken returns the first token, and its file.
func (g *Gateway) FirstToken() (token, path string) { return g.first, g.tokens.FirstPath() }

// allowedHosts returns what the Host header of a request may be: a page of another site cannot make its own name lead
// here.
func allowedHosts(listen string, public *url.URL) []string {
	hosts := []string{listen}
	host, port, _ := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
			hosts = append(hosts, net.JoinHostPort(name, port))
		}
	}
	if public != nil {
		hosts = append(hosts, public.Host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Handle adds a handler for requests with a token.
func (g *Gateway) Handle(pattern string, h http.Handler) { g.closed.Handle(pattern, h) }

// AllowBody lets requests at a path have a body that is larger than that of others. A path that ends with a slash means
// all below it.
func (g *Gateway) AllowBody(path string, bytes int64) {
	if g.large == nil {
		g.large = map[string]int64{}
	}
	g.large[path] = bytes
}

// HandleOpen adds a handler for requests without a token.
func (g *Gateway) HandleOpen(pattern string, h http.Handler) { g.open.Handle(pattern, h) }

// An unreadHandler answers the requests whose paths begin with a prefix.
type unreadHandler struct {
	prefix string
	http.Handler
}

// HandleUnread adds a handler for requests without a token whose paths begin with a prefix. It gets them as they come:
// their paths are not cleaned, and it must bound and read their bodies itself, within the time of open requests.
func (g *Gateway) HandleUnread(prefix string, h http.Handler) {
	g.unread = append(g.unread, unreadHandler{prefix, h})
}

// WriteRefusals lets a function write the refusals of requests whose path begins with a prefix, in the form of a
// protocol.
func (g *Gateway) WriteRefusals(prefix string, write func(w http.ResponseWriter, status int, code, detail string)) {
	g.refusals = append(g.refusals, refusal{prefix, write})
}

// refuse writes why a request is refused. Refusals of callers are in the security log.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, status int, code, detail string) {
	g.log.writeRefusal(r, status, code)
	for _, f := range g.refusals {
		if strings.HasPrefix(r.URL.Path, f.prefix) {
			f.write(w, status, code, detail)
			return
		}
	}
	writeProblem(w, status, code, detail)
}

// ServeHTTP checks where a request comes from and who sends it, and passes it on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setPageHeaders(w.Header())
	startBody(w, r, openBodyTime) // for what refuses the request and leaves its body
	if g.public != nil {
		r = stripPrefix(r, strings.TrimSuffix(g.public.Path, "/"))
	}
	if !g.isOwnHost(r.Host) {
		g.refuseBody(w, r, http.StatusMisdirectedRequest, "foreign-host", "this server does not answer for the host "+r.Host+"; raddle serve --public-url names another one")
		return
	}
	if done := g.checkOrigin(w, r); done {
		return
	}
	for _, h := range g.unread {
		if strings.HasPrefix(r.URL.Path, h.prefix) {
			status := &statusWriter{ResponseWriter: w}
			h.ServeHTTP(status, r)
			if status.isRefusal() {
				g.log.writeRefusal(r, status.code, "")
			}
			return
		}
	}
	if _, pattern := g.open.Handler(r); pattern != "" {
		if g.readBody(w, r, maxOpenBody, openBodyTime) {
			g.open.ServeHTTP(w, r)
		}
		return
	}
	g.serveCaller(w, r)
}

// serveCaller finds out who sends a request, and passes it on if its sender may send it.
func (g *Gateway) serveCaller(w http.ResponseWriter, r *http.Request) {
	caller, ok, err := g.findCaller(r)
	switch {
	case errors.Is(err, errForeignPage):
		g.refusePage(w, r)
		return
	case errors.Is(err, errExpired):
		g.refuseStranger(w, r, "expired-token", "the token has expired: raddle serve token add makes another one")
		return
	case err != nil:
		g.refuseUnknown(w, r, err)
		return
	case !ok:
		g.refuseStranger(w, r, "no-token", "the request needs the header Authorization: Bearer TOKEN with a token of this server, or a browser that has logged in at "+g.Address()+"/login")
		return
	}
	trustConnection(r)
	r = r.WithContext(server.WithCaller(r.Context(), caller))
	leave, err := g.quotas.enter(caller.Name)
	if err != nil {
		g.refuseQuota(w, r, err)
		return
	}
	defer leave()
	caller.TraceParent = r.Header.Get("Traceparent")
	if name := g.settings.UserHeader; name != "" {
		if caller.User, ok = readUser(r, name); !ok {
			g.refuseBody(w, r, http.StatusBadRequest, "no-user", "the request needs the header "+name+" with one name: the proxy in front of this server must set it")
			return
		}
	}
	if _, pattern := g.closed.Handler(r); pattern == "" {
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
			writeMissingPage(w)
			return
		}
		g.refuseBody(w, r, http.StatusNotFound, "not-found", "there is nothing at "+r.Method+" "+r.URL.Path)
		return
	}
	if limit, within := g.boundBody(r); !g.readBody(w, r, limit, within) {
		return
	}
	r = r.WithContext(server.WithCaller(r.Context(), caller)) // with its user, for the log
	asked := r
	caller.TakeStart = func() error { return g.quotas.takeStart(caller.Name) }
	caller.NoteGrant = func(grant server.Grant) { g.log.writeGrant(asked, grant) }
	r = r.WithContext(server.WithCaller(r.Context(), caller))
	status := &statusWriter{ResponseWriter: w}
	g.closed.ServeHTTP(status, r)
	if status.isRefusal() { // of a handler, such as a missing scope
		g.log.writeRefusal(r, status.code, "")
	}
}

// refuseStranger refuses a request without a valid token.
func (g *Gateway) refuseStranger(w http.ResponseWriter, r *http.Request, code, detail string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="raddle"`)
	g.refuseBody(w, r, http.StatusUnauthorized, code, detail)
}

// refuseQuota refuses a request for which its token has no room now.
func (g *Gateway) refuseQuota(w http.ResponseWriter, r *http.Request, err error) {
	code := "too-many-requests"
	if used, ok := errors.AsType[*server.QuotaError](err); ok {
		code = used.Code
		w.Header().Set("Retry-After", used.FormatSeconds())
	}
	g.refuseBody(w, r, http.StatusTooManyRequests, code, err.Error())
}

// A statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int // 0: none was written
}

// WriteHeader writes the status.
func (w *statusWriter) WriteHeader(code int) {
	if code >= 200 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush is for handlers that look for [http.Flusher].
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// isRefusal reports whether the answer says that the caller may not do this.
func (w *statusWriter) isRefusal() bool {
	return w.code == http.StatusUnauthorized || w.code == http.StatusForbidden || w.code == http.StatusTooManyRequests
}

// maxUser is the length of the longest name of a user, in bytes.
const maxUser = 255

// readUser returns the user that a proxy names. ok is false unless there is exactly one name.
func readUser(r *http.Request, header string) (user string, ok bool) {
	values := r.Header.Values(header)
	if len(values) != 1 {
		return "", false
	}
	user = strings.TrimSpace(values[0])
	return user, user != "" && len(user) <= maxUser && utf8.ValidString(user) && !strings.ContainsFunc(user, unicode.IsControl)
}

func (g *Gateway) isOwnHost(host string) bool {
	return slices.ContainsFunc(g.hosts, func(own string) bool {
		return strings.EqualFold(own, host) || strings.EqualFold(own, host+":80") || strings.EqualFold(own, host+":443")
	})
}

// checkOrigin refuses requests from pages of other sites. It answers the question of a browser whether a page may call.
func (g *Gateway) checkOrigin(w http.ResponseWriter, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	if !slices.ContainsFunc(g.origins, func(own string) bool { return strings.EqualFold(own, origin) }) {
		g.refuseBody(w, r, http.StatusForbidden, "foreign-origin", "pages of "+origin+" may not call this server; raddle serve --allow-origin allows it")
		return true
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "X-Raddle-Run, Mcp-Session-Id")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	w.WriteHeader(http.StatusNoContent)
	return true
}

// stripPrefix returns the request as it would be without the base path of the public address.
func stripPrefix(r *http.Request, prefix string) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok || prefix == "" || rest != "" && rest[0] != '/' {
		return r
	}
	short := r.Clone(r.Context())
	short.URL.Path = "/" + strings.TrimPrefix(rest, "/")
	short.URL.RawPath = ""
	return short
}

// bearerToken returns the token of a request, or "".
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the caller may have left
}

// writeProblem writes an error in the form of RFC 9457, with a code that does not change.
func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	text, _ := json.Marshal(map[string]any{"title": http.StatusText(status), "status": status, "code": code, "detail": detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
