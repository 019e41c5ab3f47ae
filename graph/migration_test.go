package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

type named struct{ Name string }

type titled struct{ Title string }

// wider is named with another field.
type wider struct {
	Name string
	Age  int `json:",omitempty"`
}

// persons are keys whose types have one name and different fields.
func person() graph.AnyKey { type person struct{ Name string }; return graph.Last[person]("k") }
func renamedPerson() graph.AnyKey {
	type person struct{ Title string }
	return graph.Last[person]("k")
}

// waiter is a graph with one key that is written before a question.
func waiter(t *testing.T, k graph.AnyKey, w ...graph.Write) *graph.Graph {
	return compile(t, graph.Def{Name: "w", Keys: []graph.AnyKey{k}, First: w, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{edge("a", graph.End)}})
}

// What another reducer or type would do to a stored value is an error that names the key, and consent loses nothing.
func TestChangesOfKeysAreNamed(t *testing.T) {
	text := graph.Last[string]("k")
	sum, list := graph.Sum[int]("k"), graph.Append[string]("k")
	merged := graph.Merge[string, int]("k")
	for name, c := range map[string]struct {
		was  *graph.Graph
		is   graph.AnyKey
		says string
	}{
		"Append to Last":   {waiter(t, list, list.Set([]string{"a"}), list.Set([]string{"b"})), graph.Last[[]string]("k"), `key "k": it was append of []string, and is last of []string`},
		"Last to Append":   {waiter(t, graph.Last[[]string]("k")), list, `key "k": it was last of []string, and is append of []string`},
		"Merge to Last":    {waiter(t, merged, merged.Set(map[string]int{"a": 1})), graph.Last[map[string]int]("k"), `key "k": it was merge of`},
		"Sum to Max":       {waiter(t, sum, sum.Set(1)), graph.Max[int]("k"), `key "k": it was sum of int, and is max of int`},
		"Last to Sum":      {waiter(t, graph.Last[int]("k")), sum, `key "k": it was last of int, and is sum of int`},
		"Concat to Last":   {waiter(t, graph.Concat("k"), graph.Concat("k").Set("a")), text, `key "k": it was concat of string, and is last of string`},
		"Last to Fold":     {waiter(t, text), graph.Fold("k", func(_ string, _ bool, n string) (string, error) { return n, nil }), `key "k": it was last of string, and is fold of string`},
		"another type":     {waiter(t, graph.Last[int]("k")), text, `key "k": it was last of int, and is last of string`},
		"a renamed field":  {waiter(t, person()), renamedPerson(), `key "k": it was last of graph_test.person, and is last of graph_test.person with other fields`},
		"the key is gone":  {waiter(t, text), graph.Last[string]("other"), `key "k" is gone (last of string)`},
		"the key is new":   {waiter(t, graph.Last[string]("other")), text, `key "k" is new (last of string)`},
		"fields in a list": {waiter(t, graph.Append[named]("k")), graph.Append[titled]("k"), `key "k": it was append of []graph_test.named, and is append of []graph_test.titled`},
	} {
		r := kept(c.was)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		r.Graph = waiter(t, c.is)
		var changed *graph.ChangedError
		if _, err := resume(t, r, says("a", "yes")); !errors.As(err, &changed) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A value whose type has lost a field is never read without it: not by State, and not with consent. One whose type has only more fields is read.
func TestNoFieldIsLost(t *testing.T) {
	type record = named
	k := graph.Last[record]("k")
	for name, c := range map[string]struct {
		key  graph.AnyKey
		lost string
	}{
		"renamed": {graph.Last[titled]("k").WithCodec(retagged[titled]()), "Name would be lost"},
		"wider":   {graph.Last[wider]("k").WithCodec(retagged[wider]()), ""},
	} {
		r := kept(waiter(t, k, k.Set(record{Name: "Ada"})))
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		r.Graph = waiter(t, c.key)
		_, err = r.State(t.Context(), thread, 0)
		if c.lost == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.lost) {
			t.Errorf("%s: State: %v", name, err)
		}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true, Answers: []graph.Answer{says("a", "yes")}})
		if c.lost == "" {
			is(t, graph.Done, res, err)
		} else if err == nil || !strings.Contains(err.Error(), c.lost) {
			t.Errorf("%s: with consent: %v", name, err)
		}
	}
}

// retagged stores a type as JSON under the name of another one: two versions of a program cannot be in one test.
func retagged[T any]() graph.Codec[T] {
	c := graph.JSONCodec[T]()
	c.Tag = "graph_test.named"
	return c
}

// stage is a graph of two nodes, the second of which makes an effect and asks.
func stage(t *testing.T, d graph.Def, second string, effects *int) *graph.Graph {
	d.Name, d.Start = "s", []string{"first"}
	d.Nodes = []graph.Node{{Name: "first", Run: writes(diary.Set("first"))}, {Name: second, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if _, err := graph.Do(ctx, "pay", func(context.Context) (int, error) { *effects++; return *effects, nil }); err != nil {
			return graph.Update{}, err
		}
		answer, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
		return graph.Put(diary.Set(second + "=" + answer)), err
	}}}
	d.Edges = []graph.Edge{edge("first", second), edge(second, graph.End)}
	if d.Keys == nil {
		d.Keys = []graph.AnyKey{diary}
	}
	return compile(t, d)
}

