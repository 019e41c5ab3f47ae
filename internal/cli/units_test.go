package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"raddle.dev/graph"
	"raddle.dev/internal/config"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/runs"
	"raddle.dev/llm"
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
		if got := strings.Join(rewriteArgs(strings.Fields(in)), " "); got != want {
			t.Errorf("rearrange(%q) = %q, want %q", in, got, want)
		}
	}
}

// The lists that rearrange uses match the commands.
func TestRearrangeKnowsTheCommands(t *testing.T) {
	env := newEnvironment(os.Stdin, os.Stdout, os.Stderr)
	root := newRootCommand(env)
	for _, c := range root.Commands() {
		if !slices.Contains(commandNames, c.Name()) {
			t.Errorf("commandNames lacks %s", c.Name())
		}
	}
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(f *pflag.Flag) {
		for _, spelling := range []string{"--" + f.Name, "-" + f.Shorthand} {
			takes := f.Value.Type() != "bool" && spelling != "-"
			if takes != slices.Contains(takesValue, spelling) {
				t.Errorf("takesValue and the flags disagree about %s", spelling)
			}
		}
	}
	run.Flags().VisitAll(check)
	root.PersistentFlags().VisitAll(check)
}

func TestAnswers(t *testing.T) {
	s := graph.Structure{Nodes: []graph.NodeInfo{{Name: "a"}, {Name: "child", Child: &graph.Structure{Nodes: []graph.NodeInfo{{Name: "b"}}}}}}
	known := questionsOf([]graph.Question{{ID: "x/y#2"}}, s)
	list, err := parseAnswers([]string{"a=1", "child/b#2=2", "b=3", "x/y#2=4", "c=5", "=a=6", "7", "a=b=c"}, known)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range list {
		got = append(got, g.id+"|"+g.text)
	}
	want := []string{"a|1", "child/b#2|2", "b|3", "x/y#2|4", "|c=5", "|a=6", "|7", "a|b=c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	take := func(id, node string, bare bool) string {
		text, ok, _ := takeAnswer(list, graph.Question{ID: id, Node: node}, bare, anyText)
		return fmt.Sprint(text, ok)
	}
	for _, step := range []struct {
		id, node, want string
		bare           bool
	}{
		{"child/b#2", "b", "2true", true},
		{"child/b#3", "b", "3true", true},
		{"a", "a", "1true", false},
		{"other", "other", "false", false},
		{"other", "other", "c=5true", true},
	} {
		if got := take(step.id, step.node, step.bare); got != step.want {
			t.Errorf("answer for %s: %s, want %s", step.id, got, step.want)
		}
	}
	if diff := cmp.Diff([]string{"x/y#2=4", "=a=6", "7", "a=b=c"}, unusedAnswers(list)); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}

func anyText(string, int) error { return nil }

// An answer that is far from a question with options is not used if it is not one of them;
// one that names the question, or a question for a text, is used and is wrong.
func TestAnswersThatDoNotSuit(t *testing.T) {
	suits := func(text string, _ int) error {
		if text == "good" {
			return nil
		}
		return errors.New("bad")
	}
	ask := graph.Question{ID: "a/act", Node: "act", Options: []string{"good"}}
	text := graph.Question{ID: "a/act", Node: "act"}
	for _, k := range []struct {
		q     graph.Question
		given []cliAnswer
		want  string
	}{
		{ask, []cliAnswer{{text: "x"}, {text: "good"}}, "good true <nil>"},
		{ask, []cliAnswer{{text: "x"}}, " false <nil>"},
		{text, []cliAnswer{{text: "x"}, {text: "good"}}, "x true bad"},
		{ask, []cliAnswer{{text: "x", id: "a"}, {text: "good", id: "act"}}, "good true <nil>"},
		{ask, []cliAnswer{{text: "good"}, {text: "x", id: "a/act"}}, "x true bad"},
		{ask, []cliAnswer{{text: "one", id: "b"}}, " false <nil>"},
		{text, []cliAnswer{{text: "far", id: "a"}, {text: "near", id: "act"}}, "near true bad"},
	} {
		got, ok, wrong := takeAnswer(k.given, k.q, true, suits)
		if s := fmt.Sprint(got, " ", ok, " ", wrong); s != k.want {
			t.Errorf("%+v: %s, want %s", k.given, s, k.want)
		}
	}
}

func TestMarkUsed(t *testing.T) {
	list := []cliAnswer{{text: "a"}, {text: "b", id: "n"}, {text: "a"}}
	markUsed(list, []graph.Answer{{Value: "A"}}, strings.ToUpper)
	if list[0].used || !list[1].used || !list[2].used {
		t.Errorf("%+v", list)
	}
}

