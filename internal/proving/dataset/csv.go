package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/wording"
)

// A column is what the cells of a column of a CSV file are.
type column struct {
	field  string // "": nothing; it was reported
	member string // of the field; "": the column is the field
	name   string // as written
}

// readCSV reads a table whose first line names the columns.
func (r *reader) readCSV(text []byte) {
	table := csv.NewReader(bytes.NewReader(text))
	table.ReuseRecord = true
	place := cellPlace{table: table, lines: bytes.Split(text, []byte("\n"))}
	head, err := table.Read()
	if errors.Is(err, io.EOF) {
		r.ReportFault(nil, "", "the file is empty; its first line must name the columns, as prompt,expect")
		return
	}
	if err != nil {
		r.reportCSV(err)
		return
	}
	columns := r.readHead(head, &place)
	for {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.reportCSV(err)
			if errors.Is(err, csv.ErrFieldCount) {
				continue
			}
			return
		}
		r.addItem(r.makeRow(columns, cells, &place))
	}
}

func (r *reader) reportCSV(err error) {
	at := &yaml.Node{Line: 1, Column: 1}
	if fault, ok := errors.AsType[*csv.ParseError](err); ok {
		at.Line = fault.Line
		at.Column = fault.Column
		err = fault.Err
	}
	if errors.Is(err, csv.ErrFieldCount) {
		r.ReportFault(at, "", "the line has not as many cells as the first line has columns")
		return
	}
	r.ReportFault(at, "", "this is not CSV: %v", err)
}

// readHead returns what the columns are.
func (r *reader) readHead(head []string, place *cellPlace) []column {
	var columns []column
	seen := map[column]string{}
	for n, name := range head {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		field, member := splitColumn(name)
		key := column{field: field, member: member}
		at := place.node(n, "")
		switch {
		case field == "":
			hint := wording.SuggestNearest(name, allNames, "")
			if hint == "" {
				hint = "call it variables." + name + ", state." + name + " or metadata." + name + ", or remove it"
			}
			r.ReportFault(at, hint, "unknown column %q", name)
		case seen[key] != "":
			r.ReportFault(at, "remove one of them", "the columns %q and %q are the same field", seen[key], name)
			field = ""
		default:
			seen[key] = name
		}
		columns = append(columns, column{field, member, name})
	}
	return columns
}

// makeRow returns a line of the table as the mapping that an item is in other formats. Empty cells are not set.
func (r *reader) makeRow(columns []column, cells []string, place *cellPlace) *yaml.Node {
	row := place.node(0, "")
	row.Kind = yaml.MappingNode
	row.Tag = "!!map"
	parts := map[string]*yaml.Node{}
	for n, c := range columns {
		if c.field == "" || cells[n] == "" {
			continue
		}
		at := place.node(n, cells[n])
		key := place.node(n, c.field)
		if c.member == "" {
			row.Content = append(row.Content, key, r.readCell(c, at))
			continue
		}
		if parts[c.field] == nil {
			parts[c.field] = place.node(n, "")
			parts[c.field].Kind = yaml.MappingNode
			parts[c.field].Tag = "!!map"
			row.Content = append(row.Content, key, parts[c.field])
		}
		parts[c.field].Content = append(parts[c.field].Content, place.node(n, c.member), readJSONCell(at))
	}
	return row
}

// readCell returns the value of a cell: a list for lists, which commas separate, and data where a field has data.
func (r *reader) readCell(c column, at *yaml.Node) *yaml.Node {
	switch c.field {
	case keyTags, keyFiles:
		if !strings.HasPrefix(at.Value, "[") {
			return splitCell(at)
		}
		return readJSONCell(at)
	case keyExpect:
		if c.name == "__expected" {
			return r.readAssertion(at)
		}
		if strings.HasPrefix(at.Value, "{") || strings.HasPrefix(at.Value, "[") {
			return readJSONCell(at)
		}
	case keyState, keyVariables, keyMetadata:
		return readJSONCell(at)
	}
	return at
}

// readJSONCell returns the data of a cell that is an object or a list as JSON, and the text of any other.
func readJSONCell(at *yaml.Node) *yaml.Node {
	if !strings.HasPrefix(at.Value, "{") && !strings.HasPrefix(at.Value, "[") {
		return at
	}
	tree := newJSONTree([]byte(at.Value), at.Line)
	tree.column = at.Column
	if n, err := tree.readAll(); err == nil {
		return n
	}
	return at
}

func splitCell(at *yaml.Node) *yaml.Node {
	list := &yaml.Node{
		Kind:   yaml.SequenceNode,
		Tag:    "!!seq",
		Line:   at.Line,
		Column: at.Column,
	}
	for part := range strings.SplitSeq(at.Value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list.Content = append(list.Content, textNode(at, part))
		}
	}
	return list
}

// assertions are the ways in which promptfoo says in a cell what is expected, and the words of a matcher for them. "" is
// the value itself.
var assertions = map[string]string{
	"equals":   "",
	"contains": "contains",
	"regex":    "pattern",
}

// otherAssertions are those that are scorers here.
var otherAssertions = []string{"contains-all", "contains-any", "contains-json", "factuality", "fn", "grade", "icontains", "is-json", "javascript", "levenshtein", "llm-rubric", "python", "similar", "starts-with"}

// readAssertion returns what a cell of promptfoo's column __expected says: a text, or the name of an assertion before it.
func (r *reader) readAssertion(at *yaml.Node) *yaml.Node {
	name, rest, _ := strings.Cut(at.Value, ":")
	kind, _, _ := strings.Cut(name, "(")
	if slices.Contains(otherAssertions, kind) {
		r.ReportFault(at, "write it as one of the scorers of the data set: raddle help improving", "the assertion %s is not read from a cell", kind)
		return at
	}
	word, known := assertions[name]
	if !known {
		return at
	}
	value := textNode(at, strings.TrimSpace(rest))
	if word == "" {
		return value
	}
	return &yaml.Node{
		Kind:    yaml.MappingNode,
		Tag:     "!!map",
		Line:    at.Line,
		Column:  at.Column,
		Content: []*yaml.Node{textNode(at, word), value},
	}
}

func textNode(at *yaml.Node, text string) *yaml.Node {
	return &yaml.Node{
		Kind:   yaml.ScalarNode,
		Tag:    "!!str",
		Style:  yaml.DoubleQuotedStyle,
		Value:  text,
		Line:   at.Line,
		Column: at.Column,
	}
}

// A cellPlace says where the cells of the newest line of a table are.
type cellPlace struct {
	table *csv.Reader
	lines [][]byte
}

// node returns a text at the place of a cell.
func (p *cellPlace) node(cell int, text string) *yaml.Node {
	line, column := p.table.FieldPos(cell)
	if line <= len(p.lines) {
		before := p.lines[line-1]
		column = 1 + utf8.RuneCount(before[:min(column-1, len(before))])
	}
	return textNode(&yaml.Node{Line: line, Column: column}, text)
}
