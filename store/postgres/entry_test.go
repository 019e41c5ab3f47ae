//go:build unix

package postgres_test

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"testing"

	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/memory"
	"raddle.dev/memory/memorytest"
)

func TestExtraEntries(t *testing.T) {
	t.Parallel()
	memorytest.TestStore(t, func(t *testing.T) memory.Store { return open(t, pgtest.NewDatabase(t)) })
}

func TestExtraDurableEntries(t *testing.T) {
	url := pgtest.NewDatabase(t)
	memorytest.TestDurable(t, func(t *testing.T) memory.Store { return open(t, url) })
}

// The size of a store includes its entries.
func TestExtraSizeOfEntries(t *testing.T) {
	s := open(t, pgtest.NewDatabase(t))
	before, err := s.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const each, count = 200_000, 4
	for i := range count {
		secret := make([]byte, each/2)
		_, _ = rand.Read(secret) // it never fails; what is random is hardly compressed
		value := strconv.Quote(hex.EncodeToString(secret))
		if err := s.PutEntry(t.Context(), memory.Entry{Namespace: "size", Key: strconv.Itoa(i), Value: []byte(value)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Size(t.Context())
	if err != nil || after-before < count*each/4 {
		t.Errorf("the size has grown from %d to %d bytes (%v), by %d entries of %d bytes", before, after, err, count, each)
	}
}
