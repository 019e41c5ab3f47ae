package redis_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	client "github.com/redis/go-redis/v9"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/redistest"
)

// A thread of which keys were lost is still listed, and it alone cannot be described or read.
func TestExtraLostKeys(t *testing.T) {
	server := redistest.Start(t, "--databases", "100")
	options, err := client.ParseURL(database(server, 0))
	if err != nil {
		t.Fatal(err)
	}
	raw := client.NewClient(options)
	defer func() { _ = raw.Close() }()
	s := open(t, database(server, 0))
	for _, thread := range []string{"a", "b", "c"} {
		if err := journal.Append(t.Context(), s, thread, 0, journal.Record{Kind: journal.KindStart}, journal.Record{Kind: journal.KindStep}); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := raw.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, key := range keys {
		if !strings.HasSuffix(key, "b") {
			continue
		}
		saved, err := raw.Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		lost++
		t.Run(key, func(t *testing.T) {
			if err := raw.Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
			var names []string
			for info, err := range s.Threads(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, info.Name)
				if info.Name != "b" && (info.First.Seq != 1 || info.Last.Seq != 2 || info.Last.Kind != journal.KindStep) {
					t.Errorf("thread %s: %+v", info.Name, info)
				}
				if _, err := history.Describe(info); info.Name == "b" && !errors.As(err, new(*journal.DamagedError)) {
					t.Errorf("thread b: %v", err)
				}
			}
			if !slices.Equal(names, []string{"c", "b", "a"}) {
				t.Errorf("threads %v, want all three", names)
			}
			for _, thread := range []string{"a", "c"} {
				n := 0
				for _, err := range s.Read(t.Context(), thread, journal.Range{}) {
					if n++; err != nil {
						t.Errorf("thread %s: %v", thread, err)
					}
				}
				if n != 2 {
					t.Errorf("thread %s has %d records", thread, n)
				}
			}
			if err := raw.RestoreReplace(t.Context(), key, 0, saved).Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if lost < 3 {
		t.Errorf("only %d keys of the thread: %v", lost, keys)
	}
}
