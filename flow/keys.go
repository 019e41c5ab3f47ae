package flow

import (
	"sync"

	"raddle.dev/graph"
)

// valueCodec stores values of the state as compact JSON.
var valueCodec = graph.Codec[any]{
	Tag:    "json",
	Encode: AppendJSON,
	Decode: func(b []byte) (any, error) { return ParseJSON(b) },
}

// keyring makes the keys of a graph by name. Scripts write names that nobody
// declared, so there is no list of them.
type keyring struct {
	file *File
	mu   sync.Mutex
	keys map[string]graph.Key[any]
}

// mostKeys bounds what a keyring remembers; a key can always be made again.
const mostKeys = 1000

func (r *keyring) key(name string) graph.Key[any] {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.keys[name]
	if !ok {
		k = newStateKey(name, reducers[r.file.Reducer(name)])
		if r.keys == nil {
			r.keys = map[string]graph.Key[any]{}
		}
		if len(r.keys) < mostKeys {
			r.keys[name] = k
		}
	}
	return k
}

func (r *keyring) open(name string) graph.AnyKey { return r.key(name) }

func newStateKey(name string, reduce reduceFunc) graph.Key[any] {
	if reduce == nil {
		return graph.Dyn(name).Codec(valueCodec)
	}
	return graph.Fold(name, func(old any, present bool, incoming any) (any, error) {
		return reduce(old, present, incoming)
	}).Codec(valueCodec)
}

// StateJSON is a state as one compact JSON object, sorted by key.
func StateJSON(s graph.State) []byte { return appendState(nil, s) }

func appendState(b []byte, s graph.State) []byte {
	b = append(b, '{')
	for i, name := range s.Keys() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
		v, _ := s.Value(name)
		encoded, err := AppendJSON(b, v)
		if err != nil { // a value of another package's key
			encoded = append(b, "null"...)
		}
		b = encoded
	}
	return append(b, '}')
}

// StoredJSON is StateJSON for values as a journal holds them.
func StoredJSON(values []graph.Stored) []byte {
	b := []byte{'{'}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, v.Key), ':')
		b = append(b, v.Parts[len(v.Parts)-1]...)
	}
	return append(b, '}')
}
