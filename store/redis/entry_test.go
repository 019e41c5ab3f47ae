package redis_test

import (
	"sync/atomic"
	"testing"

	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/memory"
	"raddle.dev/memory/memorytest"
)

func TestExtraEntries(t *testing.T) {
	server := redistest.Start(t, "--databases", "100")
	var last atomic.Int64
	memorytest.TestStore(t, func(t *testing.T) memory.Store { return open(t, database(server, last.Add(1))) })
}

// The server is killed between the two.
func TestExtraDurableEntries(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "always")
	started := false
	memorytest.TestDurable(t, func(t *testing.T) memory.Store {
		if started {
			server.Kill()
			server.Restart(t)
		}
		started = true
		return open(t, server.URL)
	})
}
