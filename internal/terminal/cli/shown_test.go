//go:build unix

package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"raddle.dev/internal/terminal/cli"
	"raddle.dev/internal/testkit/testneed"
)

// notTried are beginnings of commands in help texts that a test cannot try, and why.
var notTried = map[string]string{
	"raddle acp":                            "it is a server",
	"raddle lsp":                            "it is a server",
	"raddle mcp add files":                  "it starts a server with npx",
	"raddle mcp add docs":                   "it asks a server on the internet",
	"raddle mcp login":                      "it needs a server",
	"raddle mcp logout":                     "it needs a server",
	"raddle mcp rm":                         "it needs a server",
	"raddle mcp test":                       "it needs a server",
	"raddle chat":                           "it needs a terminal",
	"raddle try":                            "it asks a person",
	"raddle init":                           "it needs a terminal",
	"raddle login":                          "it needs a key",
	"raddle logout":                         "it needs a key",
	"raddle models test":                    "it costs money",
	"raddle models update":                  "it asks a server on the internet",
	"raddle update":                         "it asks a server on the internet, in a release",
	"raddle replay bug":                     "it needs a file of the user",
	"raddle replay last --w":                "it needs a file of the user",
	"raddle replay last --u":                "the run has no such node",
	"raddle eval":                           "it needs a data set of the user",
	"raddle dataset add":                    "the run has no such point",
	"raddle rag search":                     "the base is built by the line before",
	"raddle runs import":                    "it needs a file of the user",
	"raddle import":                         "it needs the files of another program",
	"raddle roles show":                     "it needs a role of the user",
	"raddle -r":                             "it needs a role of the user",
	"raddle agents add":                     "it needs a server",
	"raddle triggers enable":                "it needs an agent with triggers",
	"raddle triggers fire":                  "it needs an agent with triggers",
	"raddle -e":                             "it needs a terminal",
	"raddle runs cancel":                    "the run is over",
	"raddle runs message":                   "the run is over",
	"raddle memory rm":                      "nothing is remembered",
	"raddle sandbox":                        "it needs a system with a box",
	"raddle tools call fs_write":            "it needs a file of the user",
	"raddle runs blame":                     "the run has no such key",
	"raddle runs edit":                      "the run has no such key",
	"raddle runs diff":                      "it needs several runs",
	"raddle runs fork":                      "the run has no such point",
	"raddle runs rm last":                   "it needs several runs",
	"raddle runs prune":                     "it needs several runs",
	"raddle runs show":                      "some of its points are not in the run",
	"raddle resume":                         "some of its questions are not in the run",
	"raddle run writer":                     "it needs an agent of the user",
	"raddle check --strict":                 "it needs agents of the user",
	"raddle test agents/":                   "it needs agents of the user",
	"raddle serve":                          "it is a server",
	"raddle store copy":                     "it needs a server",
	"raddle studio":                         "it is a server",
	"raddle doctor explore":                 "it sends a request",
	"raddle -f docs/":                       "it needs files of the user",
	"git diff":                              "it needs a repository",
	"EDITOR=nano":                           "it needs a terminal",
	"eval":                                  "it changes a shell",
	"raddle completion":                     "it changes a shell",
	"{":                                     "it is no command",
	"raddle graph review-gate --format dot": "it needs dot",
}

// isTried reports whether a test can try a command of a help text.
func isTried(command string) bool {
	for prefix, reason := range notTried {
		if reason != "" && strings.HasPrefix(command, prefix) {
			return false
		}
	}
	return command != "raddle" && command != "raddle -c"
}

// Every command that a help text shows works in an empty directory with nothing but the program. The man pages have the
// same examples.
func TestShownCommands(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	tried := 0
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if lines := shownIn(c); len(lines) > 0 {
			tried += len(lines)
			t.Run(c.CommandPath(), func(t *testing.T) { tryShown(t, lines) })
		}
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(cli.NewCommand())
	if tried < 50 {
		t.Errorf("%d commands were tried: is this test still right?", tried)
	}
}

// shownIn returns the commands in the examples of a help text that a test can try.
func shownIn(c *cobra.Command) (commands []string) {
	for line := range strings.Lines(c.Example) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), "  ") // what follows says what it does
		if command != "" && isTried(command) {
			commands = append(commands, command)
		}
	}
	return commands
}

// tryShown tries commands one after the other in an empty directory. If one names a run, there is a run of an example.
func tryShown(t *testing.T, commands []string) {
	w := newWorkplace(t, "")
	p := newFakeProvider(t)
	w.env = append(append(w.env, p.environ()...), "OPENAI_API_KEY="+testKey, "RADDLE_MODEL=openai:gpt-5-mini", "HOME="+w.dir)
	if err := linkProgram(w); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(commands, " "); strings.Contains(all, "last") || strings.Contains(all, "store") {
		commands = append([]string{"raddle examples run hello Ada"}, commands...)
	}
	for _, command := range commands {
		if out, err := w.shell(command + " </dev/null"); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}
