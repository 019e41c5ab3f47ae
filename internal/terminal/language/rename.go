package language

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/process/agentcheck"
	"raddle.dev/internal/process/app"
)

// newNames are the names that nodes and keys can get: those that no file needs quotes for.
var newNames = map[thing]func() *regexp.Regexp{
	aNode: pattern.CompileLater(`^[A-Za-z_][A-Za-z0-9_-]*$`),
	aKey:  pattern.CompileLater(`^[A-Za-z_][A-Za-z0-9_]*$`),
}

// CanRename returns the range of the name at a position, or why it cannot get another one.
func (w *Workspace) CanRename(d *Document, p Position) (Range, string, error) {
	x, m := w.findTarget(d, p)
	if m == nil || newNames[m.thing] == nil {
		return Range{}, "", errors.New("only nodes and keys of the state can be renamed")
	}
	if m.thing == aKey {
		if err := w.refuseKey(d, m.name); err != nil {
			return Range{}, "", err
		}
	}
	return x.text.rangeOf(m.from, m.to), m.name, nil
}

// refuseKey returns an error for a key whose name the file format fixes.
func (w *Workspace) refuseKey(d *Document, key string) error {
	a := w.agents[w.agentDir(d.Path)]
	switch {
	case a == nil || a.lastFile == nil:
		return errors.New("the agent has errors: mend them first")
	case key == spec.PromptKey || key == spec.ReasonKey || slices.Contains(spec.Scopes, key) || a.lastFile.Kinds.IsScoped(key):
		return fmt.Errorf("the file format fixes the name %q", key)
	}
	return nil
}

// RenameName returns the edits that give the node or the key at a position another name, in all files of its agent: the
// definition, test files, recorded replies, and scripts, where they have the name as a literal. It fails if the agent
// would have other errors afterwards.
func (w *Workspace) RenameName(ctx context.Context, d *Document, p Position, name string) (*WorkspaceEdit, error) {
	if _, _, err := w.CanRename(d, p); err != nil {
		return nil, err
	}
	dir := w.agentDir(d.Path)
	_, m := w.findTarget(d, p)
	graph := w.indexOf(filepath.Join(dir, graphFile))
	switch {
	case !newNames[m.thing]().MatchString(name) || needsQuotes(name):
		return nil, fmt.Errorf("%q cannot be a name: letters, digits and _, with a letter first", name)
	case name == m.name:
		return &WorkspaceEdit{DocumentChanges: []DocumentEdit{}}, nil
	case m.thing == aNode && graph.nodes[name] != nil:
		return nil, fmt.Errorf("there is a node %q already", name)
	case m.thing == aKey && slices.ContainsFunc(graph.mentions, func(o mention) bool { return o.thing == aKey && o.name == name }):
		return nil, fmt.Errorf("there is a key %q already", name)
	}
	list, texts := w.findMentions(dir, m)
	if m.thing == aNode && countsFailures(graph, m.name) { // the state has its counts under the name of the node
		keys, more := w.findMentions(dir, &mention{thing: aKey, name: m.name})
		list = append(list, keys...)
		maps.Copy(texts, more)
	}
	byPath := map[string][]TextEdit{}
	for _, o := range list {
		byPath[o.path] = append(byPath[o.path], TextEdit{texts[o.path].rangeOf(o.from, o.to), name})
	}
	edit := &WorkspaceEdit{}
	after := w.collectTexts()
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		version := VersionedDocument{URI: w.address(path)}
		if open := w.docs[path]; open != nil {
			version.Version = new(open.Version)
		}
		edit.DocumentChanges = append(edit.DocumentChanges, DocumentEdit{version, byPath[path]})
		after[path] = []byte(applyEdits(texts[path], byPath[path]).s)
	}
	return edit, w.proveRename(ctx, dir, after)
}

// countsFailures reports whether a node is a map that keeps how many of its items have failed.
func countsFailures(graph *index, id string) bool {
	how := findField(graph.nodes[id], "on_failure")
	return how != nil && how.Value != spec.OnFailureStop
}

