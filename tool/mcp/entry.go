package mcp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/tool"
)

// An entryReader reads one server of a file.
type entryReader struct {
	doc    *strictyaml.Document
	key    *yaml.Node
	server Server
	file   *File
	fields map[string]*yaml.Node // the values of the entry, by key
}

// addFault adds a problem of the entry. The server fails with the first one.
func (r *entryReader) addFault(n *yaml.Node, format string, args ...any) {
	pos := strictyaml.Pos{File: r.doc.Path, Line: n.Line, Col: n.Column}
	message := fmt.Sprintf(format, args...)
	r.file.Problems = append(r.file.Problems, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassParse, Code: "mcp-server", Pos: pos,
		Message: fmt.Sprintf("MCP server '%s' %s", r.server.ID, message)})
	if r.server.problem == nil {
		r.server.problem = fmt.Errorf("%s: it %s", pos, message)
	}
}

func (r *entryReader) readEntry(value *yaml.Node) {
	value = strictyaml.ResolveAlias(value)
	if value.Kind != yaml.MappingNode {
		r.addFault(value, "is not an object")
		return
	}
	r.fields = map[string]*yaml.Node{}
	s := &r.server
	kind := ""
	r.doc.ReadKeys(value, "", nil, func(key string, v *yaml.Node) {
		r.fields[key] = v
		switch key {
		case "type":
			kind = r.readText(key, v)
		case "command":
			s.Command = r.readText(key, v)
		case "args":
			s.Args = r.readList(key, v)
		case "env":
			s.Env = r.readTable(key, v)
		case "cwd":
			s.Dir = r.readText(key, v)
		case "url":
			s.URL = r.readText(key, v)
		case "in_doubt":
			r.readInDoubt(key, v)
		case "headers":
			s.Headers = r.readTable(key, v)
		case "oauth":
			r.readLogin(v)
		case "sandbox":
			r.readSandbox(key, v)
		case "start_timeout":
			s.StartTimeout = r.readDuration(key, v)
		case "timeout":
			s.CallTimeout = r.readDuration(key, v)
		}
	})
	r.warnUnknown(value)
	if s.problem == nil {
		r.resolveTransport(kind)
	}
	if s.problem == nil && s.Sandbox && s.Transport != Stdio {
		r.addFault(r.fields["sandbox"], `has "sandbox", which holds only servers over stdio: remove it, or give the server a "command"`)
	}
}

// entryKeys are the keys of an entry.
var entryKeys = []string{"type", "command", "args", "env", "cwd", "url", "in_doubt", "headers", "oauth", "sandbox", "start_timeout", "timeout"}

// warnUnknown warns about an unknown key that is similar to a known one. Other unknown keys may
// belong to other programs.
func (r *entryReader) warnUnknown(value *yaml.Node) {
	for i := 0; i+1 < len(value.Content); i += 2 {
		key := value.Content[i]
		if strictyaml.IsBroken(key) || slices.Contains(entryKeys, key.Value) {
			continue
		}
		near := wording.FindNearest(key.Value, slices.DeleteFunc(slices.Clone(entryKeys), func(k string) bool { return r.fields[k] != nil }))
		if near == "" {
			continue
		}
		r.file.Problems = append(r.file.Problems, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassUnknownKey, Code: "unknown-key",
			Pos:     strictyaml.Pos{File: r.doc.Path, Line: key.Line, Col: key.Column},
			Message: fmt.Sprintf("MCP server '%s' has the unknown key %q", r.server.ID, key.Value), Hint: "did you mean " + near + "?"})
	}
}

