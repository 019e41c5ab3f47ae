package declare

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// A schema is the JSON Schema of a value, with the few words that declarations
// need. Its keys are written in the order of the fields.
type schema struct {
	kind        string // empty: any value, or one of anyOf
	description string
	format      string // of a text, such as "date"
	properties  []property
	items       *schema
	enum        []string // each as JSON
	anyOf       []*schema
	extra       *schema  // of the members of an object that are not in properties
	closed      bool     // an object has no members but its properties
	minItems    int      // of a list
	maxItems    int      // of a list; zero: no limit
	required    []string // nil: no such key
	// nullable says that null is a value too. It is written only of schemas within others: a parameter that may
	// be null need not be given.
	nullable bool
	tuple    []*schema // of the items of a list, by their place; items allows all of them
	// loose says that the function does not say what it takes, so that no value is wrong.
	loose bool
}

type property struct {
	name string
	schema
	missing byte // what the function gets for a missing value: 0 nothing, 'n' null
}

// jsonText returns the schema as text.
func (s *schema) jsonText() json.RawMessage {
	var w jsonWriter
	s.writeTo(&w, false)
	return json.RawMessage(w.String())
}

// equal reports whether two schemas say the same.
func (s *schema) equal(o *schema) bool {
	var a, b jsonWriter
	s.writeTo(&a, true)
	o.writeTo(&b, true)
	return a.String() == b.String()
}

func (s *schema) writeTo(w *jsonWriter, nested bool) {
	null := nested && s.nullable
	w.writeObject(func() {
		switch {
		case s.kind != "" && null:
			w.writeList("type", []string{s.kind, "null"})
		case s.kind != "":
			w.writeMember("type", s.kind)
		}
		if s.description != "" {
			w.writeMember("description", s.description)
		}
		if s.format != "" {
			w.writeMember("format", s.format)
		}
		s.writeMembers(w)
		if s.items != nil {
			w.writeKey("items")
			s.items.writeTo(w, true)
		}
		if s.minItems > 0 {
			w.writeRaw("minItems", json.RawMessage(strconv.Itoa(s.minItems)))
		}
		if s.maxItems > 0 {
			w.writeRaw("maxItems", json.RawMessage(strconv.Itoa(s.maxItems)))
		}
		if len(s.enum) > 0 {
			all := s.enum
			if null {
				all = append(slices.Clone(all), "null")
			}
			w.writeRaw("enum", json.RawMessage("["+strings.Join(all, ",")+"]"))
		}
		s.writeAlternatives(w, null)
		if s.required != nil && (!nested || len(s.required) > 0) {
			w.writeList("required", s.required)
		}
	})
}

// writeMembers writes what is true of the members of an object.
func (s *schema) writeMembers(w *jsonWriter) {
	if s.kind != "object" {
		return
	}
	if len(s.properties) > 0 || s.extra == nil {
		w.writeKey("properties")
		w.writeObject(func() {
			for i := range s.properties {
				w.writeKey(s.properties[i].name)
				s.properties[i].writeTo(w, s.closed)
			}
		})
	}
	switch {
	case s.closed:
		w.writeRaw("additionalProperties", json.RawMessage("false"))
	case s.extra != nil:
		w.writeKey("additionalProperties")
		s.extra.writeTo(w, true)
	}
}

func (s *schema) writeAlternatives(w *jsonWriter, null bool) {
	if len(s.anyOf) == 0 {
		return
	}
	all := s.anyOf
	if null {
		all = append(slices.Clone(all), &schema{kind: "null"})
	}
	w.writeKey("anyOf")
	w.WriteByte('[')
	for i, m := range all {
		if i > 0 {
			w.WriteByte(',')
		}
		m.writeTo(w, true)
	}
	w.WriteByte(']')
}

// putProperty adds a property, or replaces the one of that name in its place.
func (s *schema) putProperty(p property) {
	for i := range s.properties {
		if s.properties[i].name == p.name {
			s.properties[i] = p
			return
		}
	}
	s.properties = append(s.properties, p)
}

