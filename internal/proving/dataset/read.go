package dataset

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/storage/runs"
)

// MaxFile is the size in bytes above which a data set is not read. One of YAML is not read above
// [strictyaml.MaxFileSize].
const MaxFile = 64 << 20

// Load reads a data set.
func Load(path string) (*File, error) {
	text, err := plainfile.Read(path, MaxFile)
	if err != nil {
		return nil, err
	}
	return Read(path, text)
}

// Read reads the text of a data set, whose path says by its end which format it has: .jsonl, .ndjson, .json, .yaml, .yml
// or .csv. If it has errors, the error is a [*strictyaml.FileError] with all of them.
func Read(path string, text []byte) (*File, error) {
	r := &reader{Document: &strictyaml.Document{Path: path}, file: &File{Path: path}}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	switch end := strings.ToLower(filepath.Ext(path)); {
	case len(bytes.TrimSpace(text)) == 0:
		r.ReportFault(nil, `write one item on each line: {"prompt": "...", "expect": "..."}`, "the file is empty")
	case end == ".jsonl" || end == ".ndjson":
		r.readLines(text)
	case end == ".json":
		root, fault := newJSONTree(text, 1).readAll()
		if fault != nil {
			r.reportJSON(fault)
			break
		}
		r.readRoot(root)
	case end == ".yaml" || end == ".yml":
		r.Document = strictyaml.Read(path, text)
		if !r.Fatal && r.Root != nil {
			r.readRoot(r.Root)
		}
	case end == ".csv":
		r.readCSV(text)
	default:
		r.ReportFault(nil, "name it .jsonl, .json, .yaml or .csv", "%q is not the end of the name of a data set", end)
	}
	if len(r.List) == 0 && len(r.file.Items) == 0 {
		r.ReportFault(nil, "", "the data set has no items")
	}
	r.checkIDs()
	r.file.Document = r.Document
	if len(r.List) > 0 {
		strictyaml.SortFindings(r.List)
		return nil, &strictyaml.FileError{Findings: r.List}
	}
	return r.file, nil
}

// reader reads the parts of a file and collects what is wrong.
type reader struct {
	*strictyaml.Document
	file *File
}

func (r *reader) readLines(text []byte) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		n, fault := newJSONTree(bytes.TrimRight(line, "\r\n"), number).readAll()
		if fault != nil {
			r.reportJSON(fault)
			continue
		}
		r.addItem(n)
	}
}

func (r *reader) reportJSON(fault *jsonFault) { r.ReportFault(fault.at, "", "%s", fault.message) }

// readRoot reads a list of items, or a mapping with items and scorers.
func (r *reader) readRoot(root *yaml.Node) {
	if strictyaml.ResolveAlias(root).Kind == yaml.SequenceNode {
		r.readItems(root)
		return
	}
	seen := false
	r.ReadKeys(root, "the file", []string{"items", "scorers"}, func(key string, value *yaml.Node) {
		if key == "scorers" {
			r.file.Scorers = value
			return
		}
		seen = true
		r.readItems(value)
	})
	if !seen && len(r.List) == 0 {
		r.ReportFault(root, "add `items:` with a list", "the file has no `items`")
	}
}

func (r *reader) readItems(n *yaml.Node) {
	for _, item := range r.ReadItems(n, "items") {
		r.addItem(item)
	}
}

