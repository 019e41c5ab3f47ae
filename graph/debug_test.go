package graph_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// debugged is a Runner that looks for nodes that modify what they read.
func debugged(g *graph.Graph, st journal.Store) *graph.Runner {
	return &graph.Runner{Graph: g, Store: st, Debug: true}
}

func wantModified(t *testing.T, err error, node, by string, keys ...string) {
	t.Helper()
	var m *graph.ModifiedError
	var n *graph.NodeError
	if !errors.As(err, &m) || !errors.As(err, &n) {
		t.Errorf("error %v", err)
		return
	}
	for below := n; errors.As(below.Err, &below); {
		n = below
	}
	if n.Node != node || !strings.Contains(m.By, by) || !slices.Equal(m.Keys, keys) {
		t.Errorf("node %q, by %q, keys %q; want %q, %q, %q", n.Node, m.By, m.Keys, node, by, keys)
	}
}

func TestDebugFindsTheNodeThatModifiesWhatItReads(t *testing.T) {
	list, bag := graph.Append[string]("list"), graph.Merge[string, int]("bag")
	seen := ""
	g := compile(t, graph.Def{
		Name: "two", Keys: []graph.AnyKey{list, bag}, Start: []string{"a", "b"},
		First: []graph.Write{list.Set([]string{"old"}), bag.Set(map[string]int{"x": 0})},
		Nodes: []graph.Node{
			{Name: "a", OnError: graph.End, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				list.Get(s)[0] = "x"
				bag.Get(s)["y"] = 1
				return graph.Update{}, nil
			}},
			{Name: "b", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				seen = list.Get(s)[0]
				return graph.Update{}, nil
			}},
		},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)},
	})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		res, err := debugged(g, st).Invoke(t.Context(), graph.Input{Thread: thread})
		wantModified(t, err, "a", "the node", "bag", "list")
		if res.Status != graph.Failed || seen != "old" {
			t.Errorf("status %v, the sibling reads %q", res.Status, seen)
		}
	}
	if res, err := (&graph.Runner{Graph: g, Executor: sequential{}}).Invoke(t.Context(), graph.Input{}); err != nil {
		t.Errorf("without Debug: %v %v", res.Status, err)
	}
}

// An attempt that fails after it has modified what it read is found, too, and no
// attempt follows it.
func TestDebugFindsAttemptsThatModify(t *testing.T) {
	bag := graph.Merge[string, int]("bag")
	attempts := 0
	g := compile(t, graph.Def{
		Name: "retry", Keys: []graph.AnyKey{bag}, Start: []string{"a"}, First: []graph.Write{bag.Set(map[string]int{})},
		Nodes: []graph.Node{{Name: "a", Retry: graph.Retry{Attempts: 3}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			attempts++
			bag.Get(s)["x"]++
			return graph.Update{}, errors.New("not yet")
		}}},
		Edges: []graph.Edge{edge("a", graph.End)},
	})
	_, err := debugged(g, nil).Invoke(t.Context(), graph.Input{})
	wantModified(t, err, "a", "the node", "bag")
	if attempts != 1 {
		t.Errorf("%d attempts", attempts)
	}
}

func TestDebugFindsReducersBranchesAndChildren(t *testing.T) {
	type box struct{ N []int }
	bad := graph.Fold("bad", func(old *box, present bool, upd *box) (*box, error) {
		if present {
			old.N = append(old.N, upd.N...)
			return old, nil
		}
		return upd, nil
	})
	one := bad.Set(&box{[]int{1}})
	g := compile(t, graph.Def{Name: "reducer", Keys: []graph.AnyKey{bad}, Start: []string{"a"}, First: []graph.Write{one},
		Nodes: []graph.Node{{Name: "a", Run: writes(one)}}, Edges: []graph.Edge{edge("a", graph.End)}})
	_, err := debugged(g, nil).Invoke(t.Context(), graph.Input{})
	wantModified(t, err, "a", "reducer", "bad")

	list := graph.Append[int]("list")
	sorts := func(s graph.State) string { slices.Sort(list.Get(s)); return "end" }
	g = compile(t, graph.Def{Name: "branch", Keys: []graph.AnyKey{list}, Start: []string{"a"}, First: []graph.Write{list.Set([]int{2, 1})},
		Nodes: []graph.Node{{Name: "a", Run: idle}}, Edges: []graph.Edge{branch("a", map[string]string{"end": graph.End}, sorts)}})
	_, err = debugged(g, nil).Invoke(t.Context(), graph.Input{})
	wantModified(t, err, "a", "the branch function", "list")

	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{list}, Start: []string{"in"}, Edges: []graph.Edge{edge("in", graph.End)},
		Nodes: []graph.Node{{Name: "in", Run: func(_ context.Context, s graph.State) (graph.Update, error) { sorts(s); return graph.Update{}, nil }}}})
	g = compile(t, graph.Def{Name: "parent", Keys: []graph.AnyKey{list}, Start: []string{"a"}, First: []graph.Write{list.Set([]int{2, 1})},
		Nodes: []graph.Node{{Name: "a", Graph: child, Inherit: true}}, Edges: []graph.Edge{edge("a", graph.End)}})
	_, err = debugged(g, journal.NewMemory()).Invoke(t.Context(), graph.Input{Thread: thread})
	wantModified(t, err, "in", "the node", "list")
}

