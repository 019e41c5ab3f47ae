package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
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

	said     *string    // what a conversation with tools has ended with; nil: there was none in this drive
	announce *ModelCall // emitted when the model is called, not for a recorded reply
}

// lookupKey returns the value of a key as the node sees it now.
func (nr *nodeRun) lookupKey(name string) (any, bool) {
	if nr.hidden != "" && name == nr.hidden {
		return nr.value, true
	}
	if val, ok := nr.writes.Get(name); ok {
		return val, true
	}
	return nr.before.Value(name)
}

// lookupPlaceholder returns what a placeholder selects from: the value of a key, or the values of a scope.
func (nr *nodeRun) lookupPlaceholder(name string) (any, bool) {
	if val, ok := nr.lookupKey(name); ok || nr.scopes[name] == nil {
		return val, ok
	}
	return spec.Scope{Values: nr.scopes[name]}, true
}

// renderStrict renders a template in which every placeholder must have a value, and
// removes secrets from the text.
func (nr *nodeRun) renderStrict(t spec.Template, failure string) (string, error) {
	text, err := t.RenderStrictWithin(nr.lookupPlaceholder, nr.host().maxValue())
	if err != nil {
		return "", newChainError(failure, err)
	}
	return nr.host().redact(text), nil
}

// renderLenient renders a template in which placeholders without a value are empty,
// and removes secrets from the text.
func (nr *nodeRun) renderLenient(t spec.Template) (string, error) {
	text, err := t.RenderLenientWithin(nr.lookupPlaceholder, nr.host().maxValue())
	return nr.host().redact(text), err
}

// maxValues is how many texts of the maximum size the state_updates of one
// node may create.
const maxValues = 4

// countBytes adds the size of a text that state_updates created, and fails above
// the limit.
func (nr *nodeRun) countBytes(n int) error {
	nr.writtenBytes += n
	if most := nr.host().maxValue(); most > 0 && nr.writtenBytes/maxValues > most {
		return fmt.Errorf("all texts of the node together: %w", &spec.ValueSizeError{Limit: most})
	}
	return nil
}

// applyUpdates runs state_updates, with the node's result under a scoped name.
func (nr *nodeRun) applyUpdates(scoped string, value any) {
	nr.hidden = scoped
	nr.value = value
	var own any
	written := false
	for _, u := range nr.node.Updates {
		text, err := nr.renderLenient(u.Value)
		if err == nil {
			err = nr.countBytes(len(text))
		}
		if err != nil {
			nr.fault = cmp.Or(nr.fault, newChainError("state_updates, key '"+u.Key+"'", err))
			continue
		}
		if u.Key == scoped && scoped != "" {
			own = text
			written = true // stored under the name when the scope ends
			continue
		}
		nr.writes.Set(u.Key, text)
	}
	nr.hidden = ""
	nr.value = nil
	if written {
		nr.writes.Set(scoped, own)
	}
}

// mergeObject writes the members of an object, and emits an event.
func (nr *nodeRun) mergeObject(o *jsonvalue.Object) {
	keys := make([]string, 0, o.Len())
	for name, val := range o.All() {
		nr.writes.Set(name, val)
		keys = append(keys, name)
	}
	if len(keys) > 0 && graph.IsEmitEnabled(nr) {
		slices.Sort(keys)
		graph.Emit(nr, KeysMerged{keys})
	}
}

// goNext routes to the node's next.
func (nr *nodeRun) goNext() error {
	if nr.branch {
		return nil
	}
	if nr.lacksNext() {
		return nr.noNext()
	}
	return nr.goTo(nr.node.Next...)
}

// lacksNext reports whether the node has no next node though it needs one: nothing follows the node of finally.
func (nr *nodeRun) lacksNext() bool {
	return nr.node.Next == nil && nr.node.ID != nr.agent.File.Finally
}

// noNext returns the failure of a node that has no next node.
func (nr *nodeRun) noNext() error {
	return spec.Errorf("%s node '%s' has no `next` and is not an end node", nr.node.Kind(), nr.node.ID)
}

// goTo routes to nodes by name.
func (nr *nodeRun) goTo(ids ...string) error {
	if nr.branch {
		return nil
	}
	nr.next = []string{}
	for _, id := range ids {
		if nr.agent.File.Node(id) == nil {
			return nr.unknownNodeError(id)
		}
		if !slices.Contains(nr.next, id) {
			nr.next = append(nr.next, id)
		}
	}
	return nil
}

// buildUpdate returns the changes of the node: keys whose value differs from the
// value before.
func (nr *nodeRun) buildUpdate() (graph.Update, error) {
	u := graph.Update{Goto: nr.next, Halt: nr.halt}
	if nr.fault != nil {
		return u, nr.fault
	}
	for name, val := range nr.writes.All() {
		was, present := nr.before.Value(name)
		if present && jsonvalue.Equal(was, val) {
			continue
		}
		w, err := nr.keySet.writeValue(name, val)
		if err != nil {
			return u, err
		}
		u.Writes = append(u.Writes, w)
	}
	return u, nil
}

func (nr *nodeRun) host() *Host { return nr.agent.host }

// warnf reports a failure that does not stop the run.
func (nr *nodeRun) warnf(format string, args ...any) {
	text := nr.host().redact(fmt.Sprintf(format, args...))
	nr.host().log().Warn(text)
	graph.Emit(nr, agent.Warning{Text: text})
}

func (nr *nodeRun) logf(level slog.Level, format string, args ...any) {
	log := nr.host().log()
	if log.Enabled(nr, level) {
		log.Log(nr, level, "[graph:"+nr.agent.File.Name+"] "+fmt.Sprintf(format, args...))
	}
}

// LevelTrace is the level of log records that hold whole states, and of each load of an agent. It is below the
// levels of log/slog.
const LevelTrace = slog.LevelDebug - 4

func (nr *nodeRun) logEntry() {
	if nr.branch || !nr.host().log().Enabled(nr, slog.LevelDebug) {
		return
	}
	nr.logf(slog.LevelDebug, "entering '%s' (visit %d)", nr.node.ID, graph.Visit(nr))
	if !nr.agent.File.Settings.LogStateSnapshots {
		return
	}
	state := StateJSON(nr.before)
	keys := nr.before.Keys()
	for i, k := range keys {
		keys[i] = string(jsonvalue.AppendString(nil, k))
	}
	nr.logf(slog.LevelDebug, "[%s] state: %d bytes, keys=[%s]", nr.node.ID, len(state), strings.Join(keys, ", "))
	nr.logf(LevelTrace, "[%s] full state: %s", nr.node.ID, state)
}

func (nr *nodeRun) logMove() {
	if len(nr.next) > 0 {
		nr.logf(slog.LevelDebug, "%s -> %s", nr.node.ID, strings.Join(nr.next, ", "))
	}
}

// errNodeTimeout is the cause of a context that a node's own timeout ended.
var errNodeTimeout = errors.New("the node's timeout has passed")
