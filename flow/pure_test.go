package flow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
)

func TestFastPath(t *testing.T) {
	for answer, want := range map[string]string{
		`{"b":1,"a":2.0}`: `{"b":1,"a":2.0}`, " \n[1]\t": "[1]", "null": "null", `"x"`: `"x"`, "-3": "-3", "true": "true",
		"```json\n{\"a\":1}\n```": `{"a":1}`, "```\n[1]\n```": "[1]", "```json{\"a\":1}```": `{"a":1}`, "```json 5": "5", "5\n```": "5", "``` \n 5": "5",
		"<think>hm {</think>{\"a\":1}": `{"a":1}`, "<think>a</think> \n<think>b</think>\n```json\n1\n```": "1", " <think></think>1": "1",
	} {
		got, ok := fastPath(answer)
		if !ok || jsonvalue.Compact(got) != want {
			t.Errorf("%q gives %s, %t", answer, jsonvalue.Compact(got), ok)
		}
	}
	for _, answer := range []string{
		"", "prose", "Here: {}", "{} done", "```JSON\n{}\n```", "```python\n{}\n```", "<think>a{}", "<think>a</think>", "<THINK>a</THINK>{}",
		"{} <think>a</think>", "```", "``````", "{'a':1}", "{\"a\":1,}", "1 2", "```json\n{}\n``` bye",
	} {
		if got, ok := fastPath(answer); ok {
			t.Errorf("%q gives %s", answer, jsonvalue.Compact(got))
		}
	}
}

