package declare

import (
	"encoding/json"
	"strings"
)

// A schema is the JSON Schema of a value, with the few words that declarations
// need. Its keys are written in the order of the fields.
type schema struct {
	kind        string
	description string
	properties  []property
	items       *schema
	enum        []string
	required    []string // nil: no such key
}

type property struct {
	name string
	schema
}

// json is the schema as text.
func (s *schema) json() json.RawMessage {
	var w writer
	s.write(&w)
	return json.RawMessage(w.String())
}

func (s *schema) write(w *writer) {
	w.object(func() {
		w.member("type", s.kind)
		if s.description != "" {
			w.member("description", s.description)
		}
		if s.kind == "object" {
			w.key("properties")
			w.object(func() {
				for i := range s.properties {
					w.key(s.properties[i].name)
					s.properties[i].write(w)
				}
			})
		}
		if s.items != nil {
			w.key("items")
			s.items.write(w)
		}
		if len(s.enum) > 0 {
			w.list("enum", s.enum)
		}
		if s.required != nil {
			w.list("required", s.required)
		}
	})
}

// put adds a property, or replaces the one of that name in its place.
func (s *schema) put(p property) {
	for i := range s.properties {
		if s.properties[i].name == p.name {
			s.properties[i] = p
			return
		}
	}
	s.properties = append(s.properties, p)
}

// A writer writes compact JSON with the keys in the order of the calls.
type writer struct {
	strings.Builder
	more bool // a comma is due before the next key
}

func (w *writer) object(members func()) {
	w.WriteByte('{')
	w.more = false
	members()
	w.WriteByte('}')
	w.more = true
}

func (w *writer) key(name string) {
	if w.more {
		w.WriteByte(',')
	}
	w.more = true
	w.text(name)
	w.WriteByte(':')
}

func (w *writer) member(name, value string) {
	w.key(name)
	w.text(value)
}

func (w *writer) raw(name string, value json.RawMessage) {
	w.key(name)
	w.Write(value)
}

func (w *writer) list(name string, values []string) {
	w.key(name)
	w.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			w.WriteByte(',')
		}
		w.text(v)
	}
	w.WriteByte(']')
}

// text writes a string without escapes for HTML, which would reach the model.
func (w *writer) text(s string) {
	if plain(s) {
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

// plain tells whether a string is its own JSON, but for the quotes.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
