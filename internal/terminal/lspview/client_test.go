package lspview_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/language"
	"raddle.dev/internal/terminal/lspview"
)

// A client is an editor that takes the protocol at its word: it counts in UTF-16 itself, knows the versions of its
// documents, and fails a test when the server writes what the protocol does not allow.
type client struct {
	t       testing.TB
	dir     string
	in      io.WriteCloser
	out     *bufio.Reader
	nextID  int
	docs    map[string]*clientDocument // by address
	shown   map[string][]language.Diagnostic
	ended   chan error
	process *app.Process
}

type clientDocument struct {
	version int
	text    []uint16
}

// start starts a server for a copy of files, by their names, in a directory whose name needs escapes in addresses.
func start(t testing.TB, files map[string]string) *client {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my agents", "日本")
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return startIn(t, dir)
}

func startIn(t testing.TB, dir string) *client {
	t.Helper()
	home := t.TempDir()
	p, err := app.Open(app.Options{Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "RADDLE_CONFIG_DIR=" + filepath.Join(home, "config")}, Work: dir})
	if err != nil {
		t.Fatal(err)
	}
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	c := &client{t: t, dir: dir, in: in, out: bufio.NewReader(out), docs: map[string]*clientDocument{}, shown: map[string][]language.Diagnostic{}, ended: make(chan error, 1), process: p}
	go func() {
		err := lspview.Serve(t.Context(), p, serverIn, serverOut)
		_ = serverOut.Close()
		c.ended <- err
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = p.Close()
	})
	var result struct {
		Capabilities struct {
			PositionEncoding string `json:"positionEncoding"`
			TextDocumentSync struct {
				Change int `json:"change"`
			} `json:"textDocumentSync"`
		} `json:"capabilities"`
	}
	c.call("initialize", map[string]any{"processId": nil, "rootUri": language.AddressOf(dir), "capabilities": map[string]any{}}, &result)
	if result.Capabilities.PositionEncoding != "utf-16" || result.Capabilities.TextDocumentSync.Change != 2 {
		t.Fatalf("capabilities: %+v", result)
	}
	c.notify("initialized", map[string]any{})
	return c
}

func (c *client) uri(name string) string {
	return language.AddressOf(filepath.Join(c.dir, filepath.FromSlash(name)))
}

func (c *client) send(message map[string]any) {
	c.t.Helper()
	message["jsonrpc"] = "2.0"
	body, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	c.send(map[string]any{"method": method, "params": params})
}

// message is one message of the server.
type message struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// receive reads one message, and keeps diagnostics.
func (c *client) receive() message {
	c.t.Helper()
	head, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	length, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(head, "Content-Length: "), "\r\n"))
	if rest, other := c.out.ReadString('\n'); err != nil || other != nil || rest != "\r\n" {
		c.t.Fatalf("the server writes %q", head)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c.out, body); err != nil {
		c.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		c.t.Fatalf("%s: %v", body, err)
	}
	if m.Method == "textDocument/publishDiagnostics" {
		c.keep(m.Params)
	}
	return m
}

// keep keeps diagnostics, and checks their version and their places.
func (c *client) keep(params json.RawMessage) {
	c.t.Helper()
	var p language.Published
	if err := json.Unmarshal(params, &p); err != nil {
		c.t.Fatal(err)
	}
	if d := c.docs[p.URI]; d != nil {
		if p.Version == nil || *p.Version > d.version {
			c.t.Errorf("diagnostics of %s have the version %v; the document has %d", p.URI, p.Version, d.version)
		}
		if *p.Version == d.version {
			for _, found := range p.Diagnostics {
				d.slice(c.t, found.Range)
			}
		}
	}
	c.shown[p.URI] = p.Diagnostics
}

// call sends a request, and reads messages until its answer.
func (c *client) call(method string, params, result any) {
	c.t.Helper()
	m := c.request(method, params)
	if m.Error != nil {
		c.t.Fatalf("%s: %d %s", method, m.Error.Code, m.Error.Message)
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		c.t.Fatalf("%s: %s: %v", method, m.Result, err)
	}
}

func (c *client) request(method string, params any) message {
	c.t.Helper()
	c.nextID++
	id := c.nextID
	c.send(map[string]any{"id": id, "method": method, "params": params})
	for {
		if m := c.receive(); m.ID != nil && *m.ID == id {
			return m
		}
	}
}

