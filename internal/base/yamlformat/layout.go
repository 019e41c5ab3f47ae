package yamlformat

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
)

// role is what a line of a file is.
type role int

const (
	structure role = iota // it begins with a key, a dash, or a value
	blank
	comment
	inside  // it continues a value that began in an earlier line
	literal // it is content of a block scalar
	marker  // --- or a directive
)

// A line is one line of a file.
type line struct {
	text  string
	role  role
	owner int // of inside and literal: the line in which the value begins
	step  int // of the owner of literal lines: how far they are indented, if its head says so; 0: it does not
}

// layOut returns a text with its lines indented as its tree says.
func layOut(text string, root *yaml.Node) string {
	s := newSource(text)
	lines := s.classifyLines(root)
	var out []string
	var st stack
	moved := make([]int, len(lines)) // how far the first word of a line has moved
	inner := make([]int, len(lines)) // where literal lines of an owner are
	for i, l := range lines {
		switch l.role {
		case structure:
			var laid string
			laid, moved[i], inner[i] = st.placeLine(l.text)
			out = append(out, laid)
		case comment:
			out = append(out, strings.Repeat(" ", st.placeComment(lines, i))+strings.TrimSpace(l.text))
		case blank:
			if len(out) > 0 && out[len(out)-1] != "" {
				out = append(out, "")
			}
		case inside:
			out = append(out, shiftLine(l.text, moved[l.owner]))
		case literal:
			out = append(out, shiftLiteral(lines, i, inner[l.owner]))
		default:
			out = append(out, strings.TrimRight(l.text, " \t"))
		}
	}
	for len(out) > 0 && out[len(out)-1] == "" && lines[len(lines)-1].role != literal {
		out = out[:len(out)-1]
	}
	return strings.Join(out, "\n") + "\n"
}

// shiftLine moves a line, which keeps at least one space.
func shiftLine(text string, by int) string {
	rest := strings.TrimLeft(text, " ")
	if rest == "" {
		return ""
	}
	return strings.Repeat(" ", max(1, len(text)-len(rest)+by)) + rest
}

// shiftLiteral moves a line of a block scalar so that its content begins in a column.
func shiftLiteral(lines []line, i, column int) string {
	text := lines[i].text
	owner := lines[i].owner
	least := contentIndent(lines, owner)
	if lines[owner].step > 0 {
		column += lines[owner].step - 2
	}
	if strings.Trim(text, " ") == "" {
		if len(text) > least {
			return strings.Repeat(" ", column) + text[least:]
		}
		return ""
	}
	return strings.Repeat(" ", column) + text[least:]
}

// contentIndent returns how far the content of the block scalar is indented that begins in a line.
func contentIndent(lines []line, owner int) int {
	for _, l := range lines[owner+1:] {
		if l.role != literal || l.owner != owner {
			break
		}
		if trimmed := strings.TrimLeft(l.text, " "); trimmed != "" {
			if step := lines[owner].step; step > 0 {
				return parentColumn(lines[owner].text) + step
			}
			return len(l.text) - len(trimmed)
		}
	}
	return 0
}

// parentColumn returns the column of the key or the last dash of a line.
func parentColumn(text string) int {
	columns, rest := splitDashes(text)
	at := len(text) - len(rest)
	if len(columns) > 0 && (strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, ">")) {
		return columns[len(columns)-1]
	}
	return at
}

// splitDashes returns the columns of the dashes with which a line begins, and what follows them.
func splitDashes(text string) (columns []int, rest string) {
	rest = strings.TrimLeft(text, " ")
	for rest == "-" || strings.HasPrefix(rest, "- ") {
		columns = append(columns, len(text)-len(rest))
		rest = strings.TrimLeft(rest[1:], " ")
	}
	return columns, rest
}

// level is a mapping or a list around a line: the column in which its entries began, and where they are now.
type level struct {
	old, now int
	list     bool
}

type stack []level

// placeLine returns a line with its place, how far its first word has moved, and where literal lines below it begin.
func (st *stack) placeLine(text string) (laid string, moved, inner int) {
	text = strings.TrimRight(text, " \t")
	dashes, rest := splitDashes(text)
	first := -1
	for i, column := range dashes {
		now := st.enterLevel(column, true, i > 0)
		if first < 0 {
			first = now
		}
		inner = now + 2
	}
	column := len(text) - len(rest)
	at := inner
	if rest != "" && (rest[0] != '#' || len(dashes) == 0) && !strings.HasPrefix(rest, "|") && !strings.HasPrefix(rest, ">") {
		at = st.enterLevel(column, false, len(dashes) > 0)
		inner = at + 2
	}
	if first < 0 {
		first = at
	}
	laid = strings.Repeat(" ", first)
	for range dashes {
		laid += "- "
	}
	if rest != "" && rest[0] == '#' && len(dashes) > 0 { // a comment after a dash keeps its distance
		laid = strings.TrimRight(laid, " ") + text[dashes[len(dashes)-1]+1:column]
	}
	return strings.TrimRight(laid+rest, " \t"), first + 2*len(dashes) - column, inner
}

// enterLevel returns where an entry is now that began in a column. inline says that it follows a dash on its line.
func (st *stack) enterLevel(column int, list, inline bool) int {
	s := *st
	for len(s) > 0 && (s[len(s)-1].old > column || s[len(s)-1].old == column && s[len(s)-1].list && !list) {
		s = s[:len(s)-1]
	}
	if top := len(s) - 1; top >= 0 && s[top].old == column && s[top].list == list && !inline {
		*st = s
		return s[top].now
	}
	now := 0
	if len(s) > 0 {
		now = s[len(s)-1].now + 2
	}
	*st = append(s, level{column, now, list})
	return now
}

