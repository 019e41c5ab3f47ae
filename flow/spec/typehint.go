package spec

import (
	"fmt"
	"strings"
)

// typeHint returns advice for a problem with the reading of a file, selected by
// the words of the problem.
func typeHint(detail string) string {
	switch {
	case strings.Contains(detail, "missing field"):
		return missingHint()
	case strings.Contains(detail, "unknown field"), strings.Contains(detail, "unknown variant"):
		return "\n\nHint: Check for typos in field names or `type:` values.\n" +
			"Valid node types: agent, script, approval, input, llm, rag, end."
	case strings.Contains(detail, "invalid type"):
		return "\n\nHint: Check that field values have the correct type.\n" +
			"- Strings should be quoted if they contain special characters\n" +
			"- Numbers should not be quoted\n" +
			"- Lists use YAML array syntax (- item1)\n" +
			"- Maps use YAML object syntax (key: value)"
	}
	return ""
}

// missingHint returns the required fields of the seven types of the file
// format's first version.
func missingHint() string {
	var b strings.Builder
	b.WriteString("\n\nHint: Check that all required fields are present.\n" +
		"Top-level required fields: `name`, `start`, `nodes`.\n" +
		"Each node requires `type` plus that type's fields:")
	for _, name := range KindOrder {
		k, _ := KindOf(name)
		switch {
		case name == "map":
			continue
		case k.Required == nil:
			fmt.Fprintf(&b, "\n- %-10s(no required fields)", name+":")
		default:
			fmt.Fprintf(&b, "\n- %-10s`%s`", name+":", strings.Join(k.Required, "`, `"))
		}
	}
	return b.String()
}
