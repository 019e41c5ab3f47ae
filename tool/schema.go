package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// These bound what a repaired schema may become.
const (
	maxSchemaDepth = 64
	maxSchemaSize  = 256 << 10
)

// RepairSchema returns a schema of arguments that every provider of models accepts, with the same meaning as far as that is possible: one
// provider refuses a whole request because of one schema. It returns a schema that needs no repair unchanged. What it repairs only gets looser, so
// that the tool must check its arguments itself.
//
//   - The root describes an object. Its anyOf and oneOf become properties that are all optional unless every branch requires them, and a
//     description; its allOf is merged; its enum, not and conditions are left out.
//   - References are replaced by what they refer to; one that is recursive, by a value of any kind.
//   - Lists have items, properties are schemas, required names properties, types are those of JSON Schema.
//
// The error says why a schema cannot be repaired: it does not describe an object, refers to something that is not in it, or is too large.
func RepairSchema(schema json.RawMessage) (json.RawMessage, error) {
	var root any
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	if len(schema) > 0 {
		if err := decoder.Decode(&root); err != nil {
			return nil, fmt.Errorf("its schema is not JSON: %w", err)
		}
		if !json.Valid(schema) {
			return nil, errors.New("its schema is not JSON: something follows it")
		}
	}
	if root == nil || root == true {
		root = map[string]any{}
	}
	object, is := root.(map[string]any)
	if !is {
		return nil, errors.New("its schema is not an object")
	}
	r := &schemaRepair{root: object, left: maxSchemaSize}
	fixed, err := r.repairSchema(object, nil)
	if err != nil {
		return nil, err
	}
	if err := r.repairRoot(fixed); err != nil {
		return nil, err
	}
	if !r.changed {
		return schema, nil
	}
	return json.Marshal(fixed)
}

// schemaRepair is the repair of one schema.
type schemaRepair struct {
	root    map[string]any
	changed bool
	left    int // bytes that the result may still get
}

// errSchemaSize says that references in a schema multiply its parts.
var errSchemaSize = errors.New("its schema is too large when its references are replaced")

// repairSchema returns a repaired copy of a schema below the root or of the root itself. open are the references that lead to it.
func (r *schemaRepair) repairSchema(s map[string]any, open []string) (map[string]any, error) {
	if len(open) > maxSchemaDepth {
		return nil, errSchemaSize
	}
	if ref, has := s["$ref"]; has {
		return r.replaceReference(s, ref, open)
	}
	out := make(map[string]any, len(s))
	for key, value := range s {
		r.left -= len(key) + countParts(value)
		if r.left < 0 {
			return nil, errSchemaSize
		}
		kept, err := r.repairMember(s, key, value, open)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			out[key] = kept
		}
	}
	r.completeList(out)
	r.filterRequired(out)
	return out, nil
}

// countParts returns about how many bytes a value has, without the schemas in it.
func countParts(value any) int {
	const each = 8
	switch v := value.(type) {
	case string:
		return each + len(v)
	case []any:
		n := each
		for _, one := range v {
			if _, schema := one.(map[string]any); !schema {
				n += countParts(one)
			}
			n += each
		}
		return n
	case map[string]any:
		return each + each*len(v)
	}
	return each
}

// repairMember returns the repaired value of one member of a schema, nil to leave it out.
func (r *schemaRepair) repairMember(s map[string]any, key string, value any, open []string) (any, error) {
	switch key {
	case "$schema", "$id", "id", "$defs", "definitions", "$comment", "$anchor", "$dynamicAnchor", "$vocabulary":
		if text, is := value.(string); key == "id" && !is || key == "id" && !strings.Contains(text, "/") && !strings.Contains(text, ":") {
			return value, nil // an unknown word, which is ignored
		}
		r.changed = true
		return nil, nil
	case "properties", "patternProperties", "dependentSchemas":
		return r.repairSchemas(value, open)
	case "items", "additionalItems", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems":
		return r.repairItems(key, value, open)
	case "additionalProperties", "unevaluatedProperties":
		if flag, is := value.(bool); is {
			return flag, nil
		}
		return r.repairValue(value, open)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return r.repairList(value, open)
	case "type":
		return r.repairType(value), nil
	case "enum":
		return r.repairEnum(value), nil
	case "required":
		if _, is := value.([]any); !is {
			r.changed = true
			return nil, nil
		}
	}
	return value, nil
}

