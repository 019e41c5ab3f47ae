package declare

import "strings"

// ParsePython declares the functions of a Python file by their signatures and
// docstrings. Of a file in a directory called tools only the function run is
// declared, under the file's name; of any other file every function of the
// module whose name does not begin with an underscore. Functions within
// classes, conditions and functions are not seen. A type that cannot be
// understood is a problem, and the argument is any value.
// A comment "# raddle: read-only" right above a function declares its effect, and
// "# raddle: in-doubt retry" what is done with a call that was cut off.
func ParsePython(path string, src []byte) File {
	f := File{Path: path, Language: LanguagePython}
	sc := scanner{src: string(src), line: 1, comment: "#"}
	types := readTypes(sc.src)
	var about annotations
	var wrong Problem
	for {
		st, err := sc.nextStatement()
		if err != "" {
			f.addProblem(st.line, "", "failed to parse python: %s", err)
			break
		}
		if st.end {
			break
		}
		for _, c := range st.comments {
			if text, ok := findAnnotation(strings.TrimLeft(c, "#")); ok {
				if problem := about.addAnnotation(text); problem != "" {
					wrong = Problem{File: path, Line: st.line, Text: problem}
				}
			}
		}
		if st.indent > 0 || strings.HasPrefix(st.text, "@") {
			continue // a decorator: what stands above it is for its function
		}
		if head, ok := functionHead(st.text); ok {
			st.text = head
			f.pythonFunction(&pythonSource{&sc, types}, st, about, wrong)
		}
		about = annotations{}
		wrong = Problem{}
	}
	return f
}

// functionHead returns the statement of a function without "async", which makes no difference to its caller.
func functionHead(text string) (head string, ok bool) {
	if rest, async := strings.CutPrefix(text, "async"); async && rest != "" && isBlank(rest[0]) {
		text = strings.TrimLeft(rest, " \t")
	}
	return text, strings.HasPrefix(text, "def ") || strings.HasPrefix(text, "def\t")
}

// A pythonSource is a Python file that is being read, with its types.
type pythonSource struct {
	sc    *scanner
	types *typeReader
}

// pythonFunction declares one function, unless it is private.
func (f *File) pythonFunction(src *pythonSource, st statement, about annotations, wrong Problem) {
	name, params, rest, ok := splitSignature(st.text)
	if !ok {
		f.addProblem(st.line, name, "failed to parse python: the signature of '%s' is not complete", name)
		return
	}
	doc, documented := parseDocstring(strings.TrimSpace(rest))
	if rest = strings.TrimSpace(rest); rest == "" || strings.HasPrefix(rest, "#") {
		doc, documented = src.sc.peekDocstring(st.indent)
	}
	if f.isPrivate(name) {
		return
	}
	d := f.newDeclaration(name, st.line)
	d.Description = strings.TrimSpace(doc)
	d.Effect = about.effect
	d.InDoubt = about.inDoubt
	if wrong.Text != "" {
		f.Problems = append(f.Problems, wrong)
	}
	if !documented || d.Description == "" {
		if name != instructions {
			f.addProblem(st.line, name, "Missing or empty description on function: %s: begin it with a docstring, or its name with an underscore to hide it", name)
			return
		}
	}
	all, complaint := parseParameters(params)
	if complaint != "" {
		f.addProblem(st.line, name, "failed to parse python: in function '%s': %s", name, complaint)
		return
	}
	d.arguments = f.pythonSchema(name, st.line, all, docArguments(doc), src.types)
	d.Schema = d.arguments.jsonText()
	for _, p := range all {
		d.Params = append(d.Params, p.name)
	}
	f.placeDeclaration(d)
}

// isPrivate reports whether a function of a Python or TypeScript file is not for a model.
func (f *File) isPrivate(name string) bool {
	if inTools(f.Path) {
		return name != "run"
	}
	return strings.HasPrefix(name, "_") && name != instructions
}

// newDeclaration begins the declaration of a Python or TypeScript function.
func (f *File) newDeclaration(function string, line int) Declaration {
	d := Declaration{Name: normalizeName(function), Function: function, Line: line, Agent: true, Params: []string{}}
	switch {
	case inTools(f.Path):
		d.Name = normalizeName(fileStem(f.Path))
		d.Agent = false
	case function == instructions:
		d.Name = instructions
	}
	return d
}

// placeDeclaration adds a declaration where it belongs.
func (f *File) placeDeclaration(d Declaration) {
	if d.Function == instructions {
		f.Instructions = &d
		return
	}
	f.addDeclaration(d)
}

