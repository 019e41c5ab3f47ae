package graph

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/internal/value"
)

// keyDef is the untyped side of a Key. begin, add and end fold the writes of one step:
// begin makes an accumulator from the old value, add folds one write into it, end turns
// it back into a value. If begin is nil, the accumulator is the value itself.
type keyDef struct {
	name   string
	tag    string // names type and codec in the journal
	how    string // its reducer, in the journal
	typ    reflect.Type
	fold   record.Mode
	single bool // at most one task of a step may write it
	custom bool // encode and decode are a Codec's
	plain  bool // that of JSONCodec, so that what is stored depends on the type
	shares bool // two values may have a slice, a map or the target of a pointer in common
	begin  func(old any, buf any) any
	add    func(acc any, present bool, upd any) (any, error) // nil: overwrite
	end    func(acc any) (val, buf any)
	clone  func(v any) any // a copy that shares nothing; nil: value.Copy makes it
	encode func(dst []byte, v any) ([]byte, error)
	decode func(b []byte) (any, error)
}

// describe describes the key as a journal does.
func (k *keyDef) describe() structure.Key {
	return structure.NewKey(k.name, k.how, k.tag, k.typ, k.custom && !k.plain)
}

// mayHoldMap reports whether a value of the key may be a map.
func (k *keyDef) mayHoldMap() bool {
	return k.typ.Kind() == reflect.Map || k.typ.Kind() == reflect.Interface
}

// isReduced reports whether the key has a reducer of the user, and values that it could
// change.
func (k *keyDef) isReduced() bool { return k.shares && k.begin == nil && k.add != nil }

// beginFold returns the accumulator for the first write of a step. A reducer of the user
// never gets what others read.
func (k *keyDef) beginFold(old, buf any) any {
	switch {
	case k.begin != nil:
		return k.begin(old, buf)
	case k.isReduced():
		return value.Copy(old)
	}
	return old
}

// detach returns a written value as the state may hold it or a reducer may get it: without
// spare capacity, and for a reducer of the user a copy.
func (k *keyDef) detach(v any) any {
	switch {
	case !k.shares:
		return v
	case k.isReduced():
		return value.Copy(v)
	}
	return value.Clip(v)
}

// encodeStored encodes a value. It reuses dst unless the codec is the user's. A panic in a
// codec is an error.
func (k *keyDef) encodeStored(dst []byte, v any) (b []byte, err error) {
	defer k.codecFault(&err)
	if k.custom {
		return k.encode(nil, unboxNil(v))
	}
	return k.encode(dst[:0], unboxNil(v))
}

// decodeStored decodes a value; a panic in a codec is an error.
func (k *keyDef) decodeStored(b []byte) (v any, err error) {
	defer k.codecFault(&err)
	if k.custom {
		b = bytes.Clone(b) // the codec may keep the bytes
	}
	return k.decode(b)
}

// codecFault adds the key's name to an error or a panic of a codec.
func (k *keyDef) codecFault(err *error) {
	if p := recover(); p != nil {
		*err = panics.NewError("the codec", p)
	}
	if *err != nil {
		*err = fmt.Errorf("key %q: %w", k.name, *err)
	}
}

// checkStorable returns why the key's values could not be read again, or nil. Keys with a Codec
// are not checked.
func (k *keyDef) checkStorable() error {
	if k.custom {
		return nil
	}
	if f := value.StorageOf(k.typ).Fault; f != nil {
		return fmt.Errorf("key %q: %w", k.name, f)
	}
	return nil
}

// AnyKey is a Key of any type; only Keys implement it.
type AnyKey interface {
	// Name returns the key's name.
	Name() string

	def() *keyDef
}

// keyOf returns the definition of a key, or nil: an AnyKey may hold a nil *Key.
func keyOf(k AnyKey) *keyDef {
	if v := reflect.ValueOf(k); k == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return k.def()
}

// Key names one value of the state, its Go type and the reducer that folds writes into
// it. Make one with Last, Append, Merge, Sum, Max, Min, Concat, Fold or Dyn, usually as
// a package variable, and list it in Def.Keys. A Key is immutable and safe for
// concurrent use.
//
// Its values are stored, so they must be read back unchanged. Numbers, texts and bytes always are, also texts that are
// not UTF-8; a time is in UTC or in a zone that has an offset and no name, from the write on. Where the type itself is
// an interface, or an element of slices, arrays, maps and pointers is one (Merge[string, any]), each value is stored
// with its type: see Register. Everything else is stored as JSON, with the rules of encoding/json: fields that are not
// exported or are tagged json:"-" are left out. A text that is not UTF-8 is kept, but is an error inside of a type with
// JSON of its own. Compile refuses types that JSON cannot read back: an interface in a field of a struct, channels and
// functions, maps whose keys are neither texts nor integers, structs with unexported fields only, and types with
// MarshalJSON or MarshalText but without the opposite method. A Codec, or MarshalJSON and UnmarshalJSON, makes such a
// type storable. Results of Do follow the same rules.
type Key[T any] struct{ d *keyDef }

