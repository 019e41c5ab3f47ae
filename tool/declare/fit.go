package declare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// FitArguments returns the arguments of a call as the function takes them. Values that models write in another form
// than the schema says become what it says, if only one value can be meant: the text "5" for a number, a text with JSON
// for a list or an object, a number for a text, null for a value that has a default. wrong has a sentence for each
// argument that is missing, unknown or of another type; it says what was expected and what came. The arguments of a
// bash function are returned as they are: its options decide what they mean.
func (d Declaration) FitArguments(given map[string]json.RawMessage) (fitted map[string]json.RawMessage, wrong []string) {
	if d.arguments == nil {
		return given, nil
	}
	fitted = map[string]json.RawMessage{}
	var names []string
	for i := range d.arguments.properties {
		p := &d.arguments.properties[i]
		names = append(names, "`"+p.name+"`")
		needed := slices.Contains(d.arguments.required, p.name)
		raw, ok := given[p.name]
		switch {
		case !ok && needed:
			wrong = append(wrong, fmt.Sprintf("the argument `%s` is missing: it must be %s", p.name, p.describe()))
		case !ok && p.missing == 'n':
			fitted[p.name] = json.RawMessage("null")
		case !ok, isNull(raw) && !needed && !p.takesNull() && p.missing == 0:
		default:
			value, fault := p.fit(raw, "the argument `"+p.name+"`")
			if fault != "" && !p.loose {
				wrong = append(wrong, fault)
			}
			fitted[p.name] = value
		}
	}
	for _, name := range sortedKeys(given) {
		if _, ok := fitted[name]; ok || slices.Contains(names, "`"+name+"`") {
			continue
		}
		takes := "it takes none"
		if len(names) > 0 {
			takes = "its arguments are " + strings.Join(names, ", ")
		}
		wrong = append(wrong, fmt.Sprintf("%s has no argument `%s`: %s", d.Name, name, takes))
	}
	return fitted, wrong
}

func isNull(raw json.RawMessage) bool { return kindOfJSON(raw) == "null" }

func sortedKeys(m map[string]json.RawMessage) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// takesNull reports whether null is a value that the schema allows.
func (s *schema) takesNull() bool { return s.nullable || s.isAny() || s.loose && s.kind == "string" }

// fit returns a value as the schema wants it, or why it cannot be one. what names it in the sentence.
func (s *schema) fit(raw json.RawMessage, what string) (value json.RawMessage, fault string) {
	if isNull(raw) && s.takesNull() || s.isAny() || s.loose && s.kind == "string" {
		return raw, ""
	}
	if len(s.anyOf) > 0 {
		return s.fitAlternative(raw, what)
	}
	switch s.kind {
	case "array":
		return s.fitList(raw, what)
	case "object":
		return s.fitObject(raw, what)
	}
	value, ok := s.fitScalar(raw)
	if ok && len(s.enum) > 0 {
		value, ok = s.fitEnum(value)
	}
	if !ok {
		return raw, s.misfit(raw, what)
	}
	return value, ""
}

func (s *schema) misfit(raw json.RawMessage, what string) string {
	return fmt.Sprintf("%s must be %s, not %s", what, s.describe(), describeValue(raw))
}

// fitAlternative fits the value to the schema that allows it as it is, or else to the first one that it fits.
func (s *schema) fitAlternative(raw json.RawMessage, what string) (json.RawMessage, string) {
	var first json.RawMessage
	for _, m := range s.anyOf {
		switch v, fault := m.fit(raw, what); {
		case fault == "" && bytes.Equal(bytes.TrimSpace(v), bytes.TrimSpace(raw)):
			return raw, ""
		case fault == "" && first == nil:
			first = v
		}
	}
	if first != nil {
		return first, ""
	}
	var meant []*schema
	for _, m := range s.anyOf {
		if m.kind == kindOfJSON(raw) {
			meant = append(meant, m)
		}
	}
	if len(meant) == 1 && (meant[0].kind == "object" || meant[0].kind == "array") { // what is wrong in it says more
		_, fault := meant[0].fit(raw, what)
		return raw, fault
	}
	return raw, s.misfit(raw, what)
}

// fitScalar fits a text, a number or a truth value.
func (s *schema) fitScalar(raw json.RawMessage) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	kind := kindOfJSON(raw)
	plain := string(raw)
	if kind == "string" && s.kind != "string" && s.kind != "" {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return raw, false
		}
		plain = strings.TrimSpace(text)
	}
	switch s.kind {
	case "":
		return raw, true
	case "string":
		switch kind {
		case "string":
			return raw, true
		case "number", "boolean":
			return json.RawMessage(textJSON(plain)), true
		}
	case "boolean":
		if plain = strings.ToLower(plain); plain == "true" || plain == "false" {
			return json.RawMessage(plain), true
		}
	case "integer", "number":
		if !isNumberJSON(plain) {
			return raw, false
		}
		if s.kind == "number" {
			return json.RawMessage(plain), true
		}
		return wholeNumber(plain)
	}
	return raw, false
}

