package storetool

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/testkit/testfile"
)

// Bundles are checked by their hashes, copied with the runs, and counted.
func TestBundles(t *testing.T) {
	ctx, st := t.Context(), journal.NewMemory()
	addRuns(t, st, "a", "b")
	dir := filepath.Join(t.TempDir(), "helper")
	testfile.WriteFiles(t, dir, map[string]string{"config.yaml": "name: helper\n", "docs.txt": strings.Repeat("text ", 1000)})
	b, err := agentbundle.Pack([]agentbundle.Dir{{Name: "helper", Path: dir}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, st); err != nil {
		t.Fatal(err)
	}
	check := func(st journal.Store) CheckResult {
		t.Helper()
		result, err := CheckStore(ctx, st)
		if err != nil || result.Threads != 2 || result.Bundles != 1 {
			t.Errorf("check: %+v, %v", result, err)
		}
		return result
	}
	if faults := check(st).Faults; len(faults) > 0 {
		t.Errorf("it has faults: %+v", faults)
	}
	sizes, err := MeasureStore(ctx, st)
	if err != nil || sizes.Threads != 2 || sizes.Bundles != 1 || !strings.Contains(sizes.Text(), "bundles of agents: 1\n") ||
		!slices.ContainsFunc(sizes.Kinds, func(s Size) bool { return s.Name == "bundle" && s.Records == 2 }) {
		t.Errorf("stats: %+v, %v", sizes, err)
	}

	to := journal.NewMemory()
	for i, want := range []CopyResult{{Threads: 2, Bundles: 1}, {Equal: 3}} {
		done, err := CopyStore(ctx, st, to, "")
		if err != nil || done.Threads != want.Threads || done.Bundles != want.Bundles || done.Equal != want.Equal {
			t.Errorf("copy %d: %+v, %v", i, done, err)
		}
	}
	if faults := check(to).Faults; len(faults) > 0 {
		t.Errorf("the copy has faults: %+v", faults)
	}

	thread := "agent:" + b.Hash
	var recs []journal.Record
	for r, err := range st.Read(ctx, thread, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, r)
	}
	recs[1].Data[len(recs[1].Data)/2] ^= 1
	if err := st.Prune(ctx, thread, 3); err != nil {
		t.Fatal(err)
	}
	if err := st.Append(ctx, thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	if faults := check(st).Faults; len(faults) != 1 || faults[0].Thread != thread {
		t.Errorf("a bundle with another file: %+v", faults)
	}
}
