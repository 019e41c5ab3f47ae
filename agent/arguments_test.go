package agent

import (
	"encoding/json"
	"testing"
)

func TestRepairObject(t *testing.T) {
	for text, want := range map[string]string{
		"```json\n{\"a\": 1}\n```":                  `{"a": 1}`,
		`{"a": 1,}`:                                 `{"a": 1}`,
		`{"a": [1, 2, ], }`:                         `{"a": [1, 2 ] }`,
		`{"a": 1} I will call it now.`:              `{"a": 1}`,
		`{'a': 'it is', 'b': "it's"}`:               `{"a": "it is", "b": "it's"}`,
		`{'a': 'say "yes"', 'b': 'it\'s'}`:          `{"a": "say \"yes\"", "b": "it's"}`,
		"{\"a\": \"two\nlines\"}":                   `{"a": "two\nlines"}`,
		`{"a": "a comma, } and a quote \" inside"}`: `{"a": "a comma, } and a quote \" inside"}`,
	} {
		got, ok := repairObject(text)
		if !ok || string(got) != want {
			t.Errorf("repairObject(%q) = %s, %v, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "file.txt", `["a"]`, `{"a": 1`, `{"a": 1}{"b": 2}`, `{"a": 1} or {"a": 2}`, `{a: 1}`, `{"a" 1}`, `{'a': 'it's'}`, `I call {"a": 1}`,
	} {
		if got, ok := repairObject(text); ok {
			t.Errorf("repairObject(%q) = %s, want none", text, got)
		}
	}
}

func FuzzRepairObject(f *testing.F) {
	f.Add(`{'a': "b",}`)
	f.Add("```\n{}\n```")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := repairObject(text)
		if ok && !json.Valid(got) {
			t.Errorf("repairObject(%q) = %q, which is not JSON", text, got)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) == nil && object != nil && !ok {
			t.Errorf("repairObject(%q) refuses an object", text)
		}
	})
}