func isNumberJSON(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// longestNumber bounds how much a number may grow when its exponent is written out.
const longestNumber = 40

// wholeNumber returns a number without a fraction and an exponent, if it has no need of them.
func wholeNumber(text string) (json.RawMessage, bool) {
	if !strings.ContainsAny(text, ".eE") {
		return json.RawMessage(text), true
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || f > 1e30 || f < -1e30 || len(text) > longestNumber {
		return json.RawMessage(text), false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() {
		return json.RawMessage(text), false
	}
	return json.RawMessage(r.Num().String()), true
}

// fitEnum returns the value of the enumeration that is meant: the same one, or else one whose text is the same.
func (s *schema) fitEnum(raw json.RawMessage) (json.RawMessage, bool) {
	for _, e := range s.enum {
		if sameJSON(e, string(raw)) {
			return json.RawMessage(e), true
		}
	}
	if s.kind == "" && kindOfJSON(raw) == "string" {
		var text string
		_ = json.Unmarshal(raw, &text) // it is a text
		if i := slices.Index(s.enum, text); i >= 0 {
			return json.RawMessage(s.enum[i]), true
		}
	}
	return raw, false
}

// sameJSON reports whether two texts, numbers or truth values are the same.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && x == y
}

// unpackJSON returns the JSON value that a text holds, if it is of that kind.
func unpackJSON(raw json.RawMessage, kind string) json.RawMessage {
	var text string
	if kindOfJSON(raw) == "string" && json.Unmarshal(raw, &text) == nil && kindOfJSON(json.RawMessage(text)) == kind && json.Valid([]byte(text)) {
		return json.RawMessage(strings.TrimSpace(text))
	}
	return raw
}

func (s *schema) fitList(raw json.RawMessage, what string) (json.RawMessage, string) {
	list := unpackJSON(raw, "array")
	var items []json.RawMessage
	if kindOfJSON(list) != "array" || json.Unmarshal(list, &items) != nil ||
		len(items) < s.minItems || s.maxItems > 0 && len(items) > s.maxItems {
		return raw, s.misfit(raw, what)
	}
	changed := false
	for i := range items {
		of := s.items
		if i < len(s.tuple) {
			of = s.tuple[i]
		}
		v, fault := of.fit(items[i], fmt.Sprintf("item %d of %s", i+1, what))
		if fault != "" {
			return raw, fault
		}
		changed = changed || !bytes.Equal(v, items[i])
		items[i] = v
	}
	if !changed {
		return list, ""
	}
	return encodeJSON(items), ""
}

func (s *schema) fitObject(raw json.RawMessage, what string) (json.RawMessage, string) {
	object := unpackJSON(raw, "object")
	var members map[string]json.RawMessage
	if kindOfJSON(object) != "object" || json.Unmarshal(object, &members) != nil {
		return raw, s.misfit(raw, what)
	}
	for _, name := range s.required {
		if _, ok := members[name]; !ok {
			return raw, fmt.Sprintf("%s has no member `%s`: it must be %s", what, name, s.describe())
		}
	}
	changed := false
	for _, name := range sortedKeys(members) {
		of := s.extra
		needed := slices.Contains(s.required, name)
		i := slices.IndexFunc(s.properties, func(p property) bool { return p.name == name })
		switch {
		case i >= 0:
			of = &s.properties[i].schema
		case s.closed:
			return raw, fmt.Sprintf("%s must not have the member `%s`: it must be %s", what, name, s.describe())
		case of == nil:
			continue
		}
		if i >= 0 && !needed && isNull(members[name]) && !of.takesNull() {
			delete(members, name)
			changed = true
			continue
		}
		v, fault := of.fit(members[name], fmt.Sprintf("the member `%s` of %s", name, what))
		if fault != "" {
			return raw, fault
		}
		changed = changed || !bytes.Equal(v, members[name])
		members[name] = v
	}
	if !changed {
		return object, ""
	}
	return encodeJSON(members), ""
}

// encodeJSON returns the text of values that are JSON already.
func encodeJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // of valid JSON it cannot fail
	return bytes.TrimSpace(b.Bytes())
}

// describe returns what a value must be, as a part of a sentence.
func (s *schema) describe() string {
	text := s.describeKind()
	switch {
	case !s.nullable || s.isAny():
		return text
	case strings.Contains(text, ","):
		return text + ", or null"
	}
	return text + " or null"
}

func (s *schema) describeKind() string {
	switch {
	case len(s.enum) == 1:
		return s.enum[0]
	case len(s.enum) > 0:
		return "one of " + strings.Join(s.enum, ", ")
	case len(s.anyOf) > 0:
		var all []string
		for _, m := range s.anyOf {
			all = append(all, m.describe())
		}
		if strings.Contains(strings.Join(all, ""), ",") {
			return strings.Join(all, "; or ")
		}
		return strings.Join(all, " or ")
	}
	switch s.kind {
	case "string":
		if s.format != "" {
			return "a text with a " + s.format
		}
		return "a text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "array":
		return s.describeList()
	case "object":
		return s.describeObject()
	}
	return "any value"
}

func (s *schema) describeList() string {
	switch {
	case len(s.tuple) > 0:
		var all []string
		for _, m := range s.tuple {
			all = append(all, m.describe())
		}
		return fmt.Sprintf("a list of %d values: %s", len(s.tuple), strings.Join(all, ", "))
	case s.items == nil || s.items.isAny():
		return "a list"
	}
	return "a list, each item " + s.items.describe()
}

func (s *schema) describeObject() string {
	var all []string
	for _, p := range s.properties {
		text := "`" + p.name + "`"
		if !slices.Contains(s.required, p.name) {
			text += " (optional)"
		}
		all = append(all, text)
	}
	switch {
	case len(all) > 0:
		return "an object with " + strings.Join(all, ", ")
	case s.extra != nil && !s.extra.isAny():
		return "an object, each member " + s.extra.describe()
	}
	return "an object"
}

// longestShown is how many bytes of a wrong value its sentence shows.
const longestShown = 60

// describeValue returns what came instead, as a part of a sentence.
func describeValue(raw json.RawMessage) string {
	text := string(bytes.TrimSpace(raw))
	if len(text) > longestShown {
		text = strings.ToValidUTF8(text[:longestShown], "") + "…"
	}
	switch kindOfJSON(raw) {
	case "string":
		return "the text " + text
	case "number":
		return "the number " + text
	case "array":
		return "the list " + text
	case "object":
		return "the object " + text
	}
	return text
}
