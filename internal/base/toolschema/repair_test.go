package toolschema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestRepair(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"b":{},"a":{"type":"string"}}}`: `{"type":"object","properties":{"b":{},"a":{"type":"string"}}}`,
		`null`: `{"type":"object","properties":{}}`,
		`{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x","y"]}}}`:                                `{"properties":{"x":{"type":"integer"}},"required":["x"],"type":"object"}`,
		`{"anyOf":[{"properties":{"k":{"const":"a"},"x":{"type":"string"}},"required":["k","x"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}`:  `{"properties":{"k":{"enum":["a","b"],"type":"string"},"x":{"type":"string"}},"required":["k"],"type":"object"}`,
		`{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/B"}],"description":"own"}},"$defs":{"B":{"type":"string","description":"of B"}}}`: `{"properties":{"a":{"description":"own","type":"string"}},"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":"string","required":true},"b":false}}`:                                                               `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`,
		`{"type":"object","properties":{"a":{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false,"type":"object"}}}`:               `{"properties":{"a":{"additionalProperties":{"type":"string"},"type":"object"}},"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"integer"}]}}}`:                                           `{"properties":{"a":{"description":"Its items are, in this order: string, integer.","items":{"anyOf":[{"type":"string"},{"type":"integer"}]},"type":"array"}},"type":"object"}`,
	} {
		got, err := Repair(json.RawMessage(schema))
		if err != nil || string(got.Schema) != want {
			t.Errorf("%s becomes %s, %v\nwant %s", schema, got.Schema, err, want)
		}
	}
}

// A schema of which no provider accepts any form is left out, and the reason is the end of a sentence.
func TestRepairRefuses(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"array"}`: `is that of a value of the type "array"`, `"x"`: "is not an object", `false`: "is not an object", `{`: "is not JSON",
		`{"oneOf":[{"type":"string"}]}`: "has no alternative in oneOf",
	} {
		_, err := Repair(json.RawMessage(schema))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}

// References that multiply, and that go in circles, end soon.
func TestRepairEnds(t *testing.T) {
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"D%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/D%d"},"b":{"$ref":"#/$defs/D%[2]d"}},"allOf":[{"$ref":"#/$defs/D%[2]d"},{"$ref":"#/$defs/D%[2]d"}]}`, i, i+1))
	}
	if _, err := Repair(json.RawMessage(`{"$ref":"#/$defs/D0","$defs":{` + strings.Join(defs, ",") + `}}`)); err == nil || !strings.Contains(err.Error(), "parts") {
		t.Errorf("the error is %v", err)
	}
	got, err := Repair(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#"},"c":{"$ref":"#/$defs/C"}},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"allOf":[{"$ref":"#/$defs/A"}]},"C":{"$ref":"#/$defs/C"}}}`))
	if err != nil || strings.Contains(string(got.Schema), "$ref") || len(got.Schema) > 2000 {
		t.Errorf("%d bytes, %v: %.500s", len(got.Schema), err, got.Schema)
	}
}

// What a root cannot say is said to the model in words.
func TestRepairNotes(t *testing.T) {
	got, err := Repair(json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`))
	if want := `does it` + "\n\n" + `The arguments must also match this JSON Schema: {"anyOf":[{"required":["a"]},{"required":["b"]}]}`; err != nil || got.AddNote("does it") != want {
		t.Errorf("%q, %v, want %q", got.AddNote("does it"), err, want)
	}
}

func FuzzRepair(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`)
	f.Add(`{"allOf":[{"if":{},"then":{"properties":{"x":true}}}],"items":[{}]}`)
	f.Fuzz(func(t *testing.T, schema string) {
		got, err := Repair(json.RawMessage(schema))
		if err != nil {
			return
		}
		again, err := Repair(got.Schema)
		if err != nil || again.Note != "" || string(again.Schema) != string(got.Schema) {
			t.Errorf("%s becomes %s, and then %s, %q, %v", schema, got.Schema, again.Schema, again.Note, err)
		}
	})
}