// isAny reports whether a schema allows every value.
func (s *schema) isAny() bool { return s.kind == "" && len(s.enum) == 0 && len(s.anyOf) == 0 }

// unionOf returns the schema of a value that one of several schemas allows.
func unionOf(members []*schema) *schema {
	u := &schema{}
	var kinds []*schema
	enums := true
	for _, m := range members {
		u.nullable = u.nullable || m.nullable
		if m.isAny() {
			return &schema{nullable: true}
		}
		plain := *m
		plain.nullable = false
		if slices.ContainsFunc(kinds, plain.equal) {
			continue
		}
		kinds = append(kinds, &plain)
		enums = enums && len(plain.enum) > 0
	}
	kinds = slices.DeleteFunc(kinds, func(m *schema) bool { // a whole number is a number
		return m.kind == "integer" && len(m.enum) == 0 && slices.ContainsFunc(kinds, func(o *schema) bool { return o.kind == "number" && len(o.enum) == 0 })
	})
	switch {
	case len(kinds) == 1:
		kinds[0].nullable = u.nullable
		return kinds[0]
	case enums && len(kinds) > 0:
		var all []string
		for _, m := range kinds {
			all = append(all, m.enum...)
		}
		e := enumOf(all)
		e.nullable = u.nullable
		return e
	}
	u.anyOf = kinds
	return u
}

// enumOf returns the schema of a value that is one of those, each as JSON.
func enumOf(values []string) *schema {
	s := &schema{}
	for _, v := range values {
		if v == "null" {
			s.nullable = true
			continue
		}
		if !slices.Contains(s.enum, v) {
			s.enum = append(s.enum, v)
		}
	}
	for i, v := range s.enum {
		kind := kindOfJSON(json.RawMessage(v))
		if kind == "number" && !strings.ContainsAny(v, ".eE") {
			kind = "integer"
		}
		if i > 0 && kind != s.kind {
			if pair := kind + s.kind; pair != "integernumber" && pair != "numberinteger" {
				s.kind = ""
				return s
			}
			kind = "number"
		}
		s.kind = kind
	}
	return s
}

// kindOfJSON returns the type of a JSON value by the name that schemas have for it.
func kindOfJSON(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// A jsonWriter writes compact JSON with the keys in the order of the calls.
type jsonWriter struct {
	strings.Builder
	more bool // a comma is due before the next key
}

func (w *jsonWriter) writeObject(members func()) {
	w.WriteByte('{')
	w.more = false
	members()
	w.WriteByte('}')
	w.more = true
}

func (w *jsonWriter) writeKey(name string) {
	if w.more {
		w.WriteByte(',')
	}
	w.more = true
	w.writeText(name)
	w.WriteByte(':')
}

func (w *jsonWriter) writeMember(name, value string) {
	w.writeKey(name)
	w.writeText(value)
}

func (w *jsonWriter) writeRaw(name string, value json.RawMessage) {
	w.writeKey(name)
	w.Write(value)
}

func (w *jsonWriter) writeList(name string, values []string) {
	w.writeKey(name)
	w.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			w.WriteByte(',')
		}
		w.writeText(v)
	}
	w.WriteByte(']')
}

// writeText writes a string without escapes for HTML, which would reach the model.
func (w *jsonWriter) writeText(s string) {
	if isPlainJSON(s) {
		w.WriteByte('"')
		w.WriteString(s)
		w.WriteByte('"')
		return
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // of a string it cannot fail
	w.WriteString(strings.TrimSuffix(b.String(), "\n"))
}

// isPlainJSON reports whether a string is its own JSON, but for the quotes.
func isPlainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// textJSON returns a text as JSON.
func textJSON(s string) string {
	var w jsonWriter
	w.writeText(s)
	return w.String()
}

// textsJSON returns each text as JSON.
func textsJSON(list []string) (all []string) {
	for _, s := range list {
		all = append(all, textJSON(s))
	}
	return all
}
