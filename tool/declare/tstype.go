package declare

import (
	"slices"
	"strconv"
	"strings"
)

// readTSTypes reads the names of types of a TypeScript file: interfaces, aliases and enumerations.
func readTSTypes(src string) *tsTypes {
	r := &tsTypes{aliases: map[string]string{}}
	ts := &tsScanner{src: src}
	for depth := 0; ; {
		tok := ts.nextCode()
		switch {
		case tok == "":
			return r
		case isOpening(tok):
			depth++
		case isClosing(tok):
			depth--
		case depth == 0 && (tok == "type" || tok == "interface" || tok == "enum"):
			before := *ts
			if !r.readDeclaration(ts, tok) {
				*ts = before
			}
		}
	}
}

// readDeclaration reads what follows "type", "interface" or "enum".
func (r *tsTypes) readDeclaration(ts *tsScanner, word string) bool {
	name := ts.nextCode()
	if !isScriptName(name) || r.aliases[name] != "" {
		return false
	}
	start := ts.at
	bases := ""
	for {
		before := *ts
		switch tok := ts.nextCode(); {
		case tok == "<" || tok == "":
			return false // it has parameters
		case tok == "=" && word == "type":
			start = ts.at
			ts.skipType()
			r.aliases[name] = strings.TrimSpace(ts.src[start:ts.at])
			return true
		case tok == "{" && word != "type":
			bases = strings.TrimSpace(ts.src[start:before.at])
			start = ts.at - 1
			if !ts.skipBrackets() {
				return false
			}
			body := ts.src[start:ts.at]
			switch list, extends := strings.CutPrefix(bases, "extends "); {
			case word == "enum":
				body = "enum" + body
			case extends:
				body = strings.Join(splitTS(list, ','), " & ") + " & " + body
			}
			r.aliases[name] = body
			return true
		}
	}
}

// skipType reads to the end of a type that ends with its line or a semicolon.
func (ts *tsScanner) skipType() {
	depth := 0
	last := "="
	for {
		before := *ts
		tok := ts.nextCode()
		broken := strings.Contains(ts.src[before.at:ts.at], "\n")
		switch {
		case tok == "" || tok == ";":
			*ts = before
			return
		case broken && depth == 0 && !slices.Contains([]string{"=", "|", "&", ",", "<", ":"}, last) && tok != "|" && tok != "&" && tok != "[":
			*ts = before
			return
		case isOpening(tok):
			ts.skipBrackets()
		case tok == "<":
			depth++
		case tok == ">" && last != "=":
			depth--
		}
		last = tok
	}
}

// A tsTypes reads the types of a TypeScript file, and notes what it does not understand.
type tsTypes struct {
	aliases map[string]string // the text of each
	open    []string          // names whose type is being read
	depth   int
	read    int // types of the parameter so far
	unknown []string
}

func (r *tsTypes) notUnderstood(text string) *hint {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestShown {
		text = strings.ToValidUTF8(text[:longestShown], "") + "…"
	}
	if !slices.Contains(r.unknown, text) {
		r.unknown = append(r.unknown, text)
	}
	return &hint{}
}

