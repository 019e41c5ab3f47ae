package flow

import (
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/jsonvalue"
)

// nextKey is the member of a script's output that names the next node. It is
// not merged into the state.
const nextKey = "_next"

// scriptResult is what a script printed.
type scriptResult struct {
	Writes *jsonvalue.Object // without _next
	Next   string
	Routed bool // _next is a string, which may be empty

	Rounded string // the first whole number that is too large to be stored exactly
}

// parseScriptOutput decodes the standard output of a script: one JSON object. A
// _next that is not a string is ignored.
func parseScriptOutput(stdout string) (scriptResult, error) {
	v, rounded, err := jsonvalue.ParseRounded([]byte(strings.TrimSpace(stdout)))
	if err != nil {
		return scriptResult{}, spec.Failf("Script output must be valid JSON: %w", err)
	}
	writes, ok := v.(*jsonvalue.Object)
	if !ok {
		return scriptResult{}, spec.Failf("Script output must be a JSON object, not array or primitive")
	}
	r := scriptResult{Writes: writes, Rounded: rounded}
	if next, ok := writes.Get(nextKey); ok {
		r.Next, r.Routed = next.(string)
		writes.Delete(nextKey)
	}
	return r, nil
}

// readScriptOutput is parseScriptOutput with the script's path in the errors,
// and with a special error for a script that printed nothing.
func readScriptOutput(path, stdout string) (scriptResult, error) {
	if strings.TrimSpace(stdout) == "" {
		return scriptResult{}, spec.Failf("Script '%s' produced no output (scripts must emit a single JSON object on stdout)", path)
	}
	r, err := parseScriptOutput(stdout)
	if err != nil {
		return r, spec.Failf("Failed to merge output from script '%s': %w", path, err)
	}
	return r, nil
}
