//go:build unix

package storetool

import (
	"path/filepath"
	"reflect"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/internal/testkit/redistest"
)

// Runs move from a file to Postgres, to Redis and back to a file; each copy is equal and can be continued.
func TestExtraCopyBetweenServers(t *testing.T) {
	dirs := config.Dirs{Work: t.TempDir(), State: t.TempDir()}
	first := openFile(t)
	addRuns(t, first, "a", "b")
	var from journal.Store = first
	for _, url := range []string{pgtest.NewDatabase(t), redistest.Start(t).URL, "sqlite:" + filepath.Join(dirs.Work, "last.db")} {
		to, at, err := CreateStore(url, dirs)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.Close() })
		if got, err := CopyStore(t.Context(), from, to, ""); err != nil || got.Threads != 2 {
			t.Fatalf("%s: %+v %v", at.Place(), got, err)
		}
		if a, b := readAll(t, first), readAll(t, to); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: the copy differs", at.Place())
		}
		if got, err := CheckStore(t.Context(), to); err != nil || len(got.Faults) > 0 {
			t.Errorf("%s: %+v %v", at.Place(), got, err)
		}
		if got, err := MeasureStore(t.Context(), to); err != nil || got.Records == 0 {
			t.Errorf("%s: %+v %v", at.Place(), got, err)
		}
		from = to
	}
	r := &graph.Runner{Graph: compileCount(t), Store: from}
	if res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "a", Answers: []graph.Answer{{Value: "Ada"}}}); err != nil || res.Status != graph.Done {
		t.Errorf("%v %v", res.Status, err)
	}
}
