package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// A Repaired is the schema of a tool's arguments in a form that every provider accepts.
type Repaired struct {
	Schema json.RawMessage // the original text if nothing had to change
	// Note says what a schema in this form cannot express about the arguments as a whole, for the description of the
	// tool; "" if there is nothing.
	Note string
}

const (
	mostNodes   = 20_000    // of a schema whose references are replaced by what they refer to
	deepest     = 32        // levels of a schema; a deeper one allows any value
	longestText = 256 << 10 // bytes of a repaired schema
	longestNote = 2 << 10   // bytes of a note
)

// Repair returns a schema that every provider accepts. It allows at least what the original allows. An error means that
// no arguments can be described by it, so that the tool must be left out; it is the end of a sentence about the schema.
func Repair(schema json.RawMessage) (Repaired, error) {
	if text := bytes.TrimSpace(schema); len(text) == 0 || string(text) == "null" || string(text) == "true" || string(text) == "[]" {
		return Repaired{Schema: json.RawMessage(`{"type":"object","properties":{}}`)}, nil
	}
	root, err := decodeJSON(schema)
	if err != nil {
		return Repaired{}, fmt.Errorf("is not JSON: %w", err)
	}
	node, ok := root.(object)
	if !ok {
		return Repaired{}, errors.New("is not an object")
	}
	r := &repairer{root: node}
	fixed, note, err := r.repairRoot(node)
	switch {
	case err != nil:
		return Repaired{}, err
	case r.nodes > mostNodes:
		return Repaired{}, fmt.Errorf("has more than %d parts", mostNodes)
	case reflect.DeepEqual(fixed, root):
		return Repaired{Schema: schema, Note: note}, nil
	}
	text := encodeJSON(fixed)
	if len(text) > longestText {
		return Repaired{}, fmt.Errorf("has %d KiB after its references are filled in, and the limit is %d KiB", len(text)>>10, longestText>>10)
	}
	return Repaired{Schema: text, Note: note}, nil
}

// decodeJSON returns a JSON value with its numbers as they are written.
func decodeJSON(text json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more after the value")
	}
	return v, nil
}

// encodeJSON returns the text of a value that decodeJSON has returned, or of a part of it.
func encodeJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage(`{}`) // it came from JSON: this does not happen
	}
	return bytes.TrimSpace(b.Bytes())
}

// A repairer repairs one schema.
type repairer struct {
	root  object
	nodes int      // so far
	open  []string // references that are being replaced
}

