package declare

import (
	"slices"
	"strings"
)

// A hint is what an annotation says of a parameter.
type hint struct {
	schema
	optional bool
}

// These bound how much of an annotation is understood.
const (
	maxType  = 4096 // bytes
	maxDepth = 16   // types within types
	maxTypes = 1000 // of one parameter, with those within them
)

// A typeReader reads annotations. It knows the classes and the names of types of the file, and notes what it does not
// understand.
type typeReader struct {
	classes map[string]*pyClass
	aliases map[string]string
	depth   int
	read    int      // types of the parameter so far
	unknown []string // types that are not understood
}

// notUnderstood returns the schema of any value and notes the type.
func (r *typeReader) notUnderstood(text string) *hint {
	if len(text) > longestShown {
		text = strings.ToValidUTF8(text[:longestShown], "") + "…"
	}
	if !slices.Contains(r.unknown, text) {
		r.unknown = append(r.unknown, text)
	}
	return &hint{}
}

// simpleTypes are the types without arguments.
var simpleTypes = map[string]schema{
	"str": {kind: "string"}, "Text": {kind: "string"}, "LiteralString": {kind: "string"}, "AnyStr": {kind: "string"},
	"int": {kind: "integer"}, "SupportsInt": {kind: "integer"}, "float": {kind: "number"}, "Number": {kind: "number"}, "Real": {kind: "number"}, "bool": {kind: "boolean"},
	"Any": {}, "object": {}, "Hashable": {},
	"Path": {kind: "string"}, "PurePath": {kind: "string"}, "PosixPath": {kind: "string"}, "PathLike": {kind: "string"}, "UUID": {kind: "string"},
	"datetime": {kind: "string", format: "date-time"}, "date": {kind: "string", format: "date"}, "time": {kind: "string", format: "time"},
	"Decimal": {kind: "number"},
}

// listTypes and dictTypes are the types that JSON has as lists and objects.
var (
	listTypes = strings.Fields("list List Sequence MutableSequence Iterable Collection Container Reversible set Set frozenset FrozenSet AbstractSet MutableSet deque Deque")
	dictTypes = strings.Fields("dict Dict Mapping MutableMapping OrderedDict defaultdict DefaultDict Counter")
	wrappers  = strings.Fields("Required ReadOnly Final ClassVar InitVar") // whose argument is the type
	modules   = strings.Fields("typing typing_extensions t te collections collections.abc abc datetime dt pathlib decimal uuid enum numbers os builtins")
)

// readHint reads a Python annotation. What it does not understand is any value, and is noted.
func (r *typeReader) readHint(text string) *hint {
	text = strings.TrimSpace(stripComments(text))
	r.depth++
	r.read++
	defer func() { r.depth-- }()
	switch {
	case text == "":
		return &hint{}
	case len(text) > maxType || r.depth > maxDepth || r.read > maxTypes:
		return r.notUnderstood(text)
	}
	if inner, rest, ok := stringLiteral(text); ok && strings.TrimSpace(rest) == "" {
		return r.readHint(inner)
	}
	if members := splitTop(text, '|'); len(members) > 1 {
		return r.readUnion(members)
	}
	if strings.HasPrefix(text, "(") && closingBracket(text, 0) == len(text)-1 {
		return r.readHint(text[1 : len(text)-1])
	}
	name, args, subscript := splitSubscript(text)
	if !subscript {
		name = text
	}
	name = bareName(name)
	switch {
	case subscript:
		return r.readGeneric(text, name, splitTop(args, ','))
	case name == "None" || name == "NoneType":
		return &hint{schema: schema{nullable: true}, optional: true}
	case r.aliases[name] != "":
		return r.readHint(r.aliases[name])
	case r.classes[name] != nil:
		return &hint{schema: *r.classes[name].schemaOf(r)}
	case slices.Contains(listTypes, name), name == "tuple", name == "Tuple":
		return &hint{schema: schema{kind: "array", items: &schema{}}}
	case slices.Contains(dictTypes, name):
		return &hint{schema: schema{kind: "object", extra: &schema{}}}
	}
	if s, ok := simpleTypes[name]; ok {
		return &hint{schema: s}
	}
	return r.notUnderstood(text)
}

