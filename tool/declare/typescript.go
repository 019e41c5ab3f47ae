package declare

import "strings"

// ParseTypeScript declares the exported functions of a TypeScript file by their
// signatures and the JSDoc comments above them. Of a file in a directory called
// tools only the function run is declared, under the file's name. A line
// "@raddle read-only" of the comment declares an effect. A type that cannot be
// understood is a problem, and the argument is any value.
func ParseTypeScript(path string, src []byte) File {
	f := File{Path: path, Language: LanguageTypeScript}
	ts := &tsScanner{src: string(src)}
	types := readTSTypes(ts.src)
	depth := 0
	doc := ""
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
			f.declareExported(ts, types, doc)
		}
		doc = ""
	}
}

// declareExported declares what follows "export", if it is a function with a body.
func (f *File) declareExported(ts *tsScanner, types *tsTypes, doc string) {
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
	params := ts.src[open : ts.at-1]
	base := open
	if !ts.hasBody() || f.isPrivate(name) {
		return
	}
	f.typescriptFunction(tsFunction{name, params, doc, line, base}, ts, types)
}

// A tsFunction is what was read of one function.
type tsFunction struct {
	name, params, doc string
	line              int
	at                int // of the parameters in the file
}

func (f *File) typescriptFunction(fn tsFunction, ts *tsScanner, types *tsTypes) {
	d := f.newDeclaration(fn.name, fn.line)
	text, docs, notes := parseJSDoc(fn.doc)
	d.Description = text
	var about annotations
	for _, note := range notes {
		if problem := about.addAnnotation(note); problem != "" {
			f.addProblem(fn.line, "", "%s", problem)
		}
	}
	d.Effect = about.effect
	d.InDoubt = about.inDoubt
	if text == "" && fn.name != instructions {
		f.addProblem(fn.line, fn.name, "Missing or empty description on function: %s: write a comment /** ... */ right above it", fn.name)
		return
	}
	s := &schema{kind: "object"}
	for _, part := range splitTS(fn.params, ',') {
		at := fn.at + strings.Index(fn.params, part)
		p := strings.TrimSpace(dropTSComments(part))
		if p == "" {
			continue
		}
		p, value, optional := cutTSDefault(p)
		name, kind, question, wrong := tsParameter(p)
		if wrong != "" {
			line := ts.lineAt(at + len(part) - len(strings.TrimLeft(part, " \t\r\n")))
			f.addProblem(line, fn.name, "line %d: %s, in function '%s'", line, wrong, fn.name)
			return
		}
		types.unknown = nil
		types.read = 0
		h := types.readHint(kind)
		if kind == "" {
			h = defaultHint(value)
			h.kind = strings.Replace(h.kind, "integer", "number", 1)
		}
		f.reportTypes(fn.line, fn.name, name, types.unknown)
		if docs[name] != "" {
			h.description = docs[name]
		}
		own := property{name: name, schema: h.schema}
		if !optional && !question && !h.optional {
			s.required = append(s.required, name)
		} else if !optional && h.nullable {
			own.missing = 'n' // where null is a value and undefined may be none
		}
		s.putProperty(own)
		d.Params = append(d.Params, name)
	}
	d.Schema = s.jsonText()
	d.arguments = s
	f.placeDeclaration(d)
}

// cutTSDefault cuts the default off a parameter.
func cutTSDefault(text string) (parameter, value string, given bool) {
	if i := topTS(text, 0, '='); i >= 0 {
		return text[:i], strings.TrimSpace(text[i+1:]), true
	}
	return text, "", false
}

// tsParameter splits "name?: type".
func tsParameter(text string) (name, kind string, optional bool, wrong string) {
	switch {
	case strings.HasPrefix(text, "..."):
		return "", "", false, "rest parameters (...) are not supported in tool functions: take an array"
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		return "", "", false, "destructured parameters are not supported in tool functions. Use flat parameters instead (e.g. 'a: string, b: string')"
	}
	if i := topTS(text, 0, ':'); i >= 0 {
		text, kind = text[:i], strings.TrimSpace(text[i+1:])
	}
	name, optional = strings.CutSuffix(strings.TrimSpace(text), "?")
	name = strings.TrimSpace(name)
	if !isScriptName(name) {
		return "", "", false, "a parameter is not a name"
	}
	return name, kind, optional, ""
}

func isScriptName(s string) bool { return isIdentifier(strings.ReplaceAll(s, "$", "_")) }

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
