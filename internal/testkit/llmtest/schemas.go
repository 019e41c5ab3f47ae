package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// node is a schema.
type node = map[string]any

// SchemaRules are what vendors refuse about the schema of a tool's arguments, by the names of the vendors. A schema
// that a vendor refuses ends the request, whether or not the tool is called:
//
//   - OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (langchain-ai/langchainjs#9804), "object
//     schema missing properties" (containers/kubernetes-mcp-server#340), "array schema missing items" (ruvnet/ruflo#1294), "True is not of type 'array'"
//     (CherryHQ/cherry-studio#4188), "regex lookaround is not supported" (cline/cline#14019).
//   - Anthropic: "input_schema does not support oneOf, allOf, or anyOf at the top level" (anthropics/claude-code#5973), "It must match JSON Schema draft
//     2020-12" (Dokploy/mcp#74), "Property keys should match pattern" (twilio-labs/mcp#56), no references for custom tools (quoted in
//     diegosouzapw/OmniRoute#13552).
//   - Gemini: "only allowed for OBJECT type" (anomalyco/opencode#11889), "should be non-empty for OBJECT type" (MarkusPfundstein/mcp-obsidian#21), "missing
//     field" of items (DEEIX-AI/DEEIX-Chat#546), "reference to undefined schema" (google-gemini/gemini-cli#13326), "cannot be empty" of enum
//     (sbroenne/mcp-server-excel#607), "only allowed for STRING type" of enum (nanbingxyz/5ire#218, without a type decolua/9router#380), "Invalid value at type" (zereight/gitlab-mcp#166), formats
//     (google-gemini/gemini-cli#2141), "$ref was set alongside unsupported fields" (anomalyco/opencode#12295).
//   - moonshot: untyped additionalProperties and anyOf with a negation (TencentCloudBase/CloudBase-AI-Toolkit#626), boolean schemas
//     (androidStern-personal/openclaw-mcp-adapter#9).
//   - llama.cpp: "failed to parse grammar" for patterns that look ahead or match a part only (codefuturist/email-mcp#72).
var SchemaRules = map[string]func(schema json.RawMessage) error{
	"OpenAI": judgeOpenAISchema, "OpenAI responses": judgeOpenAISchema, "Anthropic": judgeAnthropicSchema, "Gemini": judgeGeminiSchema,
	"moonshot": judgeMoonshotSchema, "llama.cpp": judgeLlamaSchema, "Bedrock": judgeAnthropicSchema,
	"Vertex Gemini": judgeGeminiSchema, "Vertex Anthropic": judgeAnthropicSchema, "Azure": judgeOpenAISchema,
}