// Name returns the key's name: its identity in the journal.
func (k Key[T]) Name() string { return k.d.name }

func (k Key[T]) def() *keyDef { return k.d }

// Write is one write of a node: a key and the value to fold into it.
type Write struct {
	key   *keyDef
	val   any
	reset bool
}

// Key returns the name of the key written; "" for the zero Write.
func (w Write) Key() string {
	if w.key == nil {
		return ""
	}
	return w.key.name
}

// errNoKey is the error for the zero Write.
var errNoKey = errors.New("a Write was not made by Set or Reset of a key")

// nullValue is the value of a slot that holds a present nil, so that nil in a slot
// means absent.
type nullValue struct{}

func boxNil(v any) any {
	if v == nil {
		return nullValue{}
	}
	return v
}

func unboxNil(v any) any {
	if _, ok := v.(nullValue); ok {
		return nil
	}
	return v
}

func newKey[T any](name, how string) *keyDef {
	return &keyDef{
		name:   name,
		tag:    typeTag[T](),
		how:    how,
		typ:    reflect.TypeFor[T](),
		shares: value.MayShare(reflect.TypeFor[T]()),
		encode: func(dst []byte, v any) ([]byte, error) { t, _ := v.(T); return value.Encode(dst, t) },
		decode: func(b []byte) (any, error) { return value.Decode[T](b) },
	}
}

func typeTag[T any]() string { return reflect.TypeFor[T]().String() }

// Last returns a key that each write overwrites. Two tasks of one step that both write
// it end the run with a *ConflictError that names them.
func Last[T any](name string) Key[T] {
	d := newKey[T](name, "last")
	d.single = true
	return Key[T]{d}
}

// Dyn returns a Last key whose values have any type known to the dynamic codec: see
// Register.
func Dyn(name string) Key[any] { return Last[any](name) }

// Fold returns a key with a reducer of your own. The function must be pure; present is
// false on the first write, when old is T's zero value. It gets copies of its own, which
// share nothing with the state, and whose slices have no spare capacity; with
// Runner.Debug, changing them is a *ModifiedError. Its error fails the task whose write
// was folded. The journal stores the result, so that reading a journal needs no user
// code.
func Fold[T any](name string, reduce func(old T, present bool, upd T) (T, error)) Key[T] {
	return newFold(name, "fold", reduce)
}

func newFold[T any](name, how string, reduce func(old T, present bool, upd T) (T, error)) Key[T] {
	d := newKey[T](name, how)
	d.add = func(acc any, present bool, upd any) (any, error) {
		o, _ := acc.(T)
		u, _ := upd.(T)
		return reduce(o, present, u)
	}
	return Key[T]{d}
}

// newReducerKey wraps a reducer that cannot fail and does not need present.
func newReducerKey[T any](name, how string, reduce func(a, b T) T) Key[T] {
	return newFold(name, how, func(old T, present bool, upd T) (T, error) {
		if !present {
			return upd, nil
		}
		return reduce(old, upd), nil
	})
}

// Number is what Sum adds: every integer and float, and types made of them.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum returns a key whose writes are added, in task order.
func Sum[T Number](name string) Key[T] {
	return newReducerKey(name, "sum", func(a, b T) T { return a + b })
}

// Max returns a key that keeps the greatest value written.
func Max[T cmp.Ordered](name string) Key[T] {
	return newReducerKey(name, "max", func(a, b T) T { return max(a, b) })
}

// Min returns a key that keeps the least value written.
func Min[T cmp.Ordered](name string) Key[T] {
	return newReducerKey(name, "min", func(a, b T) T { return min(a, b) })
}

// Concat returns a text key: each write is added as a new line.
func Concat(name string) Key[string] {
	return newReducerKey(name, "concat", func(a, b string) string {
		if a == "" {
			return b
		}
		return a + "\n" + b
	})
}

// Append returns a list key: writes are concatenated in task order, and the journal
// stores only the added elements. Readers get a slice whose capacity is its length, so
// that appending to it does not change what other readers see.
func Append[E any](name string) Key[[]E] {
	d := newKey[[]E](name, "append")
	d.fold = record.Append
	d.begin = func(old, buf any) any {
		o, _ := old.([]E)
		if b, ok := buf.(*[]E); ok && len(*b) == len(o) && (len(o) == 0 || &(*b)[0] == &o[0]) {
			return b
		}
		c := make([]E, len(o), max(8, 2*len(o)))
		copy(c, o)
		return &c
	}
	d.add = func(acc any, _ bool, upd any) (any, error) {
		b := acc.(*[]E)
		u, _ := upd.([]E)
		if n := len(*b); n+len(u) > cap(*b) { // append would grow long lists by a quarter, and copy them more often
			*b = slices.Grow(*b, max(n, len(u)))
		}
		*b = append(*b, u...)
		return b, nil
	}
	d.end = func(acc any) (any, any) { b := acc.(*[]E); return (*b)[:len(*b):len(*b)], b }
	return Key[[]E]{d}
}