// splitSignature splits "def name(params) -> type: rest".
func splitSignature(text string) (name, params, rest string, ok bool) {
	text = strings.TrimLeft(text[len("def"):], " \t\\\n")
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return strings.TrimRight(text, ":"), "", "", false
	}
	name = strings.TrimSpace(text[:open])
	if i := strings.IndexByte(name, '['); i >= 0 {
		name = strings.TrimSpace(name[:i]) // type parameters
	}
	end := closingBracket(text, open)
	if end < 0 || !isIdentifier(name) {
		return name, "", "", false
	}
	colon := topLevel(text, end+1, ':')
	if colon < 0 {
		return name, "", "", false
	}
	return name, text[open+1 : end], text[colon+1:], true
}

// A parameter is one of a Python signature.
type parameter struct {
	name       string
	annotation string
	value      string // the default; empty: there is none
	kind       byte   // 'p' by position, 'k' by keyword, '*' and '^' the rest by position and by keyword
}

// parseParameters splits a parameter list and puts it in the order of the
// schema: by position, by keyword alone, *args, **kwargs.
func parseParameters(text string) (all []parameter, complaint string) {
	var groups [4][]parameter
	at := 0
	for _, part := range parameterTexts(text) {
		part = strings.TrimSpace(stripComments(part))
		switch {
		case part == "" || part == "/":
			continue
		case part == "*":
			at = 1
			continue
		}
		p := parameter{kind: "pk"[at]}
		group := at
		if rest, ok := strings.CutPrefix(part, "**"); ok {
			part = rest
			p.kind = '^'
			group = 3
		} else if rest, ok := strings.CutPrefix(part, "*"); ok {
			part = rest
			p.kind = '*'
			group = 2
			at = 1
		}
		if i := defaultIndex(part); i >= 0 {
			part, p.value = part[:i], strings.TrimSpace(part[i+1:])
		}
		p.name, p.annotation, _ = strings.Cut(part, ":")
		p.name = strings.TrimSpace(p.name)
		p.annotation = strings.TrimSpace(p.annotation)
		if !isIdentifier(p.name) {
			return nil, "a parameter is not a name"
		}
		groups[group] = append(groups[group], p)
	}
	for _, g := range groups {
		all = append(all, g...)
	}
	return all, ""
}

// parameterTexts splits a parameter list at its commas. Those between the
// parameters of a lambda, in a default, belong to it.
func parameterTexts(text string) (parts []string) {
	open := false
	for _, part := range splitTop(text, ',') {
		if open {
			part = parts[len(parts)-1] + "," + part
			parts = parts[:len(parts)-1]
		}
		i := defaultIndex(part)
		open = i >= 0 && strings.HasPrefix(strings.TrimSpace(part[i+1:]), "lambda") && topLevel(part, i, ':') < 0
		parts = append(parts, part)
	}
	return parts
}

// defaultIndex returns the index of the = of a default, or -1.
func defaultIndex(text string) int {
	for from := 0; ; {
		i := topLevel(text, from, '=')
		if i < 0 || i+1 >= len(text) || text[i+1] != '=' {
			return i
		}
		from = i + 2
	}
}

func isIdentifier(s string) bool {
	for i, r := range s {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 || i > 0 && r >= '0' && r <= '9' {
			continue
		}
		return false
	}
	return s != ""
}

// pythonSchema returns the schema of the parameters. *args is a list and **kwargs an object, under their names.
func (f *File) pythonSchema(function string, line int, all []parameter, docs map[string]docArgument, types *typeReader) *schema {
	s := &schema{kind: "object"}
	for _, p := range all {
		doc := docs[p.name]
		types.unknown = nil
		types.read = 0
		var h *hint
		switch {
		case p.annotation != "":
			h = types.readHint(p.annotation)
		case doc.kind != "":
			h = types.docHint(doc.kind)
		default:
			h = defaultHint(p.value)
		}
		switch p.kind {
		case '*':
			h = &hint{schema: schema{kind: "array", items: &h.schema}, optional: true}
		case '^':
			if p.annotation == "" {
				h = &hint{}
			}
			h = &hint{schema: schema{kind: "object", extra: &h.schema}, optional: true}
		}
		f.reportTypes(line, function, p.name, types.unknown)
		if doc.text != "" {
			h.description = doc.text
		}
		own := property{name: p.name, schema: h.schema}
		optional := h.optional || doc.optional
		if p.value == "" && optional && p.kind != '*' && p.kind != '^' {
			own.missing = 'n'
			own.nullable = true
		}
		if p.value == "" && !optional {
			s.required = append(s.required, p.name)
		}
		s.putProperty(own)
	}
	return s
}

// reportTypes adds a problem for the types of an argument that are not understood.
func (f *File) reportTypes(line int, function, name string, unknown []string) {
	if len(unknown) > 0 {
		f.addProblem(line, "", "the type %s of the argument '%s' of '%s' is not understood, so the model may give any value: write a type that JSON has (see tools.md of the guide)",
			strings.Join(unknown, ", "), name, function)
	}
}
