package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"raddle.dev/internal/base/commandline"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/ending"
)

func TestRearrange(t *testing.T) {
	tests := map[string]string{
		"run a b":                         "run a b",
		"-a x hello world":                "run x hello world",
		"--agent x -m m check":            "run x -m m check",
		"-m m -a x run":                   "run x -m m run",
		"-q --agent=x":                    "run x -q",
		"hello -a x":                      "run x hello",
		"-a x --info":                     "info --agent=x",
		"-a -x":                           "run ./-x",
		"resume r --agent p":              "resume r --agent p",
		"info -a x":                       "info -a x",
		"-- -a x":                         "-- -a x",
		"-a":                              "-a",
		"-a x -- --info":                  "run x -- --info",
		"run x --agent-variable k v w":    "run x --agent-variable=k=v w",
		"run x -- --agent-variable k v":   "run x -- --agent-variable k v",
		"run x --agent-variable k":        "run x --agent-variable k",
		"-f a.txt --answer run -a x":      "run x -f a.txt --answer run",
		"--version":                       "--version",
		"":                                "",
		"run x -s":                        "run x --session=temp",
		"run x -s -q":                     "run x --session=temp -q",
		"run x -s name hi":                "run x -s name hi",
		"run x -- -s":                     "run x -- -s",
		"--agent-variable k v -a x hello": "run x --agent-variable=k=v hello",
	}
	for in, want := range tests {
		if got := strings.Join(commandline.RewriteArgs(strings.Fields(in)), " "); got != want {
			t.Errorf("rearrange(%q) = %q, want %q", in, got, want)
		}
	}
}

// The lists that rearrange uses match the commands.
func TestRearrangeKnowsTheCommands(t *testing.T) {
	env := newEnvironment(os.Stdin, os.Stdout, os.Stderr)
	root := newRootCommand(env)
	for _, c := range root.Commands() {
		if !slices.Contains(commandline.Commands, c.Name()) {
			t.Errorf("commandline.Commands lacks %s", c.Name())
		}
	}
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(f *pflag.Flag) {
		for _, spelling := range []string{"--" + f.Name, "-" + f.Shorthand} {
			takes := f.Value.Type() != "bool" && spelling != "-"
			if takes != slices.Contains(commandline.TakesValue, spelling) {
				t.Errorf("commandline.TakesValue and the flags disagree about %s", spelling)
			}
		}
	}
	run.Flags().VisitAll(check)
	root.PersistentFlags().VisitAll(check)
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"a=TEXT": "a=TEXT", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "x#2=T": "'x#2=T'"} {
		if got := wording.QuoteWord(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

// The result has the same schema in both places.
func TestSchemasAgree(t *testing.T) {
	indent := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	_, result, ok := strings.Cut(resultSchema, `"type": "object"`)
	if !ok {
		t.Fatal("result.json has another shape")
	}
	result, _, ok = strings.Cut(result, `"$defs"`)
	if !ok {
		t.Fatal("result.json has another shape")
	}
	if body := strings.TrimSuffix(indent(result), ","); !strings.Contains(indent(eventsSchema), body) {
		t.Error("events.json holds another schema of the result than result.json")
	}
}

func TestPlainPath(t *testing.T) {
	for journal, want := range map[string]string{"": "", "1.each.0/": "each/", "2.each.3/": "each[3]/", "1.team.0#lead/": "", "1.team.0#agent_a_00000001/": "team/agent_a_00000001/",
		"3.ask.0/1.team.0#lead/": "ask/", "1.team.0#agent_a_00000001/2.my.node.1/": "team/agent_a_00000001/my.node[1]/"} {
		if got := runs.PlainPath(journal); got != want {
			t.Errorf("%q: %q, want %q", journal, got, want)
		}
	}
}

// The guide names every status that a run in a list can have.
func TestGuideNamesStatuses(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(guide), "\n`status` is one of")
	list, _, _ = strings.Cut(list, "The kinds of events")
	for _, status := range runs.Statuses() {
		if !strings.Contains(list, "`"+status+"`") {
			t.Errorf("docs/guide/command-line.md does not list the status %s", status)
		}
	}
}

// A server that listens nowhere refuses the flags of one that listens.
func TestWorkerRefusesIdleFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--worker-only":                                     "",
		"--worker-only --max-runs 3 --grace 1s":             "",
		"--listen 127.0.0.1:0 --open":                       "",
		"--worker-only --open --listen=x --max-requests=20": "cannot have --listen, --max-requests, --open",
	} {
		cmd := newServeCommand(&opener{})
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		err := cmd.PreRunE(cmd, nil)
		if want == "" && err != nil || want != "" && (ending.CodeOf(err) != ending.Usage || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
