package declare

import (
	"slices"
	"strings"
)

// A pyClass is a class of a Python file that a value of JSON can stand for: an enumeration, or a class whose fields are
// declared with their types.
type pyClass struct {
	name    string
	bases   []string
	data    bool // decorated as a dataclass
	indent  int  // of its body; 0: not read yet
	fields  []pyField
	order   []string          // of members
	members map[string]string // of an enumeration: the JSON of each value; "": it is not written out
	open    bool              // its schema is being made
}

// A pyField is one "name: type = default" of a class.
type pyField struct {
	name, kind string
	defaulted  bool
}

// readTypes reads the classes and the names of types of a Python file.
func readTypes(src string) *typeReader {
	r := &typeReader{classes: map[string]*pyClass{}, aliases: map[string]string{}}
	sc := scanner{src: src, line: 1, comment: "#"}
	var class *pyClass
	data := false // a decorator says that the next class is a dataclass
	for {
		st, complaint := sc.nextStatement()
		if st.end || complaint != "" {
			return r
		}
		switch {
		case st.indent > 0 && class != nil:
			class.readMember(st, r)
			continue
		case st.indent > 0:
			continue
		case strings.HasPrefix(st.text, "@"):
			data = data || strings.Contains(st.text, "dataclass")
			continue
		}
		class = nil
		if strings.HasPrefix(st.text, "class ") {
			if class = parseClass(st.text); class != nil {
				class.data = data
				r.classes[class.name] = class
			}
		} else {
			r.readAlias(st.text)
		}
		data = false
	}
}

// parseClass reads "class Name(bases):".
func parseClass(text string) *pyClass {
	head := strings.TrimSpace(strings.TrimPrefix(text, "class "))
	end := strings.IndexAny(head, "([:")
	if end < 0 || !isIdentifier(strings.TrimSpace(head[:end])) {
		return nil
	}
	c := &pyClass{name: strings.TrimSpace(head[:end]), members: map[string]string{}}
	if open := strings.IndexByte(head, '('); open >= 0 {
		if end := closingBracket(head, open); end > 0 {
			for _, b := range splitTop(stripComments(head[open+1:end]), ',') {
				name, _, _ := strings.Cut(strings.TrimSpace(b), "[")
				c.bases = append(c.bases, bareName(name))
			}
		}
	}
	return c
}

// readMember reads a statement of a class.
func (c *pyClass) readMember(st statement, r *typeReader) {
	if c.indent == 0 {
		c.indent = st.indent
	}
	text := strings.TrimSpace(stripComments(st.text))
	if st.indent != c.indent || strings.HasPrefix(text, "def ") || strings.HasPrefix(text, "async ") || strings.HasPrefix(text, "class ") || strings.HasPrefix(text, "@") {
		return
	}
	equals := defaultIndex(text)
	colon := topLevel(text, 0, ':')
	switch {
	case colon > 0 && (equals < 0 || colon < equals) && isIdentifier(strings.TrimSpace(text[:colon])):
		f := pyField{name: strings.TrimSpace(text[:colon]), kind: strings.TrimSpace(text[colon+1:])}
		if equals > 0 {
			f.kind, f.defaulted = strings.TrimSpace(text[colon+1:equals]), hasDefault(text[equals+1:])
		}
		if !strings.HasPrefix(bareName(f.kind), "ClassVar") {
			c.fields = append(c.fields, f)
		}
	case equals > 0 && isIdentifier(strings.TrimSpace(text[:equals])):
		name := strings.TrimSpace(text[:equals])
		if strings.HasPrefix(name, "_") {
			return
		}
		value, ok := r.literalJSON(strings.TrimSpace(text[equals+1:]))
		if !ok || value == "null" {
			value = ""
		}
		c.members[name] = value
		c.order = append(c.order, name)
	}
}

