package flow

import (
	"fmt"
	"slices"
)

// ScriptNode runs a script and merges the JSON object that it prints.
type ScriptNode struct {
	Script     string // path, relative to the agent directory
	Fallback   string // the node after a failure; empty: the next
	Timeout    Seconds
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
func readWorkingDir(m *fields) string {
	const name = "working_dir"
	n := m.getField(name, optional)
	if n == nil {
		return ""
	}
	dir := m.decodeText(n, name, m.plain)
	if !slices.Contains(workingDirs, dir) {
		m.addFault(n, name, "invalid-value", fmt.Sprintf("unknown directory `%s`, expected `%s` (where raddle was started) or `%s` (the agent's directory)", dir, WorkingDirCaller, WorkingDirAgent))
	}
	return dir
}

// Kind returns "script".
func (*ScriptNode) Kind() string { return "script" }

var scriptKind = kind{
	name:     "script",
	doc:      "Runs a bash, Python or TypeScript script and merges the JSON object it prints.",
	required: []string{"script"},
	optional: []string{"state_updates", "fallback", "timeout", "working_dir"},
	decode: func(m *fields) Body {
		return &ScriptNode{
			Script:     m.readText("script", required),
			Fallback:   m.readText("fallback", optional),
			Timeout:    m.readSeconds("timeout", 30),
			WorkingDir: readWorkingDir(m),
		}
	},
}
