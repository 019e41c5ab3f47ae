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

// fault notes a problem of the entry; the first is the one by which it fails.
func (r *entryReader) fault(at int, format string, args ...any) {
	p := &Problem{Pos: r.pos(at), Server: r.server.ID, Message: fmt.Sprintf(format, args...)}
	r.file.Problems = append(r.file.Problems, p)
	if r.server.problem == nil {
		r.server.problem = p
	}
}

func (r *entryReader) read(e member) {
	fields, err := r.members(e.value)
	if err != nil {
		r.fault(e.value, "is not an object")
		return
	}
	r.at = map[string]int{}
	s, kind := &r.server, ""
	for _, f := range fields {
		r.at[f.key] = f.at
		switch f.key {
		case "type":
			r.text(f, &kind)
		case "command":
			r.text(f, &s.Command)
		case "args":
			r.list(f, &s.Args)
		case "env":
			r.table(f, &s.Env)
		case "cwd":
			r.text(f, &s.Dir)
		case "url":
			r.text(f, &s.URL)
		case "in_doubt":
			r.doubt(f)
		case "headers":
			r.table(f, &s.Headers)
		}
	}
	if s.problem == nil {
		r.transport(e, kind)
	}
}

// transport settles which way the server is reached. Without a type it follows
// from the field that is there.
func (r *entryReader) transport(e member, kind string) {
	s := &r.server
	switch kind {
	case "":
		switch {
		case s.Command != "" && s.URL != "":
			r.fault(r.at["url"], `has both a "command" and a "url": take one of them out`)
		case s.Command != "":
			s.Transport = Stdio
		case s.URL != "":
			s.Transport = HTTP
		default:
			r.fault(e.at, `has neither a "command" nor a "url"`)
		}
		return
	case "stdio":
		s.Transport = Stdio
	case "http", "streamable-http", "streamableHttp":
		s.Transport = HTTP
	case "sse":
		s.Transport = SSE
	default:
		r.fault(r.at["type"], `has the unknown type %q: it is "stdio", "http" or "sse"`, kind)
		return
	}
	want, other := "url", "command"
	if s.Transport == Stdio {
		want, other = other, want
	}
	has := map[string]bool{"command": s.Command != "", "url": s.URL != ""}
	if !has[want] {
		r.fault(e.at, `has type %q but is missing a %q field`, kind, want)
	} else if has[other] {
		r.fault(r.at[other], `has type %q but also a %q field: take it out`, kind, other)
	}
}

func (r *entryReader) text(f member, to *string) {
	var v any
	if r.decode(f.value, &v) != nil {
		return // the whole text is known to be JSON
	}
	s, ok := v.(string)
	if !ok {
		r.fault(f.value, "has a %q that is not a string", f.key)
	}
	*to = s
}

func (r *entryReader) doubt(f member) {
	var name string
	r.text(f, &name)
	choice, ok := tool.ParseDoubt(name)
	if !ok {
		r.fault(f.value, `has the unknown "in_doubt" %q: it is one of %s`, name, strings.Join(tool.Doubts, ", "))
	}
	r.server.InDoubt = choice
}

func (r *entryReader) list(f member, to *[]string) {
	var list []any
	if r.decode(f.value, &list) != nil {
		r.fault(f.value, "has a %q that is not a list", f.key)
		return
	}
	for i, v := range list {
		s, ok := scalar(v)
		if !ok {
			r.fault(f.value, "has in %q an item %d that is not a string", f.key, i)
		}
		*to = append(*to, s)
	}
}

func (r *entryReader) table(f member, to *map[string]string) {
	fields, err := r.members(f.value)
	if err != nil {
		r.fault(f.value, "has %q that is not an object", f.key)
		return
	}
	*to = make(map[string]string, len(fields))
	for _, m := range fields {
		var v any
		_ = r.decode(m.value, &v) // the whole text is known to be JSON
		s, ok := scalar(v)
		if !ok {
			r.fault(m.value, "has in %q a %q that is not a string, a number, true or false", f.key, m.key)
		}
		(*to)[m.key] = s
	}
}

// scalar renders a string, a number as it is written, or a boolean.
func scalar(v any) (string, bool) {
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
