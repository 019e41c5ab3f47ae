package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
)

type (
	report struct {
		Name string
		Err  error
	}
	nestedReport struct {
		Name  string
		Items []report
	}
	loose      struct{ V any }
	opaque     struct{ n int }
	oneWay     struct{ n int }
	oneWayText int
	shyText    string
	branching  struct {
		Name     string
		Children []*branching
		By       map[string]*branching
	}
	hiddenPart struct{ N int }
	embedsPtr  struct{ *hiddenPart }
	locked     struct {
		sync.Mutex
		N int
	}
	based      struct{ big.Int }
	withStatus struct{ Status graph.Status }
	tagged     struct {
		N  int
		Fn func() `json:"-"`
	}
	twoWay struct{ v any }
)

func (oneWay) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

func (oneWayText) MarshalText() ([]byte, error) { return []byte("one"), nil }

func (shyText) MarshalText() ([]byte, error) { return []byte("***"), nil }

func (t twoWay) MarshalJSON() ([]byte, error) { return json.Marshal(t.v) }

func (t *twoWay) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &t.v) }

func (o opaque) String() string { return fmt.Sprint(o.n) }

func (o oneWay) String() string { return fmt.Sprint(o.n) }

// compileKey compiles a graph that has the key and nothing else of interest.
func compileKey(k graph.AnyKey) (*graph.Graph, error) {
	return graph.Compile(graph.Def{
		Name: "keys", Keys: []graph.AnyKey{k}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: idle}},
		Edges: []graph.Edge{edge("w", graph.End)},
	})
}

func TestCompileRefusesKeysThatCannotBeReadAgain(t *testing.T) {
	for _, c := range []struct {
		key  graph.AnyKey
		path string
		why  string
	}{
		{graph.Last[report]("k"), "report.Err", "is error, an interface"},
		{graph.Last[*report]("k"), "report.Err", "is error"},
		{graph.Append[report]("k"), "report.Err", "is error"},
		{graph.Merge[string, report]("k"), "report.Err", "is error"},
		{graph.Last[nestedReport]("k"), "nestedReport.Items[].Err", "is error"},
		{graph.Last[loose]("k"), "loose.V", "is any"},
		{graph.Append[loose]("k"), "loose.V", "is any"},
		{graph.Last[struct{ V map[string]any }]("k"), "struct.V[]", "is any"},
		{graph.Last[struct{ V []any }]("k"), "struct.V[]", "is any"},
		{graph.Last[chan int]("k"), "it", "is a chan"},
		{graph.Last[func()]("k"), "it", "is a func"},
		{graph.Last[complex128]("k"), "it", "is a complex128"},
		{graph.Last[struct{ F func() }]("k"), "struct.F", "is a func"},
		{graph.Last[opaque]("k"), "opaque", "not exported"},
		{graph.Last[struct{ U url.URL }]("k"), "struct.U.User", "not exported"},
		{graph.Last[oneWay]("k"), "it", "no UnmarshalJSON"},
		{graph.Last[[]oneWayText]("k"), "it", "no UnmarshalText"},
		{graph.Last[withStatus]("k"), "withStatus.Status", "no UnmarshalText"},
		{graph.Last[map[bool]int]("k"), "it", "keys are bool"},
		{graph.Last[map[any]int]("k"), "it", "keys are any"},
		{graph.Merge[[2]int, int]("k"), "it", "keys are [2]int"},
		{graph.Last[embedsPtr]("k"), "embedsPtr.hiddenPart", "embedded pointer"},
		{graph.Merge[string, big.Int]("k"), "it", "pointer receiver"},
	} {
		_, err := compileKey(c.key)
		var fault *graph.TypeError
		if !errors.As(err, &fault) {
			t.Errorf("%T: compiled: %v", c.key, err)
			continue
		}
		if fault.Path != c.path || !strings.Contains(fault.Reason, c.why) || fault.Fix == "" || !strings.Contains(err.Error(), `key "k"`) {
			t.Errorf("%T: %v\n  path %q, want %q and %q", c.key, err, fault.Path, c.path, c.why)
		}
	}
}