// hasDefault reports whether what follows the = of a field is a default. Field(...) and field() may be about other
// things.
func hasDefault(value string) bool {
	value = strings.TrimSpace(value)
	open := strings.IndexByte(value, '(')
	if open < 0 || strings.ToLower(bareName(value[:open])) != "field" && !strings.HasSuffix(value[:open], ".field") && !strings.HasSuffix(value[:open], ".Field") {
		return value != "..."
	}
	end := closingBracket(value, open)
	if end < 0 {
		return true
	}
	for i, arg := range splitTop(value[open+1:end], ',') {
		arg = strings.TrimSpace(arg)
		name, _, named := strings.Cut(arg, "=")
		name = strings.TrimSpace(name)
		if !named && i == 0 && arg != "..." && arg != "" || named && (name == "default" || name == "default_factory") {
			return true
		}
	}
	return false
}

// readAlias reads "Name = type", "Name: TypeAlias = type" and "type Name = type".
func (r *typeReader) readAlias(text string) {
	text = strings.TrimSpace(stripComments(text))
	text = strings.TrimSpace(strings.TrimPrefix(text, "type "))
	i := defaultIndex(text)
	if i <= 0 {
		return
	}
	name, _, _ := strings.Cut(text[:i], ":")
	name = strings.TrimSpace(name)
	value := strings.TrimSpace(text[i+1:])
	if rest, ok := strings.CutPrefix(value, "NewType("); ok && strings.HasSuffix(rest, ")") {
		if parts := splitTop(rest[:len(rest)-1], ','); len(parts) == 2 {
			value = strings.TrimSpace(parts[1])
		}
	}
	if isIdentifier(name) && value != "" && value != name && r.classes[name] == nil {
		r.aliases[name] = value
	}
}

// isA reports whether a class is one of those, by its bases within the file.
func (c *pyClass) isA(r *typeReader, names ...string) bool {
	seen := map[*pyClass]bool{}
	var search func(c *pyClass) bool
	search = func(c *pyClass) bool {
		if seen[c] {
			return false
		}
		seen[c] = true
		return slices.ContainsFunc(c.bases, func(b string) bool {
			return slices.Contains(names, b) || r.classes[b] != nil && search(r.classes[b])
		})
	}
	return search(c)
}

// schemaOf returns the schema of the values that a class can be made of.
func (c *pyClass) schemaOf(r *typeReader) *schema {
	switch {
	case c.open: // it is a part of itself
		return &schema{}
	case c.isA(r, "Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"):
		return c.enumSchema(r)
	case c.data, c.isA(r, "TypedDict", "NamedTuple", "BaseModel", "pydantic.BaseModel"):
	default:
		return &r.notUnderstood(c.name).schema
	}
	c.open = true
	defer func() { c.open = false }()
	s := &schema{kind: "object", closed: true}
	for _, b := range c.bases {
		if base := r.classes[b]; base != nil {
			inherited := base.schemaOf(r)
			for _, p := range inherited.properties {
				s.putProperty(p)
			}
			s.required = append(s.required, inherited.required...)
		}
	}
	for _, f := range c.fields {
		h := r.readHint(f.kind)
		partial := h.optional && strings.Contains(f.kind, "NotRequired")
		s.putProperty(property{name: f.name, schema: h.schema})
		s.required = slices.DeleteFunc(s.required, func(name string) bool { return name == f.name })
		if !f.defaulted && !partial {
			s.required = append(s.required, f.name)
		}
	}
	return s
}

// enumSchema returns the values of an enumeration, or the names of its members if a value is not written out.
func (c *pyClass) enumSchema(r *typeReader) *schema {
	var values, names []string
	for _, name := range c.order {
		names = append(names, textJSON(name))
		if c.members[name] != "" {
			values = append(values, c.members[name])
		}
	}
	switch {
	case len(names) == 0:
		return &r.notUnderstood(c.name).schema
	case len(values) < len(names):
		return enumOf(names)
	}
	return enumOf(values)
}
