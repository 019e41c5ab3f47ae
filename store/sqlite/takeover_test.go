package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

// paying is a graph of one node that works as kind says; each effect is a line of the file world,
// which begins with the name of the drive. The old drive also prints it.
func paying(kind, world, drive string) (*graph.Graph, error) {
	do := func(ctx context.Context, name string) error {
		_, err := graph.Do(ctx, name, func(context.Context) (int, error) {
			f, err := os.OpenFile(world, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 0, err
			}
			_, err = fmt.Fprintln(f, drive, "drive:", name)
			if drive == "old" {
				fmt.Println("made", name)
			}
			return 0, errors.Join(err, f.Close())
		})
		return err
	}
	n := graph.Node{Name: "pay"}
	switch kind {
	case "retries":
		n.Retry = graph.Retry{Attempts: 100, Delay: 100 * time.Millisecond, Factor: 1}
		n.Run = func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if err := do(ctx, fmt.Sprint(drive, " call ", graph.Attempt(ctx))); err != nil || drive == "new" {
				return graph.Update{}, err
			}
			return graph.Update{}, errors.New("not yet")
		}
	case "pays":
		n.Run = func(ctx context.Context, _ graph.State) (graph.Update, error) {
			for _, name := range []string{"one", "pay", "three"} {
				if err := do(ctx, name); err != nil {
					return graph.Update{}, err
				}
				if drive == "old" {
					_, _ = io.Copy(io.Discard, os.Stdin) // it ignores its context
				}
			}
			return graph.Update{}, nil
		}
	}
	return graph.Compile(graph.Def{Name: "paying", Keys: []graph.AnyKey{answers}, Start: []string{"pay"}, Nodes: []graph.Node{n}, Edges: []graph.Edge{{From: []string{"pay"}, To: []string{graph.End}}}})
}

// payRole drives a run until it ends or is ended, and says how.
func payRole(path, kind string) error {
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	g, err := paying(kind, path+".world", "old")
	if err != nil {
		return err
	}
	res, err := (&graph.Runner{Graph: g, Store: s}).Invoke(context.Background(), graph.Input{Thread: "t"})
	fmt.Println(res.Status, err)
	return s.Close()
}

// A process that drives a run learns by another that the run was ended, edited or taken over: it starts
// no other effect, and says who did it.
func TestTakeoverFromAnotherProcess(t *testing.T) {
	for name, way := range map[string]struct {
		end  func(ctx context.Context, r *graph.Runner) error
		says string
	}{
		"Abandon": {func(ctx context.Context, r *graph.Runner) error {
			_, err := history.Abandon(journal.WithAuthor(ctx, "Ada"), r.Store, "t", "too dear")
			return err
		}, "abandoned thread t: its run was abandoned by Ada (too dear)"},
		"Edit": {func(ctx context.Context, r *graph.Runner) error {
			_, err := r.Edit(journal.WithAuthor(ctx, "Ada"), "t", answers.Set([]string{"edited"}))
			return err
		}, "canceled thread t: its run was edited by Ada"},
		"Takeover": {func(ctx context.Context, r *graph.Runner) error {
			_, err := r.InvokeResume(ctx, graph.Resume{Thread: "t", Takeover: true})
			return err
		}, fmt.Sprintf("canceled thread t: its run was taken over by process %d", os.Getpid())},
	} {
		for _, kind := range []string{"retries", "pays"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "runs.db")
				s := open(t, path)
				g, err := paying(kind, path+".world", "new")
				if err != nil {
					t.Fatal(err)
				}
				in, proceed, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				c, out, stderr := startReading(t, in, "pay", path, kind)
				if err := in.Close(); err != nil {
					t.Fatal(err)
				}
				if !out.Scan() || !strings.HasPrefix(out.Text(), "made ") {
					t.Fatalf("the other process does not work: %q\n%s", out.Text(), stderr)
				}
				r := &graph.Runner{Graph: g, Store: s}
				if err := way.end(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				before := effects(t, path)
				if err := proceed.Close(); err != nil {
					t.Fatal(err)
				}
				said := ""
				for out.Scan() {
					said = out.Text()
				}
				if err := c.Wait(); err != nil || !strings.HasPrefix(said, way.says) {
					t.Errorf("%q, %v, want %q\n%s", said, err, way.says, stderr)
				}
				after := effects(t, path)
				if len(after) != len(before) {
					t.Errorf("after %s returned, the other process started %q", name, after[len(before):])
				}
				first := slices.IndexFunc(after, func(l string) bool { return strings.HasPrefix(l, "new") })
				if name == "Takeover" && (first < 0 || slices.ContainsFunc(after[first:], func(l string) bool { return strings.HasPrefix(l, "old") })) {
					t.Errorf("the effects of both: %q", after)
				}
			})
		}
	}
}

// effects returns the lines of the world so far.
func effects(t *testing.T, path string) []string {
	b, err := os.ReadFile(path + ".world")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")[:strings.Count(string(b), "\n")]
}
