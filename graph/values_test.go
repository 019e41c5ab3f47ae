package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// vessel is a value with parts that copies may share.
type vessel struct {
	N    []int
	M    map[string]int
	P    *vessel
	Deep [][]int
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// spare returns a list with room for more.
func spare(of ...int) []int { return append(make([]int, 0, 64), of...) }

// foldsOf are reducers that do to their input what a careless one does. Each adds what the
// write says.
func foldsOf() []foldCase {
	return []foldCase{
		newFoldCase("append to a list", false, spare(1, 2), func(i int) []int { return spare(i) },
			func(old, upd []int) []int { return append(old, upd...) }),
		newFoldCase("write into a list", true, spare(0, 0), func(i int) []int { return []int{i} },
			func(old, upd []int) []int { old[0] += upd[0]; return old }),
		newFoldCase("write into a map", true, map[string]int{"x": 1}, func(i int) map[string]int { return map[string]int{fmt.Sprint(i): i} },
			func(old, upd map[string]int) map[string]int { maps.Copy(old, upd); return old }),
		newFoldCase("write into what is added", true, map[string]int{"x": 1}, func(i int) map[string]int { return map[string]int{fmt.Sprint(i): i} },
			func(old, upd map[string]int) map[string]int { maps.Copy(upd, old); return upd }),
		newFoldCase("append to the list of a struct", false, vessel{N: spare(1)}, func(i int) vessel { return vessel{N: spare(i)} },
			func(old, upd vessel) vessel { old.N = append(old.N, upd.N...); return old }),
		newFoldCase("append to a list of a list", true, [][]int{spare(1)}, func(i int) [][]int { return [][]int{{i}} },
			func(old, upd [][]int) [][]int { old[0] = append(old[0], upd[0]...); return old }),
		newFoldCase("write into the map of a struct", true, vessel{M: map[string]int{"x": 1}}, func(i int) vessel { return vessel{M: map[string]int{fmt.Sprint(i): i}} },
			func(old, upd vessel) vessel { maps.Copy(old.M, upd.M); return old }),
		newFoldCase("write through a pointer", true, &vessel{N: spare(1)}, func(i int) *vessel { return &vessel{N: []int{i}} },
			func(old, upd *vessel) *vessel { old.N = append(old.N, upd.N...); return old }),
		newFoldCase("write through a pointer of a struct", true, vessel{P: &vessel{N: spare(1)}}, func(i int) vessel { return vessel{P: &vessel{N: []int{i}}} },
			func(old, upd vessel) vessel { old.P.N = append(old.P.N, upd.P.N...); return old }),
		newFoldCase[any]("write into a map of an any", true, map[string]any{"x": 1}, func(i int) any { return map[string]any{fmt.Sprint(i): i} },
			func(old, upd any) any { maps.Copy(old.(map[string]any), upd.(map[string]any)); return old }),
	}
}

// foldCase is a key with a careless reducer.
type foldCase struct {
	name     string
	modifies bool // it changes what it gets
	key      graph.AnyKey
	first    graph.Write
	add      func(i int) graph.Write
	get      func(graph.State) string
	want     func(i ...int) string // after the first write, what the additions make
}

func newFoldCase[T any](name string, modifies bool, first T, add func(i int) T, reduce func(old, upd T) T) foldCase {
	k := graph.Fold("k", func(old T, present bool, upd T) (T, error) {
		if !present {
			return upd, nil
		}
		return reduce(old, upd), nil
	})
	return foldCase{name: name, modifies: modifies, key: k, first: k.Set(first), add: func(i int) graph.Write { return k.Set(add(i)) },
		get: func(s graph.State) string { return jsonOf(k.Get(s)) },
		want: func(is ...int) string {
			s, err := graph.NewState(k.Set(first))
			for _, i := range is {
				if err == nil {
					s, err = graph.NewState(k.Reset(k.Get(s)), k.Set(add(i)))
				}
			}
			if err != nil {
				panic(err)
			}
			return jsonOf(k.Get(s))
		}}
}

// foldScenes are graphs in which several tasks fold onto one value.
func foldScene(t *testing.T, c foldCase, see func(who, what string)) *graph.Graph {
	t.Helper()
	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{c.key}, Start: []string{"in"}, Edges: []graph.Edge{edge("in", graph.End)},
		Nodes: []graph.Node{{Name: "in", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			see("child", c.get(s))
			return graph.Put(c.add(9)), nil
		}}}})
	return compile(t, graph.Def{Name: "folds", Keys: []graph.AnyKey{c.key}, Start: []string{"a"}, First: []graph.Write{c.first},
		Nodes: []graph.Node{
			{Name: "a", Routes: []string{"w", "c"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				u := graph.Put(c.add(4), c.add(5))
				for i := range 3 {
					u.Send = append(u.Send, graph.Send{To: "w", Overlay: []graph.Write{c.add(100 + i)}})
				}
				u.Send = append(u.Send, graph.Send{To: "c"})
				return u, nil
			}},
			{Name: "w", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				see("w"+fmt.Sprint(graph.TaskInfo(ctx).Index), c.get(s))
				return graph.Update{}, nil
			}, Hooks: []graph.Hooks{{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
				return graph.Setup{See: []graph.Write{c.add(7)}}, nil
			}}}},
			{Name: "c", Graph: child, Inherit: true, In: func(graph.State) ([]graph.Write, error) { return []graph.Write{c.add(8)}, nil },
				Out: func(graph.State, graph.Child) (graph.Update, error) { return graph.Update{}, nil }},
			{Name: "end", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				see("end", c.get(s))
				return graph.Update{}, nil
			}},
		}, Edges: []graph.Edge{edge("w", "end"), edge("c", "end"), edge("end", graph.End)}})
}