// checkSchemas returns an error unless the vendor accepts the schema of each tool of a request.
func (v Vendor) checkSchemas(body []byte) error {
	judge := SchemaRules[v.Name]
	if judge == nil {
		return nil
	}
	var r struct {
		Tools []struct {
			Name        string
			Parameters  json.RawMessage
			InputSchema json.RawMessage `json:"input_schema"`
			Function    struct {
				Name       string
				Parameters json.RawMessage
			}
			FunctionDeclarations []struct {
				Name                 string
				ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		}
		ToolConfig struct{ Tools []bedrockTool } `json:"toolConfig"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	for i, t := range r.ToolConfig.Tools {
		if t.ToolSpec == nil {
			continue
		}
		if err := judge(t.ToolSpec.InputSchema.JSON); err != nil {
			return fmt.Errorf("toolConfig.tools.%d.toolSpec.inputSchema: %w", i, err)
		}
	}
	for i, t := range r.Tools {
		list := []json.RawMessage{t.Parameters, t.InputSchema, t.Function.Parameters}
		for _, f := range t.FunctionDeclarations {
			list = append(list, f.ParametersJSONSchema)
		}
		for _, schema := range list {
			if len(schema) == 0 {
				continue
			}
			if err := judge(schema); err != nil {
				return fmt.Errorf("tools[%d]: Invalid schema for function '%s%s': %w", i, t.Name, t.Function.Name, err)
			}
		}
	}
	return nil
}

// checkDialect returns an error unless a schema is one of draft 2020-12 whose references lead somewhere.
func checkDialect(schema json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	if m, ok := doc.(node); ok {
		m = maps.Clone(m)
		delete(m, "$schema")
		delete(m, "$id")
		doc = m
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return anyPattern(s), nil })
	if err := c.AddResource("schema.json", doc); err != nil {
		return err
	}
	if _, err := c.Compile("schema.json"); err != nil {
		return fmt.Errorf("JSON schema is invalid. It must match JSON Schema draft 2020-12: %w", err)
	}
	return nil
}

// An anyPattern is a pattern that is not read: each vendor has rules of its own.
type anyPattern string

func (p anyPattern) String() string { return string(p) }

func (p anyPattern) MatchString(string) bool { return true }

// walkSchema calls visit with a schema and with all schemas in it.
func walkSchema(path string, schema any, visit func(path string, schema any) error) error {
	if err := visit(path, schema); err != nil {
		return err
	}
	n, _ := schema.(node)
	for _, key := range []string{"properties", "$defs", "definitions", "patternProperties"} {
		children, _ := n[key].(node)
		for _, name := range slices.Sorted(maps.Keys(children)) {
			if err := walkSchema(path+"."+name, children[name], visit); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if child, ok := n[key]; ok {
			if err := walkSchema(path+"."+key, child, visit); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := n[key].([]any)
		for i, child := range list {
			if err := walkSchema(fmt.Sprintf("%s.%s.%d", path, key, i), child, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseRoot returns the schema of an object.
func parseRoot(schema json.RawMessage) (node, error) {
	var n node
	if err := json.Unmarshal(schema, &n); err != nil || n == nil {
		return nil, errors.New("schema must be a JSON Schema of 'type: \"object\"'")
	}
	if n["type"] != "object" {
		return nil, fmt.Errorf("schema must be a JSON Schema of 'type: \"object\"', got 'type: %v'", n["type"])
	}
	return n, nil
}

func hasType(n node, name string) bool {
	list, _ := n["type"].([]any)
	return n["type"] == name || slices.Contains(list, any(name))
}

var lookaround = regexp.MustCompile(`\(\?(=|!|<=|<!)`)

func judgeOpenAISchema(schema json.RawMessage) error {
	n, err := parseRoot(schema)
	if err != nil {
		return err
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if n[key] != nil {
			return errors.New("schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level")
		}
	}
	if n["properties"] == nil {
		return errors.New("in context=(), object schema missing properties")
	}
	if err := checkDialect(schema); err != nil {
		return err
	}
	return walkSchema("$", n, func(path string, schema any) error {
		n, _ := schema.(node)
		pattern, _ := n["pattern"].(string)
		switch {
		case hasType(n, "array") && n["items"] == nil:
			return fmt.Errorf("in context=%s, array schema missing items", path)
		case lookaround.MatchString(pattern):
			return fmt.Errorf("regex lookaround is not supported. Found at %s.pattern", path)
		}
		return nil
	})
}

var anthropicKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func judgeAnthropicSchema(schema json.RawMessage) error {
	n, err := parseRoot(schema)
	if err != nil {
		return err
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		if n[key] != nil {
			return errors.New("input_schema does not support oneOf, allOf, or anyOf at the top level")
		}
	}
	properties, _ := n["properties"].(node)
	for name := range properties {
		if !anthropicKey.MatchString(name) {
			return errors.New("input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'")
		}
	}
	if err := checkDialect(schema); err != nil {
		return err
	}
	return walkSchema("input_schema", n, func(path string, schema any) error {
		if n, _ := schema.(node); n["$ref"] != nil {
			return fmt.Errorf("%s: reference keywords such as $ref are not supported", path)
		}
		return nil
	})
}

// geminiKeywords are the keywords that Gemini documents for JSON schemas (ai.google.dev/api/generate-content,
// responseJsonSchema).
var geminiKeywords = []string{"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems",
	"minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering"}

func judgeGeminiSchema(schema json.RawMessage) error {
	root, err := parseRoot(schema)
	if err != nil {
		return err
	}
	if err := checkDialect(schema); err != nil {
		return fmt.Errorf("reference to undefined schema: %w", err)
	}
	return walkSchema("parameters", root, func(path string, schema any) error {
		n, ok := schema.(node)
		if _, isBool := schema.(bool); isBool && strings.HasSuffix(path, ".additionalProperties") {
			return nil
		}
		if !ok {
			return fmt.Errorf("%s: Proto field is not repeating, or no message: %v", path, schema)
		}
		for _, key := range slices.Sorted(maps.Keys(n)) {
			if !slices.Contains(geminiKeywords, key) {
				return fmt.Errorf("unknown name %q at '%s': Cannot find field", key, path)
			}
			if n["$ref"] != nil && !strings.HasPrefix(key, "$") && key != "description" {
				return fmt.Errorf("%s: $ref was set alongside unsupported fields", path)
			}
		}
		properties, _ := n["properties"].(node)
		required, _ := n["required"].([]any)
		format, _ := n["format"].(string)
		switch {
		case n["type"] != nil && !hasType(n, "object") && (n["properties"] != nil || n["required"] != nil):
			return fmt.Errorf("%s.properties: only allowed for OBJECT type", path)
		case n["properties"] != nil && len(properties) == 0:
			return fmt.Errorf("%s.properties: should be non-empty for OBJECT type", path)
		case hasType(n, "array") && n["items"] == nil:
			return fmt.Errorf("%s.items: missing field", path)
		case format != "" && !slices.Contains([]string{"date-time", "date", "time", "enum"}, format):
			return fmt.Errorf("%s.format: only 'enum' and 'date-time' are supported for STRING type", path)
		}
		for _, name := range required {
			if text, _ := name.(string); properties[text] == nil {
				return fmt.Errorf("%s.required: property is not defined: %v", path, name)
			}
		}
		values, _ := n["enum"].([]any)
		if len(values) > 0 && n["type"] == nil {
			return fmt.Errorf("%s.enum: only allowed for STRING type", path)
		}
		for i, v := range values {
			switch v := v.(type) {
			case string:
				if v == "" {
					return fmt.Errorf("%s.enum[%d]: cannot be empty", path, i)
				}
			case float64:
			default:
				return fmt.Errorf("%s.enum: only allowed for STRING type", path)
			}
		}
		return nil
	})
}

func judgeMoonshotSchema(schema json.RawMessage) error {
	root, err := parseRoot(schema)
	if err != nil {
		return err
	}
	return walkSchema("parameters", root, func(path string, schema any) error {
		n, ok := schema.(node)
		if !ok && !strings.HasSuffix(path, ".additionalProperties") {
			return fmt.Errorf("%s: boolean schema", path)
		}
		more, isSchema := n["additionalProperties"].(node)
		not, negates := n["not"].(node)
		switch {
		case isSchema && len(more) == 0:
			return fmt.Errorf("%s.additionalProperties: type is not defined", path)
		case negates && len(not) == 0:
			return fmt.Errorf("%s.not: invalid parameter value", path)
		}
		return nil
	})
}

func judgeLlamaSchema(schema json.RawMessage) error {
	root, err := parseRoot(schema)
	if err != nil {
		return err
	}
	return walkSchema("parameters", root, func(path string, schema any) error {
		n, _ := schema.(node)
		pattern, _ := n["pattern"].(string)
		if pattern != "" && (!strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") || strings.Contains(pattern, "(?")) {
			return fmt.Errorf("failed to initialize samplers: failed to parse grammar: %s.pattern", path)
		}
		return nil
	})
}
