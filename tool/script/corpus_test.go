package script

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
	"raddle.dev/tool/declare"
)

var update = flag.Bool("update", false, "rewrite the corpus with what the code does now")

// A corpusCase is a list of parameters with what the model sees of it, and calls with what the function gets.
type corpusCase struct {
	parameters string
	facts      []string // of the declaration: schema, required, problem
	calls      []corpusCall
}

type corpusCall struct{ args, want string } // want is the values in the child, or "! " and why the call is refused

// readCorpus reads a file of testdata: source that all cases have, a line of dashes, and the cases with an empty line between them.
func readCorpus(t *testing.T, name string) (head string, cases []corpusCase) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n----\n")
	for block := range strings.SplitSeq(strings.TrimSpace(rest), "\n\n") {
		lines := strings.Split(block, "\n")
		c := corpusCase{parameters: lines[0]}
		for _, l := range lines[1:] {
			l = strings.TrimPrefix(l, "  ")
			if !strings.HasPrefix(l, "{") {
				c.facts = append(c.facts, l)
				continue
			}
			args, want, _ := strings.Cut(l, " => ")
			c.calls = append(c.calls, corpusCall{args, want})
		}
		cases = append(cases, c)
	}
	return head, cases
}

// checkCorpus compares each case with what the file declares and with what one process of its language gets. function returns the source of a
// function of that name and with these parameters; calls is the source of the function "every", which makes a list of calls.
func checkCorpus(t *testing.T, corpus, file, every string, function func(name, parameters string) string) {
	head, cases := readCorpus(t, corpus)
	source := head + "\n"
	for i, c := range cases {
		source += function(fmt.Sprint("f", i), c.parameters)
	}
	h := agent(t, map[string]string{file: source + every})
	h.Limit = 1 << 20
	f := declare.Load(filepath.Join(h.Agent.Dir, file))
	byName := map[string]declare.Declaration{}
	for _, d := range f.Declarations {
		byName[d.Name] = d
	}
	var calls []any
	var got []string
	var at []int // the line of got that each call is
	for i, c := range cases {
		d := byName[fmt.Sprint("f", i)]
		got = append(got, "", c.parameters)
		var s struct {
			Properties json.RawMessage
			Required   []string
		}
		if err := json.Unmarshal(d.Schema, &s); err != nil {
			t.Fatal(c.parameters, err)
		}
		got = append(got, "  schema "+string(s.Properties), "  required "+strings.Join(s.Required, ", "))
		for _, p := range f.Problems {
			if p.Line == d.Line {
				got = append(got, "  problem "+p.Text)
			}
		}
		for _, call := range c.calls {
			var args map[string]json.RawMessage
			if err := json.Unmarshal([]byte(call.args), &args); err != nil {
				t.Fatal(c.parameters, call.args, err)
			}
			fitted, wrong := d.FitArguments(args)
			if len(wrong) > 0 {
				got = append(got, "  "+call.args+" => ! "+strings.Join(wrong, "; "))
				continue
			}
			at = append(at, len(got))
			got = append(got, "  "+call.args+" => ")
			calls = append(calls, []any{d.Function, d.Params, fitted})
		}
	}
	args, err := json.Marshal(map[string]any{"calls": calls})
	if err != nil {
		t.Fatal(err)
	}
	tools, _ := h.OwnTools()
	var results []string
	for _, tl := range tools {
		if tl.Name == "every" {
			if text := call(t, tl, string(args)).Text(); json.Unmarshal([]byte(text), &results) != nil || len(results) != len(at) {
				t.Fatal(text)
			}
		}
	}
	for i, r := range results {
		got[at[i]] += r
	}
	var want []string
	for _, c := range cases {
		want = append(want, "", c.parameters)
		for _, fact := range c.facts {
			want = append(want, "  "+fact)
		}
		for _, call := range c.calls {
			want = append(want, "  "+call.args+" => "+call.want)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		if *update {
			testfile.WriteFile(t, filepath.Join("testdata", corpus), head+"\n----\n"+strings.Join(got, "\n")+"\n")
		}
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPythonCorpus(t *testing.T) {
	testneed.RequirePrograms(t, "python3")
	checkCorpus(t, "python.txt", "tools.py", `
def every(calls: list):
    """Makes all calls."""
    def make(name, params, data):
        try:
            return __main__.call(globals()[name], data)
        except SystemExit as e:
            return f"! {e.code}"
    return [make(*c) for c in calls]
`, func(name, parameters string) string {
		return "\ndef " + name + "(" + parameters + "):\n    \"F.\"\n    return ', '.join(f'{k}={v!r}' for k, v in locals().items())\n"
	})
}

func TestExtraTypeScriptCorpus(t *testing.T) {
	testneed.RequirePrograms(t, "tsx")
	checkCorpus(t, "typescript.txt", "tools.ts", `
/** Makes all calls. */
export async function every(calls: [string, string[], object][]): Promise<string[]> {
  const own: any = await import("./tools");
  return calls.map(([name, params, data]: any) => own[name](...params.map((p: string) => data[p])));
}
`, func(name, parameters string) string {
		return "\n/** F. */\nexport function " + name + "(" + parameters + ") { return Object.values(arguments).map((v) => JSON.stringify(v)).join(\" \"); }\n"
	})
}

// What is wrong with a call is known before a person is asked about it, and what can only be meant in one way is not wrong.
func TestCallsAreCheckedBeforeTheyRun(t *testing.T) {
	h := surroundings(t)
	bash := one(t, h, "a.sh", "# @describe A.\n# @option --n! <INT> N\n# @option --key! $A_KEY K\n# @arg file! F\nmain() { :; }\n")
	python := one(t, h, "b.py", "def run(n: int, tags: list[str] = []):\n    'B.'\n")
	for _, c := range []struct {
		tool       tool.Tool
		args, want string
	}{
		{bash, `{"n":"5","file":"f"}`, ""},
		{bash, `{"n":"x","file":"f"}`, "invalid value `x` for `--n <INT>`: it must be a whole number"},
		{bash, `{}`, "the following required arguments were not provided:\n  --n <INT>\n  <FILE>"},
		{bash, `{"n":5,"file":["f"]}`, "invalid value `[\"f\"]` for `<FILE>`: it must be one value, not a list or an object"},
		{python, `{"n":"5","tags":"[\"a\"]"}`, ""},
		{python, `{"n":"x","tags":"a"}`, "the argument `n` must be a whole number, not the text \"x\"\nerror: the argument `tags` must be a list, each item a text, not the text \"a\""},
		{python, `[]`, "invalid JSON data: the arguments are not a JSON object"},
	} {
		err := c.tool.Check(json.RawMessage(c.args))
		if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && got != c.want {
			t.Errorf("%s %s: %v, want %s", c.tool.Name, c.args, err, c.want)
		}
	}
}
