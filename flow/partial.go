package flow

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
)

// What a map does with items that have failed, and what it keeps to repeat them.

// A FailedItem is an item of a map whose branch has failed.
type FailedItem struct {
	Index int // its place in the list of the map, from 0
	Item  any
	Error string // the reason
}

// These are the members of the counts of a map, and of each of its failures.
const (
	countDone     = "done"
	countFailed   = "failed"
	countFailures = "failures"
	countRepeat   = "repeat" // true: the map is to run its failed items again

	failureIndex = "index"
	failureItem  = "item"
	failureError = "error"
)

// newCounts returns what a map keeps under its own id: {done, failed, failures: [{index, item, error}]}.
func newCounts(done int, failed []FailedItem) *jsonvalue.Object {
	list := make([]any, len(failed))
	for i, f := range failed {
		list[i] = jsonvalue.NewObject(
			jsonvalue.Member{Key: failureIndex, Value: int64(f.Index)},
			jsonvalue.Member{Key: failureItem, Value: f.Item},
			jsonvalue.Member{Key: failureError, Value: f.Error},
		)
	}
	return jsonvalue.NewObject(
		jsonvalue.Member{Key: countDone, Value: int64(done)},
		jsonvalue.Member{Key: countFailed, Value: int64(len(failed))},
		jsonvalue.Member{Key: countFailures, Value: list},
	)
}

// readCounts reads the value that newCounts has made; ok is false for another one.
func readCounts(v any) (done int, failed []FailedItem, ok bool) {
	counts, ok := v.(*jsonvalue.Object)
	if !ok {
		return 0, nil, false
	}
	whole := func(o *jsonvalue.Object, key string) int {
		v, _ := o.Get(key)
		n, whole := v.(int64)
		ok = ok && whole && n >= 0
		return int(n)
	}
	done = whole(counts, countDone)
	n := whole(counts, countFailed)
	v, _ = counts.Get(countFailures)
	list, _ := v.([]any)
	for _, v := range list {
		o, is := v.(*jsonvalue.Object)
		if !is {
			return 0, nil, false
		}
		item, has := o.Get(failureItem)
		reason, _ := o.Get(failureError)
		text, says := reason.(string)
		ok = ok && has && says
		failed = append(failed, FailedItem{Index: whole(o, failureIndex), Item: item, Error: text})
	}
	return done, failed, ok && n == len(failed)
}

// mapWork is what one visit of a map has to do.
type mapWork struct {
	items  []any // that are sent to the branch
	places []int // of the items in the list of the map
	total  int   // number of items in that list
	skip   bool  // failed items are not in the list of results
	before []any // the results before a repetition of failed items, without those of these items
}

// planWork returns what a map has to do: all items of its list, or, if its counts say so, those that have failed.
func (b *mapNode) planWork(n *spec.Node, s graph.State) (*mapWork, error) {
	w := &mapWork{skip: b.OnFailure == spec.OnFailureSkip}
	if v, ok := s.Value(n.CountsKey()); ok && n.CountsKey() != "" && isRepeat(v) {
		return w, b.planRepetition(w, n, s, v)
	}
	items, err := b.evalItems(s)
	if err != nil {
		return nil, err
	}
	w.items = items
	w.total = len(items)
	w.places = make([]int, len(items))
	for i := range items {
		w.places[i] = i
	}
	return w, nil
}

// isRepeat reports whether the counts of a map say that its failed items are to run again.
func isRepeat(counts any) bool {
	o, ok := counts.(*jsonvalue.Object)
	if !ok {
		return false
	}
	v, _ := o.Get(countRepeat)
	return v == true
}

