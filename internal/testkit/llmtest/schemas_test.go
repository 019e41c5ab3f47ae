package llmtest

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/toolschema"
	"raddle.dev/llm"
)

// A brokenSchema is the schema of a tool that a user could not use, shortened.
type brokenSchema struct {
	Source  string // the public report
	Schema  json.RawMessage
	Args    json.RawMessage // what the server takes
	Wrong   json.RawMessage // what does not match the schema; empty: the schema cannot be read, or refuses nothing
	LeftOut bool            `json:"left_out"` // no provider accepts any form of it
}

func loadBrokenSchemas(t *testing.T) (list []brokenSchema) {
	t.Helper()
	text, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestBrokenSchemas plays schemas that vendors were seen to refuse against all vendors.
func TestBrokenSchemas(t *testing.T) {
	var tools []llm.ToolSpec
	for _, c := range loadBrokenSchemas(t) {
		t.Run(c.Source, func(t *testing.T) {
			refused := false
			for _, judge := range SchemaRules {
				refused = refused || judge(c.Schema) != nil
			}
			if !refused {
				t.Error("no vendor refuses the schema as it is")
			}
			repaired, err := toolschema.Repair(c.Schema)
			if (err != nil) != c.LeftOut {
				t.Fatalf("left out: %v, want %v", err, c.LeftOut)
			}
			if c.LeftOut {
				return
			}
			schema, names := toolschema.SafeNames(repaired.Schema)
			for name, judge := range SchemaRules {
				if strings.HasSuffix(name, "Gemini") {
					continue // its wire changes more
				}
				if err := judge(schema); err != nil {
					t.Errorf("%s: %v\n%s", name, err, schema)
				}
			}
			again, err := toolschema.Repair(schema)
			if err != nil || string(again.Schema) != string(schema) || again.Note != "" {
				t.Errorf("the second repair makes %s, %q, %v of %s", again.Schema, again.Note, err, schema)
			}
			if err := toolschema.CheckArguments(c.Schema, c.Args); err != nil {
				t.Errorf("the server's schema refuses %s: %v", c.Args, err)
			}
			if err := toolschema.CheckArguments(repaired.Schema, c.Args); err != nil {
				t.Errorf("the repaired schema refuses %s: %v", c.Args, err)
			}
			if len(c.Wrong) > 0 && toolschema.CheckArguments(c.Schema, c.Wrong) == nil {
				t.Errorf("%s is not refused", c.Wrong)
			}
			if got := renameArguments(t, names, c.Args); toolschema.CheckArguments(schema, got) != nil || compactJSON(t, names.RestoreNames(got)) != compactJSON(t, c.Args) {
				t.Errorf("the model sends %s, and the server gets %s", got, names.RestoreNames(got))
			}
			tools = append(tools, llm.ToolSpec{Name: "f", Description: repaired.AddNote("does f"), Schema: schema}, llm.ToolSpec{Name: "g", Schema: repaired.Schema})
		})
	}
	for _, v := range Vendors() {
		t.Run(v.Name, func(t *testing.T) {
			for _, tool := range tools {
				if slices.Contains([]string{"Anthropic", "Vertex Anthropic", "Bedrock"}, v.Name) && tool.Name == "g" {
					continue // names are replaced where the arguments can be given their names back
				}
				s := StartServer(t, v, Turn{Text: "yes"})
				for _, err := range openModel(t, v, s.URL).Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.ToolSpec{tool}}) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// renameArguments returns arguments with the names that the model reads.
func renameArguments(t *testing.T, names toolschema.Names, args json.RawMessage) json.RawMessage {
	t.Helper()
	back := map[string]string{}
	for safe, name := range names {
		back[name] = safe
	}
	return toolschema.Names(back).RestoreNames(json.RawMessage(compactJSON(t, args)))
}

func compactJSON(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return quoteJSON(v)
}
