package declare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// short is a declaration in one line: name(property[!] type, ...).
func short(t *testing.T, d Declaration) string {
	t.Helper()
	var s struct {
		Required []string
	}
	if err := json.Unmarshal(d.Schema, &s); err != nil {
		t.Fatal(err)
	}
	var parts []string
	dec := json.NewDecoder(bytes.NewReader(d.Schema))
	var order struct{ Properties orderedKeys }
	if err := dec.Decode(&order); err != nil {
		t.Fatal(err)
	}
	for _, p := range order.Properties {
		mark := ""
		if slices.Contains(s.Required, p.name) {
			mark = "!"
		}
		text := p.name + mark + " " + p.shortType()
		parts = append(parts, text)
	}
	return d.Name + "(" + strings.Join(parts, ", ") + ")"
}

// orderedKeys are the properties of a schema in their order.
type orderedKeys []shortProperty

type shortProperty struct {
	name string
	shortSchema
}

// shortSchema is a schema that shows itself in a few words.
type shortSchema struct {
	Type                 any
	Format               string
	Items                *shortSchema
	Enum                 []any
	AnyOf                []*shortSchema
	MinItems, MaxItems   int
	Properties           orderedKeys
	Required             []string
	AdditionalProperties any
}

func (s *shortSchema) shortType() string {
	text, _ := s.Type.(string)
	if list, ok := s.Type.([]any); ok {
		text = fmt.Sprint(list[0]) + "?"
	}
	if text == "object" && s.Properties != nil {
		var parts []string
		for _, p := range s.Properties {
			mark := ""
			if slices.Contains(s.Required, p.name) {
				mark = "!"
			}
			parts = append(parts, p.name+mark+" "+p.shortType())
		}
		text = "{" + strings.Join(parts, ", ") + "}"
	}
	if more, ok := s.AdditionalProperties.(map[string]any); ok {
		inner := &shortSchema{}
		raw, _ := json.Marshal(more)
		_ = json.Unmarshal(raw, inner)
		text += "{" + inner.shortType() + "}"
	}
	if s.Items != nil {
		text += "[" + s.Items.shortType() + "]"
	}
	if s.MinItems > 0 || s.MaxItems > 0 {
		text += fmt.Sprintf("%d..%d", s.MinItems, s.MaxItems)
	}
	var all []string
	for _, m := range s.AnyOf {
		all = append(all, m.shortType())
	}
	text += strings.Join(all, "/")
	if s.Format != "" {
		text += "@" + s.Format
	}
	var values []string
	for _, v := range s.Enum {
		values = append(values, fmt.Sprint(v))
	}
	if values != nil {
		text += " " + strings.Join(values, "|")
	}
	return cmp.Or(strings.TrimSpace(text), "any")
}

func (o *orderedKeys) UnmarshalJSON(data []byte) error {
	*o = orderedKeys{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var v shortSchema
		if err := dec.Decode(&v); err != nil {
			return err
		}
		*o = append(*o, shortProperty{key.(string), v})
	}
	return nil
}

func shorts(t *testing.T, f File) string {
	t.Helper()
	var all []string
	for _, d := range f.Declarations {
		all = append(all, short(t, d))
	}
	return strings.Join(all, " ")
}

// script is a bash tool with these annotation lines.
func script(lines ...string) []byte {
	return []byte("#!/usr/bin/env bash\nset -e\n\n# @describe Does it.\n" + strings.Join(lines, "\n") + "\n\n# @env LLM_OUTPUT=/dev/stdout The output path\n\nmain() {\n    :\n}\n")
}