func (c *client) open(name, text string) string {
	c.t.Helper()
	uri := c.uri(name)
	c.docs[uri] = &clientDocument{1, utf16.Encode([]rune(text))}
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "yaml", "version": 1, "text": text}})
	return uri
}

// change replaces units of a document.
func (c *client) change(uri string, from, to int, with string) {
	c.t.Helper()
	d := c.docs[uri]
	r := language.Range{Start: d.position(from), End: d.position(to)}
	d.version++
	d.text = append(append(append([]uint16{}, d.text[:from]...), utf16.Encode([]rune(with))...), d.text[to:]...)
	c.notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": uri, "version": d.version},
		"contentChanges": []any{map[string]any{"range": r, "text": with}},
	})
}

// waitFor reads messages until the diagnostics of a document satisfy a condition.
func (c *client) waitFor(uri string, ok func([]language.Diagnostic) bool) []language.Diagnostic {
	c.t.Helper()
	for {
		if m := c.receive(); m.Method == "textDocument/publishDiagnostics" && ok(c.shown[uri]) {
			var p language.Published
			if json.Unmarshal(m.Params, &p) == nil && p.URI == uri && (p.Version == nil || c.docs[uri] == nil || *p.Version == c.docs[uri].version) {
				return c.shown[uri]
			}
		}
	}
}

// position returns the position of a unit of a document: lines end with LF, CR LF and CR.
func (d *clientDocument) position(at int) (p language.Position) {
	for i := 0; i < at; i++ {
		p.Character++
		if d.text[i] == '\n' || d.text[i] == '\r' && (i+1 == len(d.text) || d.text[i+1] != '\n') {
			p.Line++
			p.Character = 0
		}
	}
	return p
}

// slice returns the text of a range, which must lie in the document and between characters.
func (d *clientDocument) slice(t testing.TB, r language.Range) string {
	t.Helper()
	from, to := -1, -1
	for at := 0; at <= len(d.text); at++ {
		if at > 0 && at < len(d.text) && utf16.IsSurrogate(rune(d.text[at])) && d.text[at] >= 0xdc00 {
			continue
		}
		switch p := d.position(at); {
		case p == r.Start && p == r.End:
			from, to = at, at
		case p == r.Start:
			from = at
		case p == r.End:
			to = at
		}
	}
	if from < 0 || to < from {
		t.Fatalf("the range %+v is not in the document", r)
	}
	return string(utf16.Decode(d.text[from:to]))
}

func (d *clientDocument) String() string { return string(utf16.Decode(d.text)) }

// find returns the position in the middle of the n-th place of a text in a document.
func (d *clientDocument) find(t testing.TB, text string, n int) language.Position {
	t.Helper()
	at := 0
	whole := d.String()
	for range n {
		i := strings.Index(whole[at:], text)
		if i < 0 {
			t.Fatalf("%q is not in the document %d times", text, n)
		}
		at += i + len(text)
	}
	return d.position(len(utf16.Encode([]rune(whole[:at-len(text)]))) + 1)
}

// place returns the parameters of a request about a place.
func (c *client) place(uri, text string, n int) map[string]any {
	c.t.Helper()
	return map[string]any{"textDocument": map[string]any{"uri": uri}, "position": c.docs[uri].find(c.t, text, n)}
}

func compact(v any) string {
	b, _ := json.Marshal(v)
	return string(bytes.TrimSpace(b))
}

func newDocument(text string) *clientDocument {
	return &clientDocument{text: utf16.Encode([]rune(text))}
}

// apply returns the text after edits, whose ranges must be in the document and may not overlap.
func (d *clientDocument) apply(t testing.TB, edits []language.TextEdit) string {
	t.Helper()
	type part struct {
		from, to int
		with     string
	}
	var parts []part
	for _, e := range edits {
		from := -1
		for at := 0; at <= len(d.text); at++ {
			if p := d.position(at); p == e.Range.Start {
				from = at
			}
		}
		parts = append(parts, part{from, from + len(utf16.Encode([]rune(d.slice(t, e.Range)))), e.NewText})
	}
	slices.SortFunc(parts, func(a, b part) int { return b.from - a.from })
	text := d.text
	for i, p := range parts {
		if i > 0 && p.to > parts[i-1].from {
			t.Fatalf("edits overlap: %s", compact(edits))
		}
		text = append(append(append([]uint16{}, text[:p.from]...), utf16.Encode([]rune(p.with))...), text[p.to:]...)
	}
	return string(utf16.Decode(text))
}
