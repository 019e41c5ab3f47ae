package flow

import (
	"fmt"
	"slices"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/base/jsonvalue"
)

// CountFailedItems returns how many items of a map have failed, as the values of a state say; 0: none has, or the node is
// not a map that continues without its failed items.
func CountFailedItems(values []history.StoredValue, node string) int {
	for _, v := range values {
		if v.Key != node {
			continue
		}
		value, err := jsonvalue.ParseStored(StoredValue(v.Tag, v.Parts))
		if err != nil {
			return 0
		}
		_, failed, ok := readCounts(value)
		if !ok {
			return 0
		}
		return len(failed)
	}
	return 0
}

// RepeatFailedItems returns what lets a map run again for its failed items alone, in the state after its step: the
// writes, and the nodes that run next. next are those that would have run without it.
func (a *Agent) RepeatFailedItems(node string, s graph.State, next []string) ([]graph.Write, []string, error) {
	if a.File == nil || a.File.Node(node) == nil || a.File.Node(node).Branch == nil {
		return nil, nil, fmt.Errorf("agent '%s' has no map '%s' any more", a.Name, node)
	}
	n := a.File.Node(node)
	b := n.Body.(*mapNode)
	if h := b.Handler(); h != "" {
		return nil, nil, fmt.Errorf("the failed items of the map '%s' were handled by '%s': they are done", node, h)
	}
	if r := a.File.Reducer(b.CollectInto); r != "" {
		return nil, nil, fmt.Errorf("the map '%s' collects into `%s`, which has the reducer %s: raddle cannot separate what it has added from the rest", node, b.CollectInto, r)
	}
	v, _ := s.Value(n.CountsKey())
	counts, ok := v.(*jsonvalue.Object)
	if !ok || n.CountsKey() == "" {
		return nil, nil, fmt.Errorf("the map '%s' no longer continues without its failed items (`on_failure: %s`)", node, b.OnFailure)
	}
	repeat := jsonvalue.NewObject(jsonvalue.Member{Key: countRepeat, Value: true})
	for key, member := range counts.All() {
		repeat.Set(key, member)
	}
	if err := b.planRepetition(&mapWork{skip: b.OnFailure == spec.OnFailureSkip}, n, s, repeat); err != nil {
		return nil, nil, err
	}
	then := []string{node}
	for _, id := range next {
		if !slices.Contains(n.Next, id) && id != node {
			then = append(then, id)
		}
	}
	return []graph.Write{a.Replace(n.CountsKey(), repeat)}, then, nil
}

// RestoreState returns the writes that give a state the values that it had before. A key that did not exist then keeps its
// value, unless it is a list to which nodes add: that is empty again.
func (a *Agent) RestoreState(before, now graph.State) (writes []graph.Write) {
	keys := &keySet{file: a.File}
	for _, name := range now.Keys() {
		is, _ := now.Value(name)
		was, existed := before.Value(name)
		switch {
		case name == mediaKey.Name(): // it does not change while a run works
		case existed && !jsonvalue.Equal(was, is):
			writes = append(writes, keys.replaceValue(name, was))
		case !existed && keys.isAppendOnly(name):
			writes = append(writes, keys.replaceValue(name, []any{}))
		}
	}
	return writes
}
