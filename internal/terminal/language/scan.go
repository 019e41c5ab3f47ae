package language

import (
	"slices"
	"strings"
)

// A spot is what the lines around a cursor say, also while they are no YAML: the keys above it, and what is typed.
type spot struct {
	keys        []string // of the mappings around the cursor, outermost first
	key         string   // whose value is typed; "": a key is typed, or an item of the last of keys
	item        bool     // it is in an item of a list, and no key is on its line before it
	typed       string   // what stands before the cursor: of a key, a value or a placeholder
	placeholder bool     // the cursor is in {{ }}
	from        int      // index at which typed begins
}

// spotAt returns what is around an index of a text.
func spotAt(text *Text, offset int) spot {
	p := text.Position(offset)
	line, start := text.lineAt(p.Line)
	before := line[:min(offset-start, len(line))]
	if open := strings.LastIndex(before, "{{"); open >= 0 && !strings.Contains(before[open:], "}}") && !strings.Contains(before[open:], " ") {
		s := spot{placeholder: true, typed: before[open+2:], from: start + open + 2}
		s.keys = keysAbove(text, p.Line, indentOf(line))
		return s
	}
	column, rest, item := splitDashes(before)
	s := spot{item: item, keys: keysAbove(text, p.Line, column)}
	s.readLine(rest)
	s.from = offset - len(s.typed)
	return s
}

// splitDashes returns the column of the first word of a line, the text from there, and whether dashes precede it.
func splitDashes(line string) (column int, rest string, item bool) {
	column = indentOf(line)
	rest = line[column:]
	for rest == "-" || strings.HasPrefix(rest, "- ") {
		item = true
		trimmed := strings.TrimLeft(rest[1:], " ")
		column += len(rest) - len(trimmed)
		rest = trimmed
	}
	return column, rest, item
}

// readLine reads the text between the first word of the line and the cursor.
func (s *spot) readLine(rest string) {
	var open []bool // brackets around the cursor: whether they are braces
	word := 0
	quoted := byte(0)
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		switch {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case (c == '"' || c == '\'') && strings.TrimSpace(rest[word:i]) == "":
			quoted = c
		case c == ':' && (i+1 == len(rest) || rest[i+1] == ' ') && (s.key == "" || len(open) > 0 && open[len(open)-1]):
			s.key = strings.Trim(strings.TrimSpace(rest[word:i]), `"'`)
			word = i + 1
		case c == '{' || c == '[' && s.key != "":
			open = append(open, c == '{')
			if c == '{' && s.key != "" {
				s.keys = append(s.keys, s.key)
				s.key = ""
			}
			word = i + 1
		case (c == '}' || c == ']') && len(open) > 0:
			if open[len(open)-1] && len(s.keys) > 0 {
				s.key = s.keys[len(s.keys)-1]
				s.keys = s.keys[:len(s.keys)-1]
			}
			open = open[:len(open)-1]
			word = i + 1
		case c == ',' && len(open) > 0:
			word = i + 1
			if open[len(open)-1] {
				s.key = ""
			}
		}
	}
	s.typed = strings.TrimLeft(rest[word:], " \"'")
}

// keysAbove returns the keys of the mappings that contain the column of a line, outermost first.
func keysAbove(text *Text, line, column int) (keys []string) {
	afterDash := false
	for n := line; n >= 0 && (column > 0 || afterDash); n-- {
		raw, _ := text.lineAt(n)
		if n == line { // only the dashes of the cursor's own line are above it
			if first := indentOf(raw); first < column && strings.HasPrefix(raw[first:], "-") {
				column, afterDash = first, true
			}
			continue
		}
		if trimmed := strings.TrimSpace(raw); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		at, rest, item := splitDashes(raw)
		name, value, is := strings.Cut(rest, ":")
		switch {
		case is && (at < column || at == column && afterDash && !item) && (value == "" || value[0] == ' '):
			keys = append(keys, strings.Trim(strings.TrimSpace(name), `"'`))
			column, afterDash = at, false
			if item {
				column, afterDash = indentOf(raw), true
			}
		case item && indentOf(raw) < column:
			column, afterDash = indentOf(raw), true
		}
	}
	slices.Reverse(keys)
	return keys
}