// rootRules are the keywords about the arguments as a whole that no schema of a tool may have in its root.
var rootRules = []string{"anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "enum", "const"}

// repairRoot repairs the schema of all arguments, which must be that of an object without alternatives.
func (r *repairer) repairRoot(node object) (fixed object, note string, err error) {
	node = r.mergeAll(node, 0)
	rules := object{}
	for _, name := range rootRules {
		if rule, ok := node[name]; ok {
			rules[name] = rule
		}
	}
	if !allowsObject(node["type"]) {
		return nil, "", fmt.Errorf("is that of a value of the type %s, and arguments are an object", encodeJSON(node["type"]))
	}
	node = maps.Clone(node)
	node["type"] = "object"
	for _, name := range []string{"anyOf", "oneOf"} {
		branches, ok := node[name].([]any)
		if !ok || len(branches) == 0 {
			continue
		}
		var own []object
		for _, branch := range branches {
			if b, ok := branch.(object); ok {
				if b = r.mergeAll(b, 1); allowsObject(b["type"]) {
					own = append(own, b)
				}
			} else if branch == true {
				own = append(own, object{})
			}
		}
		if len(own) == 0 {
			return nil, "", fmt.Errorf("has no alternative in %s that is an object", name)
		}
		mergeBranches(node, own)
	}
	for _, name := range []string{"then", "else"} {
		if branch, ok := node[name].(object); ok {
			addProperties(node, r.mergeAll(branch, 1))
		}
	}
	for _, name := range rootRules {
		delete(node, name)
	}
	fixed, ok := r.repairNode(node, 0)
	if !ok {
		return nil, "", errors.New("allows no arguments")
	}
	if fixed["properties"] == nil {
		fixed["properties"] = object{}
	}
	if len(rules) > 0 {
		note = r.describeRules(rules)
	}
	return fixed, note, nil
}

// describeRules returns rules about the arguments as a whole as a sentence for the model.
func (r *repairer) describeRules(rules object) string {
	text := string(encodeJSON(rules))
	if strings.Contains(text, `"$ref"`) || len(text) > longestNote {
		return "Not every combination of the arguments is valid: an error says what is wrong."
	}
	return "The arguments must also match this JSON Schema: " + text
}

// allowsObject reports whether a type, a list of types or no type at all allows an object.
func allowsObject(t any) bool {
	names := typeNames(t)
	return len(names) == 0 || slices.Contains(names, "object")
}

// mergeAll returns a schema with its reference replaced and the schemas of allOf merged into it.
func (r *repairer) mergeAll(node object, depth int) object {
	r.nodes++
	node = r.followReference(node)
	list, ok := node["allOf"].([]any)
	if node["allOf"] == nil || depth > deepest || r.nodes > mostNodes {
		return node
	}
	node = maps.Clone(node)
	delete(node, "allOf")
	if !ok {
		return node
	}
	for _, item := range list {
		if part, ok := item.(object); ok {
			mergeInto(node, r.mergeAll(part, depth+1))
		}
	}
	return node
}

// mergeInto adds what another schema says to a schema that has to hold as well. Of a keyword that both have, the first
// one counts, except for properties and required.
func mergeInto(node, part object) {
	addProperties(node, part)
	if more, ok := part["required"].([]any); ok {
		own, _ := node["required"].([]any)
		own = slices.Clone(own)
		for _, name := range more {
			if !slices.Contains(own, name) {
				own = append(own, name)
			}
		}
		node["required"] = own
	}
	for _, name := range slices.Sorted(maps.Keys(part)) {
		if _, has := node[name]; !has && name != "$defs" && name != "definitions" {
			node[name] = part[name]
		}
	}
}

// addProperties adds the properties of another schema that a schema does not have. The schema must be a copy.
func addProperties(node, part object) {
	more, ok := part["properties"].(object)
	if !ok {
		return
	}
	own, _ := node["properties"].(object)
	own = maps.Clone(own)
	if own == nil {
		own = object{}
	}
	for name, value := range more {
		if _, has := own[name]; !has {
			own[name] = value
		}
	}
	node["properties"] = own
}

// mergeBranches adds the properties of alternatives to a schema. Only what all alternatives require is required. A
// property that they describe in different ways has these ways as alternatives.
func mergeBranches(node object, branches []object) {
	ways := map[string][]any{}
	var required []any
	for i, b := range branches {
		more, _ := b["properties"].(object)
		for _, name := range slices.Sorted(maps.Keys(more)) {
			if !slices.ContainsFunc(ways[name], func(v any) bool { return reflect.DeepEqual(v, more[name]) }) {
				ways[name] = append(ways[name], more[name])
			}
		}
		own, _ := b["required"].([]any)
		if i == 0 {
			required = own
		} else {
			required = slices.DeleteFunc(slices.Clone(required), func(v any) bool { return !slices.Contains(own, v) })
		}
	}
	merged := object{}
	for name, list := range ways {
		merged[name] = list[0]
		if len(list) > 1 {
			merged[name] = joinWays(list)
		}
	}
	mergeInto(node, object{"properties": merged, "required": required})
}

// joinWays returns a schema that allows what any of several schemas allows. Constants of one kind become a list of
// values.
func joinWays(list []any) object {
	var values []any
	for _, way := range list {
		w, _ := way.(object)
		switch own, isList := w["enum"].([]any); {
		case isList:
			values = append(values, own...)
		case w["const"] != nil:
			values = append(values, w["const"])
		default:
			return object{"anyOf": list}
		}
	}
	joined := object{"enum": values}
	if first, ok := list[0].(object); ok {
		if t, ok := first["type"].(string); ok {
			joined["type"] = t
		}
		if d, ok := first["description"].(string); ok {
			joined["description"] = d
		}
	}
	return joined
}

// followReference returns a schema with its reference replaced by what it refers to. Other members of the schema count
// more. A reference that leads nowhere, or to a schema that it is a part of, allows any value of the same type.
func (r *repairer) followReference(node object) object {
	ref, ok := node["$ref"].(string)
	if !ok {
		return node
	}
	beside := maps.Clone(node)
	delete(beside, "$ref")
	target, ok := r.findTarget(ref)
	switch {
	case !ok:
		if beside["description"] == nil {
			beside["description"] = "Any value: the server does not describe it."
		}
	case slices.Contains(r.open, ref):
		if t, ok := target["type"]; ok && beside["type"] == nil {
			beside["type"] = t
		}
	default:
		r.open = append(r.open, ref)
		target = r.followReference(target)
		r.open = r.open[:len(r.open)-1]
		for name, value := range target {
			if _, has := beside[name]; !has {
				beside[name] = value
			}
		}
	}
	return beside
}

// findTarget returns the schema that a reference within the document leads to.
func (r *repairer) findTarget(ref string) (object, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if path != "" && path[0] != '/' {
		return findAnchor(r.root, path, 0)
	}
	var at any = r.root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		step = strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%20", " ", "%24", "$").Replace(step)
		switch v := at.(type) {
		case object:
			at = v[step]
		case []any:
			var i int
			if _, err := fmt.Sscanf(step, "%d", &i); err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	found, ok := at.(object)
	return found, ok
}

// findAnchor returns the definition with a name of its own.
func findAnchor(node object, name string, depth int) (object, bool) {
	if node["$anchor"] == name || node["$id"] == "#"+name || depth > deepest {
		return node, depth <= deepest
	}
	for _, key := range []string{"$defs", "definitions"} {
		list, _ := node[key].(object)
		for _, id := range slices.Sorted(maps.Keys(list)) {
			if child, ok := list[id].(object); ok {
				if found, ok := findAnchor(child, name, depth+1); ok {
					return found, true
				}
			}
		}
	}
	return nil, false
}

// AddNote returns the description of a tool with the note.
func (r Repaired) AddNote(description string) string {
	if r.Note == "" || description == "" {
		return description + r.Note
	}
	return description + "\n\n" + r.Note
}
