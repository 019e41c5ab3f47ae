package stores

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
)

func TestParse(t *testing.T) {
	dirs := config.Dirs{Work: "/w", State: "/h/.local/state/raddle", Home: "/h"}
	tests := map[string]struct {
		url, locks string
		kept       bool
	}{
		"":                 {"sqlite:/h/.local/state/raddle/runs.db", "/h/.local/state/raddle/runs.db.locks", true},
		"memory:":          {"memory:", "", false},
		"sqlite:a.db":      {"sqlite:/w/a.db", "/w/a.db.locks", true},
		"sqlite:///a/b.db": {"sqlite:/a/b.db", "/a/b.db.locks", true},
		"sqlite:~/b.db":    {"sqlite:/h/b.db", "/h/b.db.locks", true},

		"redis://ann:hunter2@x":                      {"redis://x:6379/0", "", true},
		"rediss://:hunter2@x:7/3":                    {"rediss://x:7/3", "", true},
		"postgres://host/runs":                       {"postgres://host/runs", "", true},
		"postgresql://ada:pw@host:1/runs":            {"postgres://ada@host:1/runs", "", true},
		"postgres:///runs?host=/tmp&password=pw&a=b": {"postgres:///runs?a=b&host=%2Ftmp", "", true},
	}
	for url, want := range tests {
		l, err := Parse(url, dirs)
		if err != nil {
			t.Errorf("%q: %v", url, err)
			continue
		}
		if l.URL() != want.url || l.LockDir() != want.locks || l.KeepsRuns() != want.kept {
			t.Errorf("%q: %s, %s, %v, want %+v", url, l.URL(), l.LockDir(), l.KeepsRuns(), want)
		}
	}
	faults := map[string][2]string{
		"redis:x": {"not the URL of a Redis server", "correct `store` in config.yaml or RADDLE_STORE"}, "rdis://:hunter2@x": {`the store "rdis://x" begins with an unknown scheme`, "did you mean redis?"},
		"postgres://": {"names no server", "write postgres://USER@HOST:PORT/NAME"}, "postgres:x": {"names no server", "write postgres://USER@HOST:PORT/NAME"},
		"sqlite:": {"names no file", "write sqlite:PATH"}, "sqlte:x": {"unknown scheme", "did you mean sqlite?"}, "x.db": {"unknown scheme", "write sqlite:PATH, postgres://USER@HOST/NAME, redis://HOST or memory:"},
	}
	for url, want := range faults {
		_, err := Parse(url, dirs)
		e, ok := errors.AsType[*failure.Error](err)
		if !ok || e.Kind != failure.Invalid || !strings.Contains(e.Msg, want[0]) || e.Next != want[1] {
			t.Errorf("%q: %+v, want %q", url, err, want)
		}
	}
}

func TestHidePassword(t *testing.T) {
	for url, want := range map[string]string{
		"sqlite:a.db":               "sqlite:a.db",
		"postgres://h/d":            "postgres://h/d",
		"postgres://u:pw@h/d":       "postgres://u@h/d",
		"postgres://u:p/w@h/d":      "postgres://h/d",
		"postgres://u:1/w@h/d":      "postgres://h/d",
		"postgres://u:1?w@h/d":      "postgres://h/d",
		"postgres://u:1#w@h/d":      "postgres://h/d",
		"postgres://u:p%w@h/d?a=b":  "postgres://h/d",
		"postgres://u:p@w@h/d":      "postgres://u@h/d",
		"postgres://u:pw@h:1,i:2/d": "postgres://u@h:1,i:2/d",
		"postgrs://u:pw@h/d?x=y":    "postgrs://u@h/d?x=y",
		"redis://:pw@h":             "redis://h",
		"postgres://h?sslpassword=": "postgres://h",
	} {
		if got := HidePassword(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}

// Every kind that can be opened without a server is a store, wherever its place is.
func TestKinds(t *testing.T) {
	for i := range kinds {
		k := &kinds[i]
		if k.address != nil {
			continue // it needs a server: its own tests start one
		}
		t.Run(k.schemes[0], func(t *testing.T) {
			graphtest.TestStore(t, func(t *testing.T) journal.Store {
				l, err := Parse(k.schemes[0]+":"+filepath.Join(t.TempDir(), "runs.db"), config.Dirs{})
				if err != nil {
					t.Fatal(err)
				}
				if l.Exists() {
					t.Errorf("%s exists before it was opened", l.Place())
				}
				st, err := l.OpenToRead()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = st.Close() })
				if l.Exists() != l.KeepsRuns() {
					t.Errorf("%s exists: %v", l.Place(), l.Exists())
				}
				return st
			})
		})
	}
}
