package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// staying is a graph of one node whose effect waits until it may go on.
func staying(wait func()) (*graph.Graph, error) {
	return graph.Compile(graph.Def{Name: "staying", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(ctx, "effect", func(context.Context) (int, error) { wait(); return 1, nil })
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}}})
}

// stayRole drives a run that does not end.
func stayRole(path, _ string) error {
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	g, err := staying(func() {
		fmt.Println("in the effect")
		time.Sleep(time.Hour)
	})
	if err != nil {
		return err
	}
	_, err = (&graph.Runner{Graph: g, Store: s}).Invoke(context.Background(), graph.Input{Thread: "t"})
	return err
}

// A run that another process drives is busy; once that process is killed the run has
// crashed, at once, even before anybody has waited for the process.
func TestTheLeaseOfAKilledProcess(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		t.Skip("whether a process has ended is not known on this system: its lease expires")
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	g, err := staying(func() {})
	if err != nil {
		t.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: s}
	for round := range 3 {
		if err := s.Prune(t.Context(), "t", 1<<30); err != nil {
			t.Fatal(err)
		}
		c := spawn(t, "stay", path)
		c.says(t, "in the effect")
		_, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		var busy *graph.BusyError
		if !errors.As(err, &busy) {
			t.Fatalf("round %d: while it is driven: %v", round, err)
		}
		if _, pid, ok := busy.Lease.Holder(); !ok || pid != c.cmd.Process.Pid || !strings.Contains(err.Error(), fmt.Sprint("process ", pid)) {
			t.Errorf("%v; want process %d", err, c.cmd.Process.Pid)
		}
		if i := listed(t, s); i.Status != graph.Running {
			t.Errorf("while it is driven it is %v", i.Status)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); listed(t, s).Status != graph.Crashed; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after kill -9 it is %v", listed(t, s).Status)
			}
		}
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if err != nil || res.Status != graph.Done {
			t.Errorf("after kill -9: %v, %v", res.Status, err)
		}
		_ = c.cmd.Wait() // it was killed
	}
}

func listed(t *testing.T, s graph.Store) (i graph.RunInfo) {
	t.Helper()
	for info, err := range s.Threads(t.Context(), "") {
		if err == nil {
			i, err = graph.Describe(info)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return i
}