// replaceReference returns what a reference refers to, with the other members of the schema that it is in.
func (r *schemaRepair) replaceReference(s map[string]any, ref any, open []string) (map[string]any, error) {
	r.changed = true
	name, is := ref.(string)
	if !is {
		return nil, fmt.Errorf("its schema has a reference that is not a text: %v", ref)
	}
	beside := maps.Clone(s)
	delete(beside, "$ref")
	if slices.Contains(open, name) {
		delete(beside, "properties")
		return r.repairSchema(beside, open) // recursive: a value of any kind
	}
	target, found := r.findTarget(name)
	if !found {
		return nil, fmt.Errorf("its schema refers to %q, which is not in it", name)
	}
	merged := maps.Clone(target)
	maps.Copy(merged, beside)
	return r.repairSchema(merged, append(slices.Clone(open), name))
}

// findTarget returns the schema that a reference within the document names.
func (r *schemaRepair) findTarget(ref string) (map[string]any, bool) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, false
	}
	var at any = r.root
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" || pointer == "/" {
			break
		}
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	switch v := at.(type) {
	case map[string]any:
		return v, true
	case bool:
		return map[string]any{}, true
	}
	return nil, false
}

// repairValue returns a schema that may be written as true or false, or be none at all.
func (r *schemaRepair) repairValue(value any, open []string) (map[string]any, error) {
	s, is := value.(map[string]any)
	if !is {
		r.changed = true
		return map[string]any{}, nil
	}
	return r.repairSchema(s, append(slices.Clone(open), ""))
}

// repairSchemas repairs a map of schemas, and leaves out what is none.
func (r *schemaRepair) repairSchemas(value any, open []string) (any, error) {
	all, is := value.(map[string]any)
	if !is {
		r.changed = true
		return nil, nil
	}
	out := make(map[string]any, len(all))
	for name, one := range all {
		r.left -= len(name)
		switch one.(type) {
		case map[string]any, bool:
			fixed, err := r.repairValue(one, open)
			if err != nil {
				return nil, err
			}
			out[name] = fixed
		default:
			r.changed = true
		}
	}
	return out, nil
}

// repairItems repairs a single schema; a list of them, as older drafts have it for items, becomes one that allows each.
func (r *schemaRepair) repairItems(key string, value any, open []string) (any, error) {
	list, is := value.([]any)
	switch {
	case !is:
		return r.repairValue(value, open)
	case key != "items":
		r.changed = true
		return nil, nil
	}
	r.changed = true
	fixed, err := r.repairList(list, open)
	if err != nil || fixed == nil {
		return map[string]any{}, err
	}
	return map[string]any{"anyOf": fixed}, nil
}

// repairList repairs a list of schemas, nil if it is not one or is empty.
func (r *schemaRepair) repairList(value any, open []string) (any, error) {
	list, is := value.([]any)
	if !is || len(list) == 0 {
		r.changed = true
		return nil, nil
	}
	out := make([]any, len(list))
	for i, one := range list {
		fixed, err := r.repairValue(one, open)
		if err != nil {
			return nil, err
		}
		out[i] = fixed
	}
	return out, nil
}

// schemaTypes are the types of JSON Schema, and what servers write instead.
var schemaTypes = map[string]string{
	"object": "object", "array": "array", "string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "null": "null",
	"int": "integer", "long": "integer", "float": "number", "double": "number", "bool": "boolean", "str": "string", "text": "string", "date": "string",
	"datetime": "string", "file": "string", "list": "array", "tuple": "array", "dict": "object", "map": "object", "none": "null",
}

// repairType returns the types of JSON Schema that a value means, nil for a value of any kind.
func (r *schemaRepair) repairType(value any) any {
	if name, is := value.(string); is {
		known := schemaTypes[strings.ToLower(name)]
		if known == name && known != "" {
			return value
		}
		r.changed = true
		if known == "" {
			return nil
		}
		return known
	}
	list, is := value.([]any)
	var names []any
	for _, one := range list {
		if name, is := one.(string); is && schemaTypes[strings.ToLower(name)] != "" && !slices.Contains(names, any(schemaTypes[strings.ToLower(name)])) {
			names = append(names, schemaTypes[strings.ToLower(name)])
		}
	}
	if is && slices.Equal(names, list) && len(list) > 0 {
		return value
	}
	r.changed = true
	if len(names) == 0 || len(names) < len(list) && !is {
		return nil
	}
	return names
}

// repairEnum returns the values without repetitions, nil if it is not a list of values.
func (r *schemaRepair) repairEnum(value any) any {
	list, is := value.([]any)
	if !is || len(list) == 0 {
		r.changed = true
		return nil
	}
	seen := map[string]bool{}
	kept := slices.DeleteFunc(slices.Clone(list), func(v any) bool {
		text, err := json.Marshal(v)
		again := err != nil || seen[string(text)]
		seen[string(text)] = true
		return again
	})
	r.changed = r.changed || len(kept) < len(list)
	return kept
}