// Questions of spawned agents are named by their paths, and by the agents.
func TestAnswersForATeam(t *testing.T) {
	loop := graph.Structure{Nodes: []graph.NodeInfo{{Name: "think"}, {Name: "act"}, {Name: "sign", Kind: "approval"}}}
	s := graph.Structure{Nodes: []graph.NodeInfo{{Name: "team", Children: map[string]graph.Structure{"lead": loop, "explore": loop}}}}
	const one, two = "agent_explore_1f2e3d4c", "agent_explore_00000002"
	open := []graph.Question{{ID: "team/" + one + "/act", Node: "act"}, {ID: "team/" + two + "/act", Node: "act"}, {ID: "team/" + two + "/act#2", Node: "act"}, {ID: "team/lead/act", Node: "act"}}
	list, err := parseAnswers([]string{two + "=b", "team/" + two + "/act#2=c", "team/" + one + "=a=a", "lead=d"}, questionsOf(open, s))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range open {
		text, _, _ := takeAnswer(list, q, false, anyText)
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{"a=a", "b", "c", "d"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, mistyped := range []string{"team/" + one + "/akt=x", "team/lead/sigm=x", "agent_explore_1f2e3d4d=x"} {
		if _, err := parseAnswers([]string{mistyped}, questionsOf(open, s)); err == nil {
			t.Errorf("%s is taken", mistyped)
		}
	}
	if list, err := parseAnswers([]string{"act=x", "team/lead/act=y"}, questionsOf(nil, s)); err != nil || list[0].id != "act" || list[1].id != "team/lead/act" {
		t.Errorf("ahead: %+v %v", list, err)
	}
}

func TestChain(t *testing.T) {
	cause := errors.New("broken pipe: really")
	inner := fmt.Errorf("at the pump: %w", cause)
	tests := map[string]struct {
		err  error
		want []string
	}{
		"one":      {errors.New("a: b"), []string{"a: b"}},
		"wrapped":  {fmt.Errorf("outside: %w", inner), []string{"outside", "at the pump", "broken pipe: really"}},
		"reworded": {&exitError{err: fmt.Errorf("told otherwise (%w)", inner)}, []string{"told otherwise (at the pump: broken pipe: really)"}},
		"a graph":  {fmt.Errorf("Graph execution failed for agent 'x': at node 'n': %w", inner), []string{"Graph execution failed for agent 'x'", "at node 'n'", "at the pump", "broken pipe: really"}},
		"joined":   {fmt.Errorf("both: %w", errors.Join(inner)), []string{"both", "at the pump", "broken pipe: really"}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, splitErrorChain(test.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for code, err := range map[int]error{
		0:   nil,
		1:   errors.New("x"),
		2:   badUsage("", "x"),
		3:   &config.FileError{},
		4:   fmt.Errorf("x: %w", &llm.Error{Class: llm.Auth}),
		7:   &graph.StepError{Tasks: []*graph.NodeError{{Err: &graph.LimitError{Status: graph.VisitLimit, Path: "child/"}}}},
		8:   fmt.Errorf("x: %w", &failure.Error{Kind: failure.Stale}),
		70:  silentExit{70},
		124: &graph.LimitError{Status: graph.TimedOut},
	} {
		if got := exitCode(err); got != code {
			t.Errorf("exit code of %v: %d, want %d", err, got, code)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"a=TEXT": "a=TEXT", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "x#2=T": "'x#2=T'"} {
		if got := quoteWord(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

// Input that does not start in time counts as none; input that has started is read completely.
func TestReadSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never, unblock := io.Pipe()
		defer unblock.Close()
		if text, err := readSoon(never, firstByte); text != "" || err != nil {
			t.Errorf("%q %v", text, err)
		}
		late, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, "a")
			synctest.Wait()
			_, _ = io.WriteString(w, "bc\r\n")
			_ = w.Close()
		}()
		if text, err := readSoon(late, firstByte); text != "abc" || err != nil {
			t.Errorf("%q %v", text, err)
		}
		if text, err := readSoon(strings.NewReader(""), firstByte); text != "" || err != nil {
			t.Errorf("%q %v", text, err)
		}
		if _, err := readSoon(strings.NewReader("\xff\xfe"), firstByte); err == nil {
			t.Error("bytes that are no text are taken")
		}
	})
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

func TestSpending(t *testing.T) {
	var s spendTotal
	if s.String() != "" {
		t.Errorf("of nothing: %q", s.String())
	}
	s.addCall(llm.Usage{Input: 10, Output: 2}, "priced", 0.5, true)
	if got := s.String(); got != "1 model call, 10 tokens in, 2 out, 0.5000 USD" {
		t.Errorf("%q", got)
	}
	s.addCall(llm.Usage{Input: 5, Output: 1}, "free", 0, false)
	s.addCall(llm.Usage{Input: 5, Output: 1}, "free", 0, false)
	if got := s.String(); got != "3 model calls, 20 tokens in, 4 out, 0.5000 USD and more: the price of free is not known" {
		t.Errorf("%q", got)
	}
}

// Names in a question cannot add lines to it.
func TestQuoteNames(t *testing.T) {
	if got, want := quoteNames([]string{"a b.sh", "x\nUse it? It is safe.\x1b[8m"}), `a b.sh, "x\nUse it? It is safe.\x1b[8m"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestStateIsShownByKey(t *testing.T) {
	state := json.RawMessage(`{"prompt":"Build\nit","notes":[],"round":2,"todo":{"open":["a",{"b":1,"c":[]}],"n":"4"},"system":"","grants":null}`)
	if d := cmp.Diff("prompt: |\n  Build\n  it\nround: 2\ntodo:\n  open:\n  - a\n  … 3 more lines: --state\n", stateText(state, false, false)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("prompt: |\n  Build\n  it\nround: 2\ntodo:\n  open:\n  - a\n  - b: 1\n    c: []\n  n: \"4\"\n", stateText(state, true, true)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("todo:\n  open:\n  - a\n  … 3 more lines: --state\n", stateText(state, true, false)); d != "" {
		t.Error(d)
	}
	if got := stateText(json.RawMessage("[1]"), false, false); got != "[1]" {
		t.Error(got)
	}
}