var diary = graph.Last[string]("log")

// A node with another name continues where the run waits: its effect is not repeated, and its question takes the answer. The
// migration is one edit, and a kill after it leaves nothing to migrate.
func TestARenamedNodeContinues(t *testing.T) {
	effects := 0
	r := kept(stage(t, graph.Def{Version: "1"}, "draft", &effects))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	r.Graph = stage(t, graph.Def{Version: "2"}, "write", &effects)
	var changed *graph.ChangedError
	_, err = resume(t, r, says("draft", "yes"))
	if !errors.As(err, &changed) || len(changed.Needs) != 1 || changed.Needs[0].As != "write" {
		t.Fatalf("%+v, %v", changed, err)
	}
	if want := `{From: "1", Steps: []graph.MigrationStep{graph.RenameNode("draft", "write")}}`; changed.Needs[0].Lines() != want || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	r.Graph = stage(t, graph.Def{Version: "2", Migrations: []graph.Migration{{From: "1", Steps: []graph.MigrationStep{graph.RenameNode("draft", "write")}}}}, "write", &effects)
	plan, err := r.PlanMigration(t.Context(), thread)
	if err != nil || !plan.Covered || fmt.Sprint(plan.Done) != "[node draft is now write]" {
		t.Fatalf("%+v, %v", plan, err)
	}
	before := len(journalOf(t, r.Store, thread))
	if plan, err = r.Migrate(t.Context(), thread, nil); err != nil || !plan.Covered {
		t.Fatal(plan, err)
	}
	if plan, err = r.Migrate(t.Context(), thread, nil); err != nil || !plan.Same {
		t.Errorf("again: %+v, %v", plan, err)
	}
	records := journalOf(t, r.Store, thread)
	if n := len(records) - before; n != 1 || records[before].Kind != journal.KindEdit {
		t.Errorf("%d records, the first is %v", n, records[before].Kind)
	}
	info, err := history.Inspect(t.Context(), r.Store, thread, 0)
	if err != nil || info.Status != graph.Waiting || len(info.Questions) != 1 || info.Questions[0].Node != "write" || !slices.Equal(info.Next, []string{"write"}) {
		t.Errorf("%+v, %v", info, err)
	}
	res, err = resume(t, r, says("draft", "yes"))
	if is(t, graph.Done, res, err); diary.Get(res.State) != "write=yes" || effects != 1 {
		t.Errorf("%q, %d effects", diary.Get(res.State), effects)
	}
}

// A resume that a migration covers needs no consent, and writes its edit together with the claim.
func TestAResumeMigrates(t *testing.T) {
	effects := 0
	count, text := graph.Last[int]("count"), graph.Last[string]("count")
	r := kept(stage(t, graph.Def{Version: "1", Keys: []graph.AnyKey{diary, count, graph.Last[string]("old")}, First: []graph.Write{count.Set(3), graph.Last[string]("old").Set("x")}}, "draft", &effects))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	tone := graph.Last[string]("tone")
	steps := []graph.MigrationStep{
		graph.RenameNode("draft", "write"), graph.DropKey("old"), graph.DefaultKey(tone.Set("plain")),
		graph.ConvertKey(count, text, func(n int) (string, error) { return fmt.Sprint(n, " items"), nil }),
	}
	r.Graph = stage(t, graph.Def{Version: "3", Keys: []graph.AnyKey{diary, text, tone}, Migrations: []graph.Migration{{From: "1", Steps: steps[:1]}, {From: "2", Steps: steps[1:]}}}, "write", &effects)
	res, err = resume(t, r, says("draft", "yes"))
	is(t, graph.Done, res, err)
	if got := fmt.Sprint(text.Get(res.State), tone.Get(res.State), effects, res.State.Keys()); got != "3 itemsplain1 [count log tone]" {
		t.Error(got)
	}
	if want := "[node draft is now write key old is gone key tone has its default key count was converted]"; fmt.Sprint(res.Migrated) != want {
		t.Error(res.Migrated)
	}
}

// What a migration does not cover is refused, and names the key.
func TestAMigrationMustCoverAll(t *testing.T) {
	effects := 0
	old, list := graph.Last[string]("old"), graph.Append[string]("list")
	r := kept(stage(t, graph.Def{Version: "1", Keys: []graph.AnyKey{diary, old, list}, First: []graph.Write{old.Set("x"), list.Set([]string{"a"}), list.Set([]string{"b"})}}, "draft", &effects))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	r.Graph = stage(t, graph.Def{Version: "2", Keys: []graph.AnyKey{diary, graph.Last[[]string]("list"), graph.Last[string]("fresh")}, Migrations: []graph.Migration{{From: "1"}}}, "draft", &effects)
	var changed *graph.ChangedError
	_, err = resume(t, r)
	if !errors.As(err, &changed) || len(changed.Needs) != 2 || changed.Needs[0].Name != "list" || changed.Needs[1].Name != "old" || changed.Needs[1].As != "fresh" {
		t.Fatalf("%+v", changed)
	}
	if _, err := r.Migrate(t.Context(), thread, nil); !errors.As(err, &changed) {
		t.Error(err)
	}
}