// completeList gives a list without items those of any kind.
func (r *schemaRepair) completeList(s map[string]any) {
	types, _ := s["type"].([]any)
	if s["type"] != "array" && !slices.Contains(types, any("array")) {
		return
	}
	if _, has := s["items"]; !has {
		s["items"] = map[string]any{}
		r.changed = true
	}
}

// filterRequired removes names from required that are no properties of an object.
func (r *schemaRepair) filterRequired(s map[string]any) {
	list, has := s["required"].([]any)
	if !has {
		return
	}
	properties, _ := s["properties"].(map[string]any)
	if properties == nil && s["type"] != "object" {
		return // a condition on the properties of the schema around it
	}
	var kept []any
	for _, one := range list {
		name, is := one.(string)
		if _, known := properties[name]; is && known && !slices.Contains(kept, one) {
			kept = append(kept, one)
		}
	}
	if len(kept) == len(list) {
		return
	}
	r.changed = true
	s["required"] = kept
	if len(kept) == 0 {
		delete(s, "required")
	}
}

// repairRoot makes the root the schema of an object that has properties and no alternatives.
func (r *schemaRepair) repairRoot(s map[string]any) error {
	types, several := s["type"].([]any)
	switch {
	case s["type"] == "object":
	case s["type"] == nil, several && slices.Contains(types, any("object")):
		r.changed = true
		s["type"] = "object"
	default:
		return fmt.Errorf("its schema describes a value of the type %v, and arguments are an object", s["type"])
	}
	properties, has := s["properties"].(map[string]any)
	if !has {
		r.changed = true
		properties = map[string]any{}
		s["properties"] = properties
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		branches, has := s[key].([]any)
		if !has {
			continue
		}
		r.changed = true
		delete(s, key)
		mergeBranches(s, properties, branches, key == "allOf")
	}
	for _, key := range []string{"enum", "const", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"} {
		if _, has := s[key]; has {
			r.changed = true
			delete(s, key)
		}
	}
	r.filterRequired(s)
	return nil
}

// mergeBranches adds the properties of the branches of a root to it. All of them apply, or one of them: then a property is required only if
// every branch requires it, and the description says which belong together.
func mergeBranches(s, properties map[string]any, branches []any, all bool) {
	var required [][]any
	var texts []string
	for _, one := range branches {
		branch, _ := one.(map[string]any)
		own, _ := branch["properties"].(map[string]any)
		for name, schema := range own {
			addProperty(properties, name, schema, all)
		}
		names, _ := branch["required"].([]any)
		required = append(required, names)
		texts = append(texts, describeBranch(own, names))
	}
	kept, _ := s["required"].([]any)
	for i, names := range required {
		for _, name := range names {
			everywhere := !slices.ContainsFunc(required, func(other []any) bool { return !slices.Contains(other, name) })
			if (all || i == 0 && everywhere) && !slices.Contains(kept, name) {
				kept = append(kept, name)
			}
		}
	}
	if len(kept) > 0 {
		s["required"] = kept
	}
	if all {
		return
	}
	text, _ := s["description"].(string)
	s["description"] = strings.TrimSpace(text + "\nGive the arguments of one of these: " + strings.Join(texts, "; or "))
}

// addProperty adds a property of a branch. One that has other schemas elsewhere may have any of them.
func addProperty(properties map[string]any, name string, schema any, all bool) {
	was, has := properties[name]
	switch {
	case !has:
		properties[name] = schema
	case all || sameJSON(was, schema):
	default:
		alternatives, _ := was.(map[string]any)
		if list, is := alternatives["anyOf"].([]any); is && len(alternatives) == 1 {
			if !slices.ContainsFunc(list, func(one any) bool { return sameJSON(one, schema) }) {
				properties[name] = map[string]any{"anyOf": append(slices.Clone(list), schema)}
			}
			return
		}
		properties[name] = map[string]any{"anyOf": []any{was, schema}}
	}
}

// describeBranch names the properties of a branch, with what it requires.
func describeBranch(properties map[string]any, required []any) string {
	var names []string
	for _, name := range required {
		if text, is := name.(string); is {
			names = append(names, text)
		}
	}
	var optional []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(names, name) {
			optional = append(optional, name)
		}
	}
	text := strings.Join(names, ", ")
	switch {
	case text == "" && len(optional) == 0:
		return "any"
	case len(optional) > 0 && text != "":
		text += " and perhaps "
	}
	return text + strings.Join(optional, ", ")
}

func sameJSON(a, b any) bool {
	left, err := json.Marshal(a)
	right, other := json.Marshal(b)
	return err == nil && other == nil && bytes.Equal(left, right)
}
