package declare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The types are in the corpus of tool/script. This is how parameters are found.
func TestPythonParameters(t *testing.T) {
	for param, want := range map[string]string{
		"x=1":                                   "x integer",
		"x: int = 3":                            "x integer",
		"x:float":                               "x! number",
		"x: bool=False":                         "x boolean",
		"*args":                                 "args array[string]",
		"**kwargs: int":                         "kwargs object{integer}",
		"a, /, b, *, c, d=1":                    "a! string, b! string, c! string, d integer",
		"a, *rest, c: int, **more":              "a! string, c! integer, rest array[string], more object{any}",
		`a="x, (y", b=lambda p, q: 1`:           "a string, b string",
		`a: str = "=:", b: int = {1: 2}[1]`:     "a string, b integer",
		"a, # one, (\n  b: int = 2, # two\n":    "a! string, b integer",
		"größe: int":                            "größe! integer",
		`a=True, b=1.5, c=[], d={}, e=(), f=''`: "a boolean, b number, c array[any], d object{any}, e string, f string",
		"":                                      "",
	} {
		t.Run(param, func(t *testing.T) {
			f := ParsePython("tools.py", []byte("def f("+param+"):\n    'F.'\n"))
			if got := shorts(t, f); got != "f("+want+")" || f.Problems != nil {
				t.Errorf("got %s %v, want f(%s)", got, problems(f), want)
			}
		})
	}
}

