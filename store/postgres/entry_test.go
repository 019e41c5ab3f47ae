//go:build unix

package postgres_test

import (
	"testing"

	"raddle.dev/internal/pgtest"
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