// planRepetition plans the work on the items that the counts of a map name.
func (b *mapNode) planRepetition(w *mapWork, n *spec.Node, s graph.State, counts any) error {
	changed := fmt.Errorf("the failed items cannot be repeated alone: `%s` and `%s` are no longer as the map has written them", n.CountsKey(), b.CollectInto)
	done, failed, ok := readCounts(counts)
	v, _ := s.Value(b.CollectInto)
	list, isList := v.([]any)
	if !ok || !isList {
		return changed
	}
	w.total = done + len(failed)
	for _, f := range failed {
		w.items = append(w.items, f.Item)
		w.places = append(w.places, f.Index)
	}
	for i, place := range w.places {
		if place >= w.total || i > 0 && place <= w.places[i-1] {
			return changed
		}
	}
	w.before = slices.Clone(list)
	if !w.skip {
		if len(list) != w.total {
			return changed
		}
		for _, at := range slices.Backward(w.places) {
			w.before = slices.Delete(w.before, at, at+1)
		}
	}
	if len(w.before) != done {
		return changed
	}
	return nil
}

// itemOutcome is the outcome of one item that was sent to the branch.
type itemOutcome struct {
	value  any
	reason string
	failed bool
	gone   bool // it has no place in the list of results
}

// outcomesOf returns the outcome of the items, in their order.
func (b *mapNode) outcomesOf(nr *nodeRun, w *mapWork, child graph.Child) []itemOutcome {
	outcomes := make([]itemOutcome, len(w.items))
	for _, f := range child.Failures {
		if at := f.Index - 1; isOwnFailure(nr, f) && f.Node == b.To && at >= 0 && at < len(outcomes) {
			o := itemOutcome{reason: f.Err.Error(), failed: true, gone: w.skip}
			if !w.skip {
				o.value = jsonvalue.NewObject(jsonvalue.Member{Key: failureError, Value: o.reason}, jsonvalue.Member{Key: failureItem, Value: w.items[at]})
			}
			outcomes[at] = o
		}
	}
	if b.Handler() != "" {
		for _, v := range handledItems.Get(child.State) {
			handled := v.([]any)
			outcomes[handled[0].(int64)] = itemOutcome{value: handled[1], reason: handled[2].(string), failed: true}
		}
	}
	results := branchResults.Get(child.State)
	for i := range outcomes {
		if !outcomes[i].failed {
			outcomes[i].value = results[0]
			results = results[1:]
		}
	}
	return outcomes
}

// isOwnFailure reports whether a failure is one of the map's own graph, and not of one below it.
func isOwnFailure(nr *nodeRun, f *graph.NodeError) bool {
	above := graph.TaskPath(nr)
	depth := 1 + strings.Count(above, "/") + strings.Count(above, "#") // a named child is one name more in the path for people
	return strings.Count(f.Path, "/") == depth
}

// mergeOutcomes returns the list of results and the items that have failed, in the order of the list of the map.
func (w *mapWork) mergeOutcomes(outcomes []itemOutcome) (list []any, failed []FailedItem) {
	list = make([]any, 0, w.total)
	before := w.before
	next := 0
	for place := range w.total {
		if next == len(w.places) || w.places[next] != place {
			list = append(list, before[0])
			before = before[1:]
			continue
		}
		o := outcomes[next]
		if !o.gone {
			list = append(list, o.value)
		}
		if o.failed {
			failed = append(failed, FailedItem{Index: place, Item: w.items[next], Error: o.reason})
		}
		next++
	}
	return list, failed
}

// warnFailed says how many items have failed, and where their reasons are.
func (b *mapNode) warnFailed(nr *nodeRun, w *mapWork, failed []FailedItem) {
	if len(failed) == 0 {
		return
	}
	what := map[string]string{
		spec.OnFailureCollect: "their reasons are in `" + b.CollectInto + "`",
		spec.OnFailureSkip:    "`" + b.CollectInto + "` leaves them out",
	}[b.OnFailure]
	if what == "" {
		what = "'" + b.Handler() + "' has handled them"
	}
	nr.warnf("map node '%s': %d of %d items failed (%s), first the item [%d]: %s", nr.node.ID, len(failed), w.total, what, failed[0].Index, PlainReason(failed[0].Error))
}
