package value

import (
	"encoding/json"
	"reflect"
	"sync"
	"time"
)

// Copy returns a copy of a value that shares no slice, map or target of a pointer with it.
// The slices of the copy have no spare capacity. What JSON leaves out, channels and
// functions stay shared; so does what a type with its own JSON hides, if that JSON cannot
// be read back. It is safe for values that contain themselves.
func Copy(v any) any { return copyValue(v, &copier{deep: true}) }

// Clip returns the value as a state may hold it. Its slices have no spare capacity, so that
// appending to one changes nothing that others read. Its times are as they are read
// back: see NormalTime. What is behind a pointer to a struct that hides fields stays as it
// is. What is in the way is copied; a value in which nothing changes is returned as it
// is.
func Clip(v any) any {
	if !(&spareSearch{}).holdsSpare(v, 0) {
		return v
	}
	return copyValue(v, &copier{})
}

func copyValue(v any, c *copier) any {
	if v == nil || !MayShare(reflect.TypeOf(v)) {
		return v
	}
	own := reflect.New(reflect.TypeOf(v)).Elem()
	own.Set(reflect.ValueOf(v))
	c.separate(own, 0)
	return own.Interface()
}

// sharing caches MayShare by reflect.Type.
var sharing sync.Map

// ClipAs is Clip for a value whose type is known.
func ClipAs[T any](v T) T {
	if !MayShare(reflect.TypeFor[T]()) {
		return v
	}
	v, _ = Clip(v).(T)
	return v
}

// NormalTime returns a time as it is read back from its stored form, wherever that happens:
// without the reading of the monotonic clock, in UTC or in a zone that has an offset and
// no name.
func NormalTime(t time.Time) time.Time {
	_, offset := t.Zone()
	if offset == 0 {
		return t.Round(0).UTC()
	}
	return t.Round(0).In(time.FixedZone("", offset))
}

// isNormal reports whether NormalTime changes nothing.
func isNormal(t time.Time) bool {
	if t != t.Round(0) {
		return false
	}
	if t.Location() == time.UTC {
		return true
	}
	_, offset := t.Zone()
	return offset != 0 && t.Location().String() == ""
}

// isPlain reports whether a type is no struct that hides fields.
func isPlain(t reflect.Type) bool {
	if t == timeType || t.Kind() != reflect.Struct {
		return true
	}
	for f := range t.Fields() {
		if !f.IsExported() {
			return false
		}
	}
	return true
}

var timeType = reflect.TypeFor[time.Time]()

// MayShare reports whether two values of a type can have a slice, a map or the target of a
// pointer in common, or hold a time: whether Clip or Copy can return another value. It is
// safe for concurrent use.
func MayShare(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return true
	case reflect.Array:
		return MayShare(t.Elem())
	case reflect.Struct:
	default:
		return false
	}
	if known, ok := sharing.Load(t); ok {
		return known.(bool)
	}
	may := t == timeType
	for f := range t.Fields() {
		may = may || MayShare(f.Type)
	}
	sharing.Store(t, may)
	return may
}

// isStored reports whether a field is part of what JSON stores.
func isStored(f *reflect.StructField) bool {
	return f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct)
}

// A place identifies a slice, a map or the target of a pointer.
type place struct {
	at uintptr
	n  int
	t  reflect.Type
}

func placeOf(v reflect.Value) place {
	p := place{v.Pointer(), 0, v.Type()}
	if v.Kind() == reflect.Slice {
		p.n = v.Len()
	}
	return p
}

// copier replaces parts of a value by copies.
type copier struct {
	deep bool                    // everything; else only what Clip changes
	text func(string) string     // what happens to texts; nil: they stay
	seen map[place]reflect.Value // the copies so far
}

// reaches reports whether the copier changes anything in values of a type.
func (c *copier) reaches(t reflect.Type) bool { return c.text != nil || MayShare(t) }

// reuse sets v to the copy that was already made of it, if there is one.
func (c *copier) reuse(v reflect.Value) bool {
	was, ok := c.seen[placeOf(v)]
	if ok {
		v.Set(was)
	}
	return ok
}

// keep remembers the copy of v, and sets v to it.
func (c *copier) keep(v, copied reflect.Value) {
	if c.seen == nil {
		c.seen = map[place]reflect.Value{}
	}
	c.seen[placeOf(v)] = copied
	v.Set(copied)
}

// separate replaces what v, which can be set, shares with others.
func (c *copier) separate(v reflect.Value, depth int) {
	t := v.Type()
	if depth > deepest || !c.reaches(t) {
		return
	}
	switch {
	case c.text != nil && hasOwnForm(t):
		return
	case t == timeType:
		v.Set(reflect.ValueOf(NormalTime(v.Interface().(time.Time))))
		return
	case c.deep && t.Kind() == reflect.Struct && v.CanSet() && hasOwnForm(t):
		separateByJSON(v)
		return
	}
	switch t.Kind() {
	case reflect.String: // reached for its text
		v.SetString(c.text(v.String()))
	case reflect.Slice:
		c.separateSlice(v, depth)
	case reflect.Array:
		for i := range v.Len() {
			c.separate(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); isStored(&f) {
				c.separate(v.Field(i), depth+1)
			}
		}
	case reflect.Map:
		c.separateMap(v, depth)
	case reflect.Interface:
		if !v.IsNil() && c.reaches(v.Elem().Type()) {
			held := reflect.New(v.Elem().Type()).Elem()
			held.Set(v.Elem())
			c.separate(held, depth+1)
			v.Set(held)
		}
	case reflect.Pointer:
		if v.IsNil() || !c.deep && !isPlain(t.Elem()) || c.reuse(v) {
			return
		}
		target := reflect.New(t.Elem())
		target.Elem().Set(v.Elem())
		c.keep(v, target.Convert(t))
		c.separate(target.Elem(), depth+1)
	}
}

