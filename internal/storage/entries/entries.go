// Package entries keeps values of Go types next to the journals, as entries of package memory that no agent reaches.
package entries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"raddle.dev/memory"
)

// Root is the top of the namespaces of tables. No memory of users or applications is below it.
const Root = "@raddle"

// A Store is where tables are.
type Store = memory.Store

// A Table has values of a type, by their keys: entries of a namespace below [Root], each with the JSON of a value. It is
// safe for concurrent use, also by several processes.
type Table[T any] struct {
	store     Store
	namespace string
}

// NewTable returns the table at a path below [Root]. It reads and writes nothing.
func NewTable[T any](st Store, path ...string) Table[T] {
	return Table[T]{st, memory.JoinPath(append([]string{Root}, path...)...)}
}

// PutValue writes a value. It is removed after a time to live; 0: never.
func (t Table[T]) PutValue(ctx context.Context, key string, v T, life time.Duration) error {
	e, err := t.newEntry(key, v)
	if err != nil {
		return err
	}
	return t.store.PutEntry(ctx, e, life)
}

// AddValue writes a value unless there is one, and returns the one that is there then. The store must be a [memory.Adder].
func (t Table[T]) AddValue(ctx context.Context, key string, v T, life time.Duration) (stored T, err error) {
	e, err := t.newEntry(key, v)
	if err != nil {
		return stored, err
	}
	adder, ok := t.store.(memory.Adder)
	if !ok {
		return stored, errors.New("this store adds no entries")
	}
	for {
		if err := adder.AddEntry(ctx, e, life); err != nil {
			return stored, err
		}
		stored, ok, err := t.ReadValue(ctx, key)
		if ok || err != nil { // it may have expired or been removed since
			return stored, err
		}
	}
}

// ReadValue returns a value; ok is false if there is none.
func (t Table[T]) ReadValue(ctx context.Context, key string) (v T, ok bool, err error) {
	e, err := t.store.GetEntry(ctx, t.namespace, key)
	if errors.Is(err, memory.ErrNotFound) {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	return v, true, t.decodeValue(&e, &v)
}

// RemoveValue removes a value, and reports whether it was there.
func (t Table[T]) RemoveValue(ctx context.Context, key string) (bool, error) {
	err := t.store.DeleteEntry(ctx, t.namespace, key)
	if errors.Is(err, memory.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ListValues returns the values of the table and of those below it, by path and key. What is no value of the type is left out.
func (t Table[T]) ListValues(ctx context.Context) (list []T, err error) {
	for e, err := range t.store.ListEntries(ctx, t.namespace) {
		if err != nil {
			return nil, err
		}
		var v T
		if json.Unmarshal(e.Value, &v) == nil {
			list = append(list, v)
		}
	}
	return list, nil
}

func (t Table[T]) newEntry(key string, v T) (memory.Entry, error) {
	text, err := json.Marshal(v)
	return memory.Entry{Namespace: t.namespace, Key: key, Value: text}, err
}

func (t Table[T]) decodeValue(e *memory.Entry, v *T) error {
	if err := json.Unmarshal(e.Value, v); err != nil {
		return fmt.Errorf("the entry %q of %s: %w", e.Key, e.Namespace, err)
	}
	return nil
}
