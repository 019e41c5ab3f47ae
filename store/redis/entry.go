package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	client "github.com/redis/go-redis/v9"
	"raddle.dev/memory"
)

var (
	_ memory.Store = (*Store)(nil)
	_ memory.Adder = (*Store)(nil)
)

// Keys of entries. The name of an entry is its namespace, a zero byte and its key: as neither has
// a zero byte, the names are sorted as memory.Store asks.
const (
	keyEntries  = tag + "entries" // sorted set: the names of entries, also of some that have expired
	prefixEntry = tag + "e:"      // hash: updated, expires, model, value, vector; the server removes it when it expires
)

// nameEntry returns the name of an entry.
func nameEntry(namespace, key string) string { return namespace + "\x00" + key }

// putScript writes an entry. KEYS: entry, entries, format. ARGV: the format, the name, the time
// to live in microseconds or 0, the model, the value, the vector, and "add" to leave an entry as it
// is that is there. The result is "ok" or "format".
var putScript = client.NewScript(`
local found = redis.call('GET', KEYS[3])
if found and found ~= ARGV[1] then return 'format' end
if ARGV[7] == 'add' and redis.call('EXISTS', KEYS[1]) == 1 then return 'ok' end
local t = redis.call('TIME')
local now, ttl = t[1] * 1000000 + t[2], tonumber(ARGV[3])
redis.call('SET', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'updated', string.format('%.0f', now), 'expires', ttl > 0 and string.format('%.0f', now + ttl) or '0',
	'model', ARGV[4], 'value', ARGV[5], 'vector', ARGV[6])
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.floor(ttl / 1000))) end
return 'ok'
`)

// removeScript deletes an entry. KEYS: entry, entries. ARGV: the name. The result is how many there were.
var removeScript = client.NewScript(`
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
`)

// entriesScript reads a page of entries. KEYS: entries. ARGV: the bounds of the names, how many,
// the prefix of the keys of entries, the bytes after which a page ends. The result has, for each
// name, the name, updated, expires, model, value and vector. Of an entry that has expired there
// is only the name, updated is "", and the name is removed from the set.
var entriesScript = client.NewScript(`
local reply, bytes = {}, 0
for _, name in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
	local m = redis.call('HMGET', ARGV[4] .. name, 'updated', 'expires', 'model', 'value', 'vector')
	local n = #reply
	reply[n + 1] = name
	for i = 1, 5 do reply[n + 1 + i] = m[i] or '' end
	bytes = bytes + #reply[n + 5] + #reply[n + 6]
	if not m[1] then redis.call('ZREM', KEYS[1], name) end
	if bytes >= tonumber(ARGV[5]) then break end
end
return reply
`)

// PutEntry implements memory.Store. The clock of the server counts.
func (s *Store) PutEntry(ctx context.Context, e memory.Entry, ttl time.Duration) error {
	e, err := memory.CheckEntry(e, ttl)
	if err != nil {
		return err
	}
	return s.writeEntry(ctx, &e, ttl, "")
}

// AddEntry implements memory.Adder.
func (s *Store) AddEntry(ctx context.Context, e memory.Entry, ttl time.Duration) error {
	e, err := memory.CheckEntry(e, ttl)
	if err != nil {
		return err
	}
	return s.writeEntry(ctx, &e, ttl, "add")
}

// writeEntry writes an entry that was checked, as putScript says.
func (s *Store) writeEntry(ctx context.Context, e *memory.Entry, ttl time.Duration, how string) error {
	name := nameEntry(e.Namespace, e.Key)
	result, err := s.runScript(ctx, putScript, []string{prefixEntry + name, keyEntries, keyFormat}, format, name, ttl.Microseconds(), e.Model, []byte(e.Value), memory.EncodeVector(e.Vector), how)
	if err == nil && result != "ok" {
		err = errFormat
	}
	return s.explainError(fmt.Sprintf("write the entry %q of %q", e.Key, e.Namespace), err)
}

// DeleteEntry implements memory.Store. If the connection was lost after the server had deleted
// the entry, the result is memory.ErrNotFound too.
func (s *Store) DeleteEntry(ctx context.Context, namespace, key string) error {
	name := nameEntry(namespace, key)
	result, err := s.runScript(ctx, removeScript, []string{prefixEntry + name, keyEntries}, name)
	if err != nil {
		return s.explainError(fmt.Sprintf("delete the entry %q of %q", key, namespace), err)
	}
	if n, ok := result.(int64); ok && n == 0 {
		return memory.ErrNotFound
	}
	return nil
}

// GetEntry implements memory.Store.
func (s *Store) GetEntry(ctx context.Context, namespace, key string) (memory.Entry, error) {
	name := nameEntry(namespace, key)
	page, _, err := s.readEntries(ctx, "["+name, "["+name)
	switch {
	case err != nil:
		return memory.Entry{}, s.explainError(fmt.Sprintf("read the entry %q of %q", key, namespace), err)
	case len(page) == 0:
		return memory.Entry{}, memory.ErrNotFound
	}
	return page[0], nil
}

// ListEntries implements memory.Store. It reads a page at a time.
func (s *Store) ListEntries(ctx context.Context, namespace string) iter.Seq2[memory.Entry, error] {
	return func(yield func(memory.Entry, error) bool) {
		// The character after / is 0. Between a namespace and those below it are others, such as a-b after a.
		from := "[" + nameEntry(namespace, "")
		to := "(" + namespace + "0"
		if namespace == "" {
			from = "-"
			to = "+"
		}
		for {
			page, last, err := s.readEntries(ctx, from, to)
			if err != nil {
				yield(memory.Entry{}, s.explainError(fmt.Sprintf("list the entries of %q", namespace), err))
				return
			}
			for _, e := range page {
				if memory.IsWithin(namespace, e.Namespace) && !yield(e, nil) {
					return
				}
			}
			if last == "" {
				return
			}
			from = "(" + last
		}
	}
}

// readEntries reads the first entries of a range of names, and returns the last name that it has
// looked at; "" at the end.
func (s *Store) readEntries(ctx context.Context, from, to string) (page []memory.Entry, last string, err error) {
	value, err := s.runScript(ctx, entriesScript, []string{keyEntries}, from, to, pageRecords, prefixEntry, pageBytes)
	if err != nil {
		return nil, "", err
	}
	r := newReply(value)
	for r.err == nil && len(r.values) > 0 {
		last = r.takeText()
		updated := r.takeText()
		expires := r.takeText()
		model := r.takeText()
		value := r.takeText()
		vector := r.takeText()
		if updated == "" {
			continue
		}
		e := memory.Entry{Updated: parseTime(updated), Expires: parseTime(expires), Model: model, Value: []byte(value), Vector: memory.DecodeVector([]byte(vector))}
		var ok bool
		if e.Namespace, e.Key, ok = strings.Cut(last, "\x00"); !ok {
			return nil, "", errors.New("another program has changed the keys of entries: restore the database from a copy")
		}
		page = append(page, e)
	}
	return page, last, r.err
}

// parseTime returns the time of a number of microseconds; zero for 0.
func parseTime(micros string) time.Time {
	var n int64
	if _, err := fmt.Sscan(micros, &n); err != nil || n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}
