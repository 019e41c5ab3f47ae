package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
)

// parkedKeys are keys of all kinds.
var (
	parkedText  = graph.Last[string]("text")
	parkedNum   = graph.Last[int]("num")
	parkedList  = graph.Append[string]("list")
	parkedMap   = graph.Merge[string, int]("map")
	parkedSum   = graph.Sum[int]("sum")
	parkedMax   = graph.Max[int]("max")
	parkedLines = graph.Concat("lines")
	parkedRec   = graph.Last[named]("rec")
	parkedEnd   = graph.Last[string]("end")
)

// parkedDef is a graph in which runs wait at several places: some in left, with mid done; some in right, with left arrived at a join; some after a loop.
func parkedDef(i int) graph.Def {
	ask := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
		return graph.Update{}, err
	}
	left := graph.Func(idle)
	if i%3 == 0 {
		left = ask
	}
	return graph.Def{
		Name: "parked", Version: "1", Start: []string{"seed"},
		Keys: []graph.AnyKey{parkedText, parkedNum, parkedList, parkedMap, parkedSum, parkedMax, parkedLines, parkedRec, parkedEnd},
		Nodes: []graph.Node{
			{Name: "seed", Run: writes(parkedText.Set(fmt.Sprint("text ", i)), parkedNum.Set(i+1), parkedList.Set([]string{"a", fmt.Sprint(i)}), parkedList.Set([]string{"b"}),
				parkedMap.Set(map[string]int{"x": i + 1}), parkedMap.Set(map[string]int{"y": 2}), parkedSum.Set(i+1), parkedSum.Set(3), parkedMax.Set(i+1), parkedLines.Set("one"), parkedLines.Set("two"), parkedRec.Set(named{fmt.Sprint("n", i)}))},
			{Name: "left", Run: left}, {Name: "mid", Run: idle}, {Name: "right", Run: ask}, {Name: "fin", Run: writes(parkedEnd.Set("yes"))},
		},
		Edges: []graph.Edge{edge("seed", "left", "mid"), edge("mid", "right"), {From: []string{"left", "right"}, To: []string{"fin"}}, edge("fin", graph.End)},
	}
}

// renameIn renames a node everywhere in a graph.
func renameIn(d *graph.Def, from, to string) {
	swap := func(names []string) (list []string) {
		for _, n := range names {
			if n == from {
				n = to
			}
			list = append(list, n)
		}
		return list
	}
	for i := range d.Nodes {
		if d.Nodes[i].Name == from {
			d.Nodes[i].Name = to
		}
	}
	for i := range d.Edges {
		d.Edges[i].From = swap(d.Edges[i].From)
		d.Edges[i].To = swap(d.Edges[i].To)
	}
	d.Start = swap(d.Start)
}

// replaceKey replaces the declaration of a key; nil: it is gone.
func replaceKey(d *graph.Def, name string, k graph.AnyKey) {
	at := slices.IndexFunc(d.Keys, func(k graph.AnyKey) bool { return k.Name() == name })
	if d.Keys = slices.Delete(slices.Clone(d.Keys), at, at+1); k != nil {
		d.Keys = append(d.Keys, k)
	}
	d.Nodes = slices.Clone(d.Nodes)
	d.Nodes[0].Run = idle // it would write the key as it was
}

// A graphChange is a change of parkedDef.
type graphChange struct {
	name    string
	edit    func(d *graph.Def)
	says    string                // what its error names
	convert []graph.MigrationStep // what a person writes for the key that cannot be read
	lost    string                // the key that is dropped with a word about it
	renamed map[string]string     // keys
}

func keyChange(name, key string, k graph.AnyKey) graphChange {
	return graphChange{name: name, edit: func(d *graph.Def) { replaceKey(d, key, k) }, says: fmt.Sprintf("key %q", key)}
}

func (c graphChange) drops(key string) graphChange { c.lost = key; return c }

