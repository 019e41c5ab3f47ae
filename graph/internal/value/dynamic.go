package value

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"raddle.dev/graph/internal/wire"
)

// The dynamic codec is self-describing: one letter gives the type of what follows, so
// that every value of an interface type is read back with the Go type that it had.
const (
	dynNil    = 'n'
	dynTrue   = 't'
	dynFalse  = 'f'
	dynInt    = 'i'
	dynInt64  = 'I'
	dynUint64 = 'U'
	dynFloat  = 'd'
	dynString = 's'
	dynBytes  = 'b'
	dynTime   = 'T'
	dynList   = 'l'
	dynMap    = 'm'
	dynNamed  = 'r'
	dynTyped  = 'g' // a type expression, then encodeMixed of the value
)

var types struct {
	sync.RWMutex
	byName map[string]reflect.Type
	byType map[reflect.Type]string
}

// Register lets values of T be stored under a name. A second type for the name panics.
func Register[T any](name string) {
	t := reflect.TypeFor[T]()
	types.Lock()
	defer types.Unlock()
	if types.byName == nil {
		types.byName = map[string]reflect.Type{}
		types.byType = map[reflect.Type]string{}
	}
	if was, ok := types.byName[name]; ok && was != t {
		panic(fmt.Sprintf("graph: Register: %q already names %s", name, was))
	}
	types.byName[name], types.byType[t] = t, name
}

// EncodeAny appends a value with its type: see Register.
func EncodeAny(dst []byte, v any) ([]byte, error) { return putDynamic(dst, v, 0) }

// putDynamic writes what reader.dynamic reads. It refuses values that are nested
// deeper.
func putDynamic(dst []byte, v any, depth int) (_ []byte, err error) {
	if depth > deepest {
		return dst, fmt.Errorf("a value of type %T is nested more than %d deep: does it contain itself?", v, deepest)
	}
	switch x := v.(type) {
	case nil:
		return append(dst, dynNil), nil
	case bool:
		if x {
			return append(dst, dynTrue), nil
		}
		return append(dst, dynFalse), nil
	case int:
		return binary.AppendVarint(append(dst, dynInt), int64(x)), nil
	case int64:
		return binary.AppendVarint(append(dst, dynInt64), x), nil
	case uint64:
		return binary.AppendUvarint(append(dst, dynUint64), x), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, dynFloat), math.Float64bits(x)), nil
	case string:
		return wire.PutString(append(dst, dynString), x), nil
	case []byte:
		return wire.PutString(append(dst, dynBytes), x), nil
	case time.Time:
		t, err := x.MarshalText()
		return wire.PutString(append(dst, dynTime), t), err
	case []any:
		return putList(wire.PutInt(append(dst, dynList), len(x)), x, depth)
	case map[string]any:
		return putMap(wire.PutInt(append(dst, dynMap), len(x)), x, depth)
	}
	return putTyped(dst, v, depth)
}