// needsQuotes reports whether a name without quotes would be no text.
func needsQuotes(name string) bool {
	value, ok := strictyaml.DecodeScalar(&yamlNode{Kind: yamlScalar, Value: name})
	_, text := value.(string)
	return !ok || !text || slices.Contains([]string{"yes", "no", "on", "off", "y", "n"}, strings.ToLower(name))
}

// proveRename compares the errors of an agent as it is with those that it has after a change of its texts.
func (w *Workspace) proveRename(ctx context.Context, dir string, after map[string][]byte) error {
	place := app.Place{Name: filepath.Base(dir), Dir: dir}
	before := agentcheck.Check(ctx, w.p, place, agentcheck.Options{Unsaved: w.collectTexts()})
	then := agentcheck.Check(ctx, w.p, place, agentcheck.Options{Unsaved: after})
	if then.Errors > before.Errors || then.Warnings > before.Warnings {
		return fmt.Errorf("the agent would have %d errors and %d warnings, and has %d and %d: nothing is renamed", then.Errors, then.Warnings, before.Errors, before.Warnings)
	}
	return nil
}

// applyEdits returns a text after edits, which do not overlap.
func applyEdits(t *Text, edits []TextEdit) *Text {
	edits = slices.Clone(edits)
	slices.SortFunc(edits, func(a, b TextEdit) int { return t.Offset(b.Range.Start) - t.Offset(a.Range.Start) })
	s := t.s
	for _, e := range edits {
		s = s[:t.Offset(e.Range.Start)] + e.NewText + s[t.Offset(e.Range.End):]
	}
	return NewText(s)
}

// ListActions returns the changes that findings propose, for diagnostics that the editor has. One of a text that has
// changed since then is left out.
func (w *Workspace) ListActions(d *Document, diagnostics []Diagnostic) []CodeAction {
	actions := []CodeAction{}
	for _, found := range diagnostics {
		if found.Source != "raddle" || found.Data == nil || found.Data.Replace == "" {
			continue
		}
		from, to := d.Text.Offset(found.Range.Start), d.Text.Offset(found.Range.End)
		old := d.Text.s[from:max(from, to)]
		edit, ok := replaceWord(d.Text, from, old, found.Data.Replace)
		if !ok || len(w.findCurrent(d, found)) == 0 {
			continue
		}
		actions = append(actions, CodeAction{
			Title: "Replace by " + found.Data.Replace, Kind: "quickfix", Diagnostics: []Diagnostic{found}, IsPreferred: true,
			Edit: WorkspaceEdit{[]DocumentEdit{{VersionedDocument{d.URI, new(d.Version)}, []TextEdit{edit}}}},
		})
	}
	return actions
}

// findCurrent returns the findings of the last check that are a diagnostic.
func (w *Workspace) findCurrent(d *Document, found Diagnostic) (list []Diagnostic) {
	for _, now := range w.publishFile(d.Path).Diagnostics {
		if now.Range == found.Range && now.Message == found.Message {
			list = append(list, now)
		}
	}
	return list
}

// replaceWord returns the edit that writes another word for a text: of a placeholder its key, of a path its
// last part.
func replaceWord(t *Text, from int, old, word string) (TextEdit, bool) {
	to := from + len(old)
	switch {
	case strings.HasPrefix(old, "{{"):
		from += len("{{")
		to = from + len(nameAt(t.s[from:]))
	case len(old) > 1 && (old[0] == '"' || old[0] == '\''):
		from++
		to--
	}
	if slash := strings.LastIndexByte(t.s[from:to], '/'); slash >= 0 && !strings.Contains(word, "/") {
		from += slash + 1
	}
	return TextEdit{t.rangeOf(from, to), word}, to > from && t.s[from:to] != word
}

// nameAt returns the name with which a text begins.
func nameAt(s string) string { return s[:len(s)-len(strings.TrimLeft(s, nameCharacters))] }
