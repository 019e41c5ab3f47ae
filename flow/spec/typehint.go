package spec

import (
	"fmt"
	"strings"
)

// typeHint returns advice for a problem with the reading of a file, selected by
// the words of the problem.
func (kinds Kinds) typeHint(detail string) string {
	switch {
	case strings.Contains(detail, "missing field"):
		return kinds.missingHint()
	case strings.Contains(detail, "unknown field"), strings.Contains(detail, "unknown variant"):
		return "\n\nHint: Check for typos in field names or `type:` values.\n" +
			"Valid node types: " + strings.Join(kinds.firstVersion().Names(), ", ") + "."
	case strings.Contains(detail, "invalid type"):
		return "\n\nHint: Check that field values have the correct type.\n" +
			"- Strings should be quoted if they contain special characters\n" +
			"- Numbers should not be quoted\n" +
			"- Lists use YAML array syntax (- item1)\n" +
			"- Maps use YAML object syntax (key: value)"
	}
	return ""
}

// missingHint returns the required fields of the types of the file format's
// first version.
func (kinds Kinds) missingHint() string {
	var b strings.Builder
	b.WriteString("\n\nHint: Check that all required fields are present.")
	if kinds == nil { // a config.yaml has no nodes
		return b.String()
	}
	b.WriteString("\nTop-level required fields: `name`, `start`, `nodes`.\n" +
		"Each node requires `type` plus that type's fields:")
	for _, k := range kinds.firstVersion() {
		fields := "(no required fields)"
		if k.Required != nil {
			fields = "`" + strings.Join(k.Required, "`, `") + "`"
		}
		fmt.Fprintf(&b, "\n- %-10s%s", k.Name+":", fields)
	}
	return b.String()
}
