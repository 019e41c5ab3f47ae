package graph

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
)

// The dynamic codec is self-describing: one letter says the type of what
// follows, so that every value of an interface type comes back with the Go type
// it went in with.
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
)

var types struct {
	sync.RWMutex
	byName map[string]reflect.Type
	byType map[reflect.Type]string
}

// Register makes T storable inside values of interface type (Dyn keys, lists and
// maps of any, results of Do[any], Halt) under a name that must stay the same for
// as long as journals hold it. T is stored as JSON. Call it while the program
// starts; registering a name for a second type panics.
func Register[T any](name string) {
	t := reflect.TypeFor[T]()
	types.Lock()
	defer types.Unlock()
	if types.byName == nil {
		types.byName, types.byType = map[string]reflect.Type{}, map[reflect.Type]string{}
	}
	if was, ok := types.byName[name]; ok && was != t {
		panic(fmt.Sprintf("graph: Register: %q already names %s", name, was))
	}
	types.byName[name], types.byType[t] = t, name
}

func encodeDynamic(dst []byte, v any) ([]byte, error) { return putDynamic(dst, v, 0) }

// putDynamic writes what reader.dynamic reads, and nothing that is deeper.
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
		return putString(append(dst, dynString), x), nil
	case []byte:
		return putString(append(dst, dynBytes), x), nil
	case time.Time:
		t, err := x.MarshalText()
		return putString(append(dst, dynTime), t), err
	case []any:
		dst = putInt(append(dst, dynList), len(x))
		for _, e := range x {
			if dst, err = putDynamic(dst, e, depth+1); err != nil {
				return dst, err
			}
		}
		return dst, nil
	case map[string]any:
		dst = putInt(append(dst, dynMap), len(x))
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if dst, err = putDynamic(putString(dst, k), x[k], depth+1); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	types.RLock()
	name, ok := types.byType[reflect.TypeOf(v)]
	types.RUnlock()
	if !ok {
		return dst, fmt.Errorf("a value of type %T cannot be stored: call graph.Register for it, or use a typed key", v)
	}
	j, err := marshal(v)
	return putString(putString(append(dst, dynNamed), name), j), err
}

func decodeDynamic(b []byte) (any, error) {
	r := &reader{b: b}
	v := r.dynamic(0)
	return v, r.err
}

// deepest bounds the nesting of dynamic values, so that a damaged record cannot
// exhaust the stack.
const deepest = 10_000

// fewElements is what is allocated for a list before its elements are seen: the
// length of a list in a damaged record says nothing.
const fewElements = 16

func (r *reader) dynamic(depth int) any {
	if depth > deepest {
		r.damaged("nested too deep")
		return nil
	}
	switch c := r.byte(); c {
	case dynNil:
		return nil
	case dynTrue, dynFalse:
		return c == dynTrue
	case dynInt:
		return int(r.varint())
	case dynInt64:
		return r.varint()
	case dynUint64:
		return r.uvarint()
	case dynFloat:
		return r.float()
	case dynString:
		return r.string()
	case dynBytes:
		return bytes.Clone(r.bytes())
	case dynTime:
		var t time.Time
		if err := t.UnmarshalText(r.bytes()); err != nil && r.err == nil {
			r.err = err
		}
		return t
	case dynList:
		n := r.count()
		l := make([]any, 0, min(n, fewElements))
		for len(l) < n && r.err == nil {
			l = append(l, r.dynamic(depth+1))
		}
		return l
	case dynMap:
		n := r.count()
		m := make(map[string]any, min(n, fewElements))
		for i := 0; i < n && r.err == nil; i++ {
			k := r.string()
			m[k] = r.dynamic(depth + 1)
		}
		return m
	case dynNamed:
		return r.named()
	default:
		r.damaged("a value of unknown type")
		return nil
	}
}

func (r *reader) named() any {
	name, j := r.string(), r.bytes()
	types.RLock()
	t := types.byName[name]
	types.RUnlock()
	if r.err != nil {
		return nil
	}
	if t == nil {
		r.err = fmt.Errorf("the journal holds a value of type %q: call graph.Register for it", name)
		return nil
	}
	p := reflect.New(t)
	if err := unmarshal(j, p.Interface()); err != nil {
		r.err = fmt.Errorf("a value of type %q: %w", name, err)
	}
	return p.Elem().Interface()
}