// bareName returns the name of a type without the module of the standard library that it is from.
func bareName(name string) string {
	name = strings.Join(strings.Fields(name), "")
	if i := strings.LastIndexByte(name, '.'); i > 0 && slices.Contains(modules, name[:i]) {
		return name[i+1:]
	}
	return name
}

// readGeneric reads a type with arguments.
func (r *typeReader) readGeneric(text, name string, args []string) *hint {
	if last := len(args) - 1; last > 0 && strings.TrimSpace(args[last]) == "" {
		args = args[:last] // a comma at the end
	}
	switch {
	case slices.Contains(listTypes, name) && len(args) == 1:
		return &hint{schema: schema{kind: "array", items: r.readItem(args[0])}}
	case name == "tuple" || name == "Tuple":
		return r.readTuple(args)
	case name == "Counter" && len(args) == 1:
		return &hint{schema: schema{kind: "object", extra: &schema{kind: "integer"}}}
	case slices.Contains(dictTypes, name) && len(args) == 2:
		return &hint{schema: schema{kind: "object", extra: r.readItem(args[1])}}
	case name == "Optional" && len(args) == 1:
		return r.readUnion([]string{args[0], "None"})
	case name == "Union":
		return r.readUnion(args)
	case name == "Literal":
		return r.readLiteral(args)
	case name == "Annotated":
		h := r.readHint(args[0])
		for _, a := range args[1:] {
			if s, rest, ok := stringLiteral(strings.TrimSpace(a)); ok && strings.TrimSpace(rest) == "" && h.description == "" {
				h.description = s
			}
		}
		return h
	case name == "NotRequired" && len(args) == 1:
		h := r.readHint(args[0])
		h.optional = true
		return h
	case slices.Contains(wrappers, name) && len(args) == 1:
		return r.readHint(args[0])
	}
	return r.notUnderstood(text)
}

// readItem reads the type of a value within another one.
func (r *typeReader) readItem(text string) *schema { return &r.readHint(text).schema }

func (r *typeReader) readTuple(args []string) *hint {
	if len(args) == 2 && strings.TrimSpace(args[1]) == "..." {
		return &hint{schema: schema{kind: "array", items: r.readItem(args[0])}}
	}
	if len(args) == 1 && (strings.TrimSpace(args[0]) == "()" || strings.TrimSpace(args[0]) == "") {
		return &hint{schema: schema{kind: "array", items: &schema{}}}
	}
	s := schema{kind: "array", minItems: len(args), maxItems: len(args)}
	for _, a := range args {
		s.tuple = append(s.tuple, r.readItem(a))
	}
	s.items = unionOf(s.tuple)
	return &hint{schema: s}
}

// readUnion returns the type of a value that is of one of several types. With None among them it need not be given.
func (r *typeReader) readUnion(members []string) *hint {
	var all []*schema
	null := false
	for _, m := range members {
		switch m = strings.TrimSpace(m); m {
		case "":
		case "None", "NoneType", `"None"`, `'None'`:
			null = true
		default:
			h := r.readHint(m)
			null = null || h.optional
			all = append(all, &h.schema)
		}
	}
	if len(all) == 0 {
		return &hint{schema: schema{nullable: true}, optional: true}
	}
	u := unionOf(all)
	u.nullable = u.nullable || null
	return &hint{schema: *u, optional: u.nullable && null}
}

// readLiteral reads the values of a Literal.
func (r *typeReader) readLiteral(args []string) *hint {
	var values []string
	for _, a := range args {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		v, ok := r.literalJSON(a)
		if !ok {
			return r.notUnderstood("Literal[" + a + "]")
		}
		values = append(values, v)
	}
	s := enumOf(values)
	return &hint{schema: *s, optional: s.nullable}
}

