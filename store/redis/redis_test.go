package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/store/redis"
)

// open opens a store that the end of the test closes.
func open(t testing.TB, url string) *redis.Store {
	t.Helper()
	s, err := redis.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// database returns the URL of a database of the server.
func database(s *redistest.Server, n int64) string { return s.URL[:len(s.URL)-1] + fmt.Sprint(n) }

func TestExtraStore(t *testing.T) {
	server := redistest.Start(t, "--databases", "10000")
	var last atomic.Int64
	graphtest.TestStore(t, func(t *testing.T) journal.Store { return open(t, database(server, last.Add(1))) })
}

// Each place is the directory of a server, so that the suite searches what the server has written.
func TestExtraDurable(t *testing.T) {
	servers := map[string]*redistest.Server{}
	graphtest.TestDurable(t, func(t *testing.T, place string) journal.Store {
		if servers[place] == nil {
			servers[place] = redistest.StartIn(t, place)
		}
		return open(t, servers[place].URL)
	})
}
