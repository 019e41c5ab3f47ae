package flow

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/jsonvalue"
)

// nodeRun is one execution of a node: the state before its step, what it has
// written since, and where it leads.
type nodeRun struct {
	context.Context
	*runtime
	node   *spec.Node
	before graph.State
	writes jsonvalue.Object // what the node has written; only the last value of a key counts

	hidden string // a scoped variable …
	value  any    // … and its value, while state_updates run

	output       *any   // the result that state_updates could read, for nodes that have one
	branch       bool   // it runs in a map: nothing is routed
	outputKey    string // in a map: the key that must have the result
	queue        string // of the node, or of the map
	next         []string
	halt         *graph.Halt
	fault        error // of state_updates: the node fails
	writtenBytes int   // bytes that state_updates have rendered

	scopes map[string]*jsonvalue.Object // what the placeholders of the node read in each scope

	announce *ModelCall // emitted when the model is called, not for a recorded reply
}

// lookupKey returns the value of a key as the node sees it now.
func (v *nodeRun) lookupKey(name string) (any, bool) {
	if v.hidden != "" && name == v.hidden {
		return v.value, true
	}
	if val, ok := v.writes.Get(name); ok {
		return val, true
	}
	return v.before.Value(name)
}

// lookupPlaceholder returns what a placeholder selects from: the value of a key, or the values of a scope.
func (v *nodeRun) lookupPlaceholder(name string) (any, bool) {
	if val, ok := v.lookupKey(name); ok || v.scopes[name] == nil {
		return val, ok
	}
	return spec.Scope{Values: v.scopes[name]}, true
}

// renderStrict renders a template in which every placeholder must have a value, and
// removes secrets from the text.
func (v *nodeRun) renderStrict(t spec.Template, failure string) (string, error) {
	text, err := t.RenderStrictWithin(v.lookupPlaceholder, v.host().mostValue())
	if err != nil {
		return "", newChainError(failure, err)
	}
	return v.host().redact(text), nil
}

// renderLenient renders a template in which placeholders without a value are empty,
// and removes secrets from the text.
func (v *nodeRun) renderLenient(t spec.Template) (string, error) {
	text, err := t.RenderLenientWithin(v.lookupPlaceholder, v.host().mostValue())
	return v.host().redact(text), err
}

// mostValues is how many texts of the maximum size the state_updates of one
// node may create.
const mostValues = 4

// countBytes adds the size of a text that state_updates created, and fails above
// the limit.
func (v *nodeRun) countBytes(n int) error {
	v.writtenBytes += n
	if most := v.host().mostValue(); most > 0 && v.writtenBytes/mostValues > most {
		return fmt.Errorf("all texts of the node together: %w", &spec.ValueSizeError{Limit: most})
	}
	return nil
}

// applyUpdates runs state_updates, with the node's result under a scoped name.
func (v *nodeRun) applyUpdates(scoped string, value any) {
	v.hidden, v.value = scoped, value
	var own any
	written := false
	for _, u := range v.node.Updates {
		text, err := v.renderLenient(u.Value)
		if err == nil {
			err = v.countBytes(len(text))
		}
		if err != nil {
			v.fault = cmp.Or(v.fault, newChainError("state_updates, key '"+u.Key+"'", err))
			continue
		}
		if u.Key == scoped && scoped != "" {
			own, written = text, true // stored under the name when the scope ends
			continue
		}
		v.writes.Set(u.Key, text)
	}
	v.hidden, v.value = "", nil
	if written {
		v.writes.Set(scoped, own)
	}
}

// mergeObject writes the members of an object, and emits an event.
func (v *nodeRun) mergeObject(o *jsonvalue.Object) {
	keys := make([]string, 0, o.Len())
	for name, val := range o.All() {
		v.writes.Set(name, val)
		keys = append(keys, name)
	}
	if len(keys) > 0 && graph.IsEmitEnabled(v) {
		slices.Sort(keys)
		graph.Emit(v, KeysMerged{keys})
	}
}

// goNext routes to the node's next.
func (v *nodeRun) goNext() error {
	if v.branch {
		return nil
	}
	if v.node.Next == nil {
		return v.noNext()
	}
	return v.goTo(v.node.Next...)
}

// noNext returns the failure of a node that has no next node.
func (v *nodeRun) noNext() error {
	return spec.Errorf("%s node '%s' has no `next` and is not an end node", v.node.Kind(), v.node.ID)
}

// goTo routes to nodes by name.
func (v *nodeRun) goTo(ids ...string) error {
	if v.branch {
		return nil
	}
	v.next = []string{}
	for _, id := range ids {
		if v.agent.File.Node(id) == nil {
			return v.unknownNodeError(id)
		}
		if !slices.Contains(v.next, id) {
			v.next = append(v.next, id)
		}
	}
	return nil
}

// buildUpdate returns the changes of the node: keys whose value differs from the
// value before.
func (v *nodeRun) buildUpdate() (graph.Update, error) {
	u := graph.Update{Goto: v.next, Halt: v.halt}
	if v.fault != nil {
		return u, v.fault
	}
	for name, val := range v.writes.All() {
		was, present := v.before.Value(name)
		if present && jsonvalue.Equal(was, val) {
			continue
		}
		w, err := v.keySet.writeValue(name, val)
		if err != nil {
			return u, err
		}
		u.Writes = append(u.Writes, w)
	}
	return u, nil
}

func (v *nodeRun) host() *Host { return v.agent.host }

// warnf reports a failure that does not stop the run.
func (v *nodeRun) warnf(format string, args ...any) {
	text := v.host().redact(fmt.Sprintf(format, args...))
	v.host().log().Warn(text)
	graph.Emit(v, agent.Warning{Text: text})
}

func (v *nodeRun) logf(level slog.Level, format string, args ...any) {
	log := v.host().log()
	if log.Enabled(v, level) {
		log.Log(v, level, "[graph:"+v.agent.File.Name+"] "+fmt.Sprintf(format, args...))
	}
}

// LevelTrace is the level of log records that hold whole states, and of each load of an agent. It is below the
// levels of log/slog.
const LevelTrace = slog.LevelDebug - 4

func (v *nodeRun) logEntry() {
	if v.branch || !v.host().log().Enabled(v, slog.LevelDebug) {
		return
	}
	v.logf(slog.LevelDebug, "entering '%s' (visit %d)", v.node.ID, graph.Visit(v))
	if !v.agent.File.Settings.LogStateSnapshots {
		return
	}
	state := StateJSON(v.before)
	keys := v.before.Keys()
	for i, k := range keys {
		keys[i] = string(jsonvalue.AppendString(nil, k))
	}
	v.logf(slog.LevelDebug, "[%s] state: %d bytes, keys=[%s]", v.node.ID, len(state), strings.Join(keys, ", "))
	v.logf(LevelTrace, "[%s] full state: %s", v.node.ID, state)
}

func (v *nodeRun) logMove() {
	if len(v.next) > 0 {
		v.logf(slog.LevelDebug, "%s -> %s", v.node.ID, strings.Join(v.next, ", "))
	}
}
