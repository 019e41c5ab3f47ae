package value

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Storage says how values of a Go type are stored in the journal, and why they cannot
// be read back, if they cannot.
type Storage struct {
	// Fault says why a value of a key, Do or Share cannot be read back; nil: it can.
	Fault *TypeError

	// Reply is Fault for an answer: JSON that others wrote, which loses nothing when it
	// is decoded into an any.
	Reply *TypeError

	form   storageForm
	direct bool // JSON needs no pointer to the value
}

// A storageForm is one way of storing values.
type storageForm uint8

const (
	formJSON    storageForm = iota // JSON
	formDynamic                    // an interface: the dynamic codec
	formMixed                      // slices, maps and pointers with an interface inside: see encodeMixed
)

// storages caches StorageOf by reflect.Type.
var storages sync.Map

// StorageOf returns how values of a type are stored. It is safe for concurrent use.
func StorageOf(t reflect.Type) *Storage {
	if s, ok := storages.Load(t); ok {
		return s.(*Storage)
	}
	s := &Storage{direct: (t.Kind() == reflect.Map || t.Kind() == reflect.Pointer) && !hasOwnForm(t)}
	switch {
	case t.Kind() == reflect.Interface:
		s.form = formDynamic
	case holdsInterface(t, nil):
		s.form = formMixed
	}
	s.Fault = faultOf(t, false)
	s.Reply = faultOf(t, true)
	kept, _ := storages.LoadOrStore(t, s)
	return kept.(*Storage)
}

// TypeError says that values of a type can be written to the journal but cannot be read
// back unchanged. Compile returns it for keys; Do, Interrupt and Share return it before
// anything happens.
type TypeError struct {
	// Type is the type of the key, the result or the answer.
	Type string

	// Path is the place inside the type, such as result.Err; the type itself if it has no
	// parts.
	Path string

	// Reason says what is wrong there.
	Reason string

	// Fix says what to do.
	Fix string
}

// Error implements error.
func (e *TypeError) Error() string {
	return fmt.Sprintf("type %s cannot be stored: %s %s: %s", e.Type, e.Path, e.Reason, e.Fix)
}

// CheckType returns why results of type T cannot be recorded, or nil.
func CheckType[T any]() error {
	if f := StorageOf(reflect.TypeFor[T]()).Fault; f != nil {
		return f
	}
	return nil
}

// holdsInterface reports whether values of a type contain an interface that is reached
// through slices, arrays, maps and pointers only. Types with their own JSON do not
// count.
func holdsInterface(t reflect.Type, above []reflect.Type) bool {
	for _, a := range above {
		if a == t {
			return false
		}
	}
	if t.Kind() == reflect.Interface {
		return true
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer:
		return !hasOwnForm(t) && holdsInterface(t.Elem(), append(above, t))
	}
	return false
}

