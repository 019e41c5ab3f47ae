package declare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPythonTypes(t *testing.T) {
	for param, want := range map[string]string{
		"x":                                  "x! string",
		"x=1":                                "x string",
		"x: str":                             "x! string",
		"x: int = 3":                         "x integer",
		"x:float":                            "x! number",
		"x: bool=False":                      "x boolean",
		"x: Any":                             "x! string",
		"x: dict":                            "x! string",
		"x: list":                            "x! string",
		"x: Path":                            "x! string",
		"x: typing.List[int]":                "x! string",
		`x: "int"`:                           "x! string",
		`x: "Optional[int]" = None`:          "x string",
		"x: List[int]":                       "x! array[integer]",
		"x: List":                            "x! string",
		"x: list[float]":                     "x! array[number]",
		"x: List[List[str]]":                 "x! array[array]",
		"x: Optional[int]":                   "x integer",
		"x: Optional[List[str]]":             "x array[string]",
		"x: int | None":                      "x integer",
		"x: None | list[bool] = 1":           "x array[boolean]",
		"x: int | str":                       "x! string",
		"x: Union[int, None]":                "x integer",
		"x: Union[int, str]":                 "x! string",
		"x: (int)":                           "x! integer",
		`x: Literal["a", 'b|c']`:             "x! string a|b|c",
		`x: Literal[-1, 2, True]`:            "x! string -1|2|true",
		`x: Literal["a"] | None`:             "x string a",
		`x: list[Literal["a","b"]]`:          "x! array[string]",
		"x: dict[str, list[int]]":            "x! string",
		"x: tuple[int, ...] = ()":            "x string",
		"x: Callable[[int], str]":            "x! string",
		"*args":                              "args array[string]",
		"*args: int":                         "args array[integer]",
		"**kwargs: int":                      "kwargs string",
		"a, /, b, *, c, d=1":                 "a! string, b! string, c! string, d string",
		"a, *rest, c: int, **more":           "a! string, c! integer, rest array[string], more string",
		`a="x, (y", b=lambda p, q: 1`:        "a string, b string",
		`a: str = "=:", b: int = {1: 2}[1]`:  "a string, b integer",
		"a, # one, (\n  b: int = 2, # two\n": "a! string, b integer",
		"größe: int":                         "größe! integer",
		"":                                   "",
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
	if got, want := shorts(t, f), "getuser(name! string) two_words() run() user(x! string)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if d := f.Declarations[0]; d.Function != "getUser" || d.Effect != "idempotent" || d.Line != 29 || !d.Agent || d.Command != nil {
		t.Errorf("%+v", d)
	}
	if f.Declarations[1].Effect != "" || f.Instructions == nil || f.Instructions.Function != "_instructions" {
		t.Errorf("%+v %+v", f.Declarations[1], f.Instructions)
	}
	want := []string{"agents/a/tools.py:42: Missing or empty description on function: bare", "agents/a/tools.py:43: Missing or empty description on function: formatted",
		"agents/a/tools.py:46: the tool 'user' is declared already, by 'user' in line 45"}
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

func TestTypeScriptTypes(t *testing.T) {
	for param, want := range map[string]string{
		"x: string":                 "x! string",
		"x":                         "x! string",
		"x?: number":                "x number",
		"x = 3":                     "x string",
		"x: boolean = a < b":        "x boolean",
		"x: number[]":               "x! array[number]",
		"x: readonly number[]":      "x! array[number]",
		"x: ReadonlyArray<string>":  "x! array[string]",
		"x: (string | null)[]":      "x! array[string]",
		"x: Array<'a' | 'b'>":       "x! array[string]",
		`x: "a" | 'b'`:              "x! string a|b",
		`x: | "a" | "b"`:            "x! string a|b",
		`x: "a" | "b" | null`:       "x string a|b",
		`x: "only"`:                 "x! string only",
		"x: number | undefined":     "x number",
		"x: null | boolean":         "x boolean",
		"x: string | number":        "x! string",
		"x: 1 | 2":                  "x! string 1|2",
		"x: unknown":                "x! string",
		"x: Record<string, number>": "x! string",
		"x: { a: string, b: (c: number) => void }": "x! string",
		"a: Map<string, Array<number>>, b: number": "a! string, b! number",
		"a: string = 'x, y', b = `${1, '}'}`":      "a string, b string",
		"$a: string /* , */, // c\n b: string,":    "$a! string, b! string",
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
	if got, want := shorts(t, f), "over(a! string) getall(n! number) last(a! string)"; got != want {
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

func FuzzPython(f *testing.F) {
	f.Add("# raddle: read-only\n@d\ndef f(a: List[Literal['x', -1]] | None = {1:2}[1], /, *b, **c) -> int: # c\n  r'''F\\x41\n  Args:\n    a (int?): b'''\n")
	f.Fuzz(func(t *testing.T, src string) { wellFormed(t, ParsePython("tools.py", []byte(src))) })
}

func FuzzTypeScript(f *testing.F) {
	f.Add("/** F.\n * @param a - b\n * @raddle read-only */\nexport default async function f<T>(a?: Array<'x' | 2>[] = `${{}}`, b: (c: {}) => void): { x: T } { return /[/]/ }\n")
	f.Fuzz(func(t *testing.T, src string) { wellFormed(t, ParseTypeScript("tools.ts", []byte(src))) })
}
