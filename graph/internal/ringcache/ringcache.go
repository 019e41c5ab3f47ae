// Package ringcache is a cache in memory that removes its oldest entries when it is full.
package ringcache

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Cache keeps values by their keys. The zero value is ready to use, also by several goroutines.
type Cache struct {
	mu      sync.Mutex
	entries map[string]entry
	order   []string // in the order of Set; may name entries that were removed
}

type entry struct {
	value   []byte
	expires time.Time // zero: never
}

// defaultMost is the number of entries of a cache for which no other was chosen.
const defaultMost = 10_000

// Get returns a copy of a value that has not expired now.
func (c *Cache) Get(key string, now time.Time) (value []byte, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if ok && !e.expires.IsZero() && !now.Before(e.expires) {
		delete(c.entries, key)
		ok = false
	}
	if !ok {
		return nil, false
	}
	return append([]byte(nil), e.value...), true
}

// Set stores a copy of a value, until a time if that is not zero. most is the number of entries; 0: 10,000.
func (c *Cache) Set(key string, value []byte, expires time.Time, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most <= 0 {
		most = defaultMost
	}
	if _, known := c.entries[key]; !known {
		for len(c.entries) >= most && len(c.order) > 0 {
			delete(c.entries, c.order[0])
			c.order = c.order[1:]
		}
		c.order = append(c.order, key)
	}
	if c.entries == nil {
		c.entries = map[string]entry{}
	}
	c.entries[key] = entry{bytes.Clone(value), expires}
}

// Clear removes all keys that begin with prefix.
func (c *Cache) Clear(prefix string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = slices.DeleteFunc(c.order, func(key string) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		delete(c.entries, key)
		return true
	})
}