// With Debug a run continues with what a resumed run would read.
func TestDebugReadsBackEveryValue(t *testing.T) {
	type secretive struct {
		Shown  string
		hidden string
	}
	v := secretive{"a", "b"}
	k, halves := graph.Last[secretive]("k"), graph.Fold("f", func(_ secretive, _ bool, upd secretive) (secretive, error) {
		return secretive{upd.Shown, "made by the reducer"}, nil
	})
	var got []secretive
	g := compile(t, graph.Def{Name: "back", Keys: []graph.AnyKey{k, halves}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			d, err := graph.Do(ctx, "d", func(context.Context) (secretive, error) { return v, nil })
			got = append(got, d, k.Get(s))
			return graph.Update{Writes: []graph.Write{halves.Set(v)}, Goto: []string{}, Send: []graph.Send{{To: "b", Overlay: []graph.Write{k.Set(v)}}}}, err
		}, Routes: []string{"b"}}, {Name: "b", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			got = append(got, k.Get(s), halves.Get(s))
			return graph.Update{}, nil
		}}},
		Edges: []graph.Edge{edge("b", graph.End)}})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		got = nil
		if _, err := debugged(g, st).Invoke(t.Context(), graph.Input{Thread: thread, Set: []graph.Write{k.Set(v)}}); err != nil {
			t.Fatal(err)
		}
		want := secretive{Shown: "a"}
		if !slices.Equal(got, []secretive{want, want, want, want}) {
			t.Errorf("read %+v", got)
		}
		got = nil
		if _, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: "plain", Set: []graph.Write{k.Set(v)}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, []secretive{v, v, v, {"a", "made by the reducer"}}) {
			t.Errorf("without Debug read %+v", got)
		}
	}
}

// A value that is stored but cannot be read again fails the run that writes it.
func TestDebugFindsValuesThatCannotBeReadAgain(t *testing.T) {
	half := graph.Last[string]("half").WithCodec(graph.Codec[string]{
		Tag:    "half",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		Decode: func([]byte) (string, error) { return "", errors.New("cannot be read") },
	})
	def := graph.Def{Name: "half", Keys: []graph.AnyKey{half}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: writes(half.Set("x"))}}, Edges: []graph.Edge{edge("a", graph.End)}}
	if _, err := start(t, kept(compile(t, def))); err != nil {
		t.Fatal(err)
	}
	_, err := debugged(compile(t, def), journal.NewMemory()).Invoke(t.Context(), graph.Input{Thread: thread})
	if err == nil || !strings.Contains(err.Error(), `node a`) || !strings.Contains(err.Error(), `key "half": cannot be read`) {
		t.Errorf("error %v", err)
	}
}

// A codec may store one value in many forms, as encryption does.
func TestDebugAcceptsCodecsThatAreNotStable(t *testing.T) {
	var n atomic.Int64
	k := graph.Last[[]string]("k").WithCodec(graph.Codec[[]string]{
		Tag: "salted",
		Encode: func(dst []byte, v []string) ([]byte, error) {
			return append(append(dst, byte(n.Add(1))), strings.Join(v, ",")...), nil
		},
		Decode: func(b []byte) ([]string, error) { return strings.Split(string(b[1:]), ","), nil },
	})
	node := func(change bool) graph.Node {
		return graph.Node{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if change {
				k.Get(s)[0] = "changed"
			}
			return graph.Update{}, nil
		}}
	}
	for _, change := range []bool{false, true} {
		g := compile(t, graph.Def{Name: "salt", Keys: []graph.AnyKey{k}, Start: []string{"a"}, First: []graph.Write{k.Set([]string{"a", "b"})},
			Nodes: []graph.Node{node(change)}, Edges: []graph.Edge{edge("a", graph.End)}})
		_, err := debugged(g, nil).Invoke(t.Context(), graph.Input{})
		if change {
			wantModified(t, err, "a", "the node", "k")
		} else if err != nil {
			t.Error(err)
		}
	}
}