func TestBashToolsOfTheReference(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"execute_command":    {[]string{"# @option --command! The command to execute."}, "execute_command(command! string)"},
		"execute_sql_code":   {[]string{"# @meta require-tools usql", "# @option --code! The SQL", "# @env USQL_DSN! The database"}, "execute_sql_code(code! string)"},
		"fetch_url_via_curl": {[]string{"# @meta require-tools pandoc", "# @option --url! Where"}, "fetch_url_via_curl(url! string)"},
		"fetch_url_via_jina": {[]string{"# @option --url! Where", "# @env JINA_API_KEY Key"}, "fetch_url_via_jina(url! string)"},
		"fs_read":            {[]string{"# @option --path! What", "# @option --offset From", "# @option --limit <INT> Lines"}, "fs_read(path! string, offset string, limit integer)"},
		"fs_grep":            {[]string{"# @option --pattern! What", "# @option --path Where", "# @option --include Which"}, "fs_grep(pattern! string, path string, include string)"},
		"fs_write":           {[]string{"# @option --path!       Where", "# @option --contents!   What", "# shellcheck disable=SC2154"}, "fs_write(path! string, contents! string)"},
		"get_current_time":   {nil, "get_current_time()"},
		"query_jira_issues":  {[]string{"# @option --jql-query! The query"}, "query_jira_issues(jql_query! string)"},
		"search_arxiv":       {[]string{"# @option --query! The query", "# @env ARXIV_MAX_RESULTS=3 How many"}, "search_arxiv(query! string)"},
		"send_mail":          {[]string{"# @option --recipient! A", "# @option --subject! B", "# @option --body! C", "# @env EMAIL_SMTP_ADDR! D"}, "send_mail(recipient! string, subject! string, body! string)"},
		"send_twilio":        {[]string{"# @option --to-number! A", "# @option --message! B"}, "send_twilio(to_number! string, message! string)"},
		"web_search_loki":    {[]string{"# @meta require-tools loki", "# @option --query! A", "# @env WEB_SEARCH_MODEL=gemini:gemini-2.5-flash B"}, "web_search_loki(query! string)"},
		"demo_sh": {[]string{
			"# @option --string!                  A text", "# @option --string-enum![foo|bar]    One of two", "# @option --string-optional          Another",
			"# @flag --boolean                    A switch", "# @option --integer! <INT>           A number", "# @option --number! <NUM>            Another",
			"# @option --array+ <VALUE>           Many", "# @option --array-optional*          More"},
			"demo_sh(string! string, string_enum! string foo|bar, string_optional string, boolean boolean, integer! integer, number! number, array! array[string], array_optional array[string])"},
	} {
		t.Run(name, func(t *testing.T) {
			f := ParseBash("tools/"+name+".sh", script(c.lines...))
			if got := shorts(t, f); got != c.want || f.Problems != nil {
				t.Errorf("got  %s %v\nwant %s", got, problems(f), c.want)
			}
		})
	}
}

func TestBashToolsOfAgents(t *testing.T) {
	for name, c := range map[string]struct{ commands, want string }{
		"sisyphus": {"get_project_info; run_build; run_tests", "get_project_info() run_build() run_tests()"},
		"coder": {"read_file --path!; write_file --path! --content!; find_similar_files --path!; verify_build; run_tests; get_project_structure; search_code --pattern!",
			"read_file(path! string) write_file(path! string, content! string) find_similar_files(path! string) verify_build() run_tests() get_project_structure() search_code(pattern! string)"},
		"explore": {"get_structure; search_files --pattern!; search_content --pattern! --file-type; read_file --path! --lines; find_similar --path!",
			"get_structure() search_files(pattern! string) search_content(pattern! string, file_type string) read_file(path! string, lines string) find_similar(path! string)"},
		"oracle": {"read_file --path!; get_project_info; search_code --pattern! --file-type; analyze_with_command --command!; list_directory --path",
			"read_file(path! string) get_project_info() search_code(pattern! string, file_type string) analyze_with_command(command! string) list_directory(path string)"},
		"code-reviewer": {"get_diff --base; get_changed_files --base; get_project_info", "get_diff(base string) get_changed_files(base string) get_project_info()"},
		"file-reviewer": {"get_structure", "get_structure()"},
		"sql": {"read_query --query!; write_query --query!; list_tables; describe_table --table-name!",
			"read_query(query! string) write_query(query! string) list_tables() describe_table(table_name! string)"},
	} {
		t.Run(name, func(t *testing.T) {
			src := "#!/usr/bin/env bash\nset -eo pipefail\n\n# @env LLM_OUTPUT=/dev/stdout\n# @env LLM_AGENT_VAR_PROJECT_DIR=.\n# @describe Tools of an agent\n\nsource \"$LLM_PROMPT_UTILS_FILE\"\n\n_project_dir() {\n  :\n}\n\n"
			for command := range strings.SplitSeq(c.commands, "; ") {
				words := strings.Fields(command)
				src += "# @cmd What " + words[0] + " does\n"
				for _, o := range words[1:] {
					src += "# @option " + o + " What it is\n"
				}
				src += words[0] + "() {\n  local path=\"$1\"\n  cat <<EOF\n  # @unknown text in a function\nEOF\n}\n\n"
			}
			f := ParseBash("agents/"+name+"/tools.sh", []byte(src))
			if got := shorts(t, f); got != c.want || f.Problems != nil {
				t.Errorf("got  %s %v\nwant %s", got, problems(f), c.want)
			}
		})
	}
}

