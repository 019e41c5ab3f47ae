package toolschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// types are the types of JSON Schema, by the names that servers use for them.
var types = map[string]string{
	"string": "string", "str": "string", "text": "string", "integer": "integer", "int": "integer", "int32": "integer", "int64": "integer", "long": "integer",
	"number": "number", "float": "number", "double": "number", "boolean": "boolean", "bool": "boolean", "object": "object", "dict": "object", "map": "object",
	"array": "array", "list": "array", "null": "null", "none": "null", "nil": "null",
}

// typeNames returns the types that a "type" lists, without those that do not exist.
func typeNames(v any) (names []string) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, item := range list {
		text, _ := item.(string)
		if name := types[strings.ToLower(text)]; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// repairSchema repairs a schema of a part of the arguments. ok is false if no value matches it, or if it is no schema.
func (r *repairer) repairSchema(v any, depth int) (fixed object, ok bool) {
	switch v := v.(type) {
	case bool:
		return object{}, v
	case object:
		return r.repairNode(v, depth)
	}
	return nil, false
}

// repairNode is repairSchema for an object.
func (r *repairer) repairNode(node object, depth int) (fixed object, ok bool) {
	r.nodes++
	if r.nodes > mostNodes || depth > deepest {
		return object{}, true
	}
	if ref, isRef := node["$ref"].(string); isRef {
		node = r.followReference(node)
		r.open = append(r.open, ref)
		defer func() { r.open = r.open[:len(r.open)-1] }()
	}
	node = maps.Clone(r.mergeAll(node, depth))
	if not, isRule := node["not"].(object); isRule && len(not) == 0 {
		return nil, false
	}
	fixed = object{}
	r.copyPlain(fixed, node)
	if !r.copyAlternatives(fixed, node, depth) {
		return nil, false
	}
	setType(fixed, node)
	names := typeNames(fixed["type"])
	if len(names) == 0 || slices.Contains(names, "object") {
		r.copyProperties(fixed, node, depth)
	}
	if len(names) == 0 || slices.Contains(names, "array") {
		r.copyItems(fixed, node, depth, slices.Contains(names, "array"))
	}
	return fixed, true
}

// setType sets the type, which some servers leave out.
func setType(fixed, node object) {
	switch names := typeNames(node["type"]); len(names) {
	case 0:
		_, hasProperties := node["properties"].(object)
		switch {
		case fixed["anyOf"] != nil || fixed["oneOf"] != nil:
		case hasProperties:
			fixed["type"] = "object"
		case node["items"] != nil || node["prefixItems"] != nil:
			fixed["type"] = "array"
		case fixed["enum"] != nil && kindOf(fixed["enum"].([]any)) != "":
			fixed["type"] = kindOf(fixed["enum"].([]any))
		}
	case 1:
		fixed["type"] = names[0]
	default:
		list := make([]any, len(names))
		for i, name := range names {
			list[i] = name
		}
		fixed["type"] = list
	}
}

// kindOf returns the type that all values have, "" if there is none.
func kindOf(values []any) (kind string) {
	for _, v := range values {
		own := ""
		switch v.(type) {
		case string:
			own = "string"
		case bool:
			own = "boolean"
		case json.Number:
			own = "number"
		}
		if own == "" || kind != "" && kind != own {
			return ""
		}
		kind = own
	}
	return kind
}

// copyPlain copies the keywords that hold no schemas, without those that are not valid.
func (r *repairer) copyPlain(fixed, node object) {
	for _, name := range []string{"title", "description", "format"} {
		if text, ok := node[name].(string); ok {
			fixed[name] = text
		}
	}
	if v, ok := node["default"]; ok {
		fixed["default"] = v
	}
	if v, ok := node["const"]; ok {
		fixed["const"] = v
	}
	if v, ok := node["examples"].([]any); ok {
		fixed["examples"] = v
	}
	if v, ok := node["uniqueItems"].(bool); ok {
		fixed["uniqueItems"] = v
	}
	if list, ok := node["enum"].([]any); ok && len(list) > 0 {
		fixed["enum"] = removeDuplicates(list)
	}
	for _, name := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		if n, ok := node[name].(json.Number); ok && isCount(n) {
			fixed[name] = n
		}
	}
	for _, name := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		if n, ok := node[name].(json.Number); ok {
			fixed[name] = n
		}
	}
	for limit, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		if n, ok := fixed[limit]; ok && node[exclusive] == true { // the form of draft 4
			fixed[exclusive] = n
			delete(fixed, limit)
		}
	}
	if n, ok := node["multipleOf"].(json.Number); ok {
		if f, err := n.Float64(); err == nil && f > 0 {
			fixed["multipleOf"] = n
		}
	}
	if pattern, ok := node["pattern"].(string); ok {
		if isPlainPattern(pattern) {
			fixed["pattern"] = pattern
		} else {
			addDescription(fixed, "It must match the pattern "+pattern)
		}
	}
}

