package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// A Migration is an entry of migrations: how runs that were started with an earlier text of the file continue with this one. The
// operations are done in the order of the fields.
type Migration struct {
	From       string // at least eight characters of the hash of that text
	RenameNode []Renaming
	RenameKey  []Renaming
	ConvertKey []Update // templates over the values as they were
	DefaultKey []DefaultValue
	DropKey    []string
	Move       []Renaming
	Pos        strictyaml.Pos
}

// A Renaming is a name and what it becomes.
type Renaming struct{ From, To string }

// A DefaultValue is the value of a key in runs that have none.
type DefaultValue struct {
	Key   string
	Value any
}

// shortestHash and longestHash are how many characters a migration has of the hash of a text.
const (
	shortestHash = 8
	longestHash  = 64
)

// readMigrations reads the migrations of a graph.
func (p *FileParser) readMigrations(m *strictyaml.Fields) {
	seen := map[string]bool{}
	readEntries(m, "migrations", func(fields *strictyaml.Fields, _ *yaml.Node, last bool) {
		r := &migrationReader{Fields: fields, file: p.File, last: last}
		entry := r.readEntry()
		if seen[entry.From] {
			r.refuseValue(r.FindField("from"), "from", "another migration is from `%s`, too", entry.From)
		}
		seen[entry.From] = true
		p.File.Migrations = append(p.File.Migrations, entry)
		p.File.Findings = append(p.File.Findings, fields.UnknownKeys("", nil)...)
	})
}

// A migrationReader reads one entry of migrations.
type migrationReader struct {
	*strictyaml.Fields
	file *File
	last bool // the names that it leads to are those of the file
}

func (r *migrationReader) refuseValue(at *yaml.Node, field, format string, args ...any) {
	r.AddFault(at, field, "invalid-value", "invalid value: "+fmt.Sprintf(format, args...))
}

func (r *migrationReader) readEntry() Migration {
	m := Migration{Pos: r.Source.Pos, From: r.ReadText("from", strictyaml.Required)}
	if at := r.FindField("from"); at != nil && !isHashPrefix(m.From) {
		r.refuseValue(at, "from", "`%s` is no hash of a graph.yaml: write %d to %d of its hexadecimal digits, as raddle diff RUN shows them", wording.CutText(m.From, 40, "…"), shortestHash, longestHash)
	}
	m.RenameNode = r.readRenamings("rename_node", func(at *yaml.Node, n Renaming) {
		switch {
		case r.last && r.file.ByID[n.From] != nil:
			r.refuseValue(at, "rename_node", "the graph still has the node `%s`; to let another one run in its place, write `move: {from: %s, to: %s}`", n.From, n.From, n.To)
		default:
			r.checkNode(at, "rename_node", n.To)
		}
	})
	m.RenameKey = r.readRenamings("rename_key", nil)
	for _, pair := range r.readMap("convert_key") {
		text, ok := strictyaml.ScalarText(pair.value, true)
		if !ok {
			r.WrongType(pair.value, "convert_key."+pair.name, "a text")
			continue
		}
		m.ConvertKey = append(m.ConvertKey, Update{pair.name, ParseTemplate(text)})
	}
	for _, pair := range r.readMap("default_key") {
		m.DefaultKey = append(m.DefaultKey, DefaultValue{pair.name, strictyaml.DecodeValue(pair.value)})
	}
	m.DropKey = r.ReadTexts("drop_key", strictyaml.Optional)
	m.Move = r.readMoves()
	return m
}

// checkNode reports a name of a node that the file does not have. Entries before the last one may have names that later ones change.
func (r *migrationReader) checkNode(at *yaml.Node, field, name string) {
	if !r.last || r.file.ByID[name] != nil {
		return
	}
	var names []string
	for _, n := range r.file.Nodes {
		names = append(names, n.ID)
	}
	r.refuseValue(at, field, "the graph has no node `%s`%s", name, addPrefix("; ", wording.SuggestNearest(name, names, "`")))
}

// addPrefix returns a text after another one, or "" if it is empty.
func addPrefix(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func isHashPrefix(text string) bool {
	return len(text) >= shortestHash && len(text) <= longestHash && strings.Trim(text, "0123456789abcdef") == ""
}

// namedValue is one entry of a map.
type namedValue struct {
	name  string
	value *yaml.Node
}

// readMap returns the entries of a map in their order.
func (r *migrationReader) readMap(field string) (list []namedValue) {
	n := r.ReadMapping(field)
	if n == nil {
		return nil
	}
	content := strictyaml.ResolveAlias(n).Content
	for i := 0; i+1 < len(content); i += 2 {
		name, ok := strictyaml.ScalarText(content[i], true)
		if !ok || strictyaml.IsBroken(content[i]) {
			continue
		}
		list = append(list, namedValue{name, content[i+1]})
	}
	return list
}

// readRenamings reads a map of old to new names, and calls check with each.
func (r *migrationReader) readRenamings(field string, check func(at *yaml.Node, n Renaming)) (list []Renaming) {
	for _, pair := range r.readMap(field) {
		to, ok := strictyaml.ScalarText(pair.value, true)
		if !ok {
			r.WrongType(pair.value, field+"."+pair.name, "a text")
			continue
		}
		n := Renaming{pair.name, to}
		if slices.ContainsFunc(list, func(o Renaming) bool { return o.To == to }) {
			r.refuseValue(pair.value, field, "`%s` is the new name of two", to)
		} else if check != nil {
			check(pair.value, n)
		}
		list = append(list, n)
	}
	return list
}

// readMoves reads one move, or a list of them.
func (r *migrationReader) readMoves() (list []Renaming) {
	n := r.GetField("move", strictyaml.Optional)
	if n == nil {
		return nil
	}
	items := []*yaml.Node{n}
	if body := strictyaml.ResolveAlias(n); body.Kind == yaml.SequenceNode {
		items = body.Content
	}
	for i, item := range items {
		body := strictyaml.ResolveAlias(item)
		if body.Kind != yaml.MappingNode {
			r.WrongType(item, "move", strictyaml.WantMapping)
			continue
		}
		fields := strictyaml.NewFields(r.Problems, strictyaml.Mapping{Pos: r.Source.PositionOf(item), Node: item}, fmt.Sprintf("%s.move[%d]", r.Path, i))
		fields.Plain = true
		move := Renaming{fields.ReadText("from", strictyaml.Required), fields.ReadText("to", strictyaml.Required)}
		if at := fields.FindField("to"); at != nil {
			r.checkNode(at, "move", move.To)
		}
		r.file.Findings = append(r.file.Findings, fields.UnknownKeys("", nil)...)
		list = append(list, move)
	}
	return list
}
