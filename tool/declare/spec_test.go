package declare

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compact is the JSON of declarations in one line each.
func compact(t *testing.T, f File) string {
	t.Helper()
	var lines []string
	for _, d := range f.Declarations {
		text, err := d.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			t.Fatalf("no JSON: %s", text)
		}
		lines = append(lines, string(text))
	}
	return strings.Join(lines, "\n")
}

func problems(f File) []string {
	var all []string
	for _, p := range f.Problems {
		all = append(all, p.String())
	}
	return all
}

func same(t *testing.T, f File, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), compact(t, f)); diff != "" {
		t.Errorf("declarations (-want +got):\n%s", diff)
	}
}

func TestBashScriptIsOneTool(t *testing.T) {
	f := ParseBash("tools/stock_lookup.sh", []byte(`# file: stock_lookup.sh
# @describe Look up stock.
# Second sentence.
# @option --sku!                     Item code
# @option --warehouse[north|south]   Site
# @option --max-rows=20 <INT>        Row cap
# @option --ratio <NUM>              Threshold
# @option --tag*                     Labels
# @option --since![`+"`_dates`"+`]         Start day
# @flag   --verbose                  More detail
# @arg    note                       Free text

# @env LLM_OUTPUT=/dev/stdout        Where to write
main() { echo "$argc_sku $argc_max_rows" >> "$LLM_OUTPUT"; }
_dates() { echo today; }
`))
	same(t, f, `{"name":"stock_lookup","description":"Look up stock.\nSecond sentence.","parameters":{"type":"object","properties":{`+
		`"sku":{"type":"string","description":"Item code"},`+
		`"warehouse":{"type":"string","description":"Site","enum":["north","south"]},`+
		`"max_rows":{"type":"integer","description":"Row cap"},`+
		`"ratio":{"type":"number","description":"Threshold"},`+
		`"tag":{"type":"array","description":"Labels","items":{"type":"string"}},`+
		`"since":{"type":"string","description":"Start day"},`+
		`"verbose":{"type":"boolean","description":"More detail"},`+
		`"note":{"type":"string","description":"Free text"}},"required":["sku","since"]}}`)
	if f.Problems != nil {
		t.Error(problems(f))
	}
	if d := f.Declarations[0]; d.Agent || d.Function != "main" || d.Line != 14 {
		t.Errorf("%+v", d)
	}
}

func TestBashCommandsAreTools(t *testing.T) {
	f := ParseBash("agents/calc/tools.sh", []byte(`# @env LLM_OUTPUT=/dev/stdout
# @cmd Sum numbers
# @option --values+ Addends
add-up() { :; }
# @cmd Say hello
greet_() { :; }
`))
	same(t, f,
		`{"name":"add_up","description":"Sum numbers","parameters":{"type":"object","properties":{"values":{"type":"array","description":"Addends","items":{"type":"string"}}},"required":["values"]}}`,
		`{"name":"greet","description":"Say hello","parameters":{"type":"object","properties":{},"required":[]}}`)
	if f.Problems != nil || !f.Declarations[0].Agent || f.Declarations[0].Function != "add-up" || f.Declarations[1].Function != "greet_" {
		t.Errorf("%v %+v", problems(f), f.Declarations)
	}
	if env := f.Declarations[0].Command.Env; len(env) != 1 || env[0].Default.Text != "/dev/stdout" {
		t.Errorf("the root's environment is not inherited: %+v", env)
	}
}

func TestPythonFunction(t *testing.T) {
	f := ParsePython("agents/hotel/tools.py", []byte(`# file: tools.py of an agent
def book_room(city: str, nights: int = 1, kinds: Optional[List[str]] = None, tier: Literal["low","high"] = "low"):
    """Reserve a room.

    Args:
        city: Where
        nights: How long
    """
`))
	same(t, f, `{"name":"book_room","description":"Reserve a room.\n\n    Args:\n        city: Where\n        nights: How long","parameters":{"type":"object","properties":{`+
		`"city":{"type":"string","description":"Where"},`+
		`"nights":{"type":"integer","description":"How long"},`+
		`"kinds":{"type":"array","items":{"type":"string"}},`+
		`"tier":{"type":"string","enum":["low","high"]}},"required":["city"]}}`)
	if f.Problems != nil {
		t.Error(problems(f))
	}
}

func TestTypeScriptFunction(t *testing.T) {
	f := ParseTypeScript("functions/tools/demo_ts.ts", []byte(`import { readFileSync } from "fs";
const re = /[/"{]/g, half = 4 / 2;
/**
 * Finds what matches.
 *
 * @param query - The words
 * @param {string} format - How to print
 * @raddle read-only
 */
export async function run(
  query: string,
  format: "json" | 'csv', // a comment, with commas
  count: number = 10,
  tags: string[],
  deep?: Array<Array<boolean>>,
  lang: string | null,
  filter: (a: string, b: number) => boolean,
): Promise<{ ok: boolean }> {
  return { ok: true };
}
export function helper(a: string) {}
`))
	same(t, f, `{"name":"demo_ts","description":"Finds what matches.","parameters":{"type":"object","properties":{`+
		`"query":{"type":"string","description":"The words"},`+
		`"format":{"type":"string","description":"How to print","enum":["json","csv"]},`+
		`"count":{"type":"number"},`+
		`"tags":{"type":"array","items":{"type":"string"}},`+
		`"deep":{"type":"array","items":{"type":"array","items":{"type":"boolean"}}},`+
		`"lang":{"type":"string"},`+
		`"filter":{}},"required":["query","format","tags","filter"]}}`)
	if d := f.Declarations[0]; d.Effect != "read-only" || d.Line != 10 || d.Function != "run" {
		t.Errorf("%+v", d)
	}
	if got := problems(f); len(got) != 1 || !strings.HasPrefix(got[0], "functions/tools/demo_ts.ts:10: the type (a: string, b: number) => boolean of the argument 'filter' of 'run' is not understood") {
		t.Error(got)
	}
}