// listChanges lists the changes.
func listChanges(t *testing.T) []graphChange {
	node := func(names ...string) graphChange {
		return graphChange{name: "rename " + strings.Join(names, ", "), says: fmt.Sprintf("node %q", names[0]), edit: func(d *graph.Def) {
			for _, n := range names {
				renameIn(d, n, n+"er")
			}
		}}
	}
	with := func(name, says string, edit func(d *graph.Def)) graphChange {
		return graphChange{name: name, says: says, edit: edit}
	}
	text := keyChange("int to text", "num", graph.Last[string]("num"))
	text.convert = []graph.MigrationStep{graph.ConvertKey(parkedNum, graph.Last[string]("num"), func(n int) (string, error) { return fmt.Sprint(n), nil })}
	whole := keyChange("Append to Last", "list", graph.Last[[]string]("list"))
	whole.convert = []graph.MigrationStep{graph.ConvertKey(parkedList, graph.Last[[]string]("list"), func(l []string) ([]string, error) { return l, nil })}
	table := keyChange("Merge to Last", "map", graph.Last[map[string]int]("map"))
	table.convert = []graph.MigrationStep{graph.ConvertKey(parkedMap, graph.Last[map[string]int]("map"), func(m map[string]int) (map[string]int, error) { return m, nil })}
	title := graph.Last[titled]("rec").WithCodec(retagged[titled]())
	field := keyChange("a field renamed", "rec", title)
	field.convert = []graph.MigrationStep{graph.ConvertKey(parkedRec, title, func(n named) (titled, error) { return titled{n.Name}, nil })}
	moved := keyChange("a key renamed", "text", graph.Last[string]("title"))
	moved.renamed = map[string]string{"text": "title"}
	both := keyChange("key and node renamed", "text", graph.Last[string]("title"))
	both.renamed = moved.renamed
	both.edit = func(d *graph.Def) { replaceKey(d, "text", graph.Last[string]("title")); renameIn(d, "right", "check") }
	child := compile(t, graph.Def{Name: "child", Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: idle}}, Edges: []graph.Edge{edge("x", graph.End)}})
	return []graphChange{
		node("right"), node("left"), node("left", "right"), node("fin"), node("seed"), node("mid"), node("mid", "right"), node("fin", "left"),
		text, whole, table, field, moved, both,
		keyChange("int to int64", "num", graph.Last[int64]("num")).drops("num"), keyChange("Append to Merge", "list", graph.Merge[string, string]("list")).drops("list"),
		keyChange("Sum to Max", "sum", graph.Max[int]("sum")), keyChange("Sum to Min", "sum", graph.Min[int]("sum")), keyChange("Sum to Last", "sum", graph.Last[int]("sum")),
		keyChange("Max to Sum", "max", graph.Sum[int]("max")), keyChange("Concat to Last", "lines", graph.Last[string]("lines")), keyChange("Last to Concat", "text", graph.Concat("text")),
		keyChange("Last to Fold", "text", graph.Fold("text", func(_ string, _ bool, n string) (string, error) { return n, nil })),
		keyChange("a field more", "rec", graph.Last[wider]("rec").WithCodec(retagged[wider]())), keyChange("struct to text", "rec", graph.Last[string]("rec")).drops("rec"),
		keyChange("other elements", "list", graph.Append[int]("list")).drops("list"), keyChange("other entries", "map", graph.Merge[string, string]("map")).drops("map"),
		keyChange("a key gone", "max", nil).drops("max"), keyChange("another key gone", "list", nil).drops("list"),
		with("a key more", `key "fresh" is new`, func(d *graph.Def) { d.Keys = append(d.Keys, graph.Last[int]("fresh")) }),
		with("another version", "version: it was 1, and is 3", func(d *graph.Def) { d.Version = "3" }),
		with("another kind", `node "mid": it was function, and is script`, func(d *graph.Def) { d.Nodes[2].Kind = "script" }),
		with("a node more", `node "extra" is new`, func(d *graph.Def) {
			d.Nodes = append(d.Nodes, graph.Node{Name: "extra", Run: idle})
			d.Edges[3] = edge("fin", "extra")
			d.Edges = append(d.Edges, edge("extra", graph.End))
		}),
		with("an edge more", "edge fin -> mid", func(d *graph.Def) { d.Nodes[4].Routes = []string{"mid"} }),
		with("a handler", "edge mid -> fin", func(d *graph.Def) { d.Nodes[2].OnError = "fin" }),
		with("any route", `node "mid": it was function, and is function that may name every node`, func(d *graph.Def) { d.Nodes[2].AnyRoute = true }),
		with("finally", "finally is new", func(d *graph.Def) {
			d.Nodes = append(d.Nodes, graph.Node{Name: "clean", Run: idle})
			d.Finally = "clean"
		}),
		with("another start", "start: it was seed, and is mid, seed", func(d *graph.Def) { d.Start = []string{"seed", "mid"} }),
		with("a child", `node "mid": it was function, and is function with a graph`, func(d *graph.Def) { d.Nodes[2].Run, d.Nodes[2].Graph = nil, child }),
		with("another name of an end", "edge mid -> fin (stop)", func(d *graph.Def) { d.Nodes[2].Ends = map[string]string{"stop": "fin"} }),
		with("no join", `edge left -> fin`, func(d *graph.Def) {
			d.Edges[2] = edge("right", "fin")
			d.Edges = append(d.Edges, edge("left", graph.End))
		}),
	}
}

