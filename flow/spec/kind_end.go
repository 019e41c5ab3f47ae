package spec

import (
	"fmt"

	"raddle.dev/internal/strictyaml"
)

// EndNode ends the run with a result.
type EndNode struct {
	Output   Template // lenient
	ExitCode int      // of the process, 64 to 113; 0: the default of the run
}

// Kind returns "end".
func (*EndNode) Kind() string { return "end" }

// minExitCode and maxExitCode limit the exit codes of end nodes. No other
// result of a run has an exit code in this range.
const minExitCode, maxExitCode = 64, 113

var endKind = kind{
	Name:     "end",
	Doc:      "Ends the run with a result.",
	Optional: []string{"output", "state_updates", "exit_code"},
	Decode: func(m *strictyaml.Fields) Body {
		e := &EndNode{Output: ParseTemplate(m.ReadText("output", strictyaml.Defaulted))}
		if code := m.ReadOptionalCount("exit_code"); code != nil {
			if e.ExitCode = *code; *code < minExitCode || *code > maxExitCode {
				m.AddFault(m.FindField("exit_code"), "exit_code", "invalid-value",
					fmt.Sprintf("invalid value: integer `%d`, expected an exit code from %d to %d", *code, minExitCode, maxExitCode))
			}
		}
		return e
	},
}
