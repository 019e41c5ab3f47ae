package declare

import "strings"

// ParseTypeScript declares the exported functions of a TypeScript file by their
// signatures and the JSDoc comments above them. Of a file in a directory called
// tools only the function run is declared, under the file's name. A line
// "@raddle read-only" of the comment declares an effect.
func ParseTypeScript(path string, src []byte) File {
	f := File{Path: path, Language: LanguageTypeScript}
	ts := &tsScanner{src: string(src)}
	depth, doc := 0, ""
	for {
		tok := ts.nextToken()
		switch {
		case tok == "":
			if depth > 0 {
				f.addProblem(0, "", "failed to parse typescript: a bracket is not closed")
			}
			return f
		case strings.HasPrefix(tok, "/*") || strings.HasPrefix(tok, "//"):
			if depth == 0 && strings.HasPrefix(tok, "/**") {
				doc = tok
			} else if depth == 0 {
				doc = ""
			}
			continue
		case isOpening(tok):
			depth++
		case isClosing(tok):
			depth--
		case tok == "export" && depth == 0:
			f.declareExported(ts, doc)
		}
		doc = ""
	}
}

// declareExported declares what follows "export", if it is a function with a body.
func (f *File) declareExported(ts *tsScanner, doc string) {
	start := *ts
	tok := ts.nextCode()
	for tok == "default" || tok == "async" {
		tok = ts.nextCode()
	}
	if tok != "function" {
		*ts = start
		return
	}
	line := ts.nextLine() // of the function's name
	name := ts.nextCode()
	if name == "*" || !isScriptName(name) {
		return
	}
	tok = ts.nextCode()
	if tok == "<" {
		ts.skipAngles()
		tok = ts.nextCode()
	}
	if tok != "(" {
		return
	}
	open := ts.at
	if !ts.skipBrackets() {
		f.addProblem(line, name, "failed to parse typescript: the parameters of '%s' are not closed", name)
		return
	}
	params, base := ts.src[open:ts.at-1], open
	if !ts.hasBody() || f.isPrivate(name) {
		return
	}
	f.typescriptFunction(tsFunction{name, params, doc, line}, ts, base)
}

// A tsFunction is what was read of one function.
type tsFunction struct {
	name, params, doc string
	line              int
}

func (f *File) typescriptFunction(fn tsFunction, ts *tsScanner, base int) {
	d := f.newDeclaration(fn.name, fn.line)
	text, docs, notes := parseJSDoc(fn.doc)
	d.Description = text
	var about annotations
	for _, note := range notes {
		if problem := about.addAnnotation(note); problem != "" {
			f.addProblem(fn.line, "", "%s", problem)
		}
	}
	d.Effect, d.InDoubt = about.effect, about.inDoubt
	if text == "" && fn.name != instructions {
		f.addProblem(fn.line, fn.name, "Missing or empty description on function: %s: write a comment /** ... */ right above it", fn.name)
		return
	}
	s := &schema{kind: "object"}
	for _, part := range splitTS(fn.params, ',') {
		at := base + strings.Index(fn.params, part)
		p := strings.TrimSpace(dropTSComments(part))
		if p == "" {
			continue
		}
		name, kind, optional, wrong := tsParameter(p)
		if wrong != "" {
			line := ts.lineAt(at + len(part) - len(strings.TrimLeft(part, " \t\r\n")))
			f.addProblem(line, fn.name, "line %d: %s, in function '%s'", line, wrong, fn.name)
			return
		}
		h := tsHint(kind)
		h.description = docs[name]
		if !optional && !h.optional {
			s.required = append(s.required, name)
		}
		s.putProperty(property{name, h.schema})
		d.Params = append(d.Params, name)
	}
	d.Schema = s.jsonText()
	f.placeDeclaration(d)
}