func TestSchemaTexts(t *testing.T) {
	schema := jsonvalue.NewObject(jsonvalue.Member{Key: "type", Value: "object"}, jsonvalue.Member{Key: "properties", Value: &jsonvalue.Object{}})
	pretty := "{\n  \"type\": \"object\",\n  \"properties\": {}\n}"
	want := "Do it.\n\n\nRespond with a JSON object that matches this schema. Output ONLY the JSON object with no surrounding prose or markdown fences.\n\nSchema:\n" + pretty
	if diff := cmp.Diff(want, withSchemaHint("Do it.\n", schema)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("Schema:\n"+pretty+"\n\nInput:\nthe text", extractorPrompt(schema, "the text")); diff != "" {
		t.Error(diff)
	}
	repair := repairPrompt(schema, "prose")
	if !strings.HasSuffix(repair, "\n\nSchema:\n"+pretty+"\n\nInput:\nprose") || !strings.Contains(repair, "not valid JSON") {
		t.Error(repair)
	}
	if got := extractionError("x"); got != "Structured-output extractor failed to produce valid JSON after repair retry. Last response:\nx" {
		t.Error(got)
	}
}

func TestPredicate(t *testing.T) {
	for _, tt := range []struct {
		expr, in string
		want     bool
	}{
		{"len(input) > 0", "", false}, {"len(input) > 0", "x", true}, {"len(input)>=2", "é", true}, {"len(input) == 2", "é", true},
		{"  len(input)   <=  3  ", "abcd", false}, {"len(input) < 1", "", true}, {"len(input) >= +2", "ab", true}, {"len(input) == 007", "1234567", true},
	} {
		p, err := spec.ParsePredicate(tt.expr)
		if err != nil || p.IsSatisfiedBy(uint64(len(tt.in))) != tt.want {
			t.Errorf("%s of %q: %t, %v", tt.expr, tt.in, p.IsSatisfiedBy(uint64(len(tt.in))), err)
		}
	}
	for expr, want := range map[string]string{
		"regex(input)":     "Unsupported validation expression 'regex(input)'; only `len(input) OP N` is supported",
		" length > 3":      "Unsupported validation expression 'length > 3'; only `len(input) OP N` is supported",
		"Len(input) > 3":   "Unsupported validation expression 'Len(input) > 3'; only `len(input) OP N` is supported",
		"":                 "Unsupported validation expression ''; only `len(input) OP N` is supported",
		"len(input)":       "No comparison operator in validation expression 'len(input)'",
		"len(input) != 3":  "No comparison operator in validation expression 'len(input) != 3'",
		"len(input) = 3":   "No comparison operator in validation expression 'len(input) = 3'",
		"len(input) > x":   "Invalid right-hand side in validation 'len(input) > x'",
		"len(input) > -1":  "Invalid right-hand side in validation 'len(input) > -1'",
		"len(input) > 1.5": "Invalid right-hand side in validation 'len(input) > 1.5'",
		"len(input) >":     "Invalid right-hand side in validation 'len(input) >'",
		"len(input) >> 1":  "Invalid right-hand side in validation 'len(input) >> 1'",
	} {
		_, err := spec.ParsePredicate(expr)
		if err == nil || !matchesText(err.Error(), want) {
			t.Errorf("%q: %v, want %s", expr, err, want)
		}
	}
	if err := spec.ValidateInput("len(input) == 4", "éé1"); err == nil || err.Error() != "Input failed validation 'len(input) == 4' (got 3 chars)" {
		t.Error(err)
	}
	if spec.ValidateInput("", "") != nil || spec.ValidateInput("len(input) == 4", "éé") != nil {
		t.Error("a good answer is refused")
	}
}

func TestScriptOutput(t *testing.T) {
	r, err := readScriptOutput("s.sh", " {\"b\":1,\"_next\":\"x\",\"a\":null}\n")
	if err != nil || r.Next != "x" || !r.Routed || jsonvalue.Compact(r.Writes) != `{"b":1,"a":null}` {
		t.Errorf("%+v, %v", r, err)
	}
	for text, routed := range map[string]bool{`{"_next":""}`: true, `{"_next":null}`: false, `{"_next":["a"]}`: false, `{}`: false} {
		r, err := readScriptOutput("s.sh", text)
		if err != nil || r.Routed != routed || r.Next != "" || r.Writes.Len() != 0 {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	for text, want := range map[string]string{
		" \n":       "Script 's.sh' produced no output (scripts must emit a single JSON object on stdout)",
		"{} {}":     "Failed to merge output from script 's.sh': Script output must be valid JSON",
		"hello":     "Failed to merge output from script 's.sh': Script output must be valid JSON",
		"[{}]":      "Failed to merge output from script 's.sh': Script output must be a JSON object, not array or primitive",
		"\"_next\"": "Failed to merge output from script 's.sh': Script output must be a JSON object, not array or primitive",
	} {
		if _, err := readScriptOutput("s.sh", text); err == nil || !matchesText(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestReducersDoNotChangeTheirArguments(t *testing.T) {
	list := make([]any, 1, 8)
	list[0] = "a"
	first, _ := spec.ReducersByKey["append"](list, true, "b")
	second, _ := spec.ReducersByKey["append"](list, true, "c")
	third, _ := spec.ReducersByKey["extend"](list, true, []any{"d", "e"})
	if jsonvalue.Compact([]any{list, first, second, third}) != `[["a"],["a","b"],["a","c"],["a","d","e"]]` {
		t.Error(jsonvalue.Compact([]any{list, first, second, third}))
	}
	old := jsonvalue.NewObject(jsonvalue.Member{Key: "a", Value: int64(1)})
	merged, _ := spec.ReducersByKey["merge"](old, true, jsonvalue.NewObject(jsonvalue.Member{Key: "b", Value: int64(2)}, jsonvalue.Member{Key: "a", Value: int64(3)}))
	if jsonvalue.Compact([]any{old, merged}) != `[{"a":1},{"a":3,"b":2}]` {
		t.Error(jsonvalue.Compact([]any{old, merged}))
	}
}

func TestReducersOnNumbers(t *testing.T) {
	for _, tt := range []struct {
		reducer           string
		current, incoming any
		absent            bool
		want              string
	}{
		{"sum", int64(2), 0.5, false, "2.5"},
		{"sum", 2.5, 0.5, false, "3"},
		{"sum", nil, 3.0, true, "3"},
		{"max", nil, 2.0, true, "2"},
		{"min", uint64(1 << 63), int64(7), false, "7"},
		{"sum", uint64(1 << 63), int64(0), false, "9.223372036854776e18"},
		{"max", -0.5, jsonvalue.NegativeZero, false, "0"},
		{"sum", 1e300, 1.0, false, "1e300"},
	} {
		got, err := spec.ReducersByKey[tt.reducer](tt.current, !tt.absent, tt.incoming)
		if err != nil || jsonvalue.Compact(got) != tt.want {
			t.Errorf("%s %v %v: %s, %v, want %s", tt.reducer, tt.current, tt.incoming, jsonvalue.Compact(got), err, tt.want)
		}
	}
	if _, err := spec.ReducersByKey["sum"](1.7e308, true, 1.7e308); err == nil || err.Error() != "reducer 'sum' computed a number that is out of range" {
		t.Error(err)
	}
}
