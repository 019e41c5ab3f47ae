package jsonvalue

import "iter"

// indexAbove is the number of members above which an object is indexed; below
// it a scan is faster.
const indexAbove = 8

// Object is a JSON object that keeps the order of its members. The zero value
// and nil are empty objects; nil can be read but not changed. Do not change an
// object that is part of a state: Clone it first.
type Object struct {
	Members []Member
	index   map[string]int
}

// Member is one member of an [Object].
type Member struct {
	Key   string
	Value any
}

// NewObject returns an object with the members in their order. If a key occurs
// several times, the last value is used at the position of the first.
func NewObject(members ...Member) *Object {
	o := &Object{Members: make([]Member, 0, len(members))}
	for _, m := range members {
		o.Set(m.Key, m.Value)
	}
	return o
}

// Len returns the number of members.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.Members)
}

// Get returns the value of a member and whether there is one.
func (o *Object) Get(key string) (any, bool) {
	if i := o.indexOf(key); i >= 0 {
		return o.Members[i].Value, true
	}
	return nil, false
}

// Set sets the value of a member. A new member is added at the end; an existing
// one keeps its position.
func (o *Object) Set(key string, v any) {
	if i := o.indexOf(key); i >= 0 {
		o.Members[i].Value = v
		return
	}
	o.Members = append(o.Members, Member{key, v})
	switch {
	case o.index != nil:
		o.index[key] = len(o.Members) - 1
	case len(o.Members) > indexAbove:
		o.rebuildIndex()
	}
}

// Delete removes a member and reports whether it was there. The others keep
// their order.
func (o *Object) Delete(key string) bool {
	i := o.indexOf(key)
	if i < 0 {
		return false
	}
	o.Members = append(o.Members[:i], o.Members[i+1:]...)
	if o.index != nil {
		o.rebuildIndex()
	}
	return true
}

// All yields the members in order.
func (o *Object) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		if o == nil {
			return
		}
		for _, m := range o.Members {
			if !yield(m.Key, m.Value) {
				return
			}
		}
	}
}

// Clone returns an object with the same members that can be changed without
// changing o. The values are shared.
func (o *Object) Clone() *Object {
	c := &Object{}
	if o == nil {
		return c
	}
	c.Members = append(make([]Member, 0, len(o.Members)), o.Members...)
	if len(c.Members) > indexAbove {
		c.rebuildIndex()
	}
	return c
}

// MarshalJSON writes the members in order. It fails for a value that is not a
// state value.
func (o *Object) MarshalJSON() ([]byte, error) { return Append(nil, o) }

// UnmarshalJSON reads an object and keeps the order of its members.
func (o *Object) UnmarshalJSON(data []byte) error {
	v, err := Parse(data)
	if err != nil {
		return err
	}
	read, ok := v.(*Object)
	if !ok {
		return &SyntaxError{Line: 1, Column: 1, Reason: "expected an object, got " + TypeName(v)}
	}
	*o = *read
	return nil
}

func (o *Object) indexOf(key string) int {
	if o == nil {
		return -1
	}
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.Members {
		if o.Members[i].Key == key {
			return i
		}
	}
	return -1
}

func (o *Object) rebuildIndex() {
	o.index = make(map[string]int, len(o.Members)+len(o.Members)/2)
	for i := range o.Members {
		o.index[o.Members[i].Key] = i
	}
}
