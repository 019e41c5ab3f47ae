package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/wording"
)

// advisePlaceholders reports placeholders that can never have a value, and texts that
// look like placeholders but are not.
func (a *Adviser) advisePlaceholders(n *spec.Node) {
	for _, u := range n.AllTemplates() {
		for _, part := range u.Template.Parts {
			if part.Path != nil && part.Path.Never && !a.IsFull() {
				a.WarnAt(n, a.text.locatePlaceholder(n, u, part.Path), "template-path",
					fmt.Sprintf("{{%s}} never has a value: %s", part.Path.Text, describeMissEffect(u)), "write key, key.member or key[0]")
			}
		}
		a.adviseNearPlaceholders(n, u)
	}
}

// adviseNearPlaceholders reports texts between double braces that are no placeholders, but look as if they were meant to
// be: keys with blanks around them, as other template languages have them, and keys with characters that placeholders
// do not read. Each text is reported once.
func (a *Adviser) adviseNearPlaceholders(n *spec.Node, u spec.TemplateUse) {
	seen := map[string]bool{}
	for _, m := range bracedText().FindAllStringSubmatch(u.Template.Text, -1) {
		whole := m[0]
		name := strings.TrimSpace(m[1])
		if seen[whole] || a.IsFull() || name == "" || spec.ParseTemplate(whole).Parts != nil {
			continue
		}
		seen[whole] = true
		hint := ""
		switch {
		case spec.ParseTemplate("{{"+name+"}}").Keys() != nil:
			hint = fmt.Sprintf("write {{%s}}", name)
		case negativeIndex().MatchString(name):
			hint = "write the index of an item from the start: key[0]"
		case dashedName().MatchString(name), a.keys[name]:
			hint = fmt.Sprintf("rename the key, for example to %s: keys in placeholders have letters, digits and _", strings.NewReplacer("-", "_", " ", "_").Replace(name))
		default:
			continue
		}
		a.WarnAt(n, n.Source.ItemPositions(u.Field)(u.Item), "template-literal",
			fmt.Sprintf("%s is not a placeholder and stays as it is", wording.CutText(whole, 60, "...")), hint)
	}
}

// These match texts that may be meant as placeholders, and the ways in which they are not.
var (
	bracedText    = pattern.CompileLater(`\{\{([^{}\n]{1,100})\}\}`)
	negativeIndex = pattern.CompileLater(`^[A-Za-z_][\w.\[\]]*\[-\d+\]$`)
	dashedName    = pattern.CompileLater(`^[A-Za-z_]\w*(?:-\w+)+$`)
)

func describeMissEffect(u spec.TemplateUse) string {
	if u.Strict {
		return "the node fails"
	}
	return "it is replaced by the empty text"
}

// neverSet reports lenient placeholders of keys that nothing sets: they are
// always empty. A script, or a reply with a schema without properties, may set
// any key; in this case nothing is reported.
func (a *Adviser) neverSet() {
	set := a.keys
	for _, n := range a.File.Nodes {
		if n.WritesAnyKey() {
			return
		}
	}
	names := slices.Sorted(maps.Keys(set))
	for _, n := range a.File.Nodes {
		for _, u := range n.AllTemplates() {
			if !u.Strict && !a.IsFull() {
				a.adviseUnsetKeys(n, u, set, names)
			}
		}
	}
}

// settableKeys returns the keys that are known to be set by the caller, in
// initial_state or by a node.
func settableKeys(f *spec.File) map[string]bool {
	set := map[string]bool{spec.PromptKey: true}
	for key := range f.InitialState.All() {
		set[key] = true
	}
	if f.Finally != "" {
		set[spec.ReasonKey] = true
	}
	for _, n := range f.Nodes {
		for _, key := range writtenKeys(n) {
			set[key] = true
		}
		if b := n.Branch; b != nil {
			set[b.CollectInto], set[b.As] = true, true
			if n.CountsKey() != "" {
				set[n.CountsKey()] = true
			}
			if b.Handler() != "" {
				set[spec.ReasonKey] = true
			}
		}
	}
	return set
}

// adviseUnsetKeys reports the placeholders of one lenient template whose key is never
// set, each key once.
func (a *Adviser) adviseUnsetKeys(n *spec.Node, u spec.TemplateUse, set map[string]bool, names []string) {
	seen := map[string]bool{}
	for _, part := range u.Template.Parts {
		if part.Path == nil || part.Path.Never {
			continue
		}
		key := part.Path.Root
		if scope, _ := part.Path.ScopedKey(); scope != "" && !set[key] {
			continue
		}
		if set[key] || seen[key] || a.IsFull() || u.Field == "state_updates" && key == n.Type.Scoped {
			continue
		}
		seen[key] = true
		hint := wording.SuggestNearest(key, names, "`")
		if a.File.Kinds.IsScoped(key) {
			hint = fmt.Sprintf("{{%s}} exists only in the state_updates of the node that makes it", key)
		}
		a.WarnAt(n, a.text.locatePlaceholder(n, u, part.Path), "template-never-set",
			fmt.Sprintf("nothing in this graph sets `%s`: {{%s}} is always empty", key, part.Path.Text), hint)
	}
}