func TestCompileAcceptsKeysThatComeBack(t *testing.T) {
	for _, k := range []graph.AnyKey{
		graph.Last[branching]("k"), graph.Append[*branching]("k"), graph.Last[locked]("k"), graph.Last[tagged]("k"), graph.Last[big.Int]("k"), graph.Last[*big.Int]("k"),
		graph.Last[struct{ At time.Time }]("k"), graph.Last[json.RawMessage]("k"), graph.Last[struct{ Raw json.RawMessage }]("k"), graph.Last[struct{}]("k"),
		graph.Last[twoWay]("k"), graph.Last[struct{ T twoWay }]("k"), graph.Append[any]("k"), graph.Merge[string, any]("k"), graph.Last[[]map[string]any]("k"),
		graph.Last[error]("k"), graph.Last[[]error]("k"), graph.Last[shyText]("k"), graph.Last[map[time.Time]int]("k"), graph.Last[based]("k"),
		graph.Last[report]("k").WithCodec(graph.JSONCodec[report]()), graph.Last[loose]("k").WithCodec(graph.JSONCodec[loose]()),
	} {
		if _, err := compileKey(k); err != nil {
			t.Errorf("%T: %v", k, err)
		}
	}
}

// An open graph meets keys only when they are written.
func TestAnOpenGraphRefusesThemWhenTheyAreWritten(t *testing.T) {
	bad := graph.Last[report]("bad")
	g := compile(t, graph.Def{
		Name: "open", Start: []string{"w"}, Open: func(name string) graph.AnyKey { return graph.Dyn(name) },
		Nodes: []graph.Node{{Name: "w", Run: writes(bad.Set(report{Name: "x"}))}},
		Edges: []graph.Edge{edge("w", graph.End)},
	})
	_, err := start(t, kept(g))
	if fault := (*graph.TypeError)(nil); !errors.As(err, &fault) || fault.Path != "report.Err" {
		t.Errorf("error %v", err)
	}
}

// What pointer receivers encode is what they decode.
func TestPointerReceiversAreCalled(t *testing.T) {
	k := graph.Last[big.Int]("k")
	n := *big.NewInt(1 << 60)
	g := compile(t, graph.Def{
		Name: "big", Keys: []graph.AnyKey{k}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(n))}},
		Edges: []graph.Edge{edge("w", graph.End)},
	})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	s, err := r.State(t.Context(), thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.Get(s); got.Cmp(&n) != 0 {
		t.Errorf("read %s", got.String())
	}
}

// The effect is not made when its result could not be read again, and a question
// is not asked when no answer could.
func TestResultsAndAnswersAreCheckedBeforeAnythingHappens(t *testing.T) {
	made := 0
	body := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(ctx, "pay", func(context.Context) (report, error) { made++; return report{}, nil })
		return graph.Update{}, err
	}
	for name, run := range map[string]graph.Func{
		"effect": body,
		"answer": func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[report](ctx, graph.Ask{Prompt: "?"})
			return graph.Update{}, err
		},
		"shared": func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Share[report](ctx, "s")
			return graph.Update{}, err
		},
	} {
		g := compile(t, graph.Def{Name: "do", Start: []string{"w"}, Nodes: []graph.Node{{Name: "w", Run: run}}, Edges: []graph.Edge{edge("w", graph.End)}})
		for range 2 {
			res, err := kept(g).Invoke(t.Context(), graph.Input{Thread: name})
			if fault := (*graph.TypeError)(nil); !errors.As(err, &fault) || fault.Path != "report.Err" || res.Status != graph.Failed {
				t.Errorf("%s: status %v, error %v", name, res.Status, err)
			}
		}
	}
	if made != 0 {
		t.Errorf("the effect was made %d times", made)
	}
}

