// Package upgrade makes the migrations of a graph.yaml those of its graph.
package upgrade

import (
	"fmt"
	"slices"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
)

// Keys are the keys of a graph.
type Keys struct {
	Open    func(name string) graph.AnyKey
	Replace func(name string, v any) graph.Write    // the write of a whole value
	Join    func(tag string, parts [][]byte) []byte // the JSON of a value that is stored in parts
}

// BuildMigrations returns the migrations of a file.
func BuildMigrations(f *spec.File, keys Keys) (list []graph.Migration) {
	for _, m := range f.Migrations {
		entry := graph.Migration{From: m.From}
		for _, n := range m.RenameNode {
			entry.Steps = append(entry.Steps, graph.RenameNode(n.From, n.To))
		}
		for _, n := range m.RenameKey {
			entry.Steps = append(entry.Steps, graph.RenameKey(n.From, n.To))
		}
		for _, u := range m.ConvertKey {
			entry.Steps = append(entry.Steps, keys.convert(u))
		}
		for _, d := range m.DefaultKey {
			entry.Steps = append(entry.Steps, graph.DefaultKey(keys.Replace(d.Key, d.Value)))
		}
		for _, key := range m.DropKey {
			entry.Steps = append(entry.Steps, graph.DropKey(key))
		}
		for _, n := range m.Move {
			entry.Steps = append(entry.Steps, graph.MoveTask(n.From, n.To))
		}
		list = append(list, entry)
	}
	return list
}

// convert returns the step that makes the value of a key by a template over the values as they were. A template that is one placeholder
// copies its value; every other one makes a text.
func (k Keys) convert(u spec.Update) graph.MigrationStep {
	template := u.Value
	reads := template.Keys()
	if !slices.Contains(reads, u.Key) {
		reads = append(reads, u.Key)
	}
	return graph.ConvertStored(u.Key, k.Open(u.Key), func(stored func(string) (string, [][]byte, bool)) (w graph.Write, err error) {
		look := func(key string) (any, bool) {
			tag, parts, _ := stored(key)
			text := k.Join(tag, parts)
			if parts == nil {
				return nil, false
			}
			v, bad := jsonvalue.ParseStored(text)
			if bad != nil && err == nil {
				err = fmt.Errorf("key %q: %w", key, bad)
			}
			return v, bad == nil
		}
		if paths := template.Paths(); len(paths) == 1 && template.Text == "{{"+paths[0]+"}}" {
			if v, ok := look(paths[0]); ok {
				return k.Replace(u.Key, v), err
			}
		}
		text, failed := template.RenderStrictWithin(look, 0)
		if failed != nil {
			return w, failed
		}
		return k.Replace(u.Key, text), err
	}, reads...)
}
