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
	version int // of the newest text of any document
	ended   chan error
	process *app.Process
	server  *lspview.Server
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
	c := &client{t: t, dir: dir, in: in, out: bufio.NewReader(out), docs: map[string]*clientDocument{}, shown: map[string][]language.Diagnostic{}, ended: make(chan error, 1), process: p, server: lspview.NewServer(p)}
	go func() {
		err := c.server.Serve(t.Context(), serverIn, serverOut)
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
	if d := c.docs[p.URI]; d != nil && p.Version != nil { // without a version they are about the file, before it was opened
		if *p.Version > d.version {
			c.t.Fatalf("diagnostics of %s have the version %d; the document has %d", p.URI, *p.Version, d.version)
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
	c.version++
	c.docs[uri] = &clientDocument{c.version, utf16.Encode([]rune(text))}
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "yaml", "version": c.version, "text": text}})
	return uri
}

// close closes a document.
func (c *client) close(uri string) {
	c.t.Helper()
	c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uri}})
	delete(c.docs, uri)
}

// change replaces units of a document.
func (c *client) change(uri string, from, to int, with string) {
	c.t.Helper()
	d := c.docs[uri]
	r := language.Range{Start: d.position(from), End: d.position(to)}
	c.version++
	d.version = c.version
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

// places calls f for the position of each unit of a document, and for its end: lines end with LF, CR LF and CR.
func (d *clientDocument) places(f func(at int, p language.Position) bool) {
	var p language.Position
	for at := 0; at <= len(d.text) && f(at, p); at++ {
		p.Character++
		if at < len(d.text) && (d.text[at] == '\n' || d.text[at] == '\r' && (at+1 == len(d.text) || d.text[at+1] != '\n')) {
			p.Line++
			p.Character = 0
		}
	}
}

// position returns the position of a unit of a document.
func (d *clientDocument) position(at int) (found language.Position) {
	d.places(func(i int, p language.Position) bool {
		found = p
		return i < at
	})
	return found
}

// unit returns the unit at a position, which must be in the document and not within a character.
func (d *clientDocument) unit(t testing.TB, p language.Position) int {
	t.Helper()
	found := -1
	d.places(func(at int, here language.Position) bool {
		if here == p {
			found = at
		}
		return found < 0
	})
	if found < 0 || found < len(d.text) && d.text[found] >= 0xdc00 && d.text[found] < 0xe000 {
		t.Fatalf("the position %+v is not in the document", p)
	}
	return found
}

// slice returns the text of a range, which must lie in the document and between characters.
func (d *clientDocument) slice(t testing.TB, r language.Range) string {
	t.Helper()
	from, to := d.unit(t, r.Start), d.unit(t, r.End)
	if to < from {
		t.Fatalf("the range %+v ends before it begins", r)
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
		parts = append(parts, part{d.unit(t, e.Range.Start), d.unit(t, e.Range.End), e.NewText})
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

func replaceOnce(text, old, with string) string { return strings.Replace(text, old, with, 1) }