// tsParameter splits "name?: type = default".
func tsParameter(text string) (name, kind string, optional bool, wrong string) {
	switch {
	case strings.HasPrefix(text, "..."):
		return "", "", false, "rest parameters (...) are not supported in tool functions: take an array"
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		return "", "", false, "destructured parameters are not supported in tool functions. Use flat parameters instead (e.g. 'a: string, b: string')"
	}
	if i := topTS(text, 0, '='); i >= 0 {
		text, optional = text[:i], true
	}
	if i := topTS(text, 0, ':'); i >= 0 {
		text, kind = text[:i], strings.TrimSpace(text[i+1:])
	}
	name, question := strings.CutSuffix(strings.TrimSpace(text), "?")
	name = strings.TrimSpace(name)
	if !isScriptName(name) {
		return "", "", false, "a parameter is not a name"
	}
	return name, kind, optional || question, ""
}

func isScriptName(s string) bool { return isIdentifier(strings.ReplaceAll(s, "$", "_")) }

// tsHint reads a TypeScript type. What is not in the table of types is a string.
func tsHint(text string) *hint {
	text = strings.TrimPrefix(strings.TrimSpace(dropTSComments(text)), "|")
	text = strings.TrimSpace(text)
	if len(text) > maxType {
		return &hint{schema: schema{kind: "string"}}
	}
	if members := splitTS(text, '|'); len(members) > 1 {
		return tsUnion(members)
	}
	if end := bracketsTS(text, 0); strings.HasPrefix(text, "(") && end == len(text)-1 {
		return tsHint(text[1:end])
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "readonly "))
	if inner, ok := strings.CutSuffix(text, "[]"); ok {
		return &hint{schema: schema{kind: "array", items: &tsHint(inner).schema}}
	}
	for _, generic := range []string{"Array<", "ReadonlyArray<"} {
		if inner, ok := strings.CutPrefix(text, generic); ok && strings.HasSuffix(inner, ">") {
			return &hint{schema: schema{kind: "array", items: &tsHint(inner[:len(inner)-1]).schema}}
		}
	}
	h := &hint{schema: schema{kind: "string"}}
	switch text {
	case "number", "boolean":
		h.kind = text
	default:
		if v, ok := tsLiteral(text); ok {
			h.enum = []string{v}
		}
	}
	return h
}

// tsUnion returns an enumeration where all members are literals, else the first
// member that is a type; null and undefined make it optional.
func tsUnion(members []string) *hint {
	var first *hint
	var enum []string
	optional, literals := false, true
	for _, m := range members {
		m = strings.TrimSpace(m)
		switch m {
		case "":
			continue
		case "null", "undefined", "void":
			optional = true
			continue
		}
		v, ok := tsLiteral(m)
		enum, literals = append(enum, v), literals && ok
		if first == nil {
			first = tsHint(m)
		}
	}
	if first == nil {
		first = &hint{schema: schema{kind: "string"}}
	} else if literals {
		first = &hint{schema: schema{kind: "string", enum: enum}}
	}
	first.optional = first.optional || optional
	return first
}

// tsLiteral returns the text of a literal type: a text in quotes, a number, a truth value.
func tsLiteral(s string) (string, bool) {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && quoteEnd(s, 0) == len(s) {
		return unescapePython(s[1 : len(s)-1]), true
	}
	digits := strings.TrimLeft(strings.TrimPrefix(s, "-"), "0123456789._")
	if s == "true" || s == "false" || s != "" && s != "-" && digits == "" {
		return s, true
	}
	return "", false
}

// parseJSDoc reads a comment: the text before the first tag, the parameters, and
// the annotations.
func parseJSDoc(comment string) (text string, params map[string]string, notes []string) {
	params = map[string]string{}
	var lines []string
	tags := false
	body := strings.TrimSuffix(strings.TrimPrefix(comment, "/**"), "*/")
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "*"))
		tags = tags || strings.HasPrefix(line, "@")
		if !tags {
			lines = append(lines, line)
			continue
		}
		if name, ok := strings.CutPrefix(line, "@raddle "); ok {
			notes = append(notes, strings.TrimSpace(name))
		}
		rest, ok := strings.CutPrefix(line, "@param")
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		if end := strings.IndexByte(rest, '}'); strings.HasPrefix(rest, "{") && end > 0 {
			rest = strings.TrimSpace(rest[end+1:])
		}
		name, about, _ := strings.Cut(rest, " ")
		if name = strings.TrimSuffix(name, "?"); name != "" {
			params[name] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(about), "-"))
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n")), params, notes
}
