package spec

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
)

// readEntries calls read for each mapping in the list of a field, with its members; last says that it is the last item
// of the list. What is no list, and what is no mapping in it, is reported.
func readEntries(m *strictyaml.Fields, field string, read func(fields *strictyaml.Fields, item *yaml.Node, last bool)) {
	n := m.GetField(field, strictyaml.Optional)
	if n == nil {
		return
	}
	items := strictyaml.ResolveAlias(n)
	if items.Kind != yaml.SequenceNode {
		m.WrongType(n, field, strictyaml.WantList)
		return
	}
	for i, item := range items.Content {
		path := fmt.Sprintf("%s[%d]", field, i)
		if body := strictyaml.ResolveAlias(item); body.Kind != yaml.MappingNode {
			if !strictyaml.IsBroken(body) {
				m.WrongType(item, path, strictyaml.WantMapping)
			}
			continue
		}
		fields := strictyaml.NewFields(m.Problems, strictyaml.Mapping{Pos: m.Source.PositionOf(item), Node: item}, path)
		fields.Plain = true
		read(fields, item, i == len(items.Content)-1)
	}
}