// A reducer cannot change what others read, whatever it does to its input and wherever the
// engine folds.
func TestReducersGetValuesOfTheirOwn(t *testing.T) {
	for _, c := range foldsOf() {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]string{}
			g := foldScene(t, c, func(who, what string) {
				mu.Lock()
				defer mu.Unlock()
				seen[who] = what
			})
			want := map[string]string{"child": c.want(4, 5, 8), "end": c.want(4, 5)}
			for i := range 3 {
				want["w"+fmt.Sprint(1+i)] = c.want(4, 5, 100+i, 7)
			}
			for _, st := range []journal.Store{nil, journal.NewMemory()} {
				clear(seen)
				res, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: thread})
				if err != nil || !maps.Equal(seen, want) || c.get(res.State) != want["end"] {
					t.Errorf("%v: read %v, the end is %v; want %v", err, seen, c.get(res.State), want)
				}
			}
			_, err := debugged(g, nil).Invoke(t.Context(), graph.Input{})
			if c.modifies {
				wantModified(t, err, "a", "reducer", "k")
			} else if err != nil || !maps.Equal(seen, want) {
				t.Errorf("with Debug: %v, read %v", err, seen)
			}
		})
	}
}

// Debug finds a reducer that changes its input where the engine folds outside of steps.
func TestDebugFindsReducersOutsideOfSteps(t *testing.T) {
	bad := graph.Fold("bad", func(old map[string]int, present bool, upd map[string]int) (map[string]int, error) {
		if !present {
			return upd, nil
		}
		maps.Copy(old, upd)
		return old, nil
	})
	w := bad.Set(map[string]int{"y": 1})
	def := func() graph.Def {
		return graph.Def{Name: "g", Keys: []graph.AnyKey{bad}, Start: []string{"a"}, First: []graph.Write{bad.Set(map[string]int{"x": 1})},
			Nodes: []graph.Node{{Name: "a", Run: idle}}, Edges: []graph.Edge{edge("a", graph.End)}}
	}
	overlay := def()
	overlay.Nodes = []graph.Node{{Name: "a", Routes: []string{"b"}, Run: func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{Send: []graph.Send{{To: "b", Overlay: []graph.Write{w}}}}, nil
	}}, {Name: "b", Run: idle}}
	overlay.Edges = []graph.Edge{edge("b", graph.End)}
	hook := def()
	hook.Nodes[0].Hooks = []graph.Hooks{{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
		return graph.Setup{See: []graph.Write{w}}, nil
	}}}
	child := def()
	child.Nodes[0] = graph.Node{Name: "a", Inherit: true, Graph: compile(t, def()), In: func(graph.State) ([]graph.Write, error) { return []graph.Write{w}, nil }}
	for name, c := range map[string]struct {
		def graph.Def
		set []graph.Write
	}{"overlay": {def: overlay}, "hook": {def: hook}, "child": {def: child}, "input": {def(), []graph.Write{w}}} {
		res, err := debugged(compile(t, c.def), nil).Invoke(t.Context(), graph.Input{Set: c.set})
		var m *graph.ModifiedError
		if !errors.As(err, &m) || m.By != "a reducer" || !slices.Equal(m.Keys, []string{"bad"}) {
			t.Errorf("%s: %v %v", name, res.Status, err)
		}
		if res, err = (&graph.Runner{Graph: compile(t, c.def)}).Invoke(t.Context(), graph.Input{Set: c.set}); err != nil || len(bad.Get(res.State)) != 1+len(c.set) {
			t.Errorf("%s: %v %v", name, bad.Get(res.State), err)
		}
	}
}