func (r *reader) addItem(n *yaml.Node) {
	item := &Item{Pos: r.place(n)}
	r.file.Items = append(r.file.Items, item)
	if strictyaml.ResolveAlias(n).Kind == yaml.ScalarNode && !strictyaml.IsEmpty(strictyaml.ResolveAlias(n)) {
		item.Prompt = r.ReadText(n, "an item")
		return
	}
	seen := map[string]string{}
	before := len(r.List)
	r.ReadKeys(n, "the item", allNames, func(key string, value *yaml.Node) {
		field := fieldOf(key)
		if seen[field] != "" {
			r.ReportFault(value, "remove one of them", "%q and %q are the same field", seen[field], key)
			return
		}
		seen[field] = key
		r.readField(item, field, value)
	})
	if len(r.List) > before {
		return
	}
	if item.Prompt == "" && item.State == nil && item.Variables == nil && item.Files == nil && item.From == "" {
		r.ReportFault(n, "add `prompt`", "the item gives the agent nothing: no prompt, state, variables, files or run")
	}
	if item.From != "" && len(item.Variables)+len(item.Files) > 0 {
		r.ReportFault(n, "remove them; `state` replaces values of the copy", "the item begins in the middle of a run, which has its variables and files already")
	}
}

func (r *reader) readField(i *Item, field string, n *yaml.Node) {
	switch field {
	case keyID:
		i.ID = r.ReadText(n, "the id")
	case keyPrompt:
		i.Prompt = r.readPrompt(n)
	case keyState:
		i.State = r.readObject(n, "state")
	case keyMetadata:
		i.Metadata = r.readObject(n, "metadata")
	case keyVariables:
		r.ReadKeys(n, "variables", nil, func(key string, value *yaml.Node) {
			i.Variables = append(i.Variables, strictyaml.Pair{Key: key, Value: r.ReadText(value, "the variable "+key)})
		})
	case keyFiles:
		i.Files = r.ReadTexts(n, "files")
	case keyTags:
		i.Tags = r.ReadTexts(n, "tags")
	case keyFrom:
		i.From = r.ReadText(n, "from")
		if _, _, err := runs.SplitPoint(i.From); err != nil {
			r.ReportFault(n, "write RUN@7, or RUN for its end", "from: %v", err)
		}
	case keyExpect:
		r.readExpect(i, n)
	}
}

// readPrompt reads a text, or an object with one text as LangSmith has it.
func (r *reader) readPrompt(n *yaml.Node) string {
	return r.ReadText(r.unwrapField(n, keyPrompt), "the prompt")
}

// readExpect reads what is expected: a matcher of test cases, an object around a value as LangSmith has it, or any value.
func (r *reader) readExpect(i *Item, n *yaml.Node) {
	n = r.unwrapField(n, keyExpect)
	i.Expected = strictyaml.DecodeValue(n)
	if i.Expected == nil {
		return
	}
	matcher := testcase.ReadMatcher(r.Document, n)
	i.Expect = &matcher
}

// unwrapField returns the only member of an object if that has one of the names of the field, and otherwise the node.
func (r *reader) unwrapField(n *yaml.Node, field string) *yaml.Node {
	object := strictyaml.ResolveAlias(n)
	if object.Kind == yaml.MappingNode && len(object.Content) == 2 && fieldOf(object.Content[0].Value) == field {
		return object.Content[1]
	}
	return n
}

func (r *reader) readObject(n *yaml.Node, what string) *jsonvalue.Object {
	o := &jsonvalue.Object{}
	r.ReadKeys(n, what, nil, func(key string, value *yaml.Node) { o.Set(key, strictyaml.DecodeValue(value)) })
	return o
}

func (r *reader) place(n *yaml.Node) strictyaml.Pos {
	return strictyaml.Pos{
		File: r.Path,
		Line: n.Line,
		Col:  n.Column,
	}
}

// checkIDs gives items without an id their number, and reports ids that two items have.
func (r *reader) checkIDs() {
	lines := map[string]int{}
	for n, i := range r.file.Items {
		if i.ID == "" {
			i.ID = fmt.Sprint(n + 1)
			i.numbered = true
		}
	}
	for _, i := range slices.Clone(r.file.Items) {
		if line := lines[i.ID]; line > 0 {
			r.ReportFault(&yaml.Node{Line: i.Pos.Line, Column: i.Pos.Col}, "", "the id %q is that of another item, in line %d", i.ID, line)
		}
		lines[i.ID] = i.Pos.Line
	}
}