// resolveTransport sets the transport of the server. Without a type, the field "command" or "url"
// decides.
func (r *entryReader) resolveTransport(kind string) {
	s := &r.server
	switch kind {
	case "":
		switch {
		case s.Command != "" && s.URL != "":
			r.addFault(r.fields["url"], `has both a "command" and a "url": remove one of them`)
		case s.Command != "":
			s.Transport = Stdio
		case s.URL != "":
			s.Transport = HTTP
		default:
			r.addFault(r.key, `has neither a "command" nor a "url"`)
		}
		return
	case "stdio":
		s.Transport = Stdio
	case "http", "streamable-http", "streamableHttp":
		s.Transport = HTTP
	case "sse":
		s.Transport = SSE
	default:
		r.addFault(r.fields["type"], `has the unknown type %q: it must be "stdio", "http" or "sse"`, kind)
		return
	}
	want := "url"
	other := "command"
	if s.Transport == Stdio {
		want, other = other, want
	}
	has := map[string]bool{"command": s.Command != "", "url": s.URL != ""}
	if !has[want] {
		r.addFault(r.key, `has type %q but is missing a %q field`, kind, want)
	} else if has[other] {
		r.addFault(r.fields[other], `has type %q but also a %q field: remove it`, kind, other)
	}
}

func (r *entryReader) readText(key string, v *yaml.Node) string {
	text, ok := strictyaml.ScalarText(v, false)
	if !ok {
		r.addFault(v, "has a %q that is not a string", key)
	}
	return text
}

// readLogin reads an object; a value of another kind may belong to another program.
func (r *entryReader) readLogin(v *yaml.Node) {
	if v = strictyaml.ResolveAlias(v); v.Kind != yaml.MappingNode {
		return
	}
	table := r.readTable("oauth", v)
	login := &r.server.Login
	login.ClientID, login.ClientSecret = table["client_id"], table["client_secret"]
	if text, ok := table["port"]; ok {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			r.addFault(v, `has in "oauth" a "port" that is not a port`)
		}
		login.Port = int(port)
	}
}

// readDuration returns 0 for a number of "timeout", which belongs to other programs: some write seconds and some
// milliseconds.
func (r *entryReader) readDuration(key string, v *yaml.Node) time.Duration {
	text, ok := strictyaml.ScalarText(v, true)
	d, err := time.ParseDuration(text)
	if ok && err == nil && d > 0 {
		return d
	}
	if _, err := strconv.ParseFloat(text, 64); !ok || err != nil || key != "timeout" {
		r.addFault(v, `has a %q that is not a time such as "90s" or "2m"`, key)
	}
	return 0
}

func (r *entryReader) readInDoubt(key string, v *yaml.Node) {
	name := r.readText(key, v)
	choice, ok := tool.ParseDoubt(name)
	if !ok {
		r.addFault(v, `has the unknown "in_doubt" %q: it must be one of %s`, name, strings.Join(tool.Doubts, ", "))
	}
	r.server.InDoubt = choice
}

// readSandbox reads whether the server runs in the box. A value that raddle does not understand is a fault: without it,
// the server would run outside.
func (r *entryReader) readSandbox(key string, v *yaml.Node) {
	switch text, ok := strictyaml.ScalarText(v, true); {
	case ok && text == "true":
		r.server.Sandbox = true
	case !ok || text != "false":
		r.addFault(v, "has a %q that is neither true nor false", key)
	}
}

func (r *entryReader) readList(key string, v *yaml.Node) (list []string) {
	v = strictyaml.ResolveAlias(v)
	if v.Kind != yaml.SequenceNode {
		r.addFault(v, "has a %q that is not a list", key)
		return nil
	}
	for i, item := range v.Content {
		text, ok := plainScalar(item)
		if !ok {
			r.addFault(item, "has in %q an item %d that is not a string", key, i)
		}
		list = append(list, text)
	}
	return list
}

func (r *entryReader) readTable(key string, v *yaml.Node) map[string]string {
	v = strictyaml.ResolveAlias(v)
	if v.Kind != yaml.MappingNode {
		r.addFault(v, "has %q that is not an object", key)
		return nil
	}
	table := make(map[string]string, len(v.Content)/2)
	r.doc.ReadKeys(v, "", nil, func(name string, item *yaml.Node) {
		text, ok := plainScalar(item)
		if !ok {
			r.addFault(item, "has in %q a %q that is not a string, a number, true or false", key, name)
		}
		table[name] = text
	})
	return table
}

// plainScalar returns a string, a number or a boolean as it is written. ok is false for any other
// value.
func plainScalar(n *yaml.Node) (text string, ok bool) {
	if strictyaml.IsEmpty(strictyaml.ResolveAlias(n)) {
		return "", false
	}
	return strictyaml.ScalarText(n, true)
}
