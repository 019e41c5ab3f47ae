package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/base/proc"
)

const (
	maxLine   = 16 << 20 // of one message over stdio
	maxStderr = 4 << 10  // of one line of stderr in the log
	reconnect = 2        // attempts to resume a broken stream
)

// openTransport starts the child of a server over stdio, or returns a transport over the
// network, which connects later.
func (s *server) openTransport(ctx context.Context, c *connection, config Server) (sdk.Transport, error) {
	if config.Transport == Stdio {
		return s.startChild(ctx, c, config)
	}
	at, err := url.Parse(config.URL)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return nil, errors.New(`its "url" is not an address like https://example.org/mcp`)
	}
	var life context.Context
	life, c.cancelRequests = context.WithCancel(context.Background())
	client := &http.Client{
		Transport: &requester{next: s.web, headers: config.Headers, life: life, inbox: newInbox(s.logStrayOutput, c.reportProgress), id: config.ID, at: at, token: s.options.tokenFunc(config)},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) >= 10 || r.URL.Host != at.Host || r.URL.Scheme != at.Scheme {
				return fmt.Errorf("the server redirects to %s: if that is right, write this address into the entry", r.URL.Host)
			}
			return nil
		},
	}
	if config.Transport == SSE {
		return &sdk.SSEClientTransport{Endpoint: config.URL, HTTPClient: client}, nil
	}
	return &sdk.StreamableClientTransport{Endpoint: config.URL, HTTPClient: client, MaxRetries: reconnect, MaxEventSize: -1}, nil
}

// startChild starts the child.
func (s *server) startChild(ctx context.Context, c *connection, config Server) (sdk.Transport, error) {
	dir := s.options.Dir
	if config.Dir != "" {
		dir = config.Dir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.options.Dir, dir)
		}
	}
	env := s.options.listVariables(s.config.Sandbox)
	for _, name := range slices.Sorted(maps.Keys(config.Env)) {
		env = append(env, name+"="+config.Env[name])
	}
	command := proc.Command{Path: config.Command, Args: config.Args, Dir: dir, Env: env}
	if s.config.Sandbox {
		var err error
		if c.boxed, err = s.enterBox(ctx, command); err != nil {
			return nil, err
		}
		command = c.boxed.stay.Command
	}
	c.stderr = &stderrLog{server: s}
	process, err := proc.Start(command, c.stderr)
	if err != nil {
		return nil, err
	}
	c.process = process
	c.pipe = newPipe(process, &c.silent, newInbox(s.logStrayOutput, c.reportProgress))
	return c.pipe, nil
}

// logStrayOutput logs the output of a server that is not a message.
func (s *server) logStrayOutput(text []byte) {
	if !s.options.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	s.options.Log.Debug("MCP server wrote something that is not a message", "server", s.config.ID, "text", s.logLine(text))
}

// A requester adds the headers of an entry to requests to its server, removes everything from
// the answers that is not a message, and ends running requests when the connection is
// closed.
type requester struct {
	next    http.RoundTripper
	headers map[string]string
	life    context.Context
	inbox   *inbox

	id    string
	at    *url.URL                                                   // of the server
	token func(ctx context.Context, rejected string) (string, error) // see Options.Token; nil: there are no logins
}

// tokenFunc returns what gives tokens for a server; nil if the entry has a credential of its own.
func (o *Options) tokenFunc(config Server) func(ctx context.Context, rejected string) (string, error) {
	for name := range config.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return nil
		}
	}
	if o.Token == nil {
		return nil
	}
	return func(ctx context.Context, rejected string) (string, error) {
		return o.Token(ctx, config.URL, rejected)
	}
}

// addToken adds the token of a login to a request to the server itself. It returns the token.
func (r *requester) addToken(req *http.Request, rejected string) (string, error) {
	if r.token == nil || req.URL.Host != r.at.Host || req.URL.Scheme != r.at.Scheme {
		return "", nil
	}
	token, err := r.token(req.Context(), rejected)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, r.loginHint())
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return token, nil
}

// loginHint says what to do about a server that wants a login.
func (r *requester) loginHint() string {
	if r.token == nil {
		return "put a valid credential into the headers of the entry"
	}
	return "log in with: raddle mcp login " + r.id + ", or put a valid credential into the headers of the entry"
}

// sendAuthorized sends a request. If the server refuses the token of a login, the request is sent once more with a new
// one.
func (r *requester) sendAuthorized(req *http.Request, text []byte) (*http.Response, error) {
	token, err := r.addToken(req, "")
	if err != nil {
		return nil, err
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || token == "" {
		return resp, err
	}
	again := req.Clone(req.Context())
	if next, err := r.addToken(again, token); err != nil || next == "" || next == token {
		if err != nil {
			resp.Body.Close()
			return nil, err
		}
		return resp, nil
	}
	resp.Body.Close()
	if text != nil {
		again.Body = io.NopCloser(bytes.NewReader(text))
	}
	return r.next.RoundTrip(again)
}

// RoundTrip implements http.RoundTripper.
func (r *requester) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.life, cancel)
	done := func() { stop(); cancel() }
	req = req.Clone(ctx)
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		req.Header.Set(name, r.headers[name])
	}
	text, err := r.recordHTTPRequest(req)
	if err != nil {
		done()
		return nil, err
	}
	resp, err := r.sendAuthorized(req, text)
	if err != nil {
		done()
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		resp.Body.Close()
		done()
		return nil, fmt.Errorf("%s requires authentication (401): %s", req.URL.Host, r.loginHint())
	}
	resp.Body = &closingBody{Reader: r.filterBody(resp), Closer: resp.Body, done: done}
	return resp, nil
}

// A closingBody ends its request when it is closed.
type closingBody struct {
	io.Reader
	io.Closer
	done func()
}

// Close ends the request.
func (b *closingBody) Close() error {
	err := b.Closer.Close()
	b.done()
	return err
}

// logLine returns a line of a server without secrets and control characters, shortened for a log.
func (s *server) logLine(text []byte) string {
	clean := s.redactText(string(proc.StripEscapes(bytes.TrimSpace(text))))
	if len(clean) > maxStderr {
		clean = clean[:maxStderr] + "..."
	}
	return strings.ToValidUTF8(clean, "?")
}
