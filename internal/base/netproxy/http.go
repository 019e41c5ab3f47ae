package netproxy

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// isSecret compares in a time that says nothing about the secret.
func isSecret(given, secret string) bool {
	a := sha256.Sum256([]byte(given))
	b := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// hasSecret reports whether a request may use the proxy.
func (s *service) hasSecret(r *http.Request) bool {
	if s.Secret == "" {
		return true
	}
	scheme, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return false
	}
	_, given, _ := strings.Cut(string(pair), ":")
	return isSecret(given, s.Secret)
}

// serveHTTP answers a request of a program.
func (s *service) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*conn)
	defer func() {
		if c.hijacked {
			c.end()
		}
	}()
	switch {
	case !s.hasSecret(r):
		w.Header().Set("Proxy-Authenticate", `Basic realm="raddle"`)
		s.refuseRequest(w, r, http.StatusProxyAuthRequired, errors.New("the proxy of raddle's sandbox needs the secret of its run, which is in HTTPS_PROXY"))
	case r.Method == http.MethodConnect:
		s.serveConnect(w, r, c)
	default:
		s.serveRequest(w, r, c)
	}
}

// serveConnect answers a request for a tunnel.
func (s *service) serveConnect(w http.ResponseWriter, r *http.Request, c *conn) {
	to, err := parseTarget(r.RequestURI, 0)
	if err != nil {
		s.refuseTarget(w, r, "connect", r.RequestURI, err)
		return
	}
	a := s.beginAttempt("connect", to, func() { _ = c.Close() })
	outer, err := s.connectProgram(r.Context(), a)
	if err != nil {
		s.refuseRequest(w, r, statusFor(err), err)
		s.finishAttempt(a, err)
		return
	}
	defer outer.Close()
	_, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.finishAttempt(a, err)
		return
	}
	_ = c.SetDeadline(time.Time{})
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		s.finishAttempt(a, err)
		return
	}
	s.finishAttempt(a, s.openTunnel(c, buffered.Reader, outer, a))
}

// serveRequest passes a plain request on.
func (s *service) serveRequest(w http.ResponseWriter, r *http.Request, c *conn) {
	var to Destination
	var err error
	switch {
	case r.URL.Scheme == "" || r.URL.Host == "":
		err = errors.New("this is the proxy of raddle's sandbox: it answers requests for whole addresses (http://…) and CONNECT only")
	case r.URL.Scheme != "http":
		err = fmt.Errorf("the scheme %s is not passed on: use http://, or CONNECT for what is encrypted", r.URL.Scheme)
	case r.URL.User != nil:
		err = errors.New("the address has a user in it: send the header Authorization")
	default:
		to, err = parseTarget(r.URL.Host, 80)
	}
	if err != nil {
		s.refuseTarget(w, r, "http", r.URL.Host, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a := s.beginAttempt("http", to, func() {
		cancel()
		_ = c.Close()
	})
	var failed error
	defer func() { s.finishAttempt(a, failed) }() // also if the answer breaks off, which is a panic
	proxy := httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport: &http.Transport{
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return s.connectProgram(ctx, a) },
		},
		Rewrite: func(p *httputil.ProxyRequest) {
			rewriteRequest(p, to)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			failed = err
			s.refuseRequest(w, r, statusFor(err), err)
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// rewriteRequest makes the request that is sent to a destination. Its host is the one that was judged, whatever the
// header Host says, and everything else is as the program sent it, without what is for the proxy.
func rewriteRequest(p *httputil.ProxyRequest, to Destination) {
	host := to.String()
	if to.Port == 80 {
		host = strings.TrimSuffix(host, ":80")
	}
	p.Out.URL = &url.URL{Scheme: "http", Host: host, Path: p.In.URL.Path, RawPath: p.In.URL.RawPath, RawQuery: p.In.URL.RawQuery, ForceQuery: p.In.URL.ForceQuery}
	p.Out.Host = host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
		}
	}
}

// statusFor returns the status for an error.
func statusFor(err error) int {
	var refused *refusedError
	var slow net.Error
	switch {
	case errors.As(err, &refused):
		return http.StatusForbidden
	case errors.As(err, &slow) && slow.Timeout():
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// refuseTarget answers a request for a destination that cannot be judged.
func (s *service) refuseTarget(w http.ResponseWriter, r *http.Request, protocol, text string, why error) {
	s.refuseRequest(w, r, http.StatusBadRequest, &refusedError{to: cleanText(text), reason: why.Error()})
	s.logInvalid(protocol, text, why)
}

// refuseRequest answers with an error. A program that asks for a tunnel shows the first line of the answer at best, so
// that the error is in that line; it is in the header Proxy-Status (RFC 9209) and in the body as well.
func (s *service) refuseRequest(w http.ResponseWriter, r *http.Request, status int, err error) {
	text := cleanText(err.Error())
	body := text + "\n"
	kind := "connection_refused"
	if status < http.StatusInternalServerError {
		kind = "http_request_denied"
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	header := w.Header()
	header.Set("Proxy-Status", fmt.Sprintf(`raddle; error=%s; details="%s"`, kind, quoted))
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Connection", "close")
	if r.Method != http.MethodConnect {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return
	}
	c, _, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil {
		return
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	var answer strings.Builder
	fmt.Fprintf(&answer, "HTTP/1.1 %d %s\r\n", status, text)
	_ = header.Write(&answer)
	answer.WriteString("\r\n" + body)
	_ = c.SetDeadline(time.Now().Add(greetTimeout))
	_, _ = io.WriteString(c, answer.String())
}
