package flow

import (
	"path/filepath"
	"slices"

	"raddle.dev/flow/check"
	"raddle.dev/flow/internal/target"
	"raddle.dev/flow/spec"
)

// A ScriptTarget is a node that the text of a script names in _next.
type ScriptTarget = target.Script

// findScriptTargets returns the nodes that a script names literally in _next, in the order of the text.
func findScriptTargets(path string, unsaved map[string][]byte) []ScriptTarget {
	data, err := readScript(path, unsaved)
	if err != nil {
		return nil // it is reported as missing
	}
	return target.FindAll(path, data)
}

// ScriptTargets returns where the scripts of the agent's nodes name nodes in _next, as literal texts.
func (a *Agent) ScriptTargets() (list []ScriptTarget) {
	if a.File == nil {
		return nil
	}
	for _, n := range a.File.Nodes {
		if b, is := n.Body.(*scriptNode); is {
			list = append(list, findScriptTargets(scriptPath(a.Dir, b.script), a.host.Unsaved)...)
		}
	}
	return list
}

// chosenTargets returns the nodes that a script node may choose: those that it declares, otherwise those that its
// script names.
func (b *scriptNode) chosenTargets(a *Agent, n *spec.Node) []string {
	if n.Targets != nil {
		return n.Targets
	}
	var names []string
	for _, t := range findScriptTargets(scriptPath(a.Dir, b.script), a.host.Unsaved) {
		names = appendNew(names, t.Node)
	}
	return names
}

// adviseTargets compares the nodes that a script names with those that exist, and with the declared ones.
func (b *scriptNode) adviseTargets(a *check.Adviser, n *spec.Node) {
	seen := map[string]bool{}
	for _, t := range findScriptTargets(scriptPath(filepath.Dir(a.File.Path), b.script), a.Unsaved) {
		if seen[t.Node] {
			continue
		}
		seen[t.Node] = true
		switch {
		case a.File.Node(t.Node) == nil:
			a.WarnAt(n, t.Pos, "script-target", "the script names the node '"+t.Node+"' in `_next`, which does not exist", "name a node of the graph")
		case n.Targets != nil && !slices.Contains(n.Targets, t.Node):
			a.WarnAt(n, t.Pos, "script-target", "the script names the node '"+t.Node+"' in `_next`, which is not in its `targets`", "add it to `targets`")
		}
	}
}