// A reader of a value can append to it and write into its maps without an effect on other readers.
func TestReadersGetListsAndMapsOfTheirOwn(t *testing.T) {
	list, rows, box := graph.Last[[]int]("list"), graph.Last[[][]int]("rows"), graph.Last[vessel]("box")
	grown, bag, dyn := graph.Append[[]int]("grown"), graph.Merge[string, []int]("bag"), graph.Dyn("dyn")
	plain := graph.Last[map[string]int]("plain")
	writes := func() []graph.Write {
		return []graph.Write{list.Set(spare(1)), rows.Set([][]int{spare(1)}), box.Set(vessel{N: spare(1), Deep: [][]int{spare(2)}}),
			grown.Set([][]int{spare(1)}), bag.Set(map[string][]int{"x": spare(1)}), dyn.Set(map[string]any{"x": []any{1}}), plain.Set(map[string]int{"x": 1})}
	}
	const want = `[1][[1]]{"N":[1],"M":null,"P":null,"Deep":[[2]]}[[1]]{"x":[1]}{"x":[1]}{"x":1}`
	var mu sync.Mutex
	var faults []string
	misuse := func(who string, s graph.State) {
		mu.Lock()
		defer mu.Unlock()
		got := ""
		for _, v := range []any{list.Get(s), rows.Get(s), box.Get(s), grown.Get(s), bag.Get(s), dyn.Get(s), plain.Get(s)} {
			got += jsonOf(v)
		}
		if got != want {
			faults = append(faults, who+" reads "+got)
		}
		for _, l := range [][]int{list.Get(s), rows.Get(s)[0], box.Get(s).N, box.Get(s).Deep[0], grown.Get(s)[0], bag.Get(s)["x"]} {
			if cap(l) != len(l) {
				faults = append(faults, fmt.Sprint(who, " gets capacity ", cap(l)))
			}
		}
		for _, l := range [][][]int{rows.Get(s), box.Get(s).Deep, grown.Get(s)} {
			if cap(l) != len(l) {
				faults = append(faults, fmt.Sprint(who, " gets outer capacity ", cap(l)))
			}
		}
		bag.Get(s)[who], plain.Get(s)[who] = nil, 1
		dyn.Get(s).(map[string]any)[who] = true
		if v, _ := s.Value("plain"); !reflect.DeepEqual(v, plain.Get(s)) {
			faults = append(faults, fmt.Sprint(who, " reads two values: ", v))
		}
	}
	node := func(name string) graph.Node {
		return graph.Node{Name: name, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			misuse(name, s)
			return graph.Update{}, nil
		}, Hooks: []graph.Hooks{{Before: func(_ context.Context, _ graph.Info, s graph.State) (graph.Setup, error) {
			misuse("before "+name, s)
			return graph.Setup{}, nil
		}, After: func(_ context.Context, _ graph.Info, s graph.State, u graph.Update, err error) (graph.Update, error) {
			misuse("after "+name, s)
			return u, err
		}}}}
	}
	keys := []graph.AnyKey{list, rows, box, grown, bag, dyn, plain}
	child := compile(t, graph.Def{Name: "child", Keys: keys, Nodes: []graph.Node{node("in")}, Start: []string{"in"}, Edges: []graph.Edge{edge("in", graph.End)}})
	failing, handler := node("failing"), node("handler")
	run := failing.Run
	failing.OnError, failing.Run = "handler", func(ctx context.Context, s graph.State) (graph.Update, error) {
		_, _ = run(ctx, s)
		return graph.Update{}, fmt.Errorf("failed")
	}
	g := compile(t, graph.Def{Name: "g", Keys: keys, Start: []string{"first"},
		Nodes: []graph.Node{{Name: "first", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{Writes: writes()}, nil }},
			node("a"), node("b"), failing, handler,
			{Name: "sub", Graph: child, Inherit: true, In: func(s graph.State) ([]graph.Write, error) { misuse("In", s); return nil, nil },
				Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
					misuse("Out", c.State)
					return graph.Update{}, nil
				}}, node("last")},
		Edges: []graph.Edge{edge("first", "a"), edge("first", "b"), edge("first", "failing"), edge("first", "sub"), edge("failing", graph.End), edge("handler", "last"),
			branch("a", map[string]string{"": graph.End}, func(s graph.State) string { misuse("branch", s); return "" }),
			edge("b", graph.End), edge("sub", graph.End), edge("last", graph.End)}})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		r := &graph.Runner{Graph: g, Store: st}
		for e, err := range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.TopicStep | graph.TopicTask}) {
			switch b := e.Body.(type) {
			case graph.StepCommitted:
				misuse("event", b.State)
			case graph.RunEnded:
				misuse("result", b.Result.State)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if st != nil {
			s, err := r.State(t.Context(), thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			misuse("state", s)
		}
	}
	if faults != nil {
		t.Error(faults)
	}
}

// Two questions of one name at the same time are refused, from goroutines and one after the
// other; NameQuestions and an answer make room for the next.
func TestQuestionsOfOneNameAtTheSameTimeAreRefused(t *testing.T) {
	ask := func(ctx context.Context, name string) error {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Name: name, Prompt: "?"})
		return err
	}
	for name, node := range map[string]func(context.Context) error{
		"": func(ctx context.Context) error {
			errs := make(chan error, 2)
			for range 2 {
				go func() { errs <- ask(ctx, "") }()
			}
			return errors.Join(<-errs, <-errs)
		},
		"x": func(ctx context.Context) error { return errors.Join(ask(ctx, "x"), ask(ctx, "x")) },
		"in an effect": func(ctx context.Context) error {
			_, err := graph.Do(ctx, "e", func(ctx context.Context) (int, error) {
				return 0, errors.Join(ask(ctx, "in an effect"), ask(ctx, "in an effect"))
			})
			return err
		},
		"in a scope": func(ctx context.Context) error {
			ctx = graph.NameQuestions(ctx, "in a scope")
			return errors.Join(ask(ctx, ""), ask(ctx, ""))
		},
	} {
		r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if err := node(ctx); !strings.Contains(fmt.Sprint(err), fmt.Sprintf("question %q is already open in node a", name)) {
				t.Errorf("%q: %v", name, err)
			}
			return graph.Update{}, graph.ErrWaiting
		}}))
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
			t.Errorf("%q: open are %v", name, res.Questions)
		}
	}
}

