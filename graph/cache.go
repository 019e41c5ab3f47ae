package graph

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"raddle.dev/graph/internal/ringcache"
)

// CacheKey returns the prefix of the keys under which a node's updates are cached, for
// Cache.Clear. If node is "", it is the prefix of the whole graph.
func CacheKey(graph, node string) string {
	if node == "" {
		return graph + "/"
	}
	return graph + "/" + node + "/"
}

// runWithCache returns the node's update from the cache, or runs the node.
func (a attempt) runWithCache(ctx context.Context, st State) (u Update, err error) {
	store, p := a.drive.settings.Cache, a.node().Cache
	if store == nil || p == nil {
		return a.callNode(ctx, st)
	}
	key, err := a.cacheKey(st)
	if err != nil {
		return u, err
	}
	b, found, err := store.Get(ctx, key)
	if err != nil {
		return u, fmt.Errorf("cache: %w", err)
	}
	if found {
		if u, err = st.decodeUpdate(b); err != nil {
			return u, fmt.Errorf("cache: %w", err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.hit = a.checkNotHungLocked() == nil
		return u, nil
	}
	if u, err = a.callNode(ctx, st); err != nil || a.isSuspended() {
		return u, err
	}
	if b, err = encodeUpdate(&u); err != nil {
		return u, err
	}
	if err = store.Set(ctx, key, b, p.TTL); err != nil {
		return u, fmt.Errorf("cache: %w", err)
	}
	return u, nil
}

// cacheKey identifies the node, its graph, its version and its input.
func (a attempt) cacheKey(st State) (string, error) {
	n, h := a.node(), sha256.New()
	put := func(b []byte, present bool) {
		var head [9]byte
		binary.BigEndian.PutUint64(head[:], uint64(len(b)))
		if present {
			head[8] = 1
		}
		_, _ = h.Write(head[:]) // a hash never fails
		_, _ = h.Write(b)
	}
	put([]byte(a.frame.g.digest), true) // graphs of one name, and versions of one, share nothing
	put([]byte(n.Cache.Version), true)
	for _, k := range n.Cache.Keys {
		d := k.def()
		i := st.t.findSlot(d)
		if i < 0 || st.v[i] == nil {
			put([]byte(d.name), false)
			continue
		}
		b, err := d.encodeStored(nil, st.v[i])
		if err != nil {
			return "", err
		}
		put([]byte(d.name), true)
		put(b, true)
	}
	return CacheKey(a.frame.g.def.Name, n.Name) + hex.EncodeToString(h.Sum(nil)), nil
}

// MemoryCache is a Cache in memory. When it is full it removes the oldest entries. The
// zero value is ready to use.
type MemoryCache struct {
	// Max is the largest number of entries. If 0, it is 10,000.
	Max int

	// Clock decides when an entry has expired. If nil, it is the wall clock.
	Clock Clock

	kept ringcache.Cache
}

func (c *MemoryCache) now() time.Time {
	if c.Clock == nil {
		return time.Now()
	}
	return c.Clock.Now()
}

// Get implements Cache.
func (c *MemoryCache) Get(_ context.Context, key string) ([]byte, bool, error) {
	value, found := c.kept.Get(key, c.now())
	return value, found, nil
}

// Set implements Cache.
func (c *MemoryCache) Set(_ context.Context, key string, value []byte, ttl time.Duration) error {
	var expires time.Time
	if ttl > 0 {
		expires = c.now().Add(ttl)
	}
	c.kept.Set(key, value, expires, c.Max)
	return nil
}

// Clear implements Cache.
func (c *MemoryCache) Clear(_ context.Context, prefix string) error {
	c.kept.Clear(prefix)
	return nil
}
