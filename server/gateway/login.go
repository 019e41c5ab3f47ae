package gateway

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"raddle.dev/server"
)

//go:embed login
var loginFiles embed.FS

// LoginAddress returns the address at which one browser can log in once, with the rights of the first token. The code
// is in its fragment, which browsers send to no server. Then the browser is led to a page: its address below that of
// the server, "" for the first one.
func (g *Gateway) LoginAddress(ctx context.Context, page string) (string, error) {
	code, err := g.sessions.addCode(ctx)
	if err != nil {
		return "", fmt.Errorf("a code to log in with: %w", err)
	}
	query := ""
	if page != "" {
		query = "?" + url.Values{"page": {page}}.Encode()
	}
	return g.Address() + "/login" + query + "#" + code, nil
}

// addLogin adds what browsers need to log in and out. The page of the log-in needs no token.
func (g *Gateway) addLogin() {
	g.open.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { serveLoginFile(w, "login.html") })
	g.open.HandleFunc("GET /login/{file}", func(w http.ResponseWriter, r *http.Request) { serveLoginFile(w, r.PathValue("file")) })
	g.open.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { serveLoginFile(w, "icon.svg") })
	g.open.HandleFunc("POST /login", g.logIn)
	g.closed.HandleFunc("GET /session", func(w http.ResponseWriter, r *http.Request) {
		caller, _ := server.CallerOf(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		// the caller may have left
		_ = json.NewEncoder(w).Encode(map[string]any{"name": caller.Name, "scopes": caller.Scopes})
	})
	g.closed.HandleFunc("POST /logout", g.logOut)
}