// Merge returns a map key: the entries of each write replace those of the same name, and the journal stores only the
// written entries. A write clones the map, and so does the first read of each reader, so their cost grows with the map:
// keep large collections elsewhere.
func Merge[K comparable, V any](name string) Key[map[K]V] {
	d := newKey[map[K]V](name, "merge")
	d.fold = record.Merge
	d.begin = func(old, _ any) any {
		o, _ := old.(map[K]V)
		c := make(map[K]V, len(o)+1)
		maps.Copy(c, o)
		return c
	}
	d.add = func(acc any, _ bool, upd any) (any, error) {
		u, _ := upd.(map[K]V)
		maps.Copy(acc.(map[K]V), u)
		return acc, nil
	}
	if !value.MayShare(reflect.TypeFor[V]()) {
		d.clone = func(v any) any { m, _ := v.(map[K]V); return maps.Clone(m) }
	}
	return Key[map[K]V]{d}
}

// Register makes T storable where a value has an interface type: in Dyn keys and
// Last[any], in the elements of lists and maps of any at any depth (Append[any],
// Merge[string, any], Last[[]map[string]any], and inside values that are stored in this
// way), in results of Do[any], and in the value of a Halt. name must not change as long
// as journals hold it.
//
// These need no Register: nil, bool, string, all sizes of integers and floats, []byte,
// time.Time, time.Duration, json.Number, json.RawMessage, any, and slices, maps and
// pointers of these and of registered types. All are read back with the Go type that
// they had; a time loses its monotonic clock reading and the name of its zone, and a nil []any or map[string]any
// becomes an empty one.
//
// T itself is stored like the value of a typed key: see Key. A T that cannot be read
// again is refused when a value of it is written. Call Register while the program
// starts; registering a name for a second type panics.
func Register[T any](name string) {
	value.Register[T](name)
}

// Codec says how the values of a key are stored.
type Codec[T any] struct {
	// Tag names the encoding in the journal: to change it makes old values unreadable.
	Tag string

	// Encode appends the stored form of a value to dst. It must be pure.
	Encode func(dst []byte, v T) ([]byte, error)

	// Decode reads what Encode wrote. It must be pure, and must not keep b.
	Decode func(b []byte) (T, error)

	plain bool // made by JSONCodec
}

// JSONCodec stores every value as plain JSON, under the tag that the key has without a
// Codec. It is for keys that Compile refuses because a struct holds an any: then an
// interface is read back with the types that JSON has (map[string]any, []any, float64,
// string, bool).
func JSONCodec[T any]() Codec[T] {
	return Codec[T]{
		plain: true,
		Tag:   typeTag[T](),
		Encode: func(dst []byte, v T) ([]byte, error) {
			j, err := value.EncodeJSON(&v)
			return append(dst, j...), err
		},
		Decode: func(b []byte) (v T, err error) {
			err = value.DecodeJSON(b, &v)
			return v, err
		},
	}
}

// WithCodec returns the key with another way of storing its values: encrypted, redacted, or
// in a form that other programs read. Both functions must be pure; Decode must not keep
// b. WithCodec panics if the codec lacks one of the functions.
func (k Key[T]) WithCodec(c Codec[T]) Key[T] {
	if c.Encode == nil || c.Decode == nil {
		panic("graph: the codec of key " + k.d.name + " lacks Encode or Decode")
	}
	d := *k.d
	d.tag, d.custom, d.plain = c.Tag, true, c.plain
	d.encode = func(dst []byte, v any) ([]byte, error) { t, _ := v.(T); return c.Encode(dst, t) }
	d.decode = func(b []byte) (any, error) { return c.Decode(b) }
	return Key[T]{&d}
}

// Get returns the value, or T's zero value if the key is absent, as all keys are in the zero
// State: that of a Result that did not start. It panics if the graph that s belongs to does
// not declare the key: inside a node that becomes a *NodeError.
func (k Key[T]) Get(s State) T {
	v, _ := k.Lookup(s)
	return v
}

// Lookup is Get, and also reports whether the key is present: a present nil is not an
// absent key.
func (k Key[T]) Lookup(s State) (v T, present bool) {
	i := s.t.findSlot(k.d)
	if i < 0 {
		if s.t == nil || s.t.open != nil {
			return v, false
		}
		panic(fmt.Sprintf("graph: key %q is not declared in the graph; add it to Def.Keys", k.d.name))
	}
	if s.v[i] == nil {
		return v, false
	}
	v, _ = s.slotValue(i).(T)
	return v, true
}

// Set returns a write of v through the key's reducer.
func (k Key[T]) Set(v T) Write { return Write{k.d, boxNil(v), false} }

// Reset returns a write that replaces the value without calling the reducer, for
// example to shorten a history. Two tasks of one step that reset one key end the run
// with a *ConflictError.
func (k Key[T]) Reset(v T) Write { return Write{k.d, boxNil(v), true} }
