package cli

import (
	"os"
	"testing"

	"github.com/spf13/cobra"

	"raddle.dev/internal/terminal/runlimits"
)

// Every command either has the flags that limit a run, or is listed here with the reason why not.
func TestEveryWayToStartARunHasItsLimits(t *testing.T) {
	limited := map[string]string{
		"raddle":                 "each turn: it is raddle chat",
		"raddle run":             "the run",
		"raddle examples run":    "the run",
		"raddle ask":             "the run; raddle QUESTION, raddle -f and raddle -c QUESTION are this command",
		"raddle chat":            "each turn; raddle alone is this command",
		"raddle shell":           "the run; raddle -e is this command",
		"raddle resume":          "the whole run, in place of what it was started with",
		"raddle eval":            "the run of each cell",
		"raddle triggers enable": "each run",
	}
	unlimited := map[string]string{
		"raddle test":          "models are recorded or answered by the case, unless a person names a model",
		"raddle try":           "its model is recorded",
		"raddle chaos":         "its models are recorded",
		"raddle replay":        "the recorded effects answer",
		"raddle wake":          "each run has the limits that it was started with",
		"raddle inbox":         "each run has the limits that it was started with",
		"raddle serve":         "POST /api/v1/runs has budget and deadline; triggers have what enabling names",
		"raddle acp":           "an editor has no place for them; the budget of the agent's file holds",
		"raddle triggers fire": "what enabling named",
	}
	env := newEnvironment(os.Stdin, os.Stdout, os.Stderr)
	seen := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := c.CommandPath()
		seen[path] = true
		for _, name := range runlimits.Names {
			has := c.Flags().Lookup(name) != nil
			if has != (limited[path] != "") {
				t.Errorf("%s: --%s is there: %v", path, name, has)
			}
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	root := newRootCommand(env)
	walk(root)
	for _, list := range []map[string]string{limited, unlimited} {
		for path := range list {
			if !seen[path] {
				t.Errorf("there is no command %s", path)
			}
		}
	}
}
