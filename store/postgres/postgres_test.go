//go:build unix

package postgres_test

import (
	"sync"
	"testing"

	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/store/postgres"
)

func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestExtraStore(t *testing.T) {
	t.Parallel()
	graphtest.TestStore(t, func(t *testing.T) journal.Store { return open(t, pgtest.NewDatabase(t)) })
}

func TestExtraDurable(t *testing.T) {
	var mu sync.Mutex
	urls := map[string]string{}
	graphtest.TestDurable(t, func(t *testing.T, place string) journal.Store {
		mu.Lock()
		defer mu.Unlock()
		if urls[place] == "" {
			urls[place] = pgtest.NewDatabase(t)
		}
		return open(t, urls[place])
	})
}