// A key that stores parts is not read through a key of another kind: it would take one part for
// the whole.
func TestKeysOfAnotherKindAreRefused(t *testing.T) {
	first := func(old []int, _ bool, upd []int) ([]int, error) { return append(old, upd...), nil }
	firstMap := func(_ map[string]int, _ bool, upd map[string]int) (map[string]int, error) { return upd, nil }
	refuseKinds(t, []int{1}, "Append", map[string]graph.Key[[]int]{"Append": graph.Append[int]("k"), "Last": graph.Last[[]int]("k"), "Fold": graph.Fold("k", first)})
	refuseKinds(t, map[string]int{"x": 1}, "Merge", map[string]graph.Key[map[string]int]{"Merge": graph.Merge[string, int]("k"), "Last": graph.Last[map[string]int]("k"), "Fold": graph.Fold("k", firstMap)})
}

func refuseKinds[T any](t *testing.T, part T, parts string, kinds map[string]graph.Key[T]) {
	t.Helper()
	def := func(k graph.Key[T]) graph.Def {
		return graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: writes(k.Set(part))}, {Name: "b", BreakBefore: true, Run: idle}},
			Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}}
	}
	for was, k := range kinds {
		for is, l := range kinds {
			r := &graph.Runner{Graph: compile(t, def(k)), Store: journal.NewMemory()}
			if res, err := r.Invoke(t.Context(), graph.Input{Thread: thread}); err != nil || res.Status != graph.Paused {
				t.Fatal(res.Status, err)
			}
			r.Graph = compile(t, def(l))
			refused := was == parts && is != parts
			s, err := r.State(t.Context(), thread, 0)
			if refused != (err != nil) || refused && !strings.Contains(err.Error(), `key "k" was stored in parts by`) || !refused && jsonOf(l.Get(s)) != jsonOf(part) {
				t.Errorf("%s read as %s: %v", was, is, err)
			}
			res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
			if refused != (err != nil) || refused && !strings.Contains(err.Error(), `key "k"`) {
				t.Errorf("%s continued as %s: %v %v", was, is, res.Status, err)
			}
			if !refused {
				continue
			}
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true, Set: []graph.Write{l.Reset(part)}})
			if err != nil || res.Status != graph.Done || jsonOf(l.Get(res.State)) != jsonOf(part) {
				t.Errorf("%s reset as %s: %v %v", was, is, res.Status, err)
			}
		}
	}
}

