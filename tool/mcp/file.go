package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"raddle.dev/tool"
)

// A File is an mcp.json as it was read.
type File struct {
	Path    string
	Servers []Server // sorted by id; those with problems too: they fail when they are started
	// Problems are the faults of single entries, in the order of the file.
	Problems []*Problem
}

// A Server is one entry, with its references to the environment as they stand.
type Server struct {
	ID        string
	Transport Transport
	Pos       string // path:line:column of the id

	Command string
	Args    []string
	Env     map[string]string // on top of Options.Env
	Dir     string            // cwd; relative to Options.Dir

	// InDoubt is what is done with calls that a crash cut off, unless they may be repeated.
	InDoubt tool.Doubt

	URL     string
	Headers map[string]string

	problem *Problem
}

// A Transport is the way to a server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // the pipes of a child process
	HTTP  Transport = "http"  // streamable HTTP
	SSE   Transport = "sse"   // HTTP with one long event stream, of protocols before 2025-03-26
)

// A Problem is a fault of the file, or of one entry.
type Problem struct {
	Pos     string // path:line:column
	Server  string // empty: the whole file
	Message string // what is said of the server, as in `has neither a "command" nor a "url"`
}

func (p *Problem) Error() string {
	if p.Server == "" {
		return p.Pos + ": " + p.Message
	}
	return fmt.Sprintf("%s: MCP server '%s' %s", p.Pos, p.Server, p.Message)
}

// A FileError is a file that cannot be read at all.
type FileError struct {
	Path string
	Err  error // a *Problem with the place, or why the file could not be opened
}

func (e *FileError) Error() string {
	return fmt.Sprintf("Failed to load MCP config file at %s: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Load reads a file. One that is missing or blank has no servers. The error is
// a *FileError; faults of entries are in File.Problems
// and keep only those servers from running.
func Load(path string) (File, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{Path: path}, nil
	}
	if err != nil {
		return File{Path: path}, &FileError{Path: path, Err: err}
	}
	return Parse(path, data)
}

// Parse reads the text of a file; path is for messages. Lines that begin with #
// are comments, and keys that mean nothing here are passed over.
func Parse(path string, data []byte) (File, error) {
	f := File{Path: path}
	text := source{path: path, text: blankComments(data)}
	if len(bytes.TrimSpace(text.text)) == 0 {
		return f, nil
	}
	if err := text.validateJSON(); err != nil {
		return f, &FileError{Path: path, Err: err}
	}
	top, err := text.readMembers(0)
	if err != nil {
		return f, &FileError{Path: path, Err: err}
	}
	for _, m := range top {
		if m.key != "mcpServers" {
			continue
		}
		entries, err := text.readMembers(m.value)
		if err != nil {
			return f, &FileError{Path: path, Err: err}
		}
		for _, e := range entries {
			f.addServer(text, e)
		}
	}
	slices.SortStableFunc(f.Servers, func(a, b Server) int { return strings.Compare(a.ID, b.ID) })
	return f, nil
}

func (f *File) addServer(text source, e member) {
	r := entryReader{source: text, server: Server{ID: e.key, Pos: text.formatPosition(e.at)}, file: f}
	r.readEntry(e)
	i := slices.IndexFunc(f.Servers, func(s Server) bool { return s.ID == e.key })
	if i >= 0 {
		r.addFault(e.at, "is declared twice; the other one is at %s", f.Servers[i].Pos)
		f.Servers[i] = r.server
		return
	}
	f.Servers = append(f.Servers, r.server)
}

// blankComments replaces lines that begin with # by spaces, so that positions
// stay what they are.
func blankComments(data []byte) []byte {
	data = bytes.Clone(bytes.TrimPrefix(data, []byte("\ufeff")))
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("#")) {
			for i := range bytes.TrimRight(line, "\r\n") {
				line[i] = ' '
			}
		}
	}
	return data
}

// A source is a JSON text with positions.
type source struct {
	path string
	text []byte
}

func (s source) formatPosition(at int) string {
	before := s.text[:min(at, len(s.text))]
	line := bytes.Count(before, []byte("\n"))
	column := len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
	return fmt.Sprintf("%s:%d:%d", s.path, line+1, column+1)
}

// validateJSON finds what is not JSON.
func (s source) validateJSON() error {
	var v json.RawMessage
	err := json.Unmarshal(s.text, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &Problem{Pos: s.formatPosition(max(0, int(syntax.Offset)-1)), Message: err.Error()}
	}
	return err
}

// A member is a key and a value of an object, as offsets into the source.
type member struct {
	key       string
	at, value int
}

// readMembers lists the members of the object at an offset of a valid text.
func (s source) readMembers(at int) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(s.text[at:]))
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') {
		return nil, &Problem{Pos: s.formatPosition(s.skipSpace(at)), Message: "want an object"}
	}
	var list []member
	for dec.More() {
		before := at + int(dec.InputOffset())
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		m := member{key: name, at: s.skipSpace(before), value: at + int(dec.InputOffset())}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return nil, err
		}
		m.value = s.skipSpace(m.value)
		list = append(list, m)
	}
	return list, nil
}

// skipSpace passes over white space and the punctuation before a key or a value.
func (s source) skipSpace(at int) int {
	return at + len(s.text[at:]) - len(bytes.TrimLeft(s.text[at:], " \t\r\n,:"))
}

// decodeValue reads the value at an offset.
func (s source) decodeValue(at int, v any) error {
	dec := json.NewDecoder(bytes.NewReader(s.text[at:]))
	dec.UseNumber()
	return dec.Decode(v)
}