// putList appends the elements of a list, without their number.
func putList(dst []byte, list []any, depth int) (_ []byte, err error) {
	for _, e := range list {
		if dst, err = putDynamic(dst, e, depth+1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// putMap appends the entries of a map, sorted by key, without their number.
func putMap(dst []byte, m map[string]any, depth int) (_ []byte, err error) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if dst, err = putDynamic(wire.PutString(dst, k), m[k], depth+1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// putTyped writes a value whose type the dynamic codec knows by its name.
func putTyped(dst []byte, v any, depth int) ([]byte, error) {
	t := reflect.TypeOf(v)
	name, registered := registeredName(t)
	expr := ""
	known := registered
	if !registered {
		expr, known = typeExpression(t, 0)
	}
	if !known {
		return dst, fmt.Errorf("a value of type %T cannot be stored: call graph.Register for it, or use a typed key", v)
	}
	if f := StorageOf(t).Fault; f != nil {
		return dst, f
	}
	if !registered {
		return encodeMixed(wire.PutString(append(dst, dynTyped), expr), reflect.ValueOf(v), depth+1)
	}
	j, err := encodeNamed(v, depth+1)
	return wire.PutString(wire.PutString(append(dst, dynNamed), name), j), err
}

// encodeNamed returns the stored form of a value of a registered type.
func encodeNamed(v any, depth int) ([]byte, error) {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	if StorageOf(p.Type().Elem()).form == formMixed {
		return encodeMixed([]byte{mixedMark}, p.Elem(), depth)
	}
	return EncodeJSON(p.Interface())
}

func registeredName(t reflect.Type) (name string, ok bool) {
	types.RLock()
	defer types.RUnlock()
	name, ok = types.byType[t]
	return name, ok
}

func registeredType(name string) reflect.Type {
	types.RLock()
	defer types.RUnlock()
	return types.byName[name]
}

// A valueReader reads values of records.
type valueReader struct{ wire.Reader }

// DecodeAny reads what EncodeAny wrote.
func DecodeAny(b []byte) (any, error) {
	r := &valueReader{wire.Reader{Rest: b}}
	v := r.readDynamic(0)
	return Clip(v), r.Err
}

// deepest bounds the nesting of dynamic values, so that a damaged record cannot exhaust
// the stack.
const deepest = 10_000

// fewElements is the capacity that is allocated for a list before its elements are
// read: the length of a list in a damaged record may be wrong.
const fewElements = 16

func (r *valueReader) readDynamic(depth int) any {
	if depth > deepest {
		r.MarkDamaged("nested too deep")
		return nil
	}
	switch c := r.Byte(); c {
	case dynNil:
		return nil
	case dynTrue, dynFalse:
		return c == dynTrue
	case dynInt:
		return int(r.Varint())
	case dynInt64:
		return r.Varint()
	case dynUint64:
		return r.Uvarint()
	case dynFloat:
		return r.Float()
	case dynString:
		return r.Text()
	case dynBytes:
		return bytes.Clone(r.Bytes())
	case dynTime:
		var t time.Time
		if err := t.UnmarshalText(r.Bytes()); err != nil && r.Err == nil {
			r.Err = err
		}
		return t
	case dynList:
		return r.readList(r.Count(), depth)
	case dynMap:
		return r.readMap(r.Count(), depth)
	case dynNamed:
		return r.readNamed(depth)
	case dynTyped:
		return r.readTyped(depth)
	default:
		r.MarkDamaged("a value of unknown type")
		return nil
	}
}

// readList reads what putList wrote.
func (r *valueReader) readList(n, depth int) []any {
	list := make([]any, 0, min(n, fewElements))
	for len(list) < n && r.Err == nil {
		list = append(list, r.readDynamic(depth+1))
	}
	return list
}

// readMap reads what putMap wrote.
func (r *valueReader) readMap(n, depth int) map[string]any {
	m := make(map[string]any, min(n, fewElements))
	for i := 0; i < n && r.Err == nil; i++ {
		k := r.Text()
		m[k] = r.readDynamic(depth + 1)
	}
	return m
}

func (r *valueReader) readNamed(depth int) any {
	name := r.Text()
	j := r.Bytes()
	if r.Err != nil {
		return nil
	}
	t := registeredType(name)
	if t == nil {
		r.Err = fmt.Errorf("the journal holds a value of type %q: call graph.Register for it", name)
		return nil
	}
	p := reflect.New(t)
	var err error
	if len(j) > 0 && j[0] == mixedMark {
		in := &valueReader{wire.Reader{Rest: j[1:]}}
		in.readMixed(p.Elem(), depth+1)
		err = in.Err
	} else {
		err = DecodeJSON(j, p.Interface())
	}
	if err != nil {
		r.Err = fmt.Errorf("a value of type %q: %w", name, err)
	}
	return p.Elem().Interface()
}

func (r *valueReader) readTyped(depth int) any {
	expr := r.Text()
	if r.Err != nil {
		return nil
	}
	t, err := parseType(expr, 0)
	if err != nil {
		r.Err = err
		return nil
	}
	v := reflect.New(t).Elem()
	r.readMixed(v, depth+1)
	return v.Interface()
}
