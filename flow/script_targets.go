package flow

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
)

// A ScriptTarget is a node that the text of a script names in _next.
type ScriptTarget struct {
	Node string
	Pos  strictyaml.Pos // in the script
}

// nextValue matches the place where a script gives _next its value: as a member of an object, an assignment or an
// argument.
var nextValue = pattern.CompileLater(`\b_next\b\\?["']?\]?\s*[:=]\s*`)

// These match what follows: a text in quotes, which may be escaped, or a variable of bash in quotes.
var (
	quotedTarget   = pattern.CompileLater(`^\\?["']([A-Za-z0-9_][A-Za-z0-9_.-]*)\\?["']`)
	variableTarget = pattern.CompileLater(`^\\?["']?\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?\\?["']?`)
	choiceTarget   = pattern.CompileLater(`(?:\belse\s+|[?:]\s*)["']([A-Za-z0-9_][A-Za-z0-9_.-]*)["']`)
)

// findScriptTargets returns the nodes that a script names literally in _next, in the order of the text. It
// finds objects of JSON, Python and JavaScript, both values of a choice on one line, and the texts that bash assigns to
// a variable. What a script computes is not found.
func findScriptTargets(path string, unsaved map[string][]byte) []ScriptTarget {
	data, err := readScript(path, unsaved)
	if err != nil {
		return nil // it is reported as missing
	}
	var found []ScriptTarget
	add := func(node, line string, number, at int) {
		target := ScriptTarget{node, strictyaml.Pos{File: path, Line: number, Col: 1 + utf8.RuneCountInString(line[:at])}}
		if !slices.Contains(found, target) {
			found = append(found, target)
		}
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "//") {
			continue
		}
		for _, m := range nextValue().FindAllStringIndex(line, -1) {
			rest := line[m[1]:]
			if v := variableTarget().FindStringSubmatch(rest); v != nil {
				for j, other := range lines {
					for _, a := range findAssignments(other, v[1]) {
						add(other[a[0]:a[1]], other, j+1, a[0])
					}
				}
				continue
			}
			q := quotedTarget().FindStringSubmatchIndex(rest)
			if q != nil {
				add(rest[q[2]:q[3]], line, i+1, m[1]+q[2])
			}
			rest = rest[:choiceLength(rest)]
			for _, c := range choiceTarget().FindAllStringSubmatchIndex(rest, -1) {
				if q != nil && c[0] < q[1] {
					continue
				}
				add(rest[c[2]:c[3]], line, i+1, m[1]+c[2])
			}
		}
	}
	return found
}

// choiceLength returns the length of the value with which a text begins: up to a comma or the end of the object.
func choiceLength(text string) int {
	if end := strings.IndexAny(text, ",}"); end >= 0 {
		return end
	}
	return len(text)
}

// findAssignments returns where a line of bash assigns a literal word to a variable.
func findAssignments(line, variable string) (list [][2]int) {
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return nil
	}
	pattern := regexp.MustCompile(`(?:^|[\s;(&|])` + regexp.QuoteMeta(variable) + `=["']?([A-Za-z0-9_][A-Za-z0-9_.-]*)["']?(?:$|[\s;)&|])`)
	for _, m := range pattern.FindAllStringSubmatchIndex(line, -1) {
		list = append(list, [2]int{m[2], m[3]})
	}
	return list
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
