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

// jsonText returns the schema as text.
func (s *schema) jsonText() json.RawMessage {
	var w jsonWriter
	s.writeTo(&w)
	return json.RawMessage(w.String())
}

func (s *schema) writeTo(w *jsonWriter) {
	w.writeObject(func() {
		w.writeMember("type", s.kind)
		if s.description != "" {
			w.writeMember("description", s.description)
		}
		if s.kind == "object" {
			w.writeKey("properties")
			w.writeObject(func() {
				for i := range s.properties {
					w.writeKey(s.properties[i].name)
					s.properties[i].writeTo(w)
				}
			})
		}
		if s.items != nil {
			w.writeKey("items")
			s.items.writeTo(w)
		}
		if len(s.enum) > 0 {
			w.writeList("enum", s.enum)
		}
		if s.required != nil {
			w.writeList("required", s.required)
		}
	})
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
