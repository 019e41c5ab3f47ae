package script

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
)

// write puts a file below dir.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	testfile.WriteFile(t, path, text)
	return path
}

// surroundings is a host whose directories are new.
func surroundings(t *testing.T) *Host {
	t.Helper()
	dir := t.TempDir()
	return &Host{Config: dir, Functions: filepath.Join(dir, "functions"), Workspace: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}}
}

// one returns the only tool of that name of a global file.
func one(t *testing.T, h *Host, file, source string) tool.Tool {
	t.Helper()
	write(t, h.Functions, "tools/"+file, source)
	tools, problems := h.GlobalTools([]string{file}, nil)
	if len(tools) != 1 || len(problems) > 0 {
		t.Fatalf("%d tools, problems: %v", len(tools), problems)
	}
	return tools[0]
}

// call runs a tool and returns its result.
func call(t *testing.T, tl tool.Tool, args string) tool.Result {
	t.Helper()
	r, err := tl.Run(t.Context(), tool.Call{ID: "c1", Args: json.RawMessage(args), Key: "key-1"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// show prints every argument variable that is set, each value in brackets.
const show = `
_show() {
	local name i ref
	for name in "$@"; do
		if ! declare -p "$name" >/dev/null 2>&1; then printf '%s unset\n' "$name" >>"$LLM_OUTPUT"; continue; fi
		ref="$name[@]"
		printf '%s' "$name" >>"$LLM_OUTPUT"
		for i in "${!ref}"; do printf ' [%s]' "$i" >>"$LLM_OUTPUT"; done
		printf '\n' >>"$LLM_OUTPUT"
	done
}
`

const everyKind = `#!/usr/bin/env bash
set -euo pipefail
# @describe Shows its arguments.
# @option --text! Any text
# @option -t --tag* Many
# @option --split*, Split
# @option --num <INT> A number
# @option --pick[=a|b|c c] A choice
# @option --picks*,[a|b|c] Choices
# @option --day[` + "`_days`" + `] A choice that is computed
# @option --hint[?` + "`_days`" + `] A choice that is not held
# @option --when=` + "`_now`" + ` A default that is computed
# @option --bound $BOUND_VALUE Bound
# @option --foo_bar An underscore
# @option --pair <A> <B> Two values
# @option --rest~ The rest
# @flag -v --verbose A flag
# @flag --loud* A flag that counts
# @arg file=README.md A positional
# @arg level[low|high] A choice by its place
# @arg more* The rest by their place
_days() { printf 'mon\ntue\n'; }
_now() { echo now; }
main() {
	_show argc_text argc_tag argc_split argc_num argc_pick argc_day argc_hint argc_when argc_bound argc_foo_bar argc_pair argc_rest \
		argc_verbose argc_loud argc_file argc__fn argc_picks argc_level argc_more
	printf 'positionals [%s] of %d' "$1" "$#" >>"$LLM_OUTPUT"; printf ' %s' "$@" >>"$LLM_OUTPUT"; printf '\n' >>"$LLM_OUTPUT"
	printf 'args' >>"$LLM_OUTPUT"; printf ' [%s]' "${argc__args[@]}" >>"$LLM_OUTPUT"
}
` + show

// defaults is what everyKind shows where only the text is given.
var defaults = map[string]string{
	"argc_text": "argc_text [x]", "argc_tag": "argc_tag unset", "argc_split": "argc_split unset", "argc_num": "argc_num unset",
	"argc_pick": "argc_pick [a]", "argc_day": "argc_day unset", "argc_hint": "argc_hint unset", "argc_when": "argc_when [now]",
	"argc_bound": "argc_bound unset", "argc_foo_bar": "argc_foo_bar unset", "argc_pair": "argc_pair unset", "argc_rest": "argc_rest unset",
	"argc_verbose": "argc_verbose unset", "argc_loud": "argc_loud unset", "argc_file": "argc_file [README.md]", "argc__fn": "argc__fn [main]",
	"argc_picks": "argc_picks unset", "argc_level": "argc_level unset", "argc_more": "argc_more unset",
}

func shown(t *testing.T, r tool.Result) string {
	t.Helper()
	var out struct{ Output string }
	if err := json.Unmarshal([]byte(r.Text()), &out); err != nil || r.Error {
		t.Fatalf("%v: %s", err, r.Text())
	}
	return out.Output
}

func TestBashArguments(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	h.Env = append(h.Env, "argc_num=from outside")
	tl := one(t, h, "every_kind.sh", everyKind)
	for name, c := range map[string]struct{ args, line string }{
		"nothing else":         {`{"text":"x"}`, ""},
		"blanks":               {`{"text":"  a  b "}`, "argc_text [  a  b ]"},
		"quotes":               {`{"text":"a'b\"c` + "`d`" + `$(e)$f"}`, "argc_text [a'b\"c`d`$(e)$f]"},
		"line breaks":          {`{"text":"a\nb\n\n"}`, "argc_text [a\nb\n\n]"},
		"leading dash":         {`{"text":"-x"}`, "argc_text [-x]"},
		"dashes":               {`{"text":"--verbose"}`, "argc_text [--verbose]"},
		"equals":               {`{"text":"a=b=c="}`, "argc_text [a=b=c=]"},
		"empty":                {`{"text":""}`, "argc_text []"},
		"unicode":              {`{"text":"日本 é 👩‍👩‍👧 \u0001"}`, "argc_text [日本 é 👩‍👩‍👧 \x01]"},
		"backslashes":          {`{"text":"a\\nb\\"}`, `argc_text [a\nb\]`},
		"number as text":       {`{"text":1.50}`, "argc_text [1.50]"},
		"big number":           {`{"text":12345678901234567890}`, "argc_text [12345678901234567890]"},
		"true as text":         {`{"text":true}`, "argc_text [true]"},
		"null as text":         {`{"text":null}`, "argc_text [null]"},
		"object":               {`{"text":{"b": 1, "a":[ ]}}`, `argc_text [{"b":1,"a":[]}]`},
		"list of one":          {`{"text":["y"]}`, "argc_text [y]"},
		"list":                 {`{"text":"x","tag":["a b","","-c","d\ne"]}`, "argc_tag [a b] [] [-c] [d\ne]"},
		"one for a list":       {`{"text":"x","tag":"a"}`, "argc_tag [a]"},
		"empty list":           {`{"text":"x","tag":[]}`, "argc_tag unset"},
		"null list":            {`{"text":"x","tag":null}`, "argc_tag unset"},
		"delimiter":            {`{"text":"x","split":["a,b","c,,d,"]}`, "argc_split [a] [b] [c] [] [d]"},
		"number":               {`{"text":"x","num":-7}`, "argc_num [-7]"},
		"null number":          {`{"text":"x","num":null}`, "argc_num unset"},
		"choice":               {`{"text":"x","pick":"c c"}`, "argc_pick [c c]"},
		"null choice":          {`{"text":"x","pick":null}`, "argc_pick [a]"},
		"computed choice":      {`{"text":"x","day":"tue"}`, "argc_day [tue]"},
		"advice":               {`{"text":"x","hint":"sun"}`, "argc_hint [sun]"},
		"instead of a default": {`{"text":"x","when":"later"}`, "argc_when [later]"},
		"underscore":           {`{"text":"x","foo_bar":"1"}`, "argc_foo_bar [1]"},
		"underscore as dash":   {`{"text":"x","foo-bar":"1"}`, "argc_foo_bar [1]"},
		"two values":           {`{"text":"x","pair":["1","2"]}`, "argc_pair [1] [2]"},
		"the rest":             {`{"text":"x","rest":["-a","b"]}`, "argc_rest [-a] [b]"},
		"flag":                 {`{"text":"x","verbose":true}`, "argc_verbose [1]"},
		"flag as text":         {`{"text":"x","verbose":"true"}`, "argc_verbose [1]"},
		"flag not set":         {`{"text":"x","verbose":false}`, "argc_verbose unset"},
		"flag that counts":     {`{"text":"x","loud":3}`, "argc_loud [3]"},
		"whole number":         {`{"text":"x","num":7.0}`, "argc_num [7]"},
		"number in a text":     {`{"text":"x","num":"12"}`, "argc_num [12]"},
		"choices":              {`{"text":"x","picks":["a","c,b"]}`, "argc_picks [a] [c] [b]"},
		"by its place":         {`{"text":"x","file":"a b","level":"low","more":["-c","d"]}`, "positionals [a b] of 4 a b low -c d"},
		"without the first":    {`{"text":"x","level":"high"}`, "argc_level [high]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, call(t, tl, c.args))
			key, _, _ := strings.Cut(c.line, " ")
			if !strings.Contains("\n"+got, "\n"+c.line+"\n") && c.line != "" {
				t.Errorf("want %q in\n%s", c.line, got)
			}
			for name, line := range defaults {
				if key != "positionals" && name != key && name != "argc_text" && !strings.Contains(got, line+"\n") {
					t.Errorf("want also %q in\n%s", line, got)
				}
			}
			want := "positionals [README.md] of 1 README.md\n"
			if key == "positionals" {
				want = c.line + "\n"
			}
			if !strings.Contains(got, want) && key != "argc_level" {
				t.Errorf("want %q in:\n%s", want, got)
			}
		})
	}
}

func TestBashArgumentLine(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	got := shown(t, call(t, one(t, surroundings(t), "every_kind.sh", everyKind), `{"tag":["a","b"],"text":"x y","verbose":true}`))
	if want := "args [every_kind] [--text] [x y] [--tag] [a] [--tag] [b] [--verbose]"; !strings.HasSuffix(got, want) {
		t.Errorf("want %q at the end of\n%s", want, got)
	}
}

func TestBashBoundOption(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	h.Env = append(h.Env, "BOUND_VALUE=from the environment")
	tl := one(t, h, "every_kind.sh", everyKind)
	for args, want := range map[string]string{
		`{"text":"x"}`:               "argc_bound [from the environment]\n",
		`{"text":"x","bound":"own"}`: "argc_bound [own]\n",
	} {
		if got := shown(t, call(t, tl, args)); !strings.Contains(got, want) {
			t.Errorf("%s: want %q in\n%s", args, want, got)
		}
	}
}

func TestBashRefusals(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	tl := one(t, surroundings(t), "every_kind.sh", everyKind)
	for args, want := range map[string]string{
		`{}`:                                 "error: the following required arguments were not provided:\n  --text <TEXT>",
		`{"text":"x","pick":"d"}`:            "error: invalid value `d` for `<PICK>`\n  [possible values: a, b, c c]",
		`{"text":"x","day":"sun"}`:           "error: invalid value `sun` for `<DAY>`\n  [possible values: mon, tue]",
		`{"text":"x","colour":"red"}`:        "error: unexpected argument `--colour` found\n  [arguments: text, tag, split, num, pick, picks, day, hint, when, bound, foo_bar, pair, rest, verbose, loud, file, level, more]",
		`{"text":"x","num":"many"}`:          "error: invalid value `many` for `--num <INT>`: it must be a whole number",
		`{"text":"x","num":1.5}`:             "error: invalid value `1.5` for `--num <INT>`: it must be a whole number",
		`{"text":"x","picks":["a","q"]}`:     "error: invalid value `q` for `<PICKS>`\n  [possible values: a, b, c]",
		`{"text":"x","level":"mid"}`:         "error: invalid value `mid` for `<LEVEL>`\n  [possible values: low, high]",
		`{"text":"x","file":["a","b"]}`:      "error: the argument `file` cannot be used multiple times",
		`{"text":["x","y"]}`:                 "error: the argument `--text` cannot be used multiple times",
		`{"text":"x","pair":["1"]}`:          "error: incorrect number of values for `--pair <A> <B>`",
		`{"text":"x","verbose":"loud"}`:      "error: flag `--verbose` don't accept any value\n  [possible values: true, false]",
		`{"text":"a\u0000b"}`:                "error: an argument holds a NUL character, which a bash tool cannot take",
		`[1]`:                                "error: invalid JSON data: the arguments are not a JSON object",
		`{"text":"x","text2":"y","aaa":"z"}`: "error: unexpected argument `--aaa` found\n  [arguments: text, tag, split, num, pick, picks, day, hint, when, bound, foo_bar, pair, rest, verbose, loud, file, level, more]",
	} {
		want := tool.JSONResult(map[string]string{"tool_call_error": "Tool call 'every_kind' exited with code 1", "stderr": want})
		var object failureBody
		if err := json.Unmarshal([]byte(want.Text()), &object); err != nil {
			t.Fatal(err)
		}
		want = tool.JSONResult(object)
		want.Error = true
		if diff := cmp.Diff(want, call(t, tl, args)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

func TestBashLargeArgument(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	tl := one(t, h, "size.sh", "# @describe Counts.\n# @option --contents! What\nmain() { printf %s \"${#argc_contents}\" >>\"$LLM_OUTPUT\"; }\n")
	large := strings.Repeat("ab'\n", 300_000)
	args, err := json.Marshal(map[string]string{"content": large}) // a name that models confuse
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, tl, string(args)).Text(); got != "1200000" {
		t.Errorf("got %s", got)
	}
}