// isCount reports whether a number is a whole one and not negative.
func isCount(n json.Number) bool {
	i, err := n.Int64()
	return err == nil && i >= 0
}

// isPlainPattern reports whether every provider accepts a pattern: it matches the whole text, and looks neither ahead
// nor back.
func isPlainPattern(pattern string) bool {
	if !strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") || strings.HasSuffix(pattern, `\$`) || strings.Contains(pattern, "(?") {
		return false
	}
	_, err := regexp.Compile(pattern)
	return err == nil
}

func removeDuplicates(list []any) []any {
	var seen []string
	return slices.DeleteFunc(slices.Clone(list), func(v any) bool {
		text := string(encodeJSON(v))
		if slices.Contains(seen, text) {
			return true
		}
		seen = append(seen, text)
		return false
	})
}

// addDescription adds a sentence to the description of a schema.
func addDescription(node object, sentence string) {
	before, _ := node["description"].(string)
	switch {
	case before == "":
	case strings.HasSuffix(before, "."):
		sentence = before + " " + sentence
	default:
		sentence = before + ". " + sentence
	}
	node["description"] = sentence
}

// copyAlternatives copies anyOf and oneOf. A single alternative becomes a part of the schema and of node, its original.
// It returns false if no alternative is left.
func (r *repairer) copyAlternatives(fixed, node object, depth int) bool {
	for _, name := range []string{"anyOf", "oneOf"} {
		branches, ok := node[name].([]any)
		if !ok || len(branches) == 0 {
			continue
		}
		var list []any
		loose := false
		for _, branch := range branches {
			own, ok := r.repairSchema(branch, depth+1)
			if ok && len(own) == 0 {
				loose = true
			}
			if ok {
				list = append(list, own)
			}
		}
		switch {
		case len(list) == 0:
			return false
		case loose: // any value matches
		case len(list) == 1:
			mergeInto(fixed, list[0].(object))
			mergeInto(node, list[0].(object))
		default:
			fixed[name] = list
		}
	}
	return true
}

// copyProperties copies the properties of an object.
func (r *repairer) copyProperties(fixed, node object, depth int) {
	var required []any
	properties, isObject := node["properties"].(object)
	if isObject {
		own := object{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			child, ok := r.repairSchema(properties[name], depth+1)
			if !ok {
				continue
			}
			own[name] = child
			if raw, ok := properties[name].(object); ok && raw["required"] == true { // the form of draft 3
				required = append(required, name)
			}
		}
		fixed["properties"] = own
	}
	if list, ok := node["required"].([]any); ok && isObject {
		for _, v := range list {
			name, ok := v.(string)
			if _, known := fixed["properties"].(object)[name]; ok && known && !slices.Contains(required, v) {
				required = append(required, name)
			}
		}
	}
	delete(fixed, "required")
	if len(required) > 0 {
		fixed["required"] = required
	}
	delete(fixed, "additionalProperties")
	more := node["additionalProperties"]
	patterns, hasPatterns := node["patternProperties"].(object)
	if hasPatterns && len(patterns) > 0 && more == false {
		more = nil
		for _, v := range patterns {
			if len(patterns) == 1 {
				more = v
			}
		}
	}
	switch v := more.(type) {
	case bool:
		fixed["additionalProperties"] = v
	case object:
		if own, ok := r.repairSchema(v, depth+1); ok && len(own) > 0 {
			fixed["additionalProperties"] = own
		} else {
			fixed["additionalProperties"] = ok
		}
	}
}

// copyItems copies the schema of the items of a list. Lists with a schema for each place get the schemas of all places
// as alternatives.
func (r *repairer) copyItems(fixed, node object, depth int, isList bool) {
	places, tuple := node["prefixItems"].([]any)
	if list, ok := node["items"].([]any); ok {
		places = list
		tuple = true
	}
	if !tuple {
		delete(fixed, "items")
		if own, ok := r.repairSchema(node["items"], depth+1); ok {
			fixed["items"] = own
		} else if isList {
			fixed["items"] = object{}
		}
		return
	}
	var ways []any
	var order []string
	for _, place := range places {
		own, ok := r.repairSchema(place, depth+1)
		if !ok {
			own = object{}
		}
		order = append(order, strings.Join(typeNames(own["type"]), " or "))
		if !slices.ContainsFunc(ways, func(v any) bool { return string(encodeJSON(v)) == string(encodeJSON(own)) }) {
			ways = append(ways, own)
		}
	}
	switch len(ways) {
	case 0:
		fixed["items"] = object{}
	case 1:
		fixed["items"] = ways[0]
	default:
		fixed["items"] = object{"anyOf": ways}
		addDescription(fixed, fmt.Sprintf("Its items are, in this order: %s.", strings.ReplaceAll(strings.Join(order, ", "), ", ,", ", any value,")))
	}
}
