package graph_test

import (
	"bytes"
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// TestRewriteRecord rewrites every record of every shape, of their forks and of their snapshots, with a change that changes
// nothing, and with one that makes every text longer: then every record can still be folded.
func TestRewriteRecord(t *testing.T) {
	kinds := map[journal.Kind]bool{}
	effects := func(*testing.T) shape {
		return shape{def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.DoEffect(ctx, graph.Effect{Name: "deed", InDoubt: graph.DoubtFail}, func(context.Context) (any, error) { return map[string]any{"deed": []any{"done", 1, 2.5, nil}}, nil })
			return graph.Update{}, err
		}}}, Edges: []graph.Edge{edge("a", graph.End)}}}
	}
	list := maps.Clone(shapes)
	list["effects"] = effects
	for name, make := range list {
		t.Run(name, func(t *testing.T) {
			s := make(t)
			s.def.Name, s.def.Keys = name, all
			st := journal.NewMemory()
			p := &player{t: t, Runner: graph.Runner{Graph: compile(t, s.def), Store: st, Executor: sequential{}, Clock: &graphtest.Clock{}, IDs: graphtest.IDs("run"), Cache: &graph.MemoryCache{}}}
			if s.play == nil {
				s.play = func(p *player) { p.run() }
			}
			s.play(p)
			var written []journal.Record
			for r, err := range journal.Records(t.Context(), st, thread, journal.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				written = append(written, r)
			}
			names := []string{thread}
			for _, r := range written {
				fork := "fork" + strconv.FormatInt(r.Seq, 10)
				if err := history.Fork(journal.WithAuthor(t.Context(), "ann"), st, thread, r.Seq, fork); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Edit(t.Context(), fork, only.Reset("edited")); err != nil {
					t.Fatal(err)
				}
				names = append(names, fork)
			}
			for i, name := range names {
				list := written
				if i > 0 {
					list = nil
					for r, err := range journal.Records(t.Context(), st, name, journal.Range{}) {
						if err != nil {
							t.Fatal(err)
						}
						list = append(list, r)
					}
				}
				if list[0].Seq == 1 {
					checkRewrite(t, name, list, kinds)
				}
			}
		})
	}
	for k := journal.KindStart; k <= journal.KindVoid; k++ {
		if !kinds[k] && k != journal.KindVoid && k != journal.KindSnapshot && k != journal.KindFailure && k != journal.KindFork {
			t.Errorf("no record of the kind %s was rewritten", k)
		}
	}
}

// checkRewrite rewrites the records of a thread.
func checkRewrite(t *testing.T, name string, list []journal.Record, kinds map[journal.Kind]bool) {
	t.Helper()
	longer := journal.NewMemory()
	for _, r := range list {
		kinds[r.Kind] = true
		same, err := journal.RewriteRecord(name, r, func(b []byte) []byte { return b })
		if err != nil || !bytes.Equal(same.Head, r.Head) || !bytes.Equal(same.Data, r.Data) || same.Sum != r.Sum {
			t.Fatalf("%s, record %d (%s), %v:\n%q %q %x\n%q %q %x", name, r.Seq, r.Kind, err, r.Head, r.Data, r.Sum, same.Head, same.Data, same.Sum)
		}
		long, err := journal.RewriteRecord(name, r, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("e"), []byte(strings.Repeat("e", 200)))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := longer.Append(t.Context(), name, r.Seq-1, []journal.Record{long}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := history.Inspect(t.Context(), longer, name, 0); err != nil {
		t.Errorf("%s with longer texts: %v", name, err)
	}
}

// TestRewriteRecordRefuses refuses damaged records, and changes of values that it cannot read.
func TestRewriteRecordRefuses(t *testing.T) {
	any := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hush"), []byte("[redacted]")) }
	head := []byte{0, 1, 'x'}
	tests := map[string]struct {
		r    journal.Record
		want string
	}{
		"unknown kind": {journal.Record{Kind: 99}, "newer version of raddle"},
		"cut off":      {journal.Record{Kind: journal.KindEffect, Head: []byte{9, 'x'}}, "damaged record"},
		"more parts":   {journal.Record{Kind: journal.KindReturn, Head: []byte{1, 'x', 1}, Data: []byte("more")}, "more parts than this version knows: journal: a newer version of raddle"},
		"mixed value":  {journal.Record{Kind: journal.KindEffect, Head: head, Data: []byte("\x01hush")}, "known only to the program"},
	}
	for name, test := range tests {
		if _, err := journal.RewriteRecord("t", test.r, any); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := journal.RewriteRecord("t", journal.Record{Seq: 1, Kind: journal.KindEffect, Head: head, Data: []byte("m\x01\x04hushs\x06a hush")}, any)
	if err != nil || string(r.Data) != "m\x01\x0a[redacted]s\x0ca [redacted]" {
		t.Errorf("a dynamic value: %q, %v", r.Data, err)
	}
}
