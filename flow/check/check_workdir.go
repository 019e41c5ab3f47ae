package check

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"raddle.dev/flow/spec"
)

// relativePath matches a word of a script that may be a path relative to the
// directory in which the script runs: a word with a slash or an extension.
var relativePath = regexp.MustCompile(`(?m)(?:^|[\s"'(=<>])((?:\./)?[A-Za-z0-9_][A-Za-z0-9_-]*(?:/[A-Za-z0-9_.-]+|\.[A-Za-z0-9]+)+)`)

// longestScript is how much of a script is searched for paths, in bytes.
const longestScript = 1 << 18

// workingDir warns about a script that runs in the caller's directory and names
// a file that exists only in the agent's directory.
func (c *checker) workingDir(n *spec.Node, s *spec.ScriptNode) {
	if s.WorkingDir != "" || c.f.WorkingDir != "" || c.k.Workspace == "" || c.k.Workspace == c.k.Dir {
		return
	}
	file, err := os.Open(spec.ScriptPath(c.k.Dir, s.Script))
	if err != nil {
		return // it is reported as missing
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, longestScript))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, m := range relativePath.FindAllStringSubmatch(line, -1) {
			if name := m[1]; hasFile(filepath.Join(c.k.Dir, name)) && !hasFile(filepath.Join(c.k.Workspace, name)) {
				c.warnAt(n, n.At("script"), "working-dir", fmt.Sprintf("script '%s' names %s, which exists in the agent's directory only, and runs where raddle is started (to run it in the agent's directory: `working_dir: agent`)", s.Script, name))
				return
			}
		}
	}
}