// literalJSON returns the JSON of a value that is written out: a text, a number, a truth value, None, or a member of an
// enumeration of the file.
func (r *typeReader) literalJSON(v string) (string, bool) {
	if s, rest, ok := stringLiteral(v); ok && strings.TrimSpace(rest) == "" {
		return textJSON(s), true
	}
	switch v {
	case "True":
		return "true", true
	case "False":
		return "false", true
	case "None":
		return "null", true
	}
	if class, member, ok := strings.Cut(v, "."); ok && r.classes[class] != nil {
		value, known := r.classes[class].members[member]
		return value, known && value != ""
	}
	v = strings.ReplaceAll(strings.Join(strings.Fields(v), ""), "_", "")
	return v, isNumberJSON(v)
}

// splitSubscript splits "Name[args]".
func splitSubscript(text string) (name, args string, ok bool) {
	open := strings.IndexByte(text, '[')
	if open <= 0 || closingBracket(text, open) != len(text)-1 {
		return "", "", false
	}
	return strings.TrimSpace(text[:open]), text[open+1 : len(text)-1], true
}

// A docArgument is one line of a docstring's Args block.
type docArgument struct {
	kind, text string
	optional   bool
}

// docArguments reads the block of a docstring that begins with "Args:".
func docArguments(doc string) map[string]docArgument {
	all := map[string]docArgument{}
	begun := false
	for line := range strings.Lines(doc) {
		line = strings.TrimRight(line, "\r\n")
		if !begun {
			begun = strings.HasPrefix(strings.TrimSpace(line), "Args:")
			continue
		}
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") || strings.TrimSpace(line) == "" {
			break
		}
		left, text, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		name, kind, _ := strings.Cut(strings.TrimSpace(left), " ")
		kind = strings.TrimSpace(kind)
		a := docArgument{text: strings.TrimSpace(text)}
		if strings.HasPrefix(kind, "(") && strings.HasSuffix(kind, ")") {
			kind = kind[1 : len(kind)-1]
			a.optional = strings.Contains(strings.ToLower(kind), "optional")
		}
		a.optional = a.optional || strings.HasSuffix(kind, "?")
		a.kind = strings.TrimSuffix(kind, "?")
		all[name] = a
	}
	return all
}

// proseTypes are words for types that docstrings use.
var proseTypes = map[string]string{
	"string": "str", "text": "str", "integer": "int", "number": "float", "double": "float", "boolean": "bool", "object": "dict", "map": "dict", "array": "list",
}

// docHint reads the type of a docstring: "int", "list[str]", "int, optional". Other words are a text: docstrings are
// prose.
func (r *typeReader) docHint(kind string) *hint {
	kind = strings.TrimSpace(splitTop(kind, ',')[0])
	if plain := proseTypes[strings.ToLower(kind)]; plain != "" {
		kind = plain
	}
	own := typeReader{classes: r.classes, aliases: r.aliases}
	h := own.readHint(kind)
	if len(own.unknown) > 0 || h.isAny() {
		return &hint{schema: schema{kind: "string", loose: true}}
	}
	return h
}

// defaultHint returns the type of a parameter without an annotation from its default, and a text if that says nothing.
// Its value is not held to it.
func defaultHint(value string) *hint {
	value = strings.TrimSpace(value)
	s := schema{kind: "string", loose: true}
	switch {
	case value == "True" || value == "False" || value == "true" || value == "false":
		s.kind = "boolean"
	case isNumberJSON(value) && !strings.ContainsAny(value, ".eE"):
		s.kind = "integer"
	case isNumberJSON(value):
		s.kind = "number"
	case strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]"):
		s.kind = "array"
		s.items = &schema{}
	case value == "{}":
		s.kind = "object"
		s.extra = &schema{}
	}
	return &hint{schema: s}
}