func serveLoginFile(w http.ResponseWriter, name string) {
	text, err := fs.ReadFile(loginFiles, path.Join("login", name))
	if err != nil {
		writeProblem(w, http.StatusNotFound, "not-found", "there is no such page")
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(text) // the caller may have left
}

// missingPage is for a person whose address leads to no page.
const missingPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Nothing here · raddle</title></head>
<body><main><h1>Nothing here</h1><p>This address leads to no page. <a href="/">Home</a></p></main></body></html>
`

// writeMissingPage answers a browser whose address leads to no page.
func writeMissingPage(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, missingPage) // the browser may have left
}

// logIn exchanges a one-time code or a token for the cookie of a session.
func (g *Gateway) logIn(w http.ResponseWriter, r *http.Request) {
	if !g.isOwnPage(r) {
		g.refusePage(w, r)
		return
	}
	var body struct{ Code, Token string }
	err := json.NewDecoder(r.Body).Decode(&body)
	if err != nil || (body.Code == "") == (body.Token == "") {
		writeProblem(w, http.StatusBadRequest, "bad-request", `the body must be {"code": CODE} or {"token": TOKEN}`)
		return
	}
	hash := hashToken(g.first)
	name := firstName
	if body.Code != "" {
		ok, err := g.sessions.useCode(r.Context(), body.Code)
		if err != nil {
			g.refuseUnknown(w, r, err)
			return
		}
		if !ok {
			g.refuseLogin(w, r, "wrong-code", "this code was used or has expired: log in with a token, or start raddle serve again for another code")
			return
		}
	}
	if body.Token != "" {
		caller, ok, err := g.tokens.findCaller(r.Context(), body.Token, g.first)
		switch {
		case errors.Is(err, errExpired):
			g.refuseLogin(w, r, "expired-token", "the token has expired: raddle serve token add makes another one")
			return
		case err != nil:
			g.refuseUnknown(w, r, err)
			return
		case !ok:
			g.refuseLogin(w, r, "wrong-token", "this is not a token of this server")
			return
		}
		hash = hashToken(body.Token)
		name = caller.Name
	}
	cookie, err := g.sessions.startSession(r.Context(), hash)
	if err != nil {
		g.refuseUnknown(w, r, err)
		return
	}
	g.removeOpener()
	g.log.writeBounded(kindSession, newEntry("log-in", r, SecurityEntry{Token: name}))
	http.SetCookie(w, g.newCookie(cookie, int(sessionLife.Seconds())))
	w.WriteHeader(http.StatusNoContent)
}

// storeAway is what a caller reads whose token cannot be looked up.
const storeAway = "the store of the server does not answer, so that it cannot look up who you are: try again in a moment"

// refuseUnknown refuses a request of someone whom the store cannot name now. The security log says why.
func (g *Gateway) refuseUnknown(w http.ResponseWriter, r *http.Request, why error) {
	g.log.writeUnavailable(r, why)
	w.Header().Set("Retry-After", server.RetryAfter)
	g.refuseBody(w, r, http.StatusServiceUnavailable, "store-unavailable", storeAway)
}

// refuseLogin refuses a log-in.
func (g *Gateway) refuseLogin(w http.ResponseWriter, r *http.Request, code, detail string) {
	g.log.writeFailedLogin(r, code)
	writeProblem(w, http.StatusUnauthorized, code, detail)
}

// logOut ends the session of a browser. Without one it only removes the cookie.
func (g *Gateway) logOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(g.cookieName()); err == nil && cookie.Value != "" {
		if err := g.sessions.endSession(r.Context(), cookie.Value); err != nil {
			writeProblem(w, http.StatusInternalServerError, "internal", "the session cannot be ended: its end cannot be saved")
			return
		}
		g.log.writeBounded(kindSession, newEntry("log-out", r, SecurityEntry{}))
	}
	http.SetCookie(w, g.newCookie("", -1))
	w.WriteHeader(http.StatusNoContent)
}

// newCookie returns the cookie of a session. Cookies do not belong to a port: each server has its own name.
func (g *Gateway) newCookie(value string, seconds int) *http.Cookie {
	c := &http.Cookie{Name: g.cookieName(), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(g.Address(), "https://")}
	if g.public != nil && g.public.Path != "" {
		c.Path = g.public.Path
	}
	return c
}

func (g *Gateway) cookieName() string {
	if g.public != nil {
		return "raddle_" + hashToken(g.public.String())[:8]
	}
	_, port, _ := net.SplitHostPort(g.listener.Addr().String())
	return "raddle_" + port
}

// readSession returns the session of a request's cookie.
func (g *Gateway) readSession(r *http.Request) (found session, ok bool, err error) {
	cookie, err := r.Cookie(g.cookieName())
	if err != nil || cookie.Value == "" {
		return found, false, nil
	}
	return g.sessions.readSession(r.Context(), cookie.Value)
}

// errForeignPage reports a request with a cookie that no page of this server has sent.
var errForeignPage = errors.New("the request comes from no page of this server")

// findCaller returns the sender of a request: by its token, or by the session of its browser.
func (g *Gateway) findCaller(r *http.Request) (c server.Caller, ok bool, err error) {
	if r.Header.Get("Authorization") != "" {
		return g.tokens.findCaller(r.Context(), bearerToken(r), g.first)
	}
	found, ok, err := g.readSession(r)
	if !ok || err != nil {
		return c, false, err
	}
	if !g.maySendCookie(r) {
		return c, false, errForeignPage
	}
	return g.tokens.findHash(r.Context(), found.Token, g.first)
}

// maySendCookie reports whether a request with a cookie is one of this server's pages, or of a person who opens an
// address. Pages of other ports of this machine are of the same site, and their cookies are sent.
func (g *Gateway) maySendCookie(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return g.isOwnPage(r)
	}
	from := r.Header.Get("Sec-Fetch-Site")
	return from == "" || from == "same-origin" || from == "none"
}

// isOwnPage reports whether a browser says that a page of this server has sent a request.
func (g *Gateway) isOwnPage(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		return slices.ContainsFunc(g.pages, func(own string) bool { return strings.EqualFold(own, origin) })
	}
	return r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

func (g *Gateway) refusePage(w http.ResponseWriter, r *http.Request) {
	g.refuseBody(w, r, http.StatusForbidden, "foreign-page", "a request of a browser needs the Origin of a page of this server, or Sec-Fetch-Site: same-origin")
}
