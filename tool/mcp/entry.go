package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/tool"
)

// An entryReader reads one server of a file.
type entryReader struct {
	source
	server Server
	file   *File
	at     map[string]int // where the fields are that the entry has
}

// addFault notes a problem of the entry; the first is the one by which it fails.
func (r *entryReader) addFault(at int, format string, args ...any) {
	p := &Problem{Pos: r.formatPosition(at), Server: r.server.ID, Message: fmt.Sprintf(format, args...)}
	r.file.Problems = append(r.file.Problems, p)
	if r.server.problem == nil {
		r.server.problem = p
	}
}

func (r *entryReader) readEntry(e member) {
	fields, err := r.readMembers(e.value)
	if err != nil {
		r.addFault(e.value, "is not an object")
		return
	}
	r.at = map[string]int{}
	s, kind := &r.server, ""
	for _, f := range fields {
		r.at[f.key] = f.at
		switch f.key {
		case "type":
			r.readText(f, &kind)
		case "command":
			r.readText(f, &s.Command)
		case "args":
			r.readList(f, &s.Args)
		case "env":
			r.readTable(f, &s.Env)
		case "cwd":
			r.readText(f, &s.Dir)
		case "url":
			r.readText(f, &s.URL)
		case "in_doubt":
			r.readInDoubt(f)
		case "headers":
			r.readTable(f, &s.Headers)
		}
	}
	if s.problem == nil {
		r.resolveTransport(e, kind)
	}
}

// resolveTransport settles which way the server is reached. Without a type it follows
// from the field that is there.
func (r *entryReader) resolveTransport(e member, kind string) {
	s := &r.server
	switch kind {
	case "":
		switch {
		case s.Command != "" && s.URL != "":
			r.addFault(r.at["url"], `has both a "command" and a "url": take one of them out`)
		case s.Command != "":
			s.Transport = Stdio
		case s.URL != "":
			s.Transport = HTTP
		default:
			r.addFault(e.at, `has neither a "command" nor a "url"`)
		}
		return
	case "stdio":
		s.Transport = Stdio
	case "http", "streamable-http", "streamableHttp":
		s.Transport = HTTP
	case "sse":
		s.Transport = SSE
	default:
		r.addFault(r.at["type"], `has the unknown type %q: it is "stdio", "http" or "sse"`, kind)
		return
	}
	want, other := "url", "command"
	if s.Transport == Stdio {
		want, other = other, want
	}
	has := map[string]bool{"command": s.Command != "", "url": s.URL != ""}
	if !has[want] {
		r.addFault(e.at, `has type %q but is missing a %q field`, kind, want)
	} else if has[other] {
		r.addFault(r.at[other], `has type %q but also a %q field: take it out`, kind, other)
	}
}

func (r *entryReader) readText(f member, to *string) {
	var v any
	if r.decodeValue(f.value, &v) != nil {
		return // the whole text is known to be JSON
	}
	s, ok := v.(string)
	if !ok {
		r.addFault(f.value, "has a %q that is not a string", f.key)
	}
	*to = s
}

func (r *entryReader) readInDoubt(f member) {
	var name string
	r.readText(f, &name)
	choice, ok := tool.ParseDoubt(name)
	if !ok {
		r.addFault(f.value, `has the unknown "in_doubt" %q: it is one of %s`, name, strings.Join(tool.Doubts, ", "))
	}
	r.server.InDoubt = choice
}

func (r *entryReader) readList(f member, to *[]string) {
	var list []any
	if r.decodeValue(f.value, &list) != nil {
		r.addFault(f.value, "has a %q that is not a list", f.key)
		return
	}
	for i, v := range list {
		s, ok := formatScalar(v)
		if !ok {
			r.addFault(f.value, "has in %q an item %d that is not a string", f.key, i)
		}
		*to = append(*to, s)
	}
}

func (r *entryReader) readTable(f member, to *map[string]string) {
	fields, err := r.readMembers(f.value)
	if err != nil {
		r.addFault(f.value, "has %q that is not an object", f.key)
		return
	}
	*to = make(map[string]string, len(fields))
	for _, m := range fields {
		var v any
		_ = r.decodeValue(m.value, &v) // the whole text is known to be JSON
		s, ok := formatScalar(v)
		if !ok {
			r.addFault(m.value, "has in %q a %q that is not a string, a number, true or false", f.key, m.key)
		}
		(*to)[m.key] = s
	}
}

// formatScalar renders a string, a number as it is written, or a boolean.
func formatScalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// sortedKeys lists the keys of a table in a fixed order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
