package toolschema

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// foreignSchemas are schemas of real servers that a provider refuses, or that differ from one in a word, and where each is reported. want is a
// part of the repaired schema, or of the error after "!".
var foreignSchemas = map[string]struct{ schema, want, source string }{
	"nothing":                      {``, `{"type":"object","properties":{}}`, "openai/codex#4176"},
	"null":                         {`null`, `{"type":"object","properties":{}}`, "sandialabs/atlas-ui-3#727"},
	"true":                         {`true`, `{"type":"object","properties":{}}`, "JSON Schema 2020-12, 4.3.2"},
	"only a dialect":               {`{"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"properties":{},"type":"object"}`, "modelcontextprotocol/servers#3051"},
	"no properties":                {`{"type":"object"}`, `"properties":{}`, "bnb-chain/bnbchain-mcp#68, xpzouying/xiaohongshu-mcp#677"},
	"no properties, closed":        {`{"type":"object","additionalProperties":false}`, `{"additionalProperties":false,"properties":{},"type":"object"}`, "xpzouying/xiaohongshu-mcp#677"},
	"a text":                       {`{"type":"string","description":"the document title"}`, `!is that of a value of the type "string"`, "sandialabs/atlas-ui-3#727"},
	"a list":                       {`{"type":"array","items":{"type":"string"}}`, `!is that of a value of the type "array"`, "openai/openai-agents-python#4151"},
	"an array as a schema":         {`[]`, `{"type":"object","properties":{}}`, "openai/openai-agents-python#4151"},
	"a property that is no schema": {`{"type":"object","properties":{"type":"object","q":{"type":"string"}}}`, `"properties":{"q":{"type":"string"}}`, "sst/opencode#2082"},
	"properties that are a list":   {`{"type":"object","properties":[]}`, `"properties":{}`, "PHP servers write an empty map as a list"},
	"anyOf at the root": {`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"anyOf":[{"required":["id"]},{"required":["name"]}]}`,
		`must also match this JSON Schema: {"anyOf":[{"required":["id"]},{"required":["name"]}]}`, "dodopayments/dodopayments-typescript#189"},
	"oneOf of objects at the root": {`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"string"}},"required":["kind","x"]},{"type":"object","properties":{"kind":{"const":"b"},"y":{"type":"number"}},"required":["kind"]}]}`,
		`"properties":{"kind":{"enum":["a","b"],"type":"string"},"x":{"type":"string"},"y":{"type":"number"}},"required":["kind"],"type":"object"`, "dodopayments/dodopayments-typescript#189"},
	"allOf at the root": {`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/page"}],"$defs":{"page":{"properties":{"n":{"type":"integer"}},"required":["n"]}}}`,
		`{"properties":{"a":{"type":"string"},"n":{"type":"integer"}},"required":["a","n"],"type":"object"}`, "anthropic: input_schema does not support oneOf, allOf, or anyOf at the top level"},
	"a condition at the root":       {`{"type":"object","properties":{"a":{"type":"string"}},"if":{"required":["a"]},"then":{"required":["b"]},"not":{"required":["c"]},"enum":[1]}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`, "openai: schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"},
	"an array without items":        {`{"type":"object","properties":{"paths":{"type":"array"}}}`, `"paths":{"items":{},"type":"array"}`, "SoftInstigate/restheart#593, vespo92/SolidworksMCP-TS#29"},
	"a nested array without items":  {`{"type":"object","properties":{"a":{"type":"array","items":{"type":["array","null"]}}}}`, `"items":{"items":{},"type":["array","null"]}`, "SoftInstigate/restheart#593"},
	"items that are a list":         {`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"number"}]}}}`, `"items":{"anyOf":[{"type":"string"},{"type":"number"}]}`, "draft 7 in servers of today"},
	"an empty list of items":        {`{"type":"object","properties":{"a":{"type":"array","items":[]}}}`, `"a":{"items":{},"type":"array"}`, "draft 7 in servers of today"},
	"references":                    {`{"type":"object","properties":{"headers":{"type":"object"},"actions":{"type":"array","items":{"$ref":"#/properties/headers"}}}}`, `"actions":{"items":{"type":"object"},"type":"array"}`, "DEEIX-AI/DEEIX-Chat#546"},
	"definitions":                   {`{"type":"object","properties":{"p":{"$ref":"#/definitions/P","description":"mine"}},"definitions":{"P":{"type":"string","description":"theirs"}}}`, `{"properties":{"p":{"description":"mine","type":"string"}},"type":"object"}`, "pydantic and zod write them"},
	"escaped references":            {`{"type":"object","properties":{"p":{"$ref":"#/$defs/a~1b%20c"}},"$defs":{"a/b c":{"type":"integer"}}}`, `"p":{"type":"integer"}`, "RFC 6901"},
	"a recursive reference":         {`{"type":"object","properties":{"node":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`, `"node":{"properties":{"next":{"type":"object"}},"type":"object"}`, "openai: recursive schemas; google: no recursive references"},
	"a reference to the whole":      {`{"type":"object","properties":{"child":{"$ref":"#"}}}`, `"properties":{"child":{"properties":{"child":{"type":"object"}},"type":"object"}}`, "NousResearch/hermes-agent#98928"},
	"a reference to nowhere":        {`{"type":"object","properties":{"p":{"$ref":"#/$defs/gone"}}}`, `"p":{"description":"Any value: the server does not describe it."}`, "agents that cut $defs"},
	"a reference to another server": {`{"type":"object","properties":{"p":{"$ref":"https://example.com/schema.json"}}}`, `"p":{"description":"Any value: the server does not describe it."}`, "JSON Schema allows it"},
	"a reference that is a number":  {`{"type":"object","properties":{"p":{"$ref":7}}}`, `"p":{}`, "a mistake"},
	"a true property":               {`{"type":"object","properties":{"any":true}}`, `"any":{}`, "google: Proto field is not repeating, cannot start list"},
	"required by flags":             {`{"type":"object","properties":{"a":{"type":"string","required":true}},"required":true}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`, "draft 3 in servers of today"},
	"required without a property":   {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b","a"]}`, `"required":["a"]`, "google: property is not defined"},
	"required of nothing":           {`{"type":"object","properties":{},"required":["b"]}`, `{"properties":{},"type":"object"}`, "google: property is not defined"},
	"types of other languages":      {`{"type":"object","properties":{"a":{"type":"int"},"b":{"type":"any"},"c":{"type":"Float"},"d":{"type":["str","none"]},"e":{"type":""}}}`, `{"a":{"type":"integer"},"b":{},"c":{"type":"number"},"d":{"type":["string","null"]},"e":{}}`, "arben-adm/mcp-sequential-thinking#12"},
	"an empty list of types":        {`{"type":"object","properties":{"a":{"type":[]}}}`, `"a":{}`, "zereight/gitlab-mcp#166"},
	"an object or nothing":          {`{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`, "servers in C#"},
	"an empty enum":                 {`{"type":"object","properties":{"a":{"enum":[]},"b":{"enum":["x","x",1,1]},"c":{"enum":"x"}}}`, `{"a":{},"b":{"enum":["x",1]},"c":{}}`, "google: enum must not be empty; anthropic: enum must be unique"},
	"an empty anyOf":                {`{"type":"object","properties":{"a":{"anyOf":[]}}}`, `"a":{}`, "JSON Schema 2020-12, 10.2.1.2"},
	"no JSON":                       {`{"type":`, "!is not JSON", "a mistake"},
	"references that multiply":      {multiplying(), "!has more than 20000 parts", "a hostile server"},
	"references that nest":          {nesting(), `"items":{"items":{`, "a hostile server"},
}

// multiplying returns a small schema that has a billion parts without its references.
func multiplying() string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{`)
	for name := 'a'; name < 'z'; name++ {
		next := string(name + 1)
		b.WriteString(`"` + string(name) + `":{"type":"object","properties":{"l":{"$ref":"#/$defs/` + next + `"},"r":{"$ref":"#/$defs/` + next + `"}}},`)
	}
	return b.String() + `"z":{"type":"string","description":"` + strings.Repeat("x", 100) + `"}}}`
}

func nesting() string {
	const depth = 500
	return `{"type":"object","properties":{"p":` + strings.Repeat(`{"type":"array","items":`, depth) + `{}` + strings.Repeat(`}`, depth) + `}}`
}

// checkStrictly returns what a provider would say against the schema of a tool. It is written apart from the repair.
func checkStrictly(t *testing.T, schema []byte) {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	if root["type"] != "object" {
		t.Errorf("its type is %v", root["type"])
	}
	if _, is := root["properties"].(map[string]any); !is {
		t.Error("object schema missing properties")
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "enum", "not", "const", "if", "$schema", "$defs"} {
		if _, has := root[key]; has {
			t.Errorf("%s at the top level", key)
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, has := v["$ref"]; has {
				t.Error("a reference is left")
			}
			if _, has := v["items"]; v["type"] == "array" && !has {
				t.Error("array schema missing items")
			}
			for _, one := range v {
				walk(one)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(root)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool.json", doc); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("tool.json"); err != nil {
		t.Errorf("it is not a JSON Schema: %v", err)
	}
}

func TestRepairForeignSchemas(t *testing.T) {
	for name, test := range foreignSchemas {
		t.Run(name, func(t *testing.T) {
			got, err := Repair(json.RawMessage(test.schema))
			if reason, refused := strings.CutPrefix(test.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), reason) {
					t.Errorf("%s, %v, want an error with %q", got.Schema, err, reason)
				}
				return
			}
			if shown := string(got.Schema) + got.Note; err != nil || !strings.Contains(shown, test.want) {
				t.Fatalf("%s, %v\nwant %s", shown, err, test.want)
			}
			checkStrictly(t, got.Schema)
			again, err := Repair(got.Schema)
			if err != nil || string(again.Schema) != string(got.Schema) {
				t.Errorf("it is repaired again, to %s, %v", again.Schema, err)
			}
		})
	}
}

// A schema that every provider accepts stays as its server wrote it, byte for byte, so that the provider's cache finds it.
func TestRepairLeavesGoodSchemas(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{}}`,
		`{ "properties": {"b": {"type": "string", "minLength": 1}, "a": {"type": ["integer", "null"], "default": null}}, "type": "object", "required": ["b"] }`,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"x":{"enum":["a",1.50]}},"additionalProperties":false},"l":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object"}]}},"id":{"type":"string"}},"additionalProperties":{"type":"string"},"required":["o"]}`,
		`{"type":"object","properties":{"n":{"type":"integer","maximum":18446744073709551615}},"title":"Numbers","description":"Some"}`,
	} {
		got, err := Repair(json.RawMessage(schema))
		if err != nil || string(got.Schema) != schema || got.Note != "" {
			t.Errorf("%s\nbecomes %s, %q, %v", schema, got.Schema, got.Note, err)
		}
	}
}