// readHint reads a TypeScript type. What it does not understand is any value, and is noted.
func (r *tsTypes) readHint(text string) *hint {
	text = strings.TrimSpace(dropTSComments(text))
	text = strings.TrimSpace(strings.TrimLeft(text, "|&"))
	r.depth++
	r.read++
	defer func() { r.depth-- }()
	if len(text) > maxType || r.depth > maxDepth || r.read > maxTypes {
		return r.notUnderstood(text)
	}
	if topTS(text, 0, '?') >= 0 || isArrow(text) {
		return r.notUnderstood(text)
	}
	if members := splitTS(text, '|'); len(members) > 1 {
		return r.readUnion(members)
	}
	if members := splitTS(text, '&'); len(members) > 1 {
		return r.readIntersection(text, members)
	}
	if strings.HasPrefix(text, "(") && bracketsTS(text, 0) == len(text)-1 {
		return r.readHint(text[1 : len(text)-1])
	}
	if rest, ok := strings.CutPrefix(text, "readonly "); ok {
		text = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(text, "{") && bracketsTS(text, 0) == len(text)-1 {
		return r.readObject(text[1 : len(text)-1])
	}
	if inner, ok := strings.CutSuffix(text, "[]"); ok {
		return &hint{schema: schema{kind: "array", items: &r.readHint(inner).schema}}
	}
	if strings.HasPrefix(text, "[") && bracketsTS(text, 0) == len(text)-1 {
		return r.readTuple(text[1 : len(text)-1])
	}
	if i := strings.IndexByte(text, '<'); i > 0 && strings.HasSuffix(text, ">") && isScriptName(strings.TrimSpace(text[:i])) {
		return r.readGeneric(text, strings.TrimSpace(text[:i]), splitTS(text[i+1:len(text)-1], ','))
	}
	return r.readName(text)
}

// isArrow reports whether a type is that of a function.
func isArrow(text string) bool {
	ts := tsScanner{src: text}
	for {
		switch tok := ts.nextCode(); {
		case tok == "":
			return false
		case tok == "=" && strings.HasPrefix(text[ts.at:], ">"):
			return true
		case isOpening(tok):
			ts.skipBrackets()
		case tok == "<":
			ts.skipAngles()
		}
	}
}

// readName reads a type that is one word or one value.
func (r *tsTypes) readName(text string) *hint {
	switch text {
	case "string", "number", "boolean":
		return &hint{schema: schema{kind: text}}
	case "String", "Number", "Boolean":
		return &hint{schema: schema{kind: strings.ToLower(text)}}
	case "", "any", "unknown":
		return &hint{}
	case "object", "{}":
		return &hint{schema: schema{kind: "object", extra: &schema{}}}
	case "null", "undefined", "void":
		return &hint{schema: schema{nullable: true}, optional: true}
	}
	if strings.HasPrefix(text, "`") {
		return &hint{schema: schema{kind: "string"}}
	}
	if v, ok := tsLiteral(text); ok {
		return &hint{schema: *enumOf([]string{v})}
	}
	if enum, member, ok := strings.Cut(text, "."); ok && strings.HasPrefix(r.aliases[enum], "enum{") {
		if v := tsEnum(r.aliases[enum])[member]; v != "" {
			return &hint{schema: *enumOf([]string{v})}
		}
	}
	alias := r.aliases[text]
	switch {
	case alias == "" || slices.Contains(r.open, text):
		if alias != "" {
			return &hint{} // it is a part of itself
		}
		return r.notUnderstood(text)
	case strings.HasPrefix(alias, "enum{"):
		var values []string
		members := tsEnum(alias)
		for _, name := range tsEnumNames(alias) {
			values = append(values, members[name])
		}
		if len(values) == 0 || slices.Contains(values, "") {
			return r.notUnderstood(text)
		}
		return &hint{schema: *enumOf(values)}
	}
	r.open = append(r.open, text)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	return r.readHint(alias)
}

// tsEnumNames returns the names of an enumeration's members.
func tsEnumNames(body string) (names []string) {
	inner := strings.TrimSuffix(strings.TrimPrefix(body, "enum{"), "}")
	for _, part := range splitTS(inner, ',') {
		name, _, _ := strings.Cut(strings.TrimSpace(dropTSComments(part)), "=")
		if name = strings.Trim(strings.TrimSpace(name), `"'`); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// tsEnum returns the values of an enumeration's members as JSON; "" for one that is computed.
func tsEnum(body string) map[string]string {
	inner := strings.TrimSuffix(strings.TrimPrefix(body, "enum{"), "}")
	all := map[string]string{}
	next := 0
	for _, part := range splitTS(inner, ',') {
		name, value, given := strings.Cut(strings.TrimSpace(dropTSComments(part)), "=")
		if name = strings.Trim(strings.TrimSpace(name), `"'`); name == "" {
			continue
		}
		if !given {
			all[name] = strconv.Itoa(next)
			next++
			continue
		}
		v, ok := tsLiteral(strings.TrimSpace(value))
		if !ok {
			v = ""
		}
		all[name] = v
		n, _ := strconv.Atoi(v) // what follows a text must be given
		next = n + 1
	}
	return all
}

// readUnion returns the type of a value that is of one of several types. null and undefined make it optional.
func (r *tsTypes) readUnion(members []string) *hint {
	var all []*schema
	h := &hint{}
	null := false
	for _, m := range members {
		switch m = strings.TrimSpace(m); m {
		case "":
		case "undefined", "void":
			h.optional = true
		case "null":
			h.optional = true
			null = true
		default:
			inner := r.readHint(m)
			h.optional = h.optional || inner.optional
			all = append(all, &inner.schema)
		}
	}
	if len(all) == 0 {
		return &hint{schema: schema{nullable: true}, optional: true}
	}
	h.schema = *unionOf(all)
	h.nullable = h.nullable || null
	return h
}

// readIntersection returns the type of an object with the members of several types.
func (r *tsTypes) readIntersection(text string, members []string) *hint {
	s := schema{kind: "object", closed: true}
	for _, m := range members {
		h := r.readHint(m)
		switch {
		case h.kind != "object":
			return r.notUnderstood(text)
		case h.extra != nil:
			s.closed = false
			s.extra = h.extra
		}
		for _, p := range h.properties {
			s.putProperty(p)
		}
		s.required = append(s.required, h.required...)
	}
	return &hint{schema: s}
}

// readObject reads the members of an object type.
func (r *tsTypes) readObject(body string) *hint {
	s := schema{kind: "object", closed: true}
	for _, line := range splitTSMembers(body) {
		m := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(dropTSComments(line)), "readonly "))
		if m == "" {
			continue
		}
		colon := topTS(m, 0, ':')
		if colon < 0 {
			return r.notUnderstood("{" + body + "}")
		}
		name, optional := strings.CutSuffix(strings.TrimSpace(m[:colon]), "?")
		name = strings.TrimSpace(name)
		h := r.readHint(m[colon+1:])
		switch {
		case strings.HasPrefix(name, "["):
			s.closed = false
			s.extra = &h.schema
			continue
		case strings.HasSuffix(name, ")") || name == "":
			return r.notUnderstood("{" + body + "}")
		}
		name = strings.Trim(name, `"'`)
		if text := tsMemberComment(line); text != "" {
			h.description = text
		}
		s.putProperty(property{name: name, schema: h.schema})
		if !optional && !(h.optional && !h.nullable) {
			s.required = append(s.required, name)
		}
	}
	if len(s.properties) == 0 && s.extra == nil {
		s = schema{kind: "object", extra: &schema{}}
	}
	return &hint{schema: s}
}

// splitTSMembers splits the members of an object type, which end with a semicolon, a comma or their line.
func splitTSMembers(body string) (parts []string) {
	ts := tsScanner{src: body}
	start := 0
	angles := 0
	last := ""
	for {
		before := ts.at
		tok := ts.nextCode()
		at := ts.at - len(tok)
		if tok == "" {
			return append(parts, body[start:])
		}
		if line := strings.IndexByte(body[before:at], '\n'); line >= 0 && angles <= 0 && tok != "|" && tok != "&" &&
			!slices.Contains([]string{"", ":", "|", "&", ";", ","}, last) && topTS(body[start:before], 0, ':') >= 0 {
			parts = append(parts, body[start:before+line]) // the line before was a whole member
			start = before + line
		}
		switch {
		case isOpening(tok):
			ts.skipBrackets()
		case tok == "<":
			angles++
		case tok == ">" && last != "=":
			angles--
		case (tok == ";" || tok == ",") && angles <= 0:
			parts = append(parts, body[start:at])
			start = ts.at
		}
		last = tok
	}
}

// tsMemberComment returns the text of a comment /** ... */ before a member.
func tsMemberComment(member string) string {
	member = strings.TrimSpace(member)
	if !strings.HasPrefix(member, "/**") {
		return ""
	}
	end := strings.Index(member, "*/")
	if end < 0 {
		return ""
	}
	text, _, _ := parseJSDoc(member[:end+2])
	return text
}

// readTuple reads "[string, number]".
func (r *tsTypes) readTuple(body string) *hint {
	s := schema{kind: "array"}
	for _, part := range splitTS(body, ',') {
		part = strings.TrimSpace(dropTSComments(part))
		if part == "" {
			continue
		}
		if strings.HasPrefix(part, "...") {
			return r.notUnderstood("[" + body + "]")
		}
		optional := false
		if i := topTS(part, 0, ':'); i > 0 { // it has a name
			var name string
			name, optional = strings.CutSuffix(strings.TrimSpace(part[:i]), "?")
			if !isScriptName(name) {
				return r.notUnderstood("[" + body + "]")
			}
			part = part[i+1:]
		} else if part, optional = strings.CutSuffix(part, "?"); optional {
			part = strings.TrimSpace(part)
		}
		s.tuple = append(s.tuple, &r.readHint(part).schema)
		if !optional {
			s.minItems = len(s.tuple)
		}
	}
	if len(s.tuple) == 0 {
		return &hint{schema: schema{kind: "array", items: &schema{}}}
	}
	s.maxItems = len(s.tuple)
	s.items = unionOf(s.tuple)
	return &hint{schema: s}
}

// readGeneric reads a type with arguments.
func (r *tsTypes) readGeneric(text, name string, args []string) *hint {
	switch {
	case (name == "Array" || name == "ReadonlyArray" || name == "Iterable") && len(args) == 1:
		return &hint{schema: schema{kind: "array", items: &r.readHint(args[0]).schema}}
	case name == "Record" && len(args) == 2:
		return r.readRecord(args[0], args[1])
	case (name == "Readonly" || name == "NonNullable") && len(args) == 1:
		return r.readHint(args[0])
	case (name == "Partial" || name == "Required") && len(args) == 1:
		h := r.readHint(args[0])
		if h.kind != "object" {
			return h
		}
		h.required = nil
		if name == "Required" {
			for _, p := range h.properties {
				h.required = append(h.required, p.name)
			}
		}
		return h
	case (name == "Pick" || name == "Omit") && len(args) == 2:
		h := r.readHint(args[0])
		keys := r.readHint(args[1])
		if h.kind != "object" || len(keys.enum) == 0 {
			return r.notUnderstood(text)
		}
		leave := func(member string) bool { return slices.Contains(keys.enum, textJSON(member)) == (name == "Omit") }
		h.properties = slices.DeleteFunc(slices.Clone(h.properties), func(p property) bool { return leave(p.name) })
		h.required = slices.DeleteFunc(slices.Clone(h.required), leave)
		return h
	}
	return r.notUnderstood(text)
}

// readRecord reads the arguments of a Record: the keys may be written out.
func (r *tsTypes) readRecord(key, value string) *hint {
	keys := r.readHint(key)
	of := r.readHint(value)
	if len(keys.enum) == 0 || keys.kind != "string" {
		return &hint{schema: schema{kind: "object", extra: &of.schema}}
	}
	s := schema{kind: "object", closed: true}
	for _, k := range keys.enum {
		name, _, _ := stringLiteral(k)
		s.putProperty(property{name: name, schema: of.schema})
		s.required = append(s.required, name)
	}
	return &hint{schema: s}
}

// tsLiteral returns the JSON of a literal type: a text in quotes, a number, a truth value.
func tsLiteral(s string) (string, bool) {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && quoteEnd(s, 0) == len(s) {
		return textJSON(unescapePython(s[1 : len(s)-1])), true
	}
	plain := strings.ReplaceAll(strings.ReplaceAll(s, "_", ""), "- ", "-")
	if s == "true" || s == "false" || isNumberJSON(plain) {
		return plain, true
	}
	return "", false
}