// An answer is JSON that others wrote: an any in it loses nothing.
func TestAnswersMayHoldAny(t *testing.T) {
	var got loose
	g := compile(t, graph.Def{Name: "ask", Start: []string{"w"}, Edges: []graph.Edge{edge("w", graph.End)}, Nodes: []graph.Node{{Name: "w",
		Run: func(ctx context.Context, _ graph.State) (_ graph.Update, err error) {
			got, err = graph.Interrupt[loose](ctx, graph.Ask{Prompt: "?"})
			return graph.Update{}, err
		}}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{ID: "w", Value: loose{V: 1.5}}); err != nil || got.V != 1.5 {
		t.Errorf("got %v, error %v", got, err)
	}
}

type mixedPart struct{ N int }

func init() { graph.Register[mixedPart]("storable-test.part") }

// mixedValues are values of interface type that must come back as they went in.
func mixedValues() map[string]any {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return map[string]any{
		"nil": nil, "bool": true, "int": 1, "int8": int8(-8), "int16": int16(-16), "int32": int32(-32), "int64": int64(1 << 60),
		"uint": uint(1), "uint8": uint8(8), "uint16": uint16(16), "uint32": uint32(32), "uint64": uint64(1 << 63), "float32": float32(1.5), "float64": 2.5,
		"text": "\xff no UTF-8", "bytes": []byte{0, 1}, "time": at, "duration": time.Second, "number": json.Number("1.50"), "raw": json.RawMessage(`{"a":1}`),
		"part": mixedPart{7}, "part pointer": &mixedPart{8}, "parts": []mixedPart{{1}}, "part map": map[string]mixedPart{"a": {2}},
		"texts": []string{"a", "b"}, "no texts": []string(nil), "ints": map[string]int{"a": 1}, "by number": map[int]string{1: "a"}, "times": []time.Time{at},
		"list": []any{1, "a", []any{int64(2)}, map[string]any{"x": uint8(1)}}, "map": map[string]any{"n": int64(3), "l": []any{nil}},
		"maps": []map[string]any{{"a": int64(1)}, nil}, "lists": [][]any{{1}, nil}, "deep": map[string][]map[string]any{"a": {{"b": int8(1)}}},
	}
}

// throughJournal writes a value in one drive and reads it from the journal.
func throughJournal[T any](t *testing.T, k graph.Key[T], v T) T {
	t.Helper()
	g := compile(t, graph.Def{
		Name: "journal", Keys: []graph.AnyKey{k}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(v))}, {Name: "end", Run: idle}},
		Edges: []graph.Edge{edge("w", "end"), edge("end", graph.End)},
	})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	s, err := r.State(t.Context(), thread, 0)
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	return k.Get(s)
}

func wantSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: read %#v (%[2]T), wrote %#v (%[3]T)", what, got, want)
	}
}