func TestBashOptions(t *testing.T) {
	for line, want := range map[string]string{
		"@option --a":                    "a string",
		"@option --a!":                   "a! string",
		"@option --a!=x":                 "syntax",
		"@option --a*":                   "a array[string]",
		"@option --a*,":                  "a array[string]",
		"@option --a+":                   "a! array[string]",
		"@option --a+| <INT>":            "a! array[string]",
		"@option --a~":                   "a array[string]1..0",
		"@option --a=1 <INT>":            "a integer",
		"@option --a!  <INT> two blanks": "a! string",
		"@option --a <int>":              "a integer",
		"@option --a <Num> text":         "a number",
		"@option --a <INT*>":             "a array[string]",
		"@option --a <A> <INT>":          "a array[string]2..2",
		"@option --a <<x> y> text":       "a string",
		"@option --int":                  "int integer",
		"@option --num!":                 "num! number",
		"@option --a[x|y z|'p|q']":       "a string x|y z|p|q",
		"@option --a![x]":                "a! string x",
		"@option --a+[x|y]":              "a! array[string x|y]",
		"@option --a*[x|y]":              "a array[string x|y]",
		"@option --a*,[x|y]":             "a array[string x|y]",
		"@option --a*/[a|b|c]":           "a array[string a|b|c]",
		"@option --a+,[=x|y]":            "a array[string x|y]",
		"@option --a~[x|y]":              "a array[string x|y]1..0",
		"@option --a[1|2] <INT>":         "a string 1|2",
		"@option --a![=x|y]":             "a string x|y",
		"@option --a[=x]":                "syntax",
		"@option --a[`_f`]":              "a string",
		"@option --a+[?`_f`]":            "a! array[string]",
		"@option --a=`_f`":               "a string",
		"@option --a=\"x y\" text":       "a string",
		"@option --a='x' $$ <INT>":       "a integer",
		"@option --a! $A_B <NUM> text":   "a! number",
		"@option -a":                     "a string",
		"@option -a --bc!":               "bc! string",
		"@option -long <INT>":            "long integer",
		"@option +tool!":                 "plus_tool! string",
		"@option +t +tool":               "plus_tool string",
		"@option --a.b:c@d":              "a.b:c@d string",
		"@option --foo_bar-baz!":         "foo_bar_baz! string",
		"@option --key:":                 "key string",
		"@option --key::":                "key: string",
		"@option --D-":                   "D string",
		"@option --D--":                  "D_ string",
		"@option --a! text! <INT> [x]":   "a! string",
		"@flag --a text":                 "a boolean",
		"@flag -a --bc*":                 "bc boolean",
		"@flag -a":                       "a boolean",
		"@flag -#":                       "# boolean",
		"@flag --help":                   "",
		"@flag --a!":                     "syntax",
		"@option --version! x":           "",
		"@option a":                      "syntax",
		"@option":                        "syntax",
		"@option --a[x":                  "syntax",
		"@option --a[x]y":                "syntax",
		"@arg x! text":                   "x! string",
		"@arg x":                         "x string",
		"@arg x=1 <INT> text":            "x integer",
		"@arg x*":                        "x array[string]",
		"@arg x+":                        "x! array[string]",
		"@arg x~":                        "x array[string]1..0",
		"@arg x[a|b]":                    "x string a|b",
		"@arg x![a|b]":                   "x! string a|b",
		"@arg x[=a|b]":                   "x string a|b",
		"@arg x*,[a|b]":                  "x array[string a|b]",
		"@arg x[`_f`]":                   "x string",
		"@arg x $$":                      "x string",
		"@arg x-y! <NUM> text":           "x_y! number",
		"@arg x[a|b]=`_f` <INT>":         "syntax",
		"@env lower-case":                "syntax",
		"@env NAME*":                     "syntax",
		"@env NAME[=a|b] text":           "",
	} {
		t.Run(line, func(t *testing.T) {
			f := ParseBash("t.sh", []byte("# @describe T.\n# "+line+"\nmain() { :; }\n_f() { :; }\n"))
			got := shorts(t, f)
			if want == "syntax" {
				if got != "" || len(f.Problems) != 1 || f.Problems[0].Line != 2 || !strings.HasPrefix(f.Problems[0].Text, "syntax error at line 2") {
					t.Errorf("got %s %v", got, problems(f))
				}
				return
			}
			if got != "t("+want+")" || f.Problems != nil {
				t.Errorf("got %s %v, want t(%s)", got, problems(f), want)
			}
		})
	}
}

