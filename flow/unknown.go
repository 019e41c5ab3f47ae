package flow

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/wording"
)

// unknown makes a finding for every key that no method of m has asked for. For
// a node, k is its type.
func (m *fields) unknown(node string, k *kind) []Finding {
	if m.src.node == nil {
		return nil
	}
	var found []Finding
	content := resolve(m.src.node).Content
	for i := 0; i+1 < len(content); i += 2 {
		key := content[i]
		if isBroken(key) || slices.Contains(m.known, key.Value) || len(found) >= maxFindings {
			continue
		}
		found = append(found, Finding{
			Severity: SeverityWarning, Class: ClassUnknownKey, Code: "unknown-key", Node: node,
			Message: fmt.Sprintf("unknown key `%s` is ignored", m.field(key.Value)),
			Hint:    m.keyHint(key.Value, k), Pos: m.src.place(key),
		})
	}
	return found
}

// keyHint tells what may be meant by an unknown key.
func (m *fields) keyHint(key string, k *kind) string {
	if key == "<<" {
		return "YAML 1.2 has no merge keys: write the fields out"
	}
	if k != nil {
		if owners := kindsWith(key); owners != nil {
			return fmt.Sprintf("only nodes of type %s have it, and this one is of type %s", strings.Join(owners, ", "), k.name)
		}
	}
	return wording.SuggestNearest(key, m.known, "`")
}
