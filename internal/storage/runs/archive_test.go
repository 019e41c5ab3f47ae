package runs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
)

var (
	place  = graph.Last[string]("place")
	packed = graph.Append[string]("packed")
)

// compileOuting returns a graph with two steps, whose runs were not started by the command line.
func compileOuting(t *testing.T) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(graph.Def{
		Name: "outing",
		Keys: []graph.AnyKey{place, packed},
		Nodes: []graph.Node{
			{Name: "choose", Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Put(place.Set("lake"), packed.Set([]string{"towel"})), nil
			}},
			{Name: "pack", Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Put(packed.Set([]string{"sandwich"})), nil
			}},
		},
		Edges: []graph.Edge{{From: []string{"choose"}, To: []string{"pack"}}, {From: []string{"pack"}, To: []string{graph.End}}},
		Start: []string{"choose"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newOutings returns an archive with two runs, in a file.
func newOutings(t *testing.T) *Archive {
	t.Helper()
	a := NewArchive(config.Dirs{State: filepath.Join(t.TempDir(), "state")}, "")
	t.Cleanup(func() { _ = a.Close() })
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	r := &graph.Runner{Graph: compileOuting(t), Store: st.Store}
	for _, id := range []string{"run-1", "run-2"} {
		for _, err := range r.Run(t.Context(), graph.Input{Run: id, Thread: id}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return a
}

func listIDs(t *testing.T, a *Archive) (ids []string) {
	t.Helper()
	list, err := a.ListRuns(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		ids = append(ids, i.Run+" "+i.Status)
	}
	return ids
}

// Any program's runs can be listed, compared, copied and removed: that needs the store only.
func TestArchive(t *testing.T) {
	a := newOutings(t)
	if got, want := listIDs(t, a), []string{"run-2 done", "run-1 done"}; !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	points, err := a.ListCheckpoints(t.Context(), "run-1")
	if err != nil || len(points) < 2 {
		t.Fatalf("%+v, %v", points, err)
	}
	first := points[len(points)-1]
	from, to, changes, err := a.DiffPoints(t.Context(), Point{"run-1", first.At}.String(), "run-1")
	if err != nil || from.At != first.At || to.Run != "run-1" {
		t.Fatalf("%v to %v, %v", from, to, err)
	}
	got := map[string]string{}
	for _, c := range changes {
		got[c.Key] = string(c.Is)
	}
	if got["place"] != `"lake"` || got["packed"] != `["towel","sandwich"]` {
		t.Errorf("changes %v", got)
	}
	authors, err := a.BlameKey(t.Context(), "run-1", "packed")
	if err != nil || len(authors) != 2 || !slices.Equal(authors[0].Nodes, []string{"pack"}) || !slices.Equal(authors[1].Nodes, []string{"choose"}) {
		t.Errorf("%+v, %v", authors, err)
	}
	id, origin, err := a.ForkRun(t.Context(), Point{"run-1", first.At}.String(), ForkChanges{})
	if err != nil || origin != (Point{"run-1", first.At}) {
		t.Fatalf("%v, %v", origin, err)
	}
	d, err := a.ReadRunDetail(t.Context(), id)
	if err != nil || d.Record != nil || d.From == nil || *d.From != origin {
		t.Errorf("%+v, %v", d, err)
	}
	list, depths, err := a.ListRunTree(t.Context(), 0)
	if err != nil || len(list) != 3 || !slices.Equal(depths, []int{0, 0, 1}) || list[2].Run != id {
		t.Errorf("%+v %v, %v", list, depths, err)
	}
	if _, err := a.RemoveRun(t.Context(), "run-2"); err != nil {
		t.Error(err)
	}
	if got := listIDs(t, a); len(got) != 2 || slices.Contains(got, "run-2 done") {
		t.Errorf("after the removal: %v", got)
	}
}

func TestArchiveMistakes(t *testing.T) {
	a := newOutings(t)
	detail := func(point string) error { _, err := a.ReadRunDetail(t.Context(), point); return err }
	_, blame := a.BlameKey(t.Context(), "run-1", "plcae")
	_, _, fork := a.ForkRun(t.Context(), "run-1", ForkChanges{})
	tests := map[string]struct {
		err        error
		kind       failure.Kind
		text, next string
	}{
		"no such run":        {detail("zz"), failure.Stale, `unknown run "zz"`, "raddle runs ls"},
		"several runs":       {detail("run"), failure.Stale, "matches several runs: run-1, run-2", "type more"},
		"no such checkpoint": {detail("run-1@999"), failure.Stale, "no checkpoint @999", "its checkpoints are @"},
		"no number":          {detail("run-1@x"), failure.Usage, "names no checkpoint", "runs show run-1"},
		"no such key":        {blame, failure.Usage, `nothing has written the key "plcae"`, "did you mean place?"},
		"a copy of the end":  {fork, failure.Stale, "is over (done)", "fork it at an earlier checkpoint"},
	}
	for name, test := range tests {
		e, ok := errors.AsType[*failure.Error](test.err)
		if !ok || e.Kind != test.kind || !strings.Contains(e.Error(), test.text) || !strings.Contains(e.Next, test.next) {
			t.Errorf("%s: %+v", name, test.err)
		}
	}
}

// Reading runs creates nothing where none were started.
func TestArchiveWithoutAStore(t *testing.T) {
	dirs := config.Dirs{State: filepath.Join(t.TempDir(), "state")}
	a := NewArchive(dirs, "")
	if got := listIDs(t, a); got != nil {
		t.Errorf("runs %v", got)
	}
	if _, err := a.ReadRunDetail(t.Context(), "r"); err == nil {
		t.Error("a run is found")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dirs.State); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of state: %v", err)
	}
	bad := NewArchive(dirs, "rediss:x")
	if _, err := bad.ListRuns(t.Context(), ""); err == nil || bad.KeepsRuns() || bad.LockDir() != "" || bad.StoreURL() != "rediss:x" {
		t.Errorf("%v, %v, %q, %q", err, bad.KeepsRuns(), bad.LockDir(), bad.StoreURL())
	}
}
