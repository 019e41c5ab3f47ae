package spec

import (
	"fmt"
	"path/filepath"
	"slices"

	"raddle.dev/internal/strictyaml"
)

// ScriptNode runs a script and merges the JSON object that it prints.
type ScriptNode struct {
	Script     string // path, relative to the agent directory
	Fallback   string // the node after a failure; empty: the next
	Timeout    strictyaml.Seconds
	WorkingDir string // WorkingDirAgent or WorkingDirCaller; empty: as the graph says
}

// These are the directories in which a script may run.
const (
	WorkingDirCaller = "caller" // where raddle was started; the default
	WorkingDirAgent  = "agent"  // the agent's directory
)

// workingDirs are the values of working_dir.
var workingDirs = []string{WorkingDirCaller, WorkingDirAgent}

// readWorkingDir returns the value of working_dir, or "" if it is not set.
func readWorkingDir(m *strictyaml.Fields) string {
	const name = "working_dir"
	n := m.GetField(name, strictyaml.Optional)
	if n == nil {
		return ""
	}
	dir := m.DecodeText(n, name, m.Plain)
	if !slices.Contains(workingDirs, dir) {
		m.AddFault(n, name, "invalid-value", fmt.Sprintf("unknown directory `%s`, expected `%s` (where raddle was started) or `%s` (the agent's directory)", dir, WorkingDirCaller, WorkingDirAgent))
	}
	return dir
}

// Kind returns "script".
func (*ScriptNode) Kind() string { return "script" }

var scriptKind = kind{
	Name:     "script",
	Doc:      "Runs a bash, Python or TypeScript script and merges the JSON object it prints.",
	Required: []string{"script"},
	Optional: []string{"state_updates", "fallback", "timeout", "working_dir"},
	Decode: func(m *strictyaml.Fields) Body {
		return &ScriptNode{
			Script:     m.ReadText("script", strictyaml.Required),
			Fallback:   m.ReadText("fallback", strictyaml.Optional),
			Timeout:    m.ReadSeconds("timeout", 30),
			WorkingDir: readWorkingDir(m),
		}
	},
}

// ScriptPath returns the full path of a script of an agent in a directory.
func ScriptPath(dir, script string) string {
	if filepath.IsAbs(script) {
		return script
	}
	return filepath.Join(dir, script)
}
