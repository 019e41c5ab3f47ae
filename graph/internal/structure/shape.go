package structure

import (
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
)

// shapes has the hashes of types, which graphs that are compiled again have in common.
var shapes sync.Map

// shapeOf returns a hash of what the stored form of a type depends on: the names and types of the fields of structs, at
// any depth, and the types themselves. Two types with the same shape read each other's values.
func shapeOf(t reflect.Type) string {
	if known, ok := shapes.Load(t); ok {
		return known.(string)
	}
	h := sha256.New()
	writeShape(h, t, map[reflect.Type]int{})
	shape := fmt.Sprintf("%x", h.Sum(nil)[:8])
	shapes.Store(t, shape)
	return shape
}

var ownForms = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// writeShape writes what a type consists of. seen numbers the structs around it.
func writeShape(w io.Writer, t reflect.Type, seen map[reflect.Type]int) {
	put := func(parts ...any) { _, _ = fmt.Fprintf(w, "%q", parts) }
	for _, own := range ownForms {
		if t.Kind() != reflect.Interface && (t.Implements(own) || reflect.PointerTo(t).Implements(own)) {
			put("own", t.String())
			return
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		put(t.Kind().String())
		writeShape(w, t.Elem(), seen)
	case reflect.Array:
		put("array", t.Len())
		writeShape(w, t.Elem(), seen)
	case reflect.Map:
		put("map")
		writeShape(w, t.Key(), seen)
		writeShape(w, t.Elem(), seen)
	case reflect.Struct:
		if n, again := seen[t]; again {
			put("again", n)
			return
		}
		seen[t] = len(seen)
		put("struct")
		for i := range t.NumField() {
			writeField(w, t.Field(i), seen)
		}
		put("end")
	default:
		put(t.Kind().String())
	}
}

// writeField writes a field of a struct under the name that its values are stored with.
func writeField(w io.Writer, f reflect.StructField, seen map[reflect.Type]int) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous:
		return
	case name == "" && f.Anonymous:
		name = "embedded"
	case name == "":
		name = f.Name
	}
	_, _ = fmt.Fprintf(w, "%q", []string{name, options})
	writeShape(w, f.Type, seen)
}