// hasOwnForm reports whether a type defines its own JSON.
func hasOwnForm(t reflect.Type) bool {
	return implementsMethods(t, jsonMarshaler) || implementsMethods(t, textMarshaler) || implementsMethods(t, jsonUnmarshaler) || implementsMethods(t, textUnmarshaler)
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// implementsMethods reports whether a type or a pointer to it has the methods.
func implementsMethods(t, methods reflect.Type) bool {
	return t.Implements(methods) || t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(methods)
}

// faultOf looks for the first part of a type that JSON does not read back.
func faultOf(t reflect.Type, reply bool) *TypeError {
	if t.Kind() == reflect.Interface && (!reply || t.NumMethod() == 0) {
		return nil // the dynamic codec, or whatever an answer holds
	}
	w := &typeWalk{reply: reply, seen: map[seenType]bool{}}
	w.walkType(t, "", !reply, true)
	if f := w.fault; f != nil {
		if f.Type = TypeName(t); f.Path == "" {
			f.Path = "it"
		}
	}
	return w.fault
}

type seenType struct {
	t           reflect.Type
	mixed, addr bool
}

// typeWalk searches a type until it finds a fault.
type typeWalk struct {
	reply bool // for answers: an any may be inside
	seen  map[seenType]bool
	fault *TypeError
}

const (
	fixMethods = "give the struct MarshalJSON and UnmarshalJSON (a key may have a Codec instead)"
	fixType    = "use a concrete type, or " + fixMethods
	fixField   = `tag the field json:"-", or ` + fixMethods
)

func (w *typeWalk) reportFault(path, reason, fix string) {
	if w.fault == nil {
		w.fault = &TypeError{Path: path, Reason: reason, Fix: fix}
	}
}

// walkType looks into the type at a path. mixed says that only slices, arrays, maps and
// pointers are above it, so that an interface there keeps its types; addressable says
// that JSON finds methods of the pointer.
func (w *typeWalk) walkType(t reflect.Type, path string, mixed, addressable bool) {
	if s := (seenType{t, mixed, addressable}); w.fault != nil || w.seen[s] {
		return
	} else {
		w.seen[s] = true
	}
	if t.Kind() == reflect.Interface {
		w.walkInterface(t, path, mixed)
		return
	}
	if w.checkOwnForm(t, path, addressable) {
		return
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		w.reportFault(path, fmt.Sprintf("is a %s, which has no JSON", t.Kind()), fixField)
	case reflect.Pointer:
		w.walkType(t.Elem(), path, mixed, true)
	case reflect.Slice:
		w.walkType(t.Elem(), elementPath(path), mixed, true)
	case reflect.Array:
		w.walkType(t.Elem(), elementPath(path), mixed, addressable)
	case reflect.Map:
		w.checkMapKey(t.Key(), path)
		w.walkType(t.Elem(), elementPath(path), mixed, false)
	case reflect.Struct:
		w.walkStruct(t, path, addressable)
	}
}

// elementPath returns the path of the elements of a list or map: messages begin at the
// first struct.
func elementPath(path string) string {
	if path == "" {
		return ""
	}
	return path + "[]"
}

// TypeName returns the name of a type for messages.
func TypeName(t reflect.Type) string { return strings.ReplaceAll(t.String(), "interface {}", "any") }

func (w *typeWalk) walkInterface(t reflect.Type, path string, mixed bool) {
	switch {
	case mixed:
	case t.NumMethod() > 0:
		w.reportFault(path, fmt.Sprintf("is %s, an interface, and JSON cannot say which type to decode", TypeName(t)), fixType)
	case !w.reply:
		w.reportFault(path, "is any: JSON would bring it back as another type (an int64 as a float64)", fixType+"; JSONCodec accepts the loss")
	}
}

// checkOwnForm reports whether the type defines its own JSON, and reports the fault if it
// does so in one direction only.
func (w *typeWalk) checkOwnForm(t reflect.Type, path string, addressable bool) bool {
	for _, m := range []struct {
		name     string
		out, in  reflect.Type
		harmless bool
	}{
		{"JSON", jsonMarshaler, jsonUnmarshaler, false},
		{"Text", textMarshaler, textUnmarshaler, t.Kind() == reflect.String},
	} {
		found := t.Implements(m.out)
		if !found && t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(m.out) {
			if found = addressable; !found && !w.reply && implementsMethods(t, m.in) {
				w.reportFault(path, fmt.Sprintf("is a value of a map, whose Marshal%s has a pointer receiver and is not called there", m.name), "use a map of pointers")
				return true
			}
		}
		if w.reply {
			found = false // it is not encoded at all
		}
		switch {
		case implementsMethods(t, m.in):
			return true
		case found && m.harmless:
			return true
		case found:
			w.reportFault(path, fmt.Sprintf("is %s, which has Marshal%s and no Unmarshal%[2]s", t, m.name), fmt.Sprintf("give it Unmarshal%s (a key may have a Codec instead)", m.name))
			return true
		}
	}
	return false
}

// checkMapKey checks the keys of a map, which JSON writes as text.
func (w *typeWalk) checkMapKey(t reflect.Type, path string) {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if !t.Implements(textMarshaler) || implementsMethods(t, textUnmarshaler) || t.Kind() == reflect.String {
			return
		}
	default:
		if t.Implements(textMarshaler) && implementsMethods(t, textUnmarshaler) {
			return
		}
	}
	w.reportFault(path, fmt.Sprintf("is a map whose keys are %s", TypeName(t)), "use keys that are texts or integers, or that have MarshalText and UnmarshalText")
}

// walkStruct looks into the fields that JSON stores.
func (w *typeWalk) walkStruct(t reflect.Type, path string, addressable bool) {
	if path == "" {
		if path = t.Name(); path == "" {
			path = "struct"
		}
	}
	if !w.reply && t.NumField() > 0 && !keepsFields(t) {
		w.reportFault(path, fmt.Sprintf("is a %s, which has only fields that are not exported, and JSON leaves these out", TypeName(t)), "export them, or "+fixMethods)
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && embedsStruct(f.Type):
			w.walkEmbedded(f, path, addressable)
		case f.IsExported():
			w.walkType(f.Type, path+"."+f.Name, false, addressable)
		}
	}
}

// walkEmbedded looks into a struct whose fields JSON treats as those of the struct around
// it. It may have no field that JSON stores, for example if it is a lock.
func (w *typeWalk) walkEmbedded(f reflect.StructField, path string, addressable bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		if t, addressable = t.Elem(), true; !f.IsExported() {
			w.reportFault(path+"."+f.Name, "is an embedded pointer to a type that is not exported, which JSON cannot set", fixField)
		}
	}
	if keepsFields(t) {
		w.walkType(t, path+"."+f.Name, false, addressable)
	}
}

// keepsFields reports whether a struct has a field that is exported, tagged
// json:"-", which leaves it out on purpose, or an embedded struct.
func keepsFields(t reflect.Type) bool {
	for f := range t.Fields() {
		if f.IsExported() || f.Tag.Get("json") == "-" || f.Anonymous && embedsStruct(f.Type) {
			return true
		}
	}
	return false
}

// embedsStruct reports whether an embedded field is a struct or a pointer to one.
func embedsStruct(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}
