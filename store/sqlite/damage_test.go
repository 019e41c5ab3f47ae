package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// told is all that the package graph reads of a thread, as text; and whether all could
// be read.
func told(t *testing.T, path string) (text string, whole bool) {
	s, err := sqlite.Open(path)
	if err != nil {
		return "", false
	}
	defer s.Close()
	var b strings.Builder
	whole = true
	ctx := context.Background()
	for i, err := range s.Threads(ctx, "") {
		var d graph.RunInfo
		if err == nil {
			d, err = graph.Describe(i)
		}
		whole = whole && err == nil
		fmt.Fprintf(&b, "%+v\n", d)
	}
	for e, err := range graph.History(ctx, s, "t") {
		whole = whole && err == nil
		fmt.Fprintf(&b, "%+v\n", e)
	}
	for _, at := range []int64{0, 5, 9} {
		snap, err := graph.Inspect(ctx, s, "t", at)
		if whole = whole && err == nil; err == nil {
			fmt.Fprintf(&b, "%+v %s\n", snap.RunInfo, snap.Values)
		}
	}
	return b.String(), whole
}

// Whatever byte of a record flips in the file: what is read is an error, or what it was.
func TestADamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.db")
	s := open(t, path)
	text := graph.Append[string]("text")
	n := 0
	g, err := graph.Compile(graph.Def{Name: "g", Keys: []graph.AnyKey{text}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.Do(ctx, "effect", func(context.Context) (string, error) { n++; return fmt.Sprint("value ", n), nil })
		return graph.Put(text.Set([]string{v})), err
	}}}, Edges: []graph.Edge{{From: []string{"a"}, Cases: map[string]string{"a": "a", "end": graph.End}, Pick: func(graph.State) ([]string, error) {
		if n < 8 {
			return []string{"a"}, nil
		}
		return []string{"end"}, nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&graph.Runner{Graph: g, Store: s}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Prune(t.Context(), s, "t", graph.Keep{Records: 100}); err != nil { // writes a snapshot
		t.Fatal(err)
	}
	if err := graph.Fork(t.Context(), s, "t", 7, "u"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want, whole := told(t, path)
	if !whole {
		t.Fatal(want)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, last := strings.Index(string(good), "effect"), strings.LastIndex(string(good), "value 8")
	if first < 0 || last < first {
		t.Fatal("the records are not in the file as they are")
	}
	r := rand.New(rand.NewPCG(1, 2))
	noticed, same := 0, 0
	for i := range 800 {
		at, bit := first+r.IntN(last-first), r.IntN(8)
		if i%2 == 1 { // anywhere
			at = r.IntN(len(good))
		}
		bad := append([]byte(nil), good...)
		if i > 0 { // the first is the control
			bad[at] ^= 1 << bit
		}
		damaged := filepath.Join(dir, "damaged.db")
		if err := os.WriteFile(damaged, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		switch got, whole := told(t, damaged); {
		case !whole && i == 0:
			t.Fatalf("a copy of the file cannot be read: %s", got)
		case !whole:
			noticed++
		case got == want:
			same++
		default:
			t.Errorf("byte %d, bit %d: read as\n%s\nwant\n%s", at, bit, got, want)
		}
		for _, log := range []string{"-wal", "-shm"} {
			_ = os.Remove(damaged + log)
		}
	}
	if t.Logf("%d noticed, %d without consequence", noticed, same); noticed < 100 {
		t.Errorf("only %d of 800 were noticed", noticed)
	}
}