func TestBashDescriptions(t *testing.T) {
	f := ParseBash("my-tool.sh", []byte("#!/bin/bash\r\n# @describe   First line.  \r\n#   indented\r\n##\ttab\r\n#\r\n# \\@escaped\r\n# raddle: read-only\r\n# last\r\n\r\n# not part\r\n# @option --a One\r\n# two\r\n# @option --b\r\n#three\r\nmain () {\r\n"))
	same(t, f, `{"name":"my_tool","description":"First line.\n  indented\ntab\n\n@escaped\nlast","parameters":{"type":"object","properties":{"a":{"type":"string","description":"One\ntwo"},"b":{"type":"string","description":"three"}},"required":[]}}`)
	if f.Problems != nil || f.Declarations[0].Effect != "read-only" {
		t.Errorf("%v %+v", problems(f), f.Declarations)
	}
}

func TestBashFiles(t *testing.T) {
	for name, c := range map[string]struct {
		src, want string
		problems  []string
	}{
		"binname":          {"# @describe T.\n# @meta binname other-name\nmain() { :; }\n", "other_name()", nil},
		"function keyword": {"# @cmd A.\nfunction one {\n}\n# @cmd B.\nfunction  two() {\n}\n# @cmd C.\nthree ( ) {\n", "one() two() three()", nil},
		"private":          {"# @cmd A.\n_a() { :; }\n# @cmd\n_instructions() { :; }\n# @cmd B.\nb::c() { :; }\n# @cmd D.\nd() { :; }\n", "d()", nil},
		"inherited": {"# @meta inherit-flag-options\n# @option --root! R\n# @flag --both B\n# @cmd A.\n# @option --own O\n# @option --both <INT> B\na() { :; }\n",
			"a(root! string, own string, both integer)", nil},
		"inherited without words": {"# @meta inherit-flag-options\n# @arg no N\n# @option --root! R\n# @cmd A.\n# @arg own! O\na() { :; }\n", "a(root! string, own! string)", nil},
		"indented":                {"  # @cmd No.\n  no() { :; }\n# @cmd Yes.\n   # @option --no No\n\tno() { :; }\nyes() { :; }\n", "yes()", nil},
		"alias":                   {"# @cmd A.\n# @alias x,y\n# @version 1\n# @author me\na() { :; }\n", "a()", nil},
		"unknown tag": {"# @describe T.\n# @see other\n# @option --a\n# mail me@x.org\n# @ nothing\nmain() { :; }\n", "t(a string)",
			[]string{"t.sh:2: @see(line 2) is unknown tag"}},
		"tag after function": {"# @cmd A.\na() { :; }\n# @option --late\n# @cmd B.\nb() { :; }\n", "a() b()",
			[]string{"t.sh:3: @option(line 3) shouldn't be here, @cmd is missing?"}},
		"no function": {"# @cmd A.\n# @cmd B.\nb() { :; }\n# @cmd C.\n", "b()",
			[]string{"t.sh:1: @cmd(line 1) missing function?", "t.sh:4: @cmd(line 4) missing function?"}},
		"no description": {"# @cmd\na() { :; }\n# @cmd B.\nb() { :; }\n", "b()", []string{"t.sh:2: Tool definition missing or empty description: t a"}},
		"nothing at all": {"main() { :; }\n", "", []string{"t.sh:1: Tool definition missing or empty description: t"}},
		"no main":        {"# @describe T.\n", "t()", []string{"t.sh: there is no function main"}},
		"one broken of two": {"# @cmd A.\n# @option --a[\na() { :; }\n# @cmd B.\nb() { :; }\n", "b()",
			[]string{"t.sh:2: syntax error at line 2"}},
		"missing function":   {"# @describe T.\n# @option --a[`_none`]\nmain() { :; }\n", "t(a string)", []string{"t.sh:2: _none(line 2) is missing"}},
		"duplicate argument": {"# @describe T.\n# @option --a-b\n# @arg a-b\nmain() { :; }\n", "t(a_b string)", []string{"t.sh:3: @arg(line 3) has 'a-b' already exists"}},
		"duplicate option":   {"# @describe T.\n# @option --a-b\n# @flag --a_b\nmain() { :; }\n", "t(a_b string)", []string{"t.sh:3: @flag(line 3) has '--a_b' already exists"}},
		"duplicate tool":     {"# @cmd A.\na-b() { :; }\n# @cmd B.\na_b() { :; }\n", "a_b()", []string{"t.sh:4: the tool 'a_b' is declared already"}},
		"unknown effect":     {"# @cmd A.\n# raddle: harmless\na() { :; }\n# raddle: read-only\n", "a()", []string{"t.sh:2: the effect 'harmless' is unknown", "t.sh:4: an effect is declared below @cmd"}},
		"block":              {"# @describe T.\nmain() { :; }\n# ARGC-BUILD {\n# @cmd In the block\n_argc_run() {\n}\n# ARGC-BUILD }\n", "t()", nil},
		"eval":               {"# @describe T.\nmain() { :; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n", "t()", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := ParseBash("t.sh", []byte(c.src))
			if got := shorts(t, f); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			got := problems(f)
			if len(got) != len(c.problems) {
				t.Fatalf("got %d problems, want %d: %v", len(got), len(c.problems), got)
			}
			for i, want := range c.problems {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("problem %d: got %s, want %s", i, got[i], want)
				}
			}
			if instructed := f.Instructions != nil; instructed != (name == "private") {
				t.Errorf("instructions: %v", f.Instructions)
			}
		})
	}
}

