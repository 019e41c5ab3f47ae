package spec

import (
	"fmt"
	"slices"

	"raddle.dev/internal/base/strictyaml"
)

// These are the directories in which a script may run.
const (
	WorkingDirCaller = "caller" // where raddle was started; the default
	WorkingDirAgent  = "agent"  // the agent's directory
)

// workingDirs are the values of working_dir.
var workingDirs = []string{WorkingDirCaller, WorkingDirAgent}

// ReadWorkingDir returns the value of working_dir, or "" if it is not set.
func ReadWorkingDir(m *strictyaml.Fields) string {
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