// wrongText is a text that is not UTF-8, as names of files may be. It also has
// the characters that its stored form uses.
const wrongText = "caf\xe9\xff.txt \uf8fe \uf8fe-- \ufffd \\ufffd <&> \u2028"

type oddName string

type oddBox struct {
	S string
	L []oddName
	M map[oddName]*string
	T time.Time
	P *time.Time
	oddInner
}

type oddInner struct{ In []string }

// roundTrips are values of many types that JSON alone would change.
func roundTrips() []any {
	s := wrongText
	london := time.Date(2024, 7, 1, 12, 0, 0, 5, time.FixedZone("BST", 3600))
	winter := time.Date(2024, 1, 1, 12, 0, 0, 0, time.FixedZone("GMT", 0))
	now := time.Now()
	return []any{wrongText, oddName(wrongText), []string{wrongText, ""}, [2]string{wrongText}, []oddName{wrongText}, map[string]int{"a\xff": 1, "a\xfe": 2, "a\ufffd": 3}, map[oddName]string{wrongText: wrongText}, &s,
		map[string][]*string{wrongText: {&s, nil}}, oddBox{S: wrongText, L: []oddName{wrongText}, M: map[oddName]*string{wrongText: &s}, T: london, P: &now, oddInner: oddInner{[]string{wrongText}}},
		[]any{wrongText, []string{wrongText}, map[string]string{wrongText: wrongText}, london, []time.Time{winter, now}}, map[string]any{wrongText: wrongText}, london, winter, now, []time.Time{london}, map[string]time.Time{"x": now},
		json.RawMessage(`{"a":"\ufffd"}`), float32(0.1), uint64(1<<64 - 1), []any{uint64(1<<64 - 1), float32(0.1), int8(1)}, []string{`\ufffd`}}
}

// An undisturbed run reads the same as a resumed one, and texts as they were written.
func TestValuesReadTheSameAfterAResume(t *testing.T) {
	for _, v := range roundTrips() {
		switch x := v.(type) {
		case string:
			sameAfterResume(t, x)
		case oddName:
			sameAfterResume(t, x)
		case []string:
			sameAfterResume(t, x)
		case [2]string:
			sameAfterResume(t, x)
		case []oddName:
			sameAfterResume(t, x)
		case map[string]int:
			sameAfterResume(t, x)
		case map[oddName]string:
			sameAfterResume(t, x)
		case *string:
			sameAfterResume(t, x)
		case map[string][]*string:
			sameAfterResume(t, x)
		case oddBox:
			sameAfterResume(t, x)
		case []any:
			sameAfterResume(t, x)
		case map[string]any:
			sameAfterResume(t, x)
		case time.Time:
			sameAfterResume(t, x)
		case []time.Time:
			sameAfterResume(t, x)
		case map[string]time.Time:
			sameAfterResume(t, x)
		case json.RawMessage:
			sameAfterResume(t, x)
		case float32:
			sameAfterResume(t, x)
		case uint64:
			sameAfterResume(t, x)
		default:
			t.Errorf("%T is not tried", v)
		}
	}
}

