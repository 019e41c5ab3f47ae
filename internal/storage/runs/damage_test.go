package runs

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
)

// A damagingStore gives out one thread as if its medium had changed one of its records.
type damagingStore struct {
	journal.Store
	thread string
	record int64
	change func(*journal.Record) bool // false: the record is lost
}

func (s *damagingStore) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for rec, err := range s.Store.Read(ctx, thread, r) {
			if err == nil && thread == s.thread && rec.Seq == s.record && !s.changeCopy(&rec) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (s *damagingStore) Threads(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
	return func(yield func(journal.ThreadInfo, error) bool) {
		for t, err := range s.Store.Threads(ctx, prefix) {
			if err == nil && t.Name == s.thread {
				for _, rec := range []*journal.Record{&t.First, &t.Last} {
					if rec.Seq == s.record && !s.changeCopy(rec) {
						*rec = journal.Record{}
					}
				}
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

func (s *damagingStore) changeCopy(rec *journal.Record) bool {
	rec.Head, rec.Data = slices.Clone(rec.Head), slices.Clone(rec.Data)
	return s.change(rec)
}

// damages are the ways in which a record can be wrong.
var damages = map[string]func(*journal.Record) bool{
	"another head":               func(r *journal.Record) bool { flipLast(r.Head); return true },
	"other data":                 func(r *journal.Record) bool { flipLast(r.Data); return true },
	"another kind":               func(r *journal.Record) bool { r.Kind++; return true },
	"a kind that is not known":   func(r *journal.Record) bool { r.Kind = 99; return true },
	"no head":                    func(r *journal.Record) bool { r.Head = nil; return true },
	"no content and no checksum": func(r *journal.Record) bool { r.Head, r.Data, r.Sum = nil, nil, 0; return true },
	"lost":                       func(r *journal.Record) bool { return false },
}

func flipLast(b []byte) {
	if len(b) > 0 {
		b[len(b)-1] ^= 0x10
	}
}

// compileAsking returns a graph that asks after a step.
func compileAsking(t *testing.T) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(graph.Def{
		Name: "asking",
		Keys: []graph.AnyKey{place},
		Nodes: []graph.Node{
			{Name: "choose", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Put(place.Set("lake")), nil }},
			{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				where, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Where to?"})
				return graph.Put(place.Set(where)), err
			}},
		},
		Edges: []graph.Edge{{From: []string{"choose"}, To: []string{"ask"}}, {From: []string{"ask"}, To: []string{graph.End}}},
		Start: []string{"choose"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A damaged journal hides no other run, whichever of its records is damaged, and in whichever way: each list has the others, and says which
// run is damaged or leaves it out.
func TestDamageStaysLocal(t *testing.T) {
	session := NameSession("asking", "talk")
	for _, thread := range []string{"run-2", session} {
		mem := journal.NewMemory()
		r := &graph.Runner{Graph: compileAsking(t), Store: mem}
		for _, run := range []string{"run-1", "run-2", "run-3"} {
			name := run
			if run == "run-2" {
				name = thread
			}
			res, err := r.Invoke(t.Context(), graph.Input{Thread: name, Run: run, Label: "asking"})
			if err != nil || res.Status != graph.Waiting {
				t.Fatal(res.Status, err)
			}
		}
		head := int64(0)
		for rec, err := range mem.Read(t.Context(), thread, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			head = rec.Seq
		}
		for seq := int64(1); seq <= head; seq++ {
			for name, change := range damages {
				t.Run(fmt.Sprintf("%s/record %d/%s", thread, seq, name), func(t *testing.T) {
					a := NewArchive(config.Dirs{State: t.TempDir()}, "")
					if err := a.AttachStore(&damagingStore{mem, thread, seq, change}); err != nil {
						t.Fatal(err)
					}
					checkLists(t, a)
				})
			}
		}
	}
}

// checkLists checks that lists have run-1 and run-3 when run-2 is damaged.
func checkLists(t *testing.T, a *Archive) {
	t.Helper()
	ctx := t.Context()
	others := []string{"run-1", "run-3"}
	check := func(what string, got []string, err error) {
		t.Helper()
		got = slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(others, id) })
		slices.Sort(got)
		if err != nil || !slices.Equal(got, others) {
			t.Errorf("%s: %v, %v; want %v and no error", what, got, err, others)
		}
	}
	all, err := a.ListRuns(ctx, "")
	check("ListRuns", listed(all), err)
	if len(all) != 3 {
		t.Errorf("ListRuns has %d lines, want 3: %v", len(all), listed(all))
	}
	tree, _, err := a.ListRunTree(ctx, 0)
	check("ListRunTree", listed(tree), err)
	open, damaged, _, err := a.ListOpenRuns(ctx, OpenPoint{}, 0)
	var waiting []string
	for _, o := range open {
		waiting = append(waiting, o.Run)
	}
	check("ListOpenRuns", slices.Clone(waiting), err)
	if len(open)+len(damaged) != 3 {
		t.Errorf("ListOpenRuns: %v have questions and %v are damaged, want 3 together", waiting, listed(damaged))
	}
	for _, d := range damaged {
		if d.Status != Damaged || d.Reason == "" {
			t.Errorf("a damaged run is listed as %+v", d)
		}
	}
	if _, err := a.ListSessions(ctx, ""); err != nil {
		t.Errorf("ListSessions: %v", err)
	}
	if _, err := ListForks(ctx, a, "run-1"); err != nil {
		t.Errorf("ListForks: %v", err)
	}
	if _, err := a.ListEndedRuns(ctx, time.Hour, time.Hour); err != nil {
		t.Errorf("ListEndedRuns: %v", err)
	}
	for _, id := range []string{"run-1", "run-3", "last"} {
		if _, _, err := a.LocateRun(ctx, id); err != nil {
			t.Errorf("LocateRun %s: %v", id, err)
		}
	}
	if _, err := a.ReadRunDetail(ctx, "run-1"); err != nil {
		t.Errorf("ReadRunDetail: %v", err)
	}
	if needed, err := a.neededBundles(ctx); err != nil {
		t.Errorf("the bundles that are needed: %v, %v", needed, err)
	}
	for i := range all {
		if all[i].Status == Damaged {
			continue
		}
		if _, err := a.SummarizeRun(ctx, &all[i]); err != nil && !IsDamage(err) {
			t.Errorf("SummarizeRun %s: %v", all[i].Run, err)
		}
	}
}

func (a *Archive) neededBundles(ctx context.Context) (map[string]bool, error) {
	st, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	return st.findNeededBundles(ctx, map[string]bool{"no such bundle": true})
}

func listed(list []Info) (ids []string) {
	for _, i := range list {
		ids = append(ids, i.Run)
	}
	return ids
}

// A copy of a damaged run can be read: what it rests on is not known as a whole.
func TestCopyOfADamagedRun(t *testing.T) {
	mem := journal.NewMemory()
	r := &graph.Runner{Graph: compileAsking(t), Store: mem}
	if res, err := r.Invoke(t.Context(), graph.Input{Thread: "run-1", Run: "run-1", Label: "asking"}); err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	if err := history.Fork(t.Context(), mem, "run-1", 0, "run-2"); err != nil {
		t.Fatal(err)
	}
	head := int64(0)
	for rec, err := range mem.Read(t.Context(), "run-1", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		head = rec.Seq
	}
	for seq := int64(1); seq <= head; seq++ {
		for name, change := range damages {
			if seq == head && (name == "lost" || name == "other data") {
				continue // the end of a drive: it says nothing about what the copy rests on
			}
			t.Run(fmt.Sprintf("record %d/%s", seq, name), func(t *testing.T) {
				a := NewArchive(config.Dirs{State: t.TempDir()}, "")
				if err := a.AttachStore(&damagingStore{mem, "run-1", seq, change}); err != nil {
					t.Fatal(err)
				}
				story, err := a.ReadStory(t.Context(), "run-2", 0)
				if err != nil {
					t.Fatal(err)
				}
				if list, complete, err := ListAnswers(t.Context(), a, story); err != nil || complete {
					t.Errorf("the answers %v, complete %t, %v", list, complete, err)
				}
				if rests, err := RestsOnAnswers(t.Context(), a, "run-2"); err != nil || !rests {
					t.Errorf("it rests on answers: %t, %v", rests, err)
				}
			})
		}
	}
}

// Whatever a damaged run needed is kept: which bundles it names is not known.
func TestDamagedRunsKeepBundles(t *testing.T) {
	of := map[string]bool{"a": true, "b": true}
	for seq := int64(1); seq <= 2; seq++ {
		for name, change := range damages {
			mem := journal.NewMemory()
			r := &graph.Runner{Graph: compileAsking(t), Store: mem}
			if _, err := r.Invoke(t.Context(), graph.Input{Thread: "run-1", Run: "run-1", Label: "asking", Meta: []byte(`{"agent":"asking","dir":"/asking","bundle":"a"}`)}); err != nil {
				t.Fatal(err)
			}
			a := NewArchive(config.Dirs{State: t.TempDir()}, "")
			if err := a.AttachStore(&damagingStore{mem, "run-1", seq, change}); err != nil {
				t.Fatal(err)
			}
			st, err := a.OpenStore()
			if err != nil {
				t.Fatal(err)
			}
			if needed, err := st.findNeededBundles(t.Context(), of); err != nil || !needed["a"] {
				t.Errorf("record %d, %s: %v are needed, %v", seq, name, needed, err)
			}
		}
	}
}
