package value

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph/internal/wire"
)

// mixedMark is the first byte of what encodeMixed has written for a key or an effect.
// JSON, which older versions wrote there, never begins with it.
const mixedMark = 1

// encodeMixed appends a value whose static type the reader knows: slices, maps and
// pointers element by element, the value of an interface with its type, and everything
// without an interface inside as JSON.
func encodeMixed(dst []byte, v reflect.Value, depth int) (_ []byte, err error) {
	if depth > deepest {
		return dst, fmt.Errorf("a value of type %s is nested more than %d deep: does it contain itself?", v.Type(), deepest)
	}
	t := v.Type()
	if t.Kind() == reflect.Interface {
		return putDynamic(dst, v.Interface(), depth)
	}
	if StorageOf(t).form != formMixed {
		return encodeLeaf(dst, v)
	}
	if t.Kind() != reflect.Array {
		if v.IsNil() {
			return wire.PutInt(dst, 0), nil
		}
		if t.Kind() == reflect.Pointer {
			return encodeMixed(wire.PutInt(dst, 1), v.Elem(), depth+1)
		}
	}
	dst = wire.PutInt(dst, v.Len()+1)
	if t.Kind() == reflect.Map {
		return encodeEntries(dst, v, depth)
	}
	if list, ok := v.Interface().([]any); ok {
		return putList(dst, list, depth)
	}
	for i := range v.Len() {
		if dst, err = encodeMixed(dst, v.Index(i), depth+1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// encodeEntries appends the entries of a map, sorted by key.
func encodeEntries(dst []byte, v reflect.Value, depth int) (_ []byte, err error) {
	if m, ok := v.Interface().(map[string]any); ok {
		return putMap(dst, m, depth)
	}
	type entry struct {
		key string
		val reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	for k, val := range v.Seq2() {
		b, err := encodeLeaf(nil, k)
		if err != nil {
			return dst, err
		}
		entries = append(entries, entry{string(b), val})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	for _, e := range entries {
		if dst, err = encodeMixed(append(dst, e.key...), e.val, depth+1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// encodeLeaf appends a value without an interface inside: text as it is, the rest
// as JSON.
func encodeLeaf(dst []byte, v reflect.Value) ([]byte, error) {
	if v.Type() == stringType {
		return wire.PutString(dst, v.String()), nil
	}
	p := reflect.New(v.Type()) // JSON calls methods with pointer receivers, too
	p.Elem().Set(v)
	j, err := EncodeJSON(p.Interface())
	return wire.PutString(dst, j), err
}

var stringType = reflect.TypeFor[string]()

// decodeMixed reads what encodeMixed wrote into v, which must be settable. It keeps no
// reference to b.
func decodeMixed(b []byte, v reflect.Value) error {
	r := &valueReader{wire.Reader{Rest: b}}
	r.readMixed(v, 0)
	return r.Err
}

func (r *valueReader) readMixed(v reflect.Value, depth int) {
	if depth > deepest {
		r.MarkDamaged("nested too deep")
		return
	}
	t := v.Type()
	if t.Kind() == reflect.Interface {
		r.readInterface(v, depth)
		return
	}
	if StorageOf(t).form != formMixed {
		r.readLeaf(v)
		return
	}
	n := r.Int()
	if t.Kind() == reflect.Pointer {
		if n == 1 && r.Err == nil {
			v.Set(reflect.New(t.Elem()))
			r.readMixed(v.Elem(), depth+1)
		}
		return
	}
	if n == 0 || r.Err != nil {
		return
	}
	if n--; n > len(r.Rest) {
		r.MarkDamaged("a list is longer than its record")
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		r.readElements(v, n, depth)
	case reflect.Map:
		r.readEntries(v, n, depth)
	case reflect.Array:
		if n != t.Len() {
			r.MarkDamaged("an array of another length")
			return
		}
		for i := range n {
			r.readMixed(v.Index(i), depth+1)
		}
	}
}

func (r *valueReader) readElements(v reflect.Value, n, depth int) {
	if list, ok := v.Addr().Interface().(*[]any); ok {
		*list = r.readList(n, depth)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, min(n, fewElements)))
	zero := reflect.Zero(v.Type().Elem())
	for i := 0; i < n && r.Err == nil; i++ {
		v.Set(reflect.Append(v, zero))
		r.readMixed(v.Index(i), depth+1)
	}
}

func (r *valueReader) readEntries(v reflect.Value, n, depth int) {
	if m, ok := v.Addr().Interface().(*map[string]any); ok {
		*m = r.readMap(n, depth)
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), min(n, fewElements)))
	for i := 0; i < n && r.Err == nil; i++ {
		k := reflect.New(v.Type().Key()).Elem()
		e := reflect.New(v.Type().Elem()).Elem()
		r.readLeaf(k)
		r.readMixed(e, depth+1)
		v.SetMapIndex(k, e)
	}
}

func (r *valueReader) readLeaf(v reflect.Value) {
	b := r.Bytes()
	switch {
	case r.Err != nil:
	case v.Type() == stringType:
		v.SetString(string(b))
	default:
		r.Err = DecodeJSON(b, v.Addr().Interface())
	}
}

func (r *valueReader) readInterface(v reflect.Value, depth int) {
	x := r.readDynamic(depth)
	if x == nil || r.Err != nil {
		return
	}
	if !reflect.TypeOf(x).AssignableTo(v.Type()) {
		r.Err = fmt.Errorf("the journal holds a %T, which is not a %s", x, TypeName(v.Type()))
		return
	}
	v.Set(reflect.ValueOf(x))
}

// namedTypes are the types that type expressions name, in addition to registered ones.
var namedTypes = func() map[string]reflect.Type {
	m := map[string]reflect.Type{"any": reflect.TypeFor[any]()}
	for _, t := range []reflect.Type{
		reflect.TypeFor[bool](), stringType,
		reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
		reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
		reflect.TypeFor[float32](), reflect.TypeFor[float64](),
		reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](),
	} {
		m[t.String()] = t
	}
	return m
}()

// maxNested is the largest depth of a type expression.
const maxNested = 100

// typeExpression returns the Go syntax of a type that is built from namedTypes and
// registered types, these in quotes; ok is false for other types.
func typeExpression(t reflect.Type, depth int) (expr string, ok bool) {
	if depth > maxNested {
		return "", false
	}
	if name, registered := registeredName(t); registered {
		return strconv.Quote(name), true
	}
	name := TypeName(t)
	if n, known := namedTypes[name]; known {
		return name, n == t
	}
	if t.Name() != "" {
		return "", false
	}
	switch t.Kind() {
	case reflect.Slice:
		expr, ok = typeExpression(t.Elem(), depth+1)
		return "[]" + expr, ok
	case reflect.Pointer:
		expr, ok = typeExpression(t.Elem(), depth+1)
		return "*" + expr, ok
	case reflect.Map:
		if expr, ok = typeExpression(t.Elem(), depth+1); ok && isMapKey(t.Key()) {
			return "map[" + t.Key().Name() + "]" + expr, true
		}
	}
	return "", false
}

// IntegerSizes maps the Go types of integers to their sizes in bits.
var IntegerSizes = map[string]int{"int8": 8, "int16": 16, "int32": 32, "int64": 64, "int": strconv.IntSize,
	"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "uint": strconv.IntSize}

// isMapKey reports whether type expressions allow a type for the keys of maps.
func isMapKey(t reflect.Type) bool {
	return namedTypes[t.Name()] == t && (t.Kind() == reflect.String || IntegerSizes[t.Kind().String()] > 0)
}

var errTypeExpression = errors.New("damaged record: a value of unknown type")

// parseType returns the type that typeExpression was called for.
func parseType(expr string, depth int) (reflect.Type, error) {
	if depth > maxNested {
		return nil, errTypeExpression
	}
	if t, ok := namedTypes[expr]; ok {
		return t, nil
	}
	if name, err := strconv.Unquote(expr); err == nil {
		if t := registeredType(name); t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("the journal holds a value of type %q: call graph.Register for it", name)
	}
	wrap := reflect.SliceOf
	rest := ""
	switch {
	case strings.HasPrefix(expr, "[]"):
		rest = expr[2:]
	case strings.HasPrefix(expr, "*"):
		wrap = reflect.PointerTo
		rest = expr[1:]
	case strings.HasPrefix(expr, "map["):
		name, elem, _ := strings.Cut(expr[len("map["):], "]")
		key := namedTypes[name]
		if key == nil || !isMapKey(key) {
			return nil, errTypeExpression
		}
		wrap = func(t reflect.Type) reflect.Type { return reflect.MapOf(key, t) }
		rest = elem
	default:
		return nil, errTypeExpression
	}
	t, err := parseType(rest, depth+1)
	if err != nil {
		return nil, err
	}
	return wrap(t), nil
}