func TestAnyInsideKeysKeepsItsTypes(t *testing.T) {
	vs := mixedValues()
	var list []any
	for _, name := range []string{"nil", "int64", "bytes", "part", "map"} {
		list = append(list, vs[name])
	}
	for name, v := range vs {
		wantSame(t, "Dyn "+name, throughJournal(t, graph.Dyn("k"), v), v)
		wantSame(t, "Append "+name, throughJournal(t, graph.Append[any]("k"), []any{v}), []any{v})
		wantSame(t, "Merge "+name, throughJournal(t, graph.Merge[string, any]("k"), map[string]any{"a": v}), map[string]any{"a": v})
	}
	wantSame(t, "Last map", throughJournal(t, graph.Last[map[string]any]("k"), vs), vs)
	wantSame(t, "Last list", throughJournal(t, graph.Last[[]any]("k"), list), list)
	maps := []map[string]any{vs, {}, nil}
	wantSame(t, "list of maps", throughJournal(t, graph.Last[[]map[string]any]("k"), maps), maps)
	wantSame(t, "append maps", throughJournal(t, graph.Append[map[string]any]("k"), maps), maps)
	nested := map[string]map[string]any{"a": vs}
	wantSame(t, "map of maps", throughJournal(t, graph.Last[map[string]map[string]any]("k"), nested), nested)
	byNumber := map[int][]any{2: list, 10: nil, -1: {}}
	wantSame(t, "by number", throughJournal(t, graph.Merge[int, []any]("k"), byNumber), byNumber)
	array := [2]any{int64(1), "x"}
	wantSame(t, "array", throughJournal(t, graph.Last[[2]any]("k"), array), array)
	wantSame(t, "pointer", throughJournal(t, graph.Last[*[]any]("k"), &list), &list)
	wantSame(t, "no list", throughJournal(t, graph.Last[[]any]("k"), nil), []any(nil))
	stringers := []fmt.Stringer{time.Second, nil}
	wantSame(t, "other interface", throughJournal(t, graph.Last[[]fmt.Stringer]("k"), stringers), stringers)
}

func TestAnyInsideResultsKeepsItsTypes(t *testing.T) {
	vs := mixedValues()
	var got []map[string]any
	g := compile(t, graph.Def{Name: "do", Start: []string{"w"}, Edges: []graph.Edge{edge("w", graph.End)}, Nodes: []graph.Node{{Name: "w",
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			v, err := graph.Do(ctx, "make", func(context.Context) (map[string]any, error) { return vs, nil })
			if err != nil {
				return graph.Update{}, err
			}
			got = append(got, v)
			_, err = graph.Interrupt[bool](ctx, graph.Ask{Prompt: "?"})
			return graph.Update{}, err
		}}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{ID: "w", Value: true}); err != nil || len(got) != 2 {
		t.Fatal(err, len(got))
	}
	wantSame(t, "recorded result", got[1], got[0])
}

// What cannot come back is refused when it is written, by its key.
func TestUnknownTypesInsideAnyAreRefused(t *testing.T) {
	k := graph.Merge[string, any]("meta")
	for _, v := range []any{opaque{1}, []opaque{{1}}, map[bool]int{}, [2]int{}, make(chan int), func() {}, errors.New("x"), oneWayText(1)} {
		g := compile(t, graph.Def{Name: "bad", Keys: []graph.AnyKey{k}, Start: []string{"w"},
			Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(map[string]any{"a": v}))}}, Edges: []graph.Edge{edge("w", graph.End)}})
		if _, err := start(t, kept(g)); err == nil || !strings.Contains(err.Error(), `key "meta"`) || !strings.Contains(err.Error(), "cannot be stored") {
			t.Errorf("%T: %v", v, err)
		}
	}
}

// Journals of older versions hold plain JSON where a list or map of any was
// written: JSONCodec writes the same bytes under the same tag.
func TestValuesOfOlderJournalsDecodeAsBefore(t *testing.T) {
	old, now := graph.Merge[string, any]("meta").WithCodec(graph.JSONCodec[map[string]any]()), graph.Merge[string, any]("meta")
	def := func(k graph.Key[map[string]any]) graph.Def {
		return graph.Def{Name: "old", Keys: []graph.AnyKey{k}, Start: []string{"w"},
			Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(map[string]any{"n": int64(1), "l": []any{"a"}})), BreakAfter: true}, {Name: "x", Run: writes(k.Set(map[string]any{"m": int64(2)}))}},
			Edges: []graph.Edge{edge("w", "x"), edge("x", graph.End)}}
	}
	r := kept(compile(t, def(old)))
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	r.Graph = compile(t, def(now))
	res, err := resume(t, r)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"n": 1.0, "l": []any{"a"}, "m": int64(2)}
	wantSame(t, "in the run", now.Get(res.State), want)
	s, err := r.State(t.Context(), thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "in the journal", now.Get(s), want)
}
