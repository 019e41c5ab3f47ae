package declare

import "strings"

// A hint is what an annotation says of a parameter.
type hint struct {
	schema
	optional bool
}

// maxType is the longest annotation that is understood, in bytes.
const maxType = 4096

// hintOf reads a Python annotation. What is not in the table of types is a
// string, as it is for the reference: also quoted annotations, typing.List and
// unions of several types.
func hintOf(text string) *hint {
	text = strings.TrimSpace(stripComments(text))
	if len(text) > maxType {
		return &hint{schema: schema{kind: "string"}}
	}
	if members := splitTop(text, '|'); len(members) > 1 {
		return unionOf(members)
	}
	if strings.HasPrefix(text, "(") && closingBracket(text, 0) == len(text)-1 {
		return hintOf(text[1 : len(text)-1])
	}
	name, args, subscript := splitSubscript(text)
	if !subscript {
		return &hint{schema: schema{kind: schemaKind(text)}}
	}
	switch name {
	case "List", "list":
		return &hint{schema: schema{kind: "array", items: &hintOf(args).schema}}
	case "Optional":
		h := hintOf(args)
		h.optional = true
		return h
	case "Union":
		return unionOf(splitTop(args, ','))
	case "Literal":
		h := &hint{schema: schema{kind: "string"}}
		for _, v := range splitTop(args, ',') {
			if v = strings.TrimSpace(v); v != "" {
				h.enum = append(h.enum, literalText(v))
			}
		}
		return h
	}
	return &hint{schema: schema{kind: "string"}}
}

// unionOf returns a type that may be None, or a string where several types remain.
func unionOf(members []string) *hint {
	var rest []string
	for _, m := range members {
		if m = strings.TrimSpace(m); m != "None" && m != "" {
			rest = append(rest, m)
		}
	}
	h := &hint{schema: schema{kind: "string"}}
	if len(rest) == 1 {
		h = hintOf(rest[0])
	}
	h.optional = h.optional || len(rest) < len(members)
	return h
}

func schemaKind(name string) string {
	switch name {
	case "int":
		return "integer"
	case "float":
		return "number"
	case "bool":
		return "boolean"
	}
	return "string"
}

// splitSubscript splits "Name[args]".
func splitSubscript(text string) (name, args string, ok bool) {
	open := strings.IndexByte(text, '[')
	if open <= 0 || closingBracket(text, open) != len(text)-1 {
		return "", "", false
	}
	return strings.TrimSpace(text[:open]), text[open+1 : len(text)-1], true
}

// literalText returns a member of Literal as a model writes it.
func literalText(v string) string {
	if s, rest, ok := stringLiteral(v); ok && rest == "" {
		return s
	}
	switch v {
	case "True":
		return "true"
	case "False":
		return "false"
	}
	return strings.Join(strings.Fields(v), "")
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

// docHint reads the type of a docstring: "int", "list[str]", "int, optional".
func docHint(kind string) *hint {
	kind = strings.TrimSpace(splitTop(kind, ',')[0])
	if strings.HasPrefix(kind, "list[") {
		return hintOf(kind)
	}
	return &hint{schema: schema{kind: schemaKind(kind)}}
}
