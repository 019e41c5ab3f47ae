package check

import (
	"fmt"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// AdviseFile reports what the file format allows but is probably a mistake: nodes
// that always fail, settings without effect, and placeholders that never have a
// value. Texts of unsaved count instead of the files at their paths. All findings are warnings.
func AdviseFile(f *spec.File, unsaved map[string][]byte) []strictyaml.Finding {
	a := &Adviser{
		File:    f,
		Unsaved: unsaved,
		Report:  strictyaml.Report{Class: strictyaml.ClassAdvice},
		reached: reachableNodes(f),
		keys:    settableKeys(f),
		text:    newLocator(f),
	}
	a.adviseSettings()
	a.initialState()
	for _, n := range f.Nodes {
		a.adviseRoutes(n)
		n.Body.(Body).Advise(a, n)
		a.adviseSchema(n)
		a.advisePlaceholders(n)
		a.reducedUpdates(n)
	}
	a.neverSet()
	a.adviseMembers()
	a.fanOuts()
	return a.Findings
}

// Adviser is one run of the advice.
type Adviser struct {
	strictyaml.Report
	File    *spec.File
	Unsaved map[string][]byte // texts that count instead of the files at their paths
	text    *locator
	reached map[string]bool // nodes that a run can reach; all of them if a script can be reached
	keys    map[string]bool // that the caller, initial_state or a node is known to set
}

// WarnAt reports a finding about a node.
func (a *Adviser) WarnAt(n *spec.Node, at strictyaml.Pos, code, message, hint string) {
	a.Add(strictyaml.Finding{Severity: strictyaml.SeverityWarning, Code: code, Node: n.ID, Message: message, Hint: hint, Pos: at})
}

// reachableNodes returns the nodes that a run can reach by themselves, not only as the
// branch of a map. A script may route to any node.
func reachableNodes(f *spec.File) map[string]bool {
	seen := map[string]bool{}
	var queue []*spec.Node
	for _, id := range f.Entries() {
		queue = append(queue, f.Node(id))
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n == nil || seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		if n.Type.Routing == spec.RouteAny {
			return allButBranches(f)
		}
		for _, e := range n.DeclaredEdges() {
			if e.Role != spec.EdgeBranch && (e.Role != spec.EdgeNext || !n.Type.Routing.IgnoresNext()) {
				queue = append(queue, f.Node(e.To))
			}
		}
	}
	return seen
}

// allButBranches returns all nodes except those that only a map leads to.
func allButBranches(f *spec.File) map[string]bool {
	all := map[string]bool{}
	for _, n := range f.Nodes {
		all[n.ID] = true
	}
	for _, n := range f.Nodes {
		if n.Branch != nil {
			for _, id := range n.Branch.Nodes() {
				delete(all, id)
			}
		}
	}
	for _, n := range f.Nodes {
		for _, e := range n.DeclaredEdges() {
			if e.Role != spec.EdgeBranch && f.Node(e.To) != nil {
				all[e.To] = true
			}
		}
	}
	for _, id := range f.Entries() {
		all[id] = true
	}
	return all
}

func (a *Adviser) adviseSettings() {
	s := a.File.Settings
	at := a.File.SettingsSource.FieldPosition
	add := func(field, message string) {
		a.Add(strictyaml.Finding{Severity: strictyaml.SeverityWarning, Code: "zero-limit", Message: message, Pos: at(field)})
	}
	if s.MaxLoopIterations == 0 {
		add("max_loop_iterations", "settings.max_loop_iterations is 0: the first node is refused")
	}
	if s.Timeout != nil && *s.Timeout == 0 {
		add("timeout", "settings.timeout is 0: the run times out at once")
	}
}

func (a *Adviser) initialState() {
	place := a.File.Source.KeyPositions("initial_state")
	i := 0
	for key, v := range a.File.InitialState.All() {
		at := place(i)
		i++
		if key == spec.PromptKey {
			a.Add(strictyaml.Finding{
				Severity: strictyaml.SeverityWarning, Code: "initial-prompt", Pos: at,
				Message: "`initial_prompt` in initial_state is overwritten by the caller's prompt", Hint: "remove it",
			})
		}
		if reducer := a.File.Reducer(key); reducer != "" && !reducerAccepts(reducer, v) {
			a.Add(strictyaml.Finding{
				Severity: strictyaml.SeverityWarning, Code: "reducer-type", Pos: at,
				Message: fmt.Sprintf("`%s` starts as %s, and reducer '%s' needs %s: its first write fails", key, jsonvalue.TypeName(v), reducer, reducerWants[reducer]),
			})
		}
	}
}

// reducerWants says which type of current value a reducer needs. Reducers that
// accept any type are missing.
var reducerWants = map[string]string{
	"append": "an array", "extend": "an array", "concat": "a string", "merge": "an object",
	"sum": "a number", "max": "a number", "min": "a number",
}

func reducerAccepts(reducer string, current any) bool {
	switch kind := jsonvalue.TypeName(current); reducerWants[reducer] {
	case "an array":
		return kind == "array"
	case "a string":
		return kind == "string"
	case "an object":
		return kind == "object"
	case "a number":
		return kind == "number"
	}
	return true
}

// reducedUpdates reports state_updates of keys whose reducer does not accept
// text: state_updates only store text. The branch of a map is left out, because
// its writes are not reduced.
func (a *Adviser) reducedUpdates(n *spec.Node) {
	if !a.reached[n.ID] {
		return
	}
	place := n.Source.ItemPositions("state_updates")
	for i, u := range n.Updates {
		switch reducer := a.File.Reducer(u.Key); reducer {
		case "sum", "max", "min", "extend", "merge":
			a.WarnAt(n, place(i), "reducer-type",
				fmt.Sprintf("state_updates store text, and reducer '%s' of `%s` needs %s: this write fails", reducer, u.Key, incoming[reducer]),
				"let a script or an output_schema write the key with its type")
		}
	}
	if b := n.Branch; b != nil {
		switch reducer := a.File.Reducer(b.CollectInto); reducer {
		case "sum", "max", "min", "concat", "merge":
			a.WarnAt(n, n.At("collect_into"), "reducer-type",
				fmt.Sprintf("collect_into writes an array, and reducer '%s' of `%s` needs %s: this write fails", reducer, b.CollectInto, incoming[reducer]),
				"use append, extend or overwrite")
		}
	}
}

// incoming says which type of incoming value a reducer needs.
var incoming = map[string]string{
	"sum": "numbers", "max": "numbers", "min": "numbers",
	"extend": "arrays", "merge": "objects", "concat": "text",
}
