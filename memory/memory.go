// Package memory keeps values that outlive a run: JSON values with a namespace and a key,
// which may expire, and which a search finds by their words and by their meaning.
//
// A namespace is a path, such as user/ada or app/triage. [JoinPath] makes one of any texts. What
// is listed or searched in a namespace is what it holds itself and what the namespaces below
// it hold; user/ada does not contain user/adam. A caller that gives each person a namespace
// of their own and uses no other therefore never shows the values of one to another.
//
// [Store] is what keeps entries. [New] keeps them in this process; the packages below store/
// keep them beside the journals of runs. The suite for a Store is memory/memorytest.
package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of an entry.
const (
	MaxNamespace = 1 << 10   // bytes
	MaxKey       = 512       // bytes
	MaxValue     = 256 << 10 // bytes of JSON, without the spaces between its parts
	MaxVector    = 1 << 14   // numbers
)

// MaxTTL is the longest time to live: 100 years.
const MaxTTL = 100 * 365 * 24 * time.Hour

// ErrNotFound says that there is no entry, or that it has expired.
var ErrNotFound = errors.New("there is no such entry")

// An Entry is a value with its place.
type Entry struct {
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`

	// Model is the name of the embedding model of Vector; empty: there is no vector.
	Model string `json:"model,omitempty"`

	// Vector is the meaning of the entry by Model; nil without a model.
	Vector []float32 `json:"-"`

	// Updated is when the entry was written, and Expires when it ends, zero if it does not. Both
	// are times of the clock of the store; PutEntry ignores them.
	Updated time.Time `json:"updated,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// A Store keeps entries. It is safe for concurrent use, also by other processes if it is on
// a disk or a server. The times of entries have at least the precision of a millisecond.
type Store interface {
	// PutEntry writes an entry, and replaces the one with its namespace and key. The entry expires
	// after ttl by the clock of the store, or never if ttl is 0. What [CheckEntry] refuses is not
	// written. When PutEntry returns nil, the entry is stored as durably as the store can.
	PutEntry(ctx context.Context, e Entry, ttl time.Duration) error

	// GetEntry returns an entry, or ErrNotFound.
	GetEntry(ctx context.Context, namespace, key string) (Entry, error)

	// DeleteEntry removes an entry. It returns ErrNotFound if there was none.
	DeleteEntry(ctx context.Context, namespace, key string) error

	// ListEntries yields the entries of a namespace and of those below it, without those that have
	// expired. The order is that of the bytes of namespaces, then of keys. An empty namespace
	// contains all others. The consumer may use the Store. The iteration ends after its first error.
	ListEntries(ctx context.Context, namespace string) iter.Seq2[Entry, error]
}

// Adder may be implemented by a Store that can write an entry unless there is one, so that one of
// several processes has it. The stores of this module do.
type Adder interface {
	// AddEntry is PutEntry, but it leaves an entry as it is that is there already: GetEntry says
	// which one the store has then.
	AddEntry(ctx context.Context, e Entry, ttl time.Duration) error
}

// JoinPath returns the namespace with the given parts, from the top. Any text is a part: what a
// part of a path cannot contain is written with percent signs.
func JoinPath(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return strings.Join(escaped, "/")
}

// SplitPath returns the parts of a namespace that JoinPath has made.
func SplitPath(namespace string) []string {
	if namespace == "" {
		return nil
	}
	parts := strings.Split(namespace, "/")
	for i, part := range parts {
		if text, err := url.PathUnescape(part); err == nil {
			parts[i] = text
		}
	}
	return parts
}

// IsWithin reports whether a namespace is another one or above it.
func IsWithin(namespace, other string) bool {
	rest, ok := strings.CutPrefix(other, namespace)
	return ok && (namespace == "" || rest == "" || rest[0] == '/')
}

// CheckEntry returns the entry with its value in compact form, or an error that says why it cannot
// be stored. Stores call it in PutEntry.
func CheckEntry(e Entry, ttl time.Duration) (Entry, error) {
	if err := CheckPlace(e.Namespace, e.Key); err != nil {
		return e, err
	}
	var value bytes.Buffer
	switch err := json.Compact(&value, e.Value); {
	case err != nil:
		return e, fmt.Errorf("memory: the value of %q is not JSON: %w", e.Key, err)
	case !utf8.Valid(value.Bytes()):
		return e, fmt.Errorf("memory: the value of %q is not UTF-8", e.Key)
	case value.Len() > MaxValue:
		return e, fmt.Errorf("memory: the value of %q has %d bytes, and %d are allowed: save less of it", e.Key, value.Len(), MaxValue)
	case len(e.Vector) > MaxVector || len(e.Vector) > 0 != (e.Model != "") || len(e.Model) > MaxKey:
		return e, fmt.Errorf("memory: the vector of %q needs a model, and at most %d numbers", e.Key, MaxVector)
	case ttl < 0 || ttl > MaxTTL || ttl != 0 && ttl < time.Millisecond:
		return e, fmt.Errorf("memory: %v is not a time to live: it is 0 for ever, or a millisecond to 100 years", ttl)
	}
	e.Value = value.Bytes()
	return e, nil
}

// CheckPlace returns an error if a namespace or a key cannot be used.
func CheckPlace(namespace, key string) error {
	switch {
	case namespace == "" || len(namespace) > MaxNamespace:
		return fmt.Errorf("memory: a namespace has 1 to %d bytes, not %d", MaxNamespace, len(namespace))
	case strings.HasPrefix(namespace, "/") || strings.HasSuffix(namespace, "/") || strings.Contains(namespace, "//"):
		return fmt.Errorf("memory: the namespace %q has an empty part", namespace)
	case !isPlain(namespace):
		return fmt.Errorf("memory: the namespace %q has control characters or is not UTF-8: memory.JoinPath escapes them", namespace)
	case key == "" || len(key) > MaxKey:
		return fmt.Errorf("memory: a key has 1 to %d bytes, not %d", MaxKey, len(key))
	case !isPlain(key):
		return fmt.Errorf("memory: the key %q has control characters or is not UTF-8", key)
	}
	return nil
}

// isPlain reports whether a text is UTF-8 without control characters.
func isPlain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// EncodeVector returns a vector as bytes, for stores.
func EncodeVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// DecodeVector returns the vector that EncodeVector has written.
func DecodeVector(b []byte) []float32 {
	var v []float32
	for ; len(b) >= 4; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return v
}

// UserNamespace returns the namespace of a person. Without a name it is that of all runs for
// which no user is known.
func UserNamespace(user string) string {
	if user == "" {
		return "local"
	}
	return JoinPath("user", user)
}

// AppNamespace returns the namespace of an application, for all its users.
func AppNamespace(name string) string { return JoinPath("app", name) }

// ParseValue returns a text as JSON: as it is, if it is an object, an array, a number, true, false
// or null, and otherwise as a JSON string.
func ParseValue(text string) json.RawMessage {
	if trimmed := strings.TrimSpace(text); json.Valid([]byte(trimmed)) && !strings.HasPrefix(trimmed, `"`) {
		return json.RawMessage(trimmed)
	}
	value, _ := json.Marshal(strings.ToValidUTF8(text, "\uFFFD")) // a text always has a JSON form
	return value
}

// ReadEntries returns all entries of a namespace, in the order of ListEntries.
func ReadEntries(ctx context.Context, st Store, namespace string) ([]Entry, error) {
	entries := []Entry{}
	for e, err := range st.ListEntries(ctx, namespace) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// ListNewest returns the entries of a namespace, the newest first and at most limit.
func ListNewest(ctx context.Context, st Store, namespace string, limit int) ([]Entry, error) {
	entries, err := ReadEntries(ctx, st, namespace)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.Updated.Compare(a.Updated) })
	return entries[:min(limit, len(entries))], nil
}

// CopyEntries writes the entries of a store into another one, with the time that they have left. An entry of the other
// store that was written later stays. It returns how many were written.
func CopyEntries(ctx context.Context, from, to Store) (int, error) {
	written := 0
	for e, err := range from.ListEntries(ctx, "") {
		if err != nil {
			return written, err
		}
		there, err := to.GetEntry(ctx, e.Namespace, e.Key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return written, err
		}
		if err == nil && !there.Updated.Before(e.Updated) {
			continue
		}
		var ttl time.Duration
		if !e.Expires.IsZero() {
			if ttl = time.Until(e.Expires); ttl < time.Millisecond {
				continue
			}
		}
		if err := to.PutEntry(ctx, e, ttl); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}
