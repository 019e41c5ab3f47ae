package flow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"raddle.dev/internal/wording"
)

// advisePlaceholders reports placeholders that can never have a value, and texts that
// look like placeholders but are not.
func (a *adviser) advisePlaceholders(n *Node) {
	for _, u := range append(n.bodyTemplates(), n.updateTemplates()...) {
		for _, part := range u.template.parts {
			if part.path != nil && part.path.never && !a.IsFull() {
				a.warnAt(n, a.text.locatePlaceholder(n, u, part.path), "template-path",
					fmt.Sprintf("{{%s}} never has a value: %s", part.path.text, describeMissEffect(u)), "write key, key.member or key[0]")
			}
		}
		if near := nearPlaceholder.FindStringSubmatch(u.template.text); near != nil {
			a.warnAt(n, n.src.ItemPositions(u.field)(u.item), "template-literal",
				fmt.Sprintf("%s is not a placeholder and stays as it is", wording.CutText(near[0], 60, "...")), fmt.Sprintf("write {{%s}}", near[1]+near[2]))
		}
	}
}

// nearPlaceholder matches placeholders in the form of other template languages.
var nearPlaceholder = regexp.MustCompile(`\{\{(?:\s+([\w.\[\]]+)\s*|\s*([\w.\[\]]+)\s+)\}\}`)

func describeMissEffect(u use) string {
	if u.strict {
		return "the node fails"
	}
	return "it is replaced by the empty text"
}

// neverSet reports lenient placeholders of keys that nothing sets: they are
// always empty. A script, or a reply with a schema without properties, may set
// any key; in this case nothing is reported.
func (a *adviser) neverSet() {
	set := settableKeys(a.f)
	for _, n := range a.f.Nodes {
		if n.Kind() == "script" || n.openSchema() {
			return
		}
	}
	names := slices.Sorted(maps.Keys(set))
	for _, n := range a.f.Nodes {
		k, _ := kindOf(n.Kind())
		for _, u := range append(n.bodyTemplates(), n.updateTemplates()...) {
			if !u.strict && !a.IsFull() {
				a.adviseUnsetKeys(n, u, set, names, k.scoped)
			}
		}
	}
}

// settableKeys returns the keys that are known to be set by the caller, in
// initial_state or by a node.
func settableKeys(f *File) map[string]bool {
	set := map[string]bool{promptKey: true}
	for key := range f.InitialState.All() {
		set[key] = true
	}
	for _, n := range f.Nodes {
		for _, key := range writtenKeys(n) {
			set[key] = true
		}
		if m, ok := n.Body.(*MapNode); ok {
			set[m.CollectInto], set[m.As] = true, true
		}
	}
	return set
}

// adviseUnsetKeys reports the placeholders of one lenient template whose key is never
// set, each key once.
func (a *adviser) adviseUnsetKeys(n *Node, u use, set map[string]bool, names []string, scoped string) {
	seen := map[string]bool{}
	for _, part := range u.template.parts {
		if part.path == nil || part.path.never {
			continue
		}
		key := part.path.root
		if set[key] || seen[key] || a.IsFull() || u.field == "state_updates" && key == scoped {
			continue
		}
		seen[key] = true
		hint := wording.SuggestNearest(key, names, "`")
		if isScoped(key) {
			hint = fmt.Sprintf("{{%s}} exists only in the state_updates of the node that makes it", key)
		}
		a.warnAt(n, a.text.locatePlaceholder(n, u, part.path), "template-never-set",
			fmt.Sprintf("nothing in this graph sets `%s`: {{%s}} is always empty", key, part.path.text), hint)
	}
}

// isScoped reports whether a name is a variable of some type's state_updates.
func isScoped(name string) bool {
	for _, k := range kinds {
		if k.scoped == name && name != "" {
			return true
		}
	}
	return false
}