func TestPythonDocstrings(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"one line":  {"    \"\"\" F. \"\"\"\n", `"description":"F.","parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`},
		"same line": {"", `"description":"F.","parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`},
		"types of the docstring": {"    \"\"\"F.\n\n    Args:\n        a (int, optional): One: two\n        b (float): Its own type wins\n        c: nobody\n\n        a: too late\n    \"\"\"\n",
			`"description":"F.\n\n    Args:\n        a (int, optional): One: two\n        b (float): Its own type wins\n        c: nobody\n\n        a: too late","parameters":{"type":"object","properties":{"a":{"type":"integer","description":"One: two"},"b":{"type":"integer","description":"Its own type wins"}}}`},
		"question mark": {"    '''F.\n    Args:\n      a (list[int]?): L\n    Returns: x\n    '''\n",
			`"description":"F.\n    Args:\n      a (list[int]?): L\n    Returns: x","parameters":{"type":"object","properties":{"a":{"type":"array","description":"L","items":{"type":"integer"}},"b":{"type":"integer"}}}`},
		"escapes": {"    'F\\t\\x41\\u00e9\\101\\q\\'' \\\n    r'\\n' \"\"\"<&>\"\"\" # and a comment\n",
			`"description":"F\tAéA\\q'\\n<&>","parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`},
		"in brackets": {"    # a comment first\n\n    ('F'\n     '.')\n", `"description":"F.","parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			src := "def f(a, b: int = 1) -> dict[str, int]:\n" + c.body
			if c.body == "" {
				src = "def f(a, b: int = 1): 'F.'; return 1\n"
			}
			f := ParsePython("tools.py", []byte(src+"    return a\n"))
			same(t, f, `{"name":"f",`+c.want+`}`)
		})
	}
}

func TestPythonFiles(t *testing.T) {
	const src = `#!/usr/bin/env python3
"""def hidden(): 'in a text'"""
import os
X = {
    "a": 1,
}
s = '''
def also_hidden():
    "No."
'''

def _private(x):
    "No."

class C:
    def method(self):
        "No."

async def later():
    "Later."

async  def _hidden():
    "No."

if X:
    def conditional():
        "No."

# raddle: idempotent
@decorated("a(b",
           x=1)
def getUser( # why
        name: str,
        ) -> str: # so
    "Gets."
    def inner(): "No."

# raddle: read-only

def __weird__Name9(): "No."
def Two_Words():  "Two."
def run(): "Runs."
def _instructions():
    return "x"
def bare(x): pass
def formatted(x):
    f"No."
def user(x): "First."
def USER(x): "Second."
`
	f := ParsePython("agents/a/tools.py", []byte(src))
	if got, want := shorts(t, f), "later() getuser(name! string) two_words() run() user(x! string)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if d := f.Declarations[1]; d.Function != "getUser" || d.Effect != "idempotent" || d.Line != 32 || !d.Agent || d.Command != nil {
		t.Errorf("%+v", d)
	}
	if f.Declarations[2].Effect != "" || f.Instructions == nil || f.Instructions.Function != "_instructions" {
		t.Errorf("%+v %+v", f.Declarations[2], f.Instructions)
	}
	want := []string{"agents/a/tools.py:45: Missing or empty description on function: bare", "agents/a/tools.py:46: Missing or empty description on function: formatted",
		"agents/a/tools.py:49: the tool 'user' is declared already, by 'user' in line 48"}
	got := problems(f)
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("want %q in %v", w, got)
		}
	}
	global := ParsePython("functions/tools/Get-it.now.py", []byte(src))
	if got := shorts(t, global); got != "get_it_now()" || global.Declarations[0].Agent || global.Problems != nil {
		t.Errorf("got %s %v", got, problems(global))
	}
}

func TestPythonProblems(t *testing.T) {
	const good = "def good():\n    'Good.'\n"
	for src, want := range map[string]string{
		"def f(a:\n    'F.'\n":            "t.py:3: failed to parse python: a bracket that is open since line 3 or later is not closed",
		"def f(a): 'F\n":                  "t.py:3: failed to parse python: the text that begins in line 3 has no end",
		"def f(a)\n    'F.'\n":            "t.py:3: failed to parse python: the signature of 'f' is not complete",
		"def f((a, b)): 'F.'\n":           "t.py:3: failed to parse python: in function 'f': a parameter is not a name",
		"# raddle: safe\ndef f(): 'F.'\n": "t.py:4: the effect 'safe' is unknown",
	} {
		f := ParsePython("t.py", []byte(good+src))
		if len(f.Problems) != 1 || !strings.HasPrefix(f.Problems[0].String(), want) || !strings.HasPrefix(shorts(t, f), "good()") {
			t.Errorf("%q: got %s %v, want %s", src, shorts(t, f), problems(f), want)
		}
	}
}

// The types are in the corpus of tool/script. This is how parameters are found.
func TestTypeScriptParameters(t *testing.T) {
	for param, want := range map[string]string{
		"x":                     "x! string",
		"x?: number":            "x number",
		"x = 3":                 "x number",
		"x: boolean = a < b":    "x boolean",
		`x: | "a" | "b" | null`: "x string a|b",
		"a: Array<Record<string, number>>, b: number": "a! array[object{number}], b! number",
		"a: string = 'x, y', b = `${1, '}'}`":         "a string, b string",
		"$a: string /* , */, // c\n b: string,":       "$a! string, b! string",
	} {
		t.Run(param, func(t *testing.T) {
			f := ParseTypeScript("tools.ts", []byte("/** F. */\nexport function f("+param+"): void {}\n"))
			if got := shorts(t, f); got != "f("+want+")" || f.Problems != nil {
				t.Errorf("got %s %v, want f(%s)", got, problems(f), want)
			}
		})
	}
}

func TestTypeScriptFiles(t *testing.T) {
	f := ParseTypeScript("agents/a/tools.ts", []byte("// export function no() {}\n"+
		"const text = `export function no() { ${'}'} `, r = /export function \\/[/{]/;\n"+
		"function helper() { /** No. */ function inner() {} }\n"+
		"/** Overload. */\nexport function over(a: string): void;\nexport function over(a: number): void;\n/** Over. */\nexport function over(a: any): { x: number } { return { x: 1 } }\n"+
		"/**\n * Two\n * lines.\n * @returns x\n * @param n? - How many\n * @raddle dangerous\n */\nexport default async function getAll<T extends { a: string }>(n: number): Promise<T[]> { return [] }\n"+
		"/** Not a function. */\nexport const x = 1;\n/** Private. */\nexport function _p() {}\n"+
		"export function bare() {}\n/* no doc */\nexport function plain() {}\n"+
		"/** Rest. */\nexport function rest(a: string,\n  ...b: string[]) {}\n/** Destructured. */\nexport function parts({ a }: { a: string }) {}\n"+
		"/** Last. */\nexport function last(a: string): a is string { return true }\n/** I. */\nexport function _instructions(): string { return '' }\n"))
	if got, want := shorts(t, f), "over(a! any) getall(n! number) last(a! string)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if d := f.Declarations[1]; d.Description != "Two\nlines." || d.Effect != "dangerous" || d.Function != "getAll" || f.Instructions == nil {
		t.Errorf("%+v", d)
	}
	want := []string{
		"agents/a/tools.ts:21: Missing or empty description on function: bare", "agents/a/tools.ts:23: Missing or empty description on function: plain",
		"agents/a/tools.ts:26: line 26: rest parameters (...) are not supported in tool functions",
		"agents/a/tools.ts:28: line 28: destructured parameters are not supported in tool functions",
	}
	got := problems(f)
	if len(got) != len(want) {
		t.Fatal(got)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			t.Errorf("got %s, want %s", got[i], w)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "dir.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"absent.sh": "Tool definition file not found: ",
		"none":      "Unable to extract language from tool file: none",
		"tools.js":  "Unsupported tool file extension '.js'",
		"dir.sh":    "Unable to open tool definition file. ",
	} {
		f := Load(filepath.Join(dir, name))
		if len(f.Problems) != 1 || !strings.HasPrefix(f.Problems[0].Text, want) || f.Declarations != nil {
			t.Errorf("%s: %v", name, problems(f))
		}
	}
	path := filepath.Join(dir, "t.py")
	if err := os.WriteFile(path, []byte("def f(): 'F.'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := Load(path); shorts(t, f) != "f()" || f.Language != LanguagePython {
		t.Errorf("%+v", f)
	}
}

// Types that consist of each other many times are understood up to a limit, and quickly.
func TestTypesAreBounded(t *testing.T) {
	python, typescript := "", ""
	for i := range 12 {
		python += fmt.Sprintf("@dataclass\nclass C%d:\n", i)
		typescript += fmt.Sprintf("interface C%d {", i)
		for j := range 6 {
			python += fmt.Sprintf("    f%d: C%d\n", j, i+1)
			typescript += fmt.Sprintf(" f%d: C%d;", j, i+1)
		}
		typescript += " }\n"
	}
	for _, f := range []File{
		ParsePython("t.py", []byte(python+"def f(x: C0):\n    'F.'\n")),
		ParseTypeScript("t.ts", []byte(typescript+"/** F. */\nexport function f(x: C0) {}\n")),
	} {
		if len(f.Declarations) != 1 || len(f.Problems) != 1 || len(f.Declarations[0].Schema) > 1<<20 {
			t.Errorf("%s: %d declarations, %d problems", f.Path, len(f.Declarations), len(f.Problems))
		}
	}
}

func FuzzPython(f *testing.F) {
	f.Add("# raddle: read-only\n@d\ndef f(a: List[Literal['x', -1]] | None = {1:2}[1], /, *b, **c) -> int: # c\n  r'''F\\x41\n  Args:\n    a (int?): b'''\n")
	f.Fuzz(func(t *testing.T, src string) { wellFormed(t, ParsePython("tools.py", []byte(src))) })
}

func FuzzTypeScript(f *testing.F) {
	f.Add("/** F.\n * @param a - b\n * @raddle read-only */\nexport default async function f<T>(a?: Array<'x' | 2>[] = `${{}}`, b: (c: {}) => void): { x: T } { return /[/]/ }\n")
	f.Fuzz(func(t *testing.T, src string) { wellFormed(t, ParseTypeScript("tools.ts", []byte(src))) })
}
