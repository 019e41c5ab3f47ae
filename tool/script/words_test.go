package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool/declare"
)

const wordsBash = `
# @cmd About all kinds
# @option -n --name! Who
# @option --max-rows <INT> How many
# @option --tag* Labels
# @option --pair <A> <B> Two values
# @flag -f --force* How much
# @arg first The first
# @arg rest* The others
all() { :; }

# @cmd Without words
none() { :; }
`

const wordsPython = `
def act(city: str, nights: int = 1, rates: list[float] | None = None, late: bool = False, tier_name: str = "low", what: int | str = 1):
    """Acts."""
`

func TestWordsBecomeArguments(t *testing.T) {
	bash, python := declare.ParseBash("tools.sh", []byte(wordsBash)), declare.ParsePython("tools.py", []byte(wordsPython))
	tests := map[string]struct {
		file  declare.File
		words []string
		want  string // the arguments as JSON, then the words; or "error: " and what is wrong
	}{
		"nothing":                  {bash, []string{"all"}, `{} []`},
		"options":                  {bash, []string{"all", "--name", "a b", "--max-rows=3"}, `{"max_rows":"3","name":"a b"} []`},
		"short names":              {bash, []string{"all", "-n", "x", "-f", "-f"}, `{"force":2,"name":"x"} []`},
		"lists":                    {bash, []string{"all", "--tag", "a", "--tag=b"}, `{"tag":["a","b"]} []`},
		"values that go together":  {bash, []string{"all", "--pair", "a", "b", "c"}, `{"pair":["a","b"]} [c]`},
		"words":                    {bash, []string{"all", "x", "--name", "n", "y", "--", "--z"}, `{"name":"n"} [x y --z]`},
		"numbers below zero":       {bash, []string{"all", "-3"}, `{} [-3]`},
		"a text like JSON":         {bash, []string{"all", "--name", "{}"}, `{"name":"{}"} []`},
		"JSON":                     {bash, []string{"none", `{}`}, `{} []`},
		"a name with dashes":       {python, []string{"act", "--tier-name", "high"}, `{"tier_name":"high"} []`},
		"types":                    {python, []string{"act", "--city", "7", "--nights", "7", "--late", "--rates", "1", "--rates", "2.5"}, `{"city":"7","late":true,"nights":7,"rates":[1,2.5]} []`},
		"a list as JSON":           {python, []string{"act", "--rates", "[1, 2]"}, `{"rates":[1,2]} []`},
		"JSON for Python":          {python, []string{"act", `{"city": "Rome"}`}, `{"city":"Rome"} []`},
		"a value of several types": {python, []string{"act", "--what", "some text"}, `{"what":"some text"} []`},
		"false":                    {python, []string{"act", "--late=false"}, `{"late":false} []`},
		"an unknown option":        {bash, []string{"all", "--nane", "x"}, "error: all has no argument `--nane`"},
		"no value":                 {bash, []string{"all", "--name"}, "error: the argument `--name` has no value"},
		"twice":                    {bash, []string{"all", "--name", "a", "--name", "b"}, "error: the argument `--name`: it cannot be used multiple times"},
		"a word too many":          {bash, []string{"none", "x"}, "error: none takes no argument `x` without a name"},
		"no number":                {python, []string{"act", "--nights", "x"}, "error: the argument `--nights`: \"x\" is not of type integer"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			d, words, _ := selectFunction(c.file, c.words)
			if d == nil {
				t.Fatalf("no function: %v", c.file.Problems)
			}
			data, positional, err := parseWords(d, words)
			text, _ := json.Marshal(data)
			got := string(text) + " [" + strings.Join(positional, " ") + "]"
			if err != nil {
				got = "error: " + err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWordsReachABashFunction(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	file := write(t, h.Functions, "tools/all.sh", strings.Replace(wordsBash, "all() { :; }",
		`all() { printf '%s|' "$#" "$@" "${argc_first-}" "${argc_rest[*]-}" "${argc_name-}" >>"$LLM_OUTPUT"; echo seen; echo noise >&2; return "${argc_max_rows:-0}"; }`, 1))
	run := func(words ...string) (code int, out, noise string, err error) {
		var stdout, stderr bytes.Buffer
		code, err = h.RunWords(t.Context(), file, false, words, &stdout, &stderr)
		return code, stdout.String(), stderr.String(), err
	}
	code, out, noise, err := run("all", "--name", "n", "one", "t w", "*", "--max-rows", "9")
	if err != nil || code != 9 || out != "seen\n3|one|t w|*|one|t w *|n|\n" || noise != "noise\n" {
		t.Errorf("%d %q %q %v", code, out, noise, err)
	}
	for words, want := range map[string]string{
		"all":              "required",
		"all --max-rows x": "invalid value `x` for `--max-rows <INT>`: it must be a whole number",
		"other":            `all.sh has no function "other"`,
		"":                 "the name of the function is missing",
	} {
		code, _, noise, err := run(strings.Fields(words)...)
		if wrong, ok := errors.AsType[*UsageError](err); ok {
			if !strings.Contains(wrong.Text, want) || !strings.Contains(wrong.Help, "all.sh all --name <NAME>") {
				t.Errorf("%q: %q %q", words, wrong.Text, wrong.Help)
			}
		} else if err != nil || code != 1 || !strings.Contains(noise, want) {
			t.Errorf("%q: %d %q %v", words, code, noise, err)
		}
	}
}