func sameAfterResume[T any](t *testing.T, v T) {
	t.Helper()
	last, fold, plain := graph.Last[T]("last"), graph.Fold("fold", func(_ T, _ bool, upd T) (T, error) { return upd, nil }), graph.Last[T]("plain").WithCodec(graph.JSONCodec[T]())
	keys := []graph.Key[T]{last, fold}
	if _, mixed := any(v).([]any); !mixed {
		keys = append(keys, plain)
	}
	dyn, grown, bag := graph.Dyn("dyn"), graph.Append[T]("grown"), graph.Merge[string, T]("bag")
	read := func(s graph.State) []any {
		all := []any{grown.Get(s), bag.Get(s)}
		for _, k := range keys {
			all = append(all, k.Get(s))
		}
		if d := dyn.Get(s); d != nil {
			all = append(all, d)
		}
		return all
	}
	var mu sync.Mutex
	var undisturbed [][]any
	names := []graph.AnyKey{dyn, grown, bag}
	for _, k := range keys {
		names = append(names, k)
	}
	g := compile(t, graph.Def{Name: "g", Keys: names, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			made, err := graph.Do(ctx, "made", func(context.Context) (T, error) { return v, nil })
			u := graph.Put(grown.Set([]T{v}), bag.Set(map[string]T{wrongText: v}))
			if _, err := graph.NewState(dyn.Set(v)); err == nil && reflect.TypeFor[T]().PkgPath() != "raddle.dev/graph_test" && !strings.Contains(reflect.TypeFor[T]().String(), "odd") && reflect.TypeFor[T]().Kind() != reflect.Array {
				u.Writes = append(u.Writes, dyn.Set(v))
			}
			for _, k := range keys {
				u.Writes = append(u.Writes, k.Set(made))
			}
			return u, err
		}},
		{Name: "b", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			made, err := graph.Do(ctx, "again", func(context.Context) (T, error) { return v, nil })
			mu.Lock()
			undisturbed = append(undisturbed, append(read(s), made))
			mu.Unlock()
			if err == nil && len(undisturbed) < 2 {
				_, err = graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
			}
			return graph.Update{}, err
		}},
	}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread})
	if err != nil || res.Status != graph.Waiting {
		t.Errorf("%T: %v %v", v, res.Status, err)
		return
	}
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: []graph.Answer{{Value: "x"}}}); err != nil || res.Status != graph.Done {
		t.Errorf("%T: %v %v", v, res.Status, err)
		return
	}
	if !reflect.DeepEqual(undisturbed[0], undisturbed[1]) {
		t.Errorf("%T: read\n%#v\nafter a resume\n%#v", v, undisturbed[0], undisturbed[1])
	}
	if _, isTime := any(v).(time.Time); !isTime && !strings.Contains(fmt.Sprintf("%T", v), "ime") && reflect.TypeFor[T]() != reflect.TypeFor[oddBox]() && reflect.TypeFor[T]() != reflect.TypeFor[[]any]() && !reflect.DeepEqual(undisturbed[1][2], any(v)) {
		t.Errorf("%T: wrote %#v, read %#v", v, v, undisturbed[1][2])
	}
	if res, err := debugged(g, nil).Invoke(t.Context(), graph.Input{}); err != nil {
		t.Errorf("%T with Debug: %v %v", v, res.Status, err)
	}
}

// hiding has JSON of its own, which replaces wrong bytes.
type hiding struct{ s string }

func (h hiding) MarshalText() ([]byte, error)  { return []byte(h.s), nil }
func (h *hiding) UnmarshalText(b []byte) error { h.s = string(b); return nil }