func TestBashCommand(t *testing.T) {
	f := ParseBash("t.sh", []byte("# @describe T.\n# @meta require-tools a,b c\n# @meta dotenv\n# @env KEY! K\n# @env MODE[=x|y] M\n# @option --a-b*, $$ <X> A\n# @option --p <A> <B?> P\n# @arg f=1 F\nmain() { :; }\n"))
	want := &Command{
		Options: []Option{
			{Key: "a_b", Name: "--a-b", Var: "argc_a_b", Multi: true, Delimiter: ",", Min: 1, Max: 1, Env: "A_B", Notations: []string{"X"}},
			{Key: "p", Name: "--p", Var: "argc_p", Min: 1, Max: 2, Notations: []string{"A", "B?"}},
		},
		Positional: []Option{{Key: "f", Name: "f", Var: "argc_f", Min: 1, Max: 1, Default: Value{Text: "1", Given: true}, Notations: []string{"F"}, any: true}},
		Env:        []EnvVar{{Name: "KEY", Required: true}, {Name: "MODE", Choices: []string{"x", "y"}, Default: Value{Text: "x", Given: true}}},
		Requires:   []string{"a", "b", "c"}, Dotenv: ".env",
	}
	if diff := gocmp.Diff(want, f.Declarations[0].Command, gocmp.AllowUnexported(Option{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzBash(f *testing.F) {
	f.Add("# @describe T.\n# @option -a --b!*,[=`x`|'y'] $$ <A> <B+> text\n# more\nmain() { :; }\n")
	f.Add("# @cmd A\n# @flag +x\n# @arg a~\n# @env A=`b`\n# @meta dotenv\na() {\n# ARGC-BUILD {\n")
	f.Fuzz(func(t *testing.T, src string) { wellFormed(t, ParseBash("t.sh", []byte(src))) })
}

// wellFormed holds what is true of every file, whatever is in it.
func wellFormed(t *testing.T, f File) {
	t.Helper()
	names := map[string]bool{}
	for _, d := range f.Declarations {
		text, err := d.MarshalJSON()
		if err != nil || !json.Valid(text) {
			t.Fatalf("%v: %s", err, text)
		}
		if d.Name == "" || names[d.Name] || d.Description == "" || d.Function == "" {
			t.Fatalf("%+v", d)
		}
		names[d.Name] = true
		short(t, d)
	}
}

func BenchmarkBash(b *testing.B) {
	var src strings.Builder
	src.WriteString("#!/usr/bin/env bash\n# @env LLM_OUTPUT=/dev/stdout\n")
	for i := range 100 {
		fmt.Fprintf(&src, "# @cmd Does the thing with number %d\n# and says so.\n# @option --path! Where\n# @option --max-rows=20 <INT> How many\n# @flag --verbose More\nthing_%d() {\n    echo \"$argc_path\" >>\"$LLM_OUTPUT\"\n    return 0\n}\n\n", i, i)
	}
	text := []byte(src.String())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if f := ParseBash("tools.sh", text); len(f.Declarations) != 100 {
			b.Fatal(problems(f))
		}
	}
}

// What is done with a call that was cut off is an annotation too, with an effect or alone.
func TestInDoubtIsDeclared(t *testing.T) {
	for _, f := range []File{
		ParseBash("t.sh", []byte("# raddle: in-doubt ask\n# @cmd A.\n# raddle: in-doubt retry\na() { :; }\n# @cmd B.\n# raddle: dangerous, in-doubt skip\nb() { :; }\n# @cmd C.\nc() { :; }\n# @cmd D.\n# raddle: in-doubt\nd() { :; }\n")),
		ParsePython("t.py", []byte("# raddle: in-doubt retry\ndef a():\n    \"A\"\n# raddle: dangerous\n# raddle: in-doubt skip\ndef b():\n    \"B\"\ndef c():\n    \"C\"\n# raddle: in-doubt maybe\ndef d():\n    \"D\"\n")),
		ParseTypeScript("t.ts", []byte("/** A\n * @raddle in-doubt retry */\nexport function a() {}\n/** B\n * @raddle dangerous\n * @raddle in-doubt skip */\nexport function b() {}\n/** C */\nexport function c() {}\n/** D\n * @raddle in-doubt no */\nexport function d() {}\n")),
	} {
		var got []string
		for _, d := range f.Declarations {
			got = append(got, string(d.Effect)+"/"+string(d.InDoubt))
		}
		want := "/retry dangerous/skip / /"
		if f.Language == LanguageBash {
			want = "/retry dangerous/skip /ask /ask" // what stands at the top holds for all
		}
		if text := strings.Join(got, " "); text != want || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Text, "write in-doubt retry, in-doubt skip, in-doubt ask") {
			t.Errorf("%s: %s, problems %v", f.Path, text, f.Problems)
		}
	}
}

// An effect among the comments below @cmd belongs to that command, whichever it
// is.
func TestBashEffectsOfCommands(t *testing.T) {
	f := ParseBash("t.sh", []byte("# @cmd A.\n# raddle: read-only\na() { :; }\n# @cmd B.\n# raddle: idempotent\n# more\nb() { :; }\n# @cmd C.\n# @flag --x\n# raddle: dangerous\nc() { :; }\n# @cmd D.\nd() { :; }\n"))
	if f.Problems != nil || len(f.Declarations) != 4 {
		t.Fatalf("%d declarations, problems %v", len(f.Declarations), f.Problems)
	}
	for i, want := range []string{"read-only", "idempotent", "dangerous", ""} {
		if got := f.Declarations[i].Effect; string(got) != want {
			t.Errorf("%s: the effect is %q, want %q", f.Declarations[i].Name, got, want)
		}
	}
}