// placeComment returns the column of a comment: that of the next entry if it stood there, otherwise that of the entry
// above it in the same column.
func (st *stack) placeComment(lines []line, i int) int {
	column := len(lines[i].text) - len(strings.TrimLeft(lines[i].text, " "))
	next := ""
	for _, l := range lines[i+1:] {
		if l.role == structure {
			next = l.text
			break
		}
	}
	ahead := append(stack(nil), *st...)
	if next != "" {
		old := len(next) - len(strings.TrimLeft(next, " "))
		laid, _, _ := ahead.placeLine(next)
		if now := len(laid) - len(strings.TrimLeft(laid, " ")); column <= old || !st.hasColumn(column) {
			return now
		}
	}
	for k := len(*st) - 1; k >= 0; k-- {
		if (*st)[k].old <= column {
			return (*st)[k].now
		}
	}
	return 0
}

// hasColumn reports whether an entry has a column.
func (st *stack) hasColumn(column int) bool {
	for _, l := range *st {
		if l.old == column {
			return true
		}
	}
	return false
}

// classifyLines returns the lines of the text with their roles.
func (s *source) classifyLines(root *yaml.Node) []line {
	raw := strings.Split(strings.TrimSuffix(s.text, "\n"), "\n")
	lines := make([]line, len(raw))
	for i, text := range raw {
		lines[i] = line{text: text, role: structure}
		switch trimmed := strings.TrimSpace(text); {
		case trimmed == "":
			lines[i].role = blank
		case trimmed[0] == '#':
			lines[i].role = comment
		case text == "---" || strings.HasPrefix(text, "--- ") || text == "..." || text[0] == '%':
			lines[i].role = marker
		}
	}
	s.markLines(root, lines)
	return lines
}

// markLines gives the lines within the values of a tree their roles.
func (s *source) markLines(n *yaml.Node, lines []line) {
	from, first := s.offsetOf(n)
	from = s.skipProperties(from)
	to := from
	switch {
	case n.Kind == yaml.ScalarNode && from < len(s.text):
		if head := blockHead().FindString(s.text[from:]); head != "" && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			s.markLiteral(first, head, lines)
			return
		}
		to = s.endOfScalar(from, n)
	case n.Style&yaml.FlowStyle != 0 && n.Kind != yaml.AliasNode:
		to = s.endOfFlow(from)
	default:
		for _, inner := range n.Content {
			s.markLines(inner, lines)
		}
		return
	}
	for i := first + 1; i <= s.lineOf(max(from, to-1)) && i < len(lines); i++ {
		lines[i].role, lines[i].owner = inside, first
	}
}

// skipProperties returns the index after the anchor and the tag of a value.
func (s *source) skipProperties(from int) int {
	for from < len(s.text) && (s.text[from] == '&' || s.text[from] == '!') {
		end := strings.IndexAny(s.text[from:], " \n")
		if end < 0 {
			return from
		}
		from += end
		for from < len(s.text) && s.text[from] == ' ' {
			from++
		}
	}
	return from
}

// markLiteral marks the content of a block scalar whose head is in a line.
func (s *source) markLiteral(first int, head string, lines []line) {
	m := blockHead().FindStringSubmatch(head)
	if m[2] != "" {
		lines[first].step = int(m[2][0] - '0')
	}
	keep := strings.Contains(head, "+")
	least := -1
	if lines[first].step > 0 {
		least = parentColumn(lines[first].text) + lines[first].step
	}
	last := first
	for i := first + 1; i < len(lines); i++ {
		trimmed := strings.TrimLeft(lines[i].text, " ")
		indent := len(lines[i].text) - len(trimmed)
		if trimmed != "" {
			if least < 0 {
				if indent <= parentColumn(lines[first].text) {
					break
				}
				least = indent
			}
			if indent < least {
				break
			}
			last = i
		} else if keep || least >= 0 && indent > least {
			last = i
		}
	}
	for i := first + 1; i <= last; i++ {
		lines[i].role, lines[i].owner = literal, first
	}
}

// endOfScalar returns the index after a scalar that is no block.
func (s *source) endOfScalar(from int, n *yaml.Node) int {
	if c := s.text[from]; c == '"' || c == '\'' {
		end, _ := strictyaml.FindEndOfQuotes(s.text, from)
		return end
	}
	to := from
	for _, word := range strings.Fields(n.Value) {
		at := strings.Index(s.text[to:], word)
		if at < 0 || strings.TrimSpace(s.text[to:to+at]) != "" {
			return to
		}
		to += at + len(word)
	}
	return to
}

// endOfFlow returns the index after the bracket that closes the one at an index.
func (s *source) endOfFlow(from int) int {
	depth := 0
	for i := from; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case (c == '"' || c == '\'') && strings.ContainsAny(s.text[i-1:i], " [{,:\n"):
			end, _ := strictyaml.FindEndOfQuotes(s.text, i)
			i = end - 1
		case c == '#' && strings.ContainsAny(s.text[i-1:i], " \n"):
			end := strings.IndexByte(s.text[i:], '\n')
			if end < 0 {
				return len(s.text)
			}
			i += end
		}
	}
	return len(s.text)
}