func (c *copier) separateSlice(v reflect.Value, depth int) {
	n := v.Len()
	nested := c.reaches(v.Type().Elem())
	switch {
	case v.IsNil():
	case !c.deep && !nested:
		v.Set(v.Slice3(0, n, n))
	case !nested: // it cannot contain itself, and to find it again costs more than another copy
		own := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(own, v)
		v.Set(own)
	case !c.reuse(v):
		own := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(own, v)
		c.keep(v, own)
		for i := range n {
			c.separate(own.Index(i), depth+1)
		}
	}
}

func (c *copier) separateMap(v reflect.Value, depth int) {
	nested := c.reaches(v.Type().Elem())
	isText := c.text != nil && v.Type().Key().Kind() == reflect.String
	if v.IsNil() || !c.deep && !nested || c.reuse(v) {
		return
	}
	was := reflect.ValueOf(v.Interface()).MapRange() // v itself is about to change
	own := reflect.MakeMapWithSize(v.Type(), v.Len())
	k := reflect.New(v.Type().Key()).Elem()
	e := reflect.New(v.Type().Elem()).Elem()
	c.keep(v, own)
	for was.Next() {
		if e.SetIterValue(was); nested {
			c.separate(e, depth+1)
		}
		if k.SetIterKey(was); isText {
			k.SetString(c.text(k.String()))
		}
		own.SetMapIndex(k, e)
	}
}

// separateByJSON replaces a struct with its own JSON, which may hide what it shares, by what
// that JSON says. If it cannot be read back, nothing changes.
func separateByJSON(v reflect.Value) {
	j, err := MarshalJSON(v.Addr().Interface())
	if err != nil {
		return
	}
	own := reflect.New(v.Type())
	if unmarshalJSON(j, own.Interface()) == nil {
		v.Set(own.Elem())
	}
}

// spareSearch looks for slices with spare capacity, and times that are not normal.
type spareSearch struct{ seen map[place]bool }

// trusted is the depth up to which a value is not suspected to contain itself.
const trusted = 16

// isKnown reports whether a slice or a map was already searched.
func (s *spareSearch) isKnown(v reflect.Value, depth int) bool {
	if depth <= trusted {
		return false
	}
	if s.seen == nil {
		s.seen = map[place]bool{}
	}
	p := placeOf(v)
	was := s.seen[p]
	s.seen[p] = true
	return was
}

// holdsSpare is hasSpare for a value without its reflection. What JSON and scripts make, which is most of what large
// states have, it searches without it: that is thirty times faster, and allocates nothing.
func (s *spareSearch) holdsSpare(v any, depth int) bool {
	switch v := v.(type) {
	case nil, string, bool, int, int64, float64, json.Number:
		return false
	case []any:
		if cap(v) > len(v) {
			return true
		}
		if depth > trusted {
			break
		}
		for _, e := range v {
			if s.holdsSpare(e, depth+2) {
				return true
			}
		}
		return false
	case map[string]any:
		if depth > trusted {
			break
		}
		for _, e := range v {
			if s.holdsSpare(e, depth+2) {
				return true
			}
		}
		return false
	case []string:
		return cap(v) > len(v)
	case []byte:
		return cap(v) > len(v)
	}
	return s.hasSpare(reflect.ValueOf(v), depth)
}

func (s *spareSearch) hasSpare(v reflect.Value, depth int) bool {
	if depth > deepest || !MayShare(v.Type()) {
		return false
	}
	if v.Type() == timeType {
		return !isNormal(v.Interface().(time.Time))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && isPlain(v.Type().Elem()) && !s.isKnown(v, depth) && s.hasSpare(v.Elem(), depth+1)
	case reflect.Interface:
		switch {
		case v.IsNil():
			return false
		case v.CanInterface():
			return s.holdsSpare(v.Interface(), depth+1)
		}
		return s.hasSpare(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Cap() > v.Len() {
			return true
		}
		if !MayShare(v.Type().Elem()) || v.Kind() == reflect.Slice && s.isKnown(v, depth) {
			return false
		}
		for i := range v.Len() {
			if s.hasSpare(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		if !MayShare(v.Type().Elem()) || s.isKnown(v, depth) {
			return false
		}
		e := reflect.New(v.Type().Elem()).Elem()
		for entries := v.MapRange(); entries.Next(); {
			if e.SetIterValue(entries); s.hasSpare(e, depth+1) {
				return true
			}
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			if f := t.Field(i); MayShare(f.Type) && isStored(&f) && s.hasSpare(v.Field(i), depth+1) {
				return true
			}
		}
	}
	return false
}
