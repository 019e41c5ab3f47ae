package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/tool"
)

// A File holds the entries of an mcp.json.
type File struct {
	Path    string
	Servers []Server // sorted by id; those with problems too: they fail when they are started
	// Problems are the faults of single entries, in the order of the file.
	Problems []strictyaml.Finding
}

// A Server is one entry. Its references to the environment are not replaced yet.
type Server struct {
	ID        string
	Transport Transport
	Pos       string // path:line:column of the id

	Command string
	Args    []string
	Env     map[string]string // on top of Options.Env
	Dir     string            // cwd; relative to Options.Dir

	// Sandbox says that the child process runs in Options.Box, and not without it.
	Sandbox bool

	// InDoubt says what happens to calls that a crash interrupted, unless they may be repeated.
	InDoubt tool.Doubt

	URL     string
	Headers map[string]string

	Login Login // how to log in to a server on the network

	StartTimeout, CallTimeout time.Duration // instead of those of Options; 0: those

	problem error // why the server cannot run; nil: the entry is valid
}

// A Login is what the user has registered with the authorization server of a server. The zero value is nothing: raddle
// registers itself.
type Login struct {
	ClientID, ClientSecret string
	Port                   int // of this machine, to which the browser is sent; 0: any
}

// A Transport is the way to a server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // the pipes of a child process
	HTTP  Transport = "http"  // streamable HTTP
	SSE   Transport = "sse"   // HTTP with one long event stream, of protocols before 2025-03-26
)

// A FileError is a file that cannot be read at all.
type FileError struct {
	Path     string
	Err      error                // why the file could not be opened; nil if Findings say it
	Findings []strictyaml.Finding // what is wrong with the text, and where
}

func (e *FileError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("Failed to load MCP config file at %s: %v", e.Path, e.Err)
	}
	var lines []string
	for _, f := range e.Findings {
		line := fmt.Sprintf("line %d, column %d: %s", f.Pos.Line, f.Pos.Col, f.Message)
		if f.Hint != "" {
			line += " (" + f.Hint + ")"
		}
		lines = append(lines, line)
	}
	return fmt.Sprintf("Failed to load MCP config file at %s: %s", e.Path, strings.Join(lines, "\n"))
}

// ListFindings returns what is wrong with the text.
func (e *FileError) ListFindings() []strictyaml.Finding { return e.Findings }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Load reads a file. A file that is missing or blank has no servers. The error is a *FileError.
// Faults of entries are in File.Problems; only the servers of these entries cannot run.
func Load(path string) (File, error) {
	data, err := plainfile.Read(path, 2*strictyaml.MaxFileSize) // Parse checks the exact size
	if errors.Is(err, fs.ErrNotExist) {
		return File{Path: path}, nil
	}
	if err != nil {
		return File{Path: path}, &FileError{Path: path, Err: err}
	}
	return Parse(path, data)
}

// Parse reads the text of a file; path is for messages. Lines that begin with #
// are comments. Unknown keys are ignored, but Problems has a warning for a key that looks like a
// mistake. No message quotes a value of an entry's env, headers or args.
func Parse(path string, data []byte) (File, error) {
	f := File{Path: path}
	doc := strictyaml.Read(path, joinSurrogates(data))
	before := doc.List
	doc.List = nil
	if doc.Root != nil {
		for _, key := range doc.Root.Content {
			if strictyaml.IsBroken(key) && key.Value == "mcpServers" {
				doc.ReportFault(key, "", "duplicate key `mcpServers`")
			}
		}
		doc.ReadKeys(doc.Root, "the file", nil, func(key string, value *yaml.Node) {
			if key == "mcpServers" {
				f.readServers(doc, value, before)
			}
		})
	}
	if doc.Fatal {
		doc.List = before
	}
	if len(doc.List) > 0 {
		return f, &FileError{Path: path, Findings: doc.List}
	}
	slices.SortStableFunc(f.Servers, func(a, b Server) int { return strings.Compare(a.ID, b.ID) })
	return f, nil
}

// readServers reads the entries. broken are the findings about nodes that cannot be used.
func (f *File) readServers(doc *strictyaml.Document, n *yaml.Node, broken []strictyaml.Finding) {
	n = strictyaml.ResolveAlias(n)
	if n.Kind != yaml.MappingNode {
		doc.ReadKeys(n, "mcpServers", nil, nil)
		return
	}
	at := func(n *yaml.Node) strictyaml.Pos {
		return strictyaml.Pos{File: doc.Path, Line: n.Line, Col: n.Column}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		value := n.Content[i+1]
		if strictyaml.IsBroken(key) && key.Value == "" {
			continue // not a name
		}
		first := slices.IndexFunc(f.Servers, func(s Server) bool { return s.ID == key.Value })
		r := entryReader{doc: doc, key: key, server: Server{ID: key.Value, Pos: at(key).String()}, file: f}
		if first >= 0 {
			r.addFault(key, "is declared twice; the other one is at %s", f.Servers[first].Pos)
			f.Servers[first] = r.server
			continue
		}
		for _, p := range findBroken(value) {
			for _, found := range broken {
				if found.Pos == at(p) {
					r.addFault(p, "cannot be read: %s", found.Message)
				}
			}
		}
		if r.server.problem == nil {
			r.readEntry(value)
		}
		f.Servers = append(f.Servers, r.server)
	}
}

// findBroken lists the nodes below a node that cannot be used.
func findBroken(n *yaml.Node) (list []*yaml.Node) {
	if strictyaml.IsBroken(n) {
		return []*yaml.Node{n}
	}
	for _, child := range n.Content {
		list = append(list, findBroken(child)...)
	}
	return list
}

// surrogatePair matches a character that JSON writes as two escapes, which YAML does not have.
var surrogatePair = pattern.CompileLater(`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// joinSurrogates replaces each pair of escapes by its character.
func joinSurrogates(data []byte) []byte {
	return surrogatePair().ReplaceAllFunc(data, func(pair []byte) []byte {
		var text string
		if len(pair) == 2 || json.Unmarshal(fmt.Appendf(nil, `"%s"`, pair), &text) != nil {
			return pair // an escaped backslash
		}
		return []byte(text)
	})
}