// With Debug, a codec that fails at any of its calls fails the run, and is named: nothing is compared with less than all
// that there is.
func TestDebugReportsEachFailureOfACodec(t *testing.T) {
	errCodec := errors.New("the codec is out of order")
	for _, what := range []string{"encode", "decode"} {
		for at := 1; ; at++ {
			left := at
			fail := func(call string) error {
				if call != what {
					return nil
				}
				if left--; left == 0 {
					return errCodec
				}
				return nil
			}
			k := graph.Last[string]("k").WithCodec(graph.Codec[string]{
				Tag:    "counted",
				Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), fail("encode") },
				Decode: func(b []byte) (string, error) { return string(b), fail("decode") },
			})
			g := compile(t, graph.Def{
				Name:  "counted",
				Keys:  append(slices.Clone(all), k),
				Start: []string{"a"},
				Nodes: []graph.Node{
					{Name: "a", Routes: []string{"b"}, Run: func(context.Context, graph.State) (graph.Update, error) {
						return graph.Update{Writes: []graph.Write{k.Set("x")}, Send: []graph.Send{{To: "b", Overlay: []graph.Write{k.Set("y")}}}}, nil
					}},
					{Name: "b", Run: idle},
					{Name: "c", Run: idle},
				},
				Edges: []graph.Edge{
					branch("b", map[string]string{"c": "c"}, func(graph.State) string { return "c" }),
					edge("c", graph.End),
				},
			})
			_, err := debugged(g, journal.NewMemory()).Invoke(t.Context(), graph.Input{Thread: thread})
			if left > 0 { // there were fewer calls
				if err != nil || at < 6 {
					t.Errorf("%s: %d calls, %v", what, at-1, err)
				}
				break
			}
			var modified *graph.ModifiedError
			isModified := errors.As(err, &modified) && slices.Equal(modified.Keys, []string{"k"})
			if !isModified && (err == nil || !strings.Contains(err.Error(), `key "k"`)) {
				t.Errorf("call %d of %s has failed: %v", at, what, err)
			}
		}
	}
}

// A value that a resume sets and that cannot be read again is refused, with Debug, before anything is recorded.
func TestResumeSetsWhatCannotBeReadAgain(t *testing.T) {
	half := graph.Last[string]("half").WithCodec(graph.Codec[string]{
		Tag:    "half",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		Decode: func([]byte) (string, error) { return "", errors.New("cannot be read") },
	})
	r := kept(compile(t, graph.Def{
		Name:  "half",
		Keys:  append(slices.Clone(all), half),
		Nodes: []graph.Node{{Name: "n", Run: asker("a")}},
		Start: []string{"n"},
		Edges: []graph.Edge{edge("n", graph.End)},
	}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	before := len(journalOf(t, r.Store, thread))
	r.Debug = true
	_, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{half.Set("x")}})
	if err == nil || !strings.Contains(err.Error(), `key "half": cannot be read`) {
		t.Error(err)
	}
	if after := len(journalOf(t, r.Store, thread)); after != before {
		t.Errorf("%d records were added", after-before)
	}
}

// With Debug, a reducer of one's own gets no stored form of a value that is not there: its codec may refuse the zero
// value.
func TestDebugOfAReducerWithoutAnOldValue(t *testing.T) {
	k := graph.Fold("k", func(old string, _ bool, upd string) (string, error) { return old + upd, nil }).WithCodec(graph.Codec[string]{
		Tag: "never empty",
		Encode: func(dst []byte, v string) ([]byte, error) {
			if v == "" {
				return nil, errors.New("the value is empty")
			}
			return append(dst, v...), nil
		},
		Decode: func(b []byte) (string, error) { return string(b), nil },
	})
	g := compile(t, graph.Def{
		Name:  "reducer",
		Keys:  []graph.AnyKey{k},
		Nodes: []graph.Node{{Name: "a", Run: writes(k.Set("x"))}, {Name: "b", Run: writes(k.Set("y"))}},
		Start: []string{"a"},
		Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
	})
	res, err := debugged(g, journal.NewMemory()).Invoke(t.Context(), graph.Input{Thread: thread})
	if is(t, graph.Done, res, err); k.Get(res.State) != "xy" {
		t.Errorf("%q", k.Get(res.State))
	}
}

// With Debug, the nodes read what a resumed run would read of the result of a reducer.
func TestDebugReadsBackWhatAReducerMakes(t *testing.T) {
	k := graph.Fold("k", func(old string, _ bool, upd string) (string, error) { return old + upd + "!", nil }).WithCodec(graph.Codec[string]{
		Tag:    "quiet",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, strings.Trim(v, "!")...), nil },
		Decode: func(b []byte) (string, error) { return string(b), nil },
	})
	seen := ""
	look := func(_ context.Context, s graph.State) (graph.Update, error) {
		seen = k.Get(s)
		return graph.Update{}, nil
	}
	g := compile(t, graph.Def{
		Name:  "reducer",
		Keys:  []graph.AnyKey{k},
		Nodes: []graph.Node{{Name: "a", Run: writes(k.Set("x"))}, {Name: "b", Run: look}},
		Start: []string{"a"},
		Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
	})
	for debug, want := range map[bool]string{false: "x!", true: "x"} {
		res, err := (&graph.Runner{Graph: g, Debug: debug}).Invoke(t.Context(), graph.Input{})
		if is(t, graph.Done, res, err); k.Get(res.State) != want {
			t.Errorf("with Debug %t the result is %q", debug, k.Get(res.State))
		}
		if seen != "x" && debug {
			t.Errorf("the next node reads %q", seen)
		}
	}
}
