package spec

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"raddle.dev/flow/hook"
	"raddle.dev/internal/base/strictyaml"
)

// readHooks reads the hooks of an agent or a graph.
func readHooks(m *strictyaml.Fields) []hook.Hook {
	n := m.GetField("hooks", strictyaml.Optional)
	if n == nil {
		return nil
	}
	return hook.Read(n, m.Source.PositionOf, func(at *yaml.Node, hint, format string, args ...any) {
		m.Problems.Add(strictyaml.Finding{Code: "invalid-hook", Message: fmt.Sprintf(format, args...), Hint: hint, Pos: m.Source.PositionOf(at)})
	})
}