// Forty changes of a graph under fifty parked runs each: a run continues with its values, or what the error says to write continues it, or it is refused and
// the key or node is named. Nothing passes silently, and no value becomes another one.
func TestFortyChangesUnderFiftyRuns(t *testing.T) {
	const runs = 50
	changes := listChanges(t)
	if len(changes) < 40 {
		t.Fatalf("%d changes", len(changes))
	}
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			r := kept(nil)
			for i := range runs {
				continueParked(t, r, c, i)
			}
		})
	}
}

// continueParked parks a run, and continues it with the changed graph.
func continueParked(t *testing.T, r *graph.Runner, c graphChange, i int) {
	id := fmt.Sprint("run", i)
	r.Graph = compile(t, parkedDef(i))
	if res, err := r.Invoke(t.Context(), graph.Input{Thread: id}); err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	was := storedValues(t, r, id)
	d := parkedDef(i)
	c.edit(&d)
	if i%2 == 0 && d.Version == "1" {
		d.Version = "2"
	}
	r.Graph = compile(t, d)
	var changed *graph.ChangedError
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: id}); !errors.As(err, &changed) || !strings.Contains(err.Error(), c.says) {
		t.Fatalf("run %d passes: %v", i, err)
	}
	for round := 0; len(changed.Needs) > 0 && round < 3; round++ { // write what the error says
		if slices.ContainsFunc(changed.Needs, func(n graph.Need) bool { return n.Kind == "join" }) {
			break // it was named, and a person agrees
		}
		entry := graph.Migration{From: changed.Needs[0].From}
		for _, n := range changed.Needs {
			entry.Steps = append(entry.Steps, obey(t, c, n)...)
		}
		if len(d.Migrations) > 0 {
			entry.Steps = append(d.Migrations[0].Steps, entry.Steps...)
		}
		d.Migrations = []graph.Migration{entry}
		r.Graph = compile(t, d)
		plan, err := r.PlanMigration(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		changed = &plan.ChangedError
	}
	for range 3 {
		info, err := history.Inspect(t.Context(), r.Store, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		if info.Status == graph.Done {
			break
		}
		in := graph.Resume{Thread: id, AcceptChanges: d.Migrations == nil}
		for _, q := range info.Questions {
			in.Answers = append(in.Answers, graph.Answer{ID: q.ID, Value: "yes"})
		}
		if _, err := r.InvokeResume(t.Context(), in); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
	is := storedValues(t, r, id)
	if is["end"] != `"yes"` {
		t.Errorf("run %d has not ended: %v", i, is)
	}
	for key, value := range was {
		name := key
		if to, ok := c.renamed[key]; ok {
			name = to
		}
		if c.convert != nil && c.says == fmt.Sprintf("key %q", key) {
			value = strings.NewReplacer(`"Name"`, `"Title"`).Replace(value)
			if key == "num" {
				value = `"` + value + `"`
			}
		}
		if key != c.lost && is[name] != value {
			t.Errorf("run %d: %s was %s, and is %s", i, key, value, is[name])
		}
	}
}

// obey returns the steps that a need says to write.
func obey(t *testing.T, c graphChange, n graph.Need) []graph.MigrationStep {
	switch {
	case n.Kind == "node" && n.As != "":
		return []graph.MigrationStep{graph.RenameNode(n.Name, n.As)}
	case n.Kind == "key" && n.Name == c.lost:
		return []graph.MigrationStep{graph.DropKey(n.Name)}
	case n.Kind == "key" && n.As == n.Name:
		return c.convert
	case n.Kind == "key" && n.As != "":
		return []graph.MigrationStep{graph.RenameKey(n.Name, n.As)}
	}
	t.Fatalf("nothing follows from %+v", n)
	return nil
}

// storedValues returns the values of a thread as JSON.
func storedValues(t *testing.T, r *graph.Runner, id string) map[string]string {
	s, err := r.State(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for _, key := range s.Keys() {
		v, _ := s.Value(key)
		j, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		by[key] = string(j)
	}
	return by
}
