package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/proc"
)

const (
	maxLine   = 16 << 20 // of one message over stdio
	maxStderr = 4 << 10  // of one line of stderr in the log
	reconnect = 2        // attempts to take up a broken stream again
)

// transport starts the child of a server over stdio, or prepares the way over
// the network.
func (s *server) transport(c *connection, config Server) (sdk.Transport, error) {
	if config.Transport == Stdio {
		return s.spawn(c, config)
	}
	at, err := url.Parse(config.URL)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return nil, errors.New(`its "url" is not an address like https://example.org/mcp`)
	}
	var life context.Context
	life, c.hangUp = context.WithCancel(context.Background())
	client := &http.Client{
		Transport: &requester{next: s.web, headers: config.Headers, life: life},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) >= 10 || r.URL.Host != at.Host || r.URL.Scheme != at.Scheme {
				return fmt.Errorf("the server redirects to %s: if that is right, write it into the entry", r.URL.Host)
			}
			return nil
		},
	}
	if config.Transport == SSE {
		return &sdk.SSEClientTransport{Endpoint: config.URL, HTTPClient: client}, nil
	}
	return &sdk.StreamableClientTransport{Endpoint: config.URL, HTTPClient: client, MaxRetries: reconnect}, nil
}

// spawn starts the child.
func (s *server) spawn(c *connection, config Server) (sdk.Transport, error) {
	dir := s.options.Dir
	if config.Dir != "" {
		dir = config.Dir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.options.Dir, dir)
		}
	}
	env := append([]string{}, s.options.Env...)
	for _, name := range sortedKeys(config.Env) {
		env = append(env, name+"="+config.Env[name])
	}
	command := proc.Command{Path: config.Command, Args: config.Args, Dir: dir, Env: env}
	process, err := proc.Start(command, &stderrLog{server: s})
	if err != nil {
		return nil, err
	}
	c.process = process
	return &sdk.IOTransport{Reader: s.messages(process), Writer: process, MaxLineLength: -1}, nil
}

// A requester adds the headers of an entry to requests to its server, and ends
// those that are under way when the connection is closed.
type requester struct {
	next    http.RoundTripper
	headers map[string]string
	life    context.Context
}

// RoundTrip implements http.RoundTripper.
func (r *requester) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.life, cancel)
	done := func() { stop(); cancel() }
	req = req.Clone(ctx)
	for _, name := range sortedKeys(r.headers) {
		req.Header.Set(name, r.headers[name])
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		done()
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		resp.Body.Close()
		done()
		return nil, fmt.Errorf("%s wants to know who asks (401): put a valid credential into the headers of the entry", req.URL.Host)
	}
	resp.Body = &body{ReadCloser: resp.Body, done: done}
	return resp, nil
}

type body struct {
	io.ReadCloser
	done func()
}

// Close ends the request.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// messages passes on the lines of the child's stdout that are messages. Some
// servers, and the programs that fetch them, print other things there.
func (s *server) messages(p *proc.Process) io.ReadCloser {
	return &lineFilter{lines: bufio.NewReaderSize(p, 64<<10), child: p, reject: func(line []byte) {
		s.options.Log.Debug("MCP server printed what is no message", "server", s.config.ID, "stdout", s.line(line))
	}}
}

// A lineFilter reads the lines of a child that are JSON objects or lists.
type lineFilter struct {
	lines  *bufio.Reader
	child  io.Closer
	rest   []byte // of the line that is being read
	reject func(line []byte)
}

// Read implements io.Reader.
func (f *lineFilter) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		line, err := f.line()
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if (text[0] == '{' || text[0] == '[') && json.Valid(text) {
				f.rest = append(text, '\n')
				break
			}
			f.reject(text)
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// line reads a line, of which there is no more than maxLine.
func (f *lineFilter) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := f.lines.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("a message of more than %d MiB", maxLine>>20)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// Close ends the child.
func (f *lineFilter) Close() error { return f.child.Close() }

// A stderrLog writes the lines of a child's stderr to the log.
type stderrLog struct {
	server *server
	rest   []byte // of a line without an end
}

// Write implements io.Writer. It never fails.
func (l *stderrLog) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok && len(l.rest) < maxStderr {
			return len(p), nil
		}
		if !ok {
			line, rest = l.rest, nil
		}
		if len(bytes.TrimSpace(line)) > 0 {
			l.server.options.Log.Debug("MCP server", "server", l.server.config.ID, "stderr", l.server.line(line))
		}
		l.rest = append([]byte(nil), rest...)
	}
}

// line is a line of a server as a log may show it.
func (s *server) line(text []byte) string {
	clean := s.clean(string(proc.StripEscapes(bytes.TrimSpace(text))))
	if len(clean) > maxStderr {
		clean = clean[:maxStderr] + "..."
	}
	return strings.ToValidUTF8(clean, "?")
}
