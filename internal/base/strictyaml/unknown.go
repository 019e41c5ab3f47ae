package strictyaml

import (
	"fmt"
	"slices"

	"raddle.dev/internal/base/wording"
)

// UnknownKeys returns a finding for every key that was not read from m. node is the
// id of the node that m belongs to, and may be empty. If hint is not nil, its
// result for a key is preferred to the nearest known key.
func (fs *Fields) UnknownKeys(node string, hint func(key string) string) []Finding {
	if fs.Source.Node == nil {
		return nil
	}
	var found []Finding
	content := ResolveAlias(fs.Source.Node).Content
	for i := 0; i+1 < len(content); i += 2 {
		key := content[i]
		if IsBroken(key) || slices.Contains(fs.Known, key.Value) || len(found) >= MaxFindings {
			continue
		}
		found = append(found, Finding{
			Severity: SeverityWarning, Class: ClassUnknownKey, Code: "unknown-key", Node: node,
			Message: fmt.Sprintf("unknown key `%s` is ignored", fs.fieldPath(key.Value)),
			Hint:    fs.hintForKey(key.Value, hint), Pos: fs.Source.PositionOf(key),
		})
	}
	return found
}

// hintForKey returns what an unknown key probably means.
func (fs *Fields) hintForKey(key string, hint func(key string) string) string {
	if key == "<<" {
		return "YAML 1.2 has no merge keys: write all fields"
	}
	if hint != nil {
		if text := hint(key); text != "" {
			return text
		}
	}
	return wording.SuggestNearest(key, fs.Known, "`")
}