// What cannot be kept is refused when it is written, and an answer when it is given.
func TestTextsThatCannotBeKeptAreRefused(t *testing.T) {
	k := graph.Last[hiding]("k")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: writes(k.Set(hiding{wrongText}))}}, Edges: []graph.Edge{edge("a", graph.End)}})
	if res, err := start(t, kept(g)); err == nil || !strings.Contains(err.Error(), `key "k"`) || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("%v %v", res.Status, err)
	}
	ask := func(ask graph.Ask) *graph.Runner {
		return kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[any](ctx, ask)
			return graph.Update{}, err
		}}))
	}
	for _, a := range []graph.Ask{{Options: []string{"ok", wrongText}}, {Default: wrongText}} {
		if res, err := start(t, ask(a)); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%v %v", res.Status, err)
		}
	}
	for _, v := range []any{wrongText, []string{wrongText}, map[string]any{"x": wrongText}, map[string]int{wrongText: 1}} {
		r := ask(graph.Ask{Prompt: "?"})
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		var wrong *graph.AnswerError
		if _, err = resume(t, r, graph.Answer{Value: v}); !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, "not UTF-8") {
			t.Errorf("%#v: %v", v, err)
		}
	}
}

// The context of the node names the effect that runs there, and never the empty key.
func TestEffectKeyWithTheContextOfTheNode(t *testing.T) {
	var right, wrong, none, several string
	r := kept(parallel(t, graph.Node{Name: "a", Run: func(node context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(node, "one", func(ctx context.Context) (int, error) {
			right, wrong = graph.EffectKey(ctx), graph.EffectKey(node)
			_, err := graph.Do(node, "two", func(ctx context.Context) (int, error) {
				several = graph.EffectKey(node)
				return 0, nil
			})
			return 0, err
		})
		none = graph.EffectKey(node)
		return graph.Update{}, err
	}}))
	if res, err := start(t, r); err != nil || right == "" || wrong != right || none == "" || several == "" || several == right || none == several {
		t.Errorf("%v %v: %q %q %q %q", res.Status, err, right, wrong, none, several)
	}
	if k := graph.EffectKey(t.Context()); k != "" {
		t.Errorf("outside a node: %q", k)
	}
}

// Ids of one instant differ and sort by time, also among older ones. A zero State has no keys.
func TestIDsOfOneInstant(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 12, 44, 0, time.UTC)
	seen := map[string]bool{}
	for range 200_000 {
		seen[graph.NewID(now)] = true
	}
	if len(seen) != 200_000 {
		t.Errorf("%d ids are equal", 200_000-len(seen))
	}
	if old := graph.NewID(now)[:14]; graph.NewID(now.Add(-time.Millisecond)) >= old || old >= graph.NewID(now.Add(time.Millisecond)) {
		t.Error("ids do not sort beside older ones")
	}
	if v, present := list.Lookup(graph.State{}); v != nil || present {
		t.Error("a key of the zero State is present")
	}
}

// Another version of a graph, and another graph of its name, read nothing that was cached.
func TestTheCacheKnowsTheGraph(t *testing.T) {
	cache := &graph.MemoryCache{}
	for i, d := range []graph.Def{{Name: "g", Version: "1"}, {Name: "g", Version: "2"}, {Name: "g", Version: "2", Edges: []graph.Edge{edge("b", graph.End)}, Nodes: []graph.Node{{Name: "b", Run: idle}}}} {
		made := fmt.Sprint("made ", i)
		d.Keys, d.Start = all, []string{"a"}
		d.Nodes = append(d.Nodes, graph.Node{Name: "a", Cache: &graph.CachePolicy{Keys: []graph.AnyKey{list}}, Run: writes(only.Set(made))})
		d.Edges = append(d.Edges, edge("a", graph.End))
		if i == 2 {
			d.Start = []string{"a", "b"}
		}
		res, err := (&graph.Runner{Graph: compile(t, d), Cache: cache}).Invoke(t.Context(), graph.Input{})
		if err != nil || only.Get(res.State) != made {
			t.Errorf("graph %d: %v, %q", i, err, only.Get(res.State))
		}
	}
}
