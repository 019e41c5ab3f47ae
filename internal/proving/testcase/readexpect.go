package testcase

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

func (r *reader) readExpect(n *yaml.Node, e *Expect) {
	e.Pos = r.at(n)
	matcher := func(to **Matcher) func(*yaml.Node) {
		return func(n *yaml.Node) { m := r.readMatcher(n); *to = &m }
	}
	sequence := func(to **Sequence, read func(*yaml.Node) Item) func(*yaml.Node) {
		return func(n *yaml.Node) { *to = r.readSequence(n, read) }
	}
	texts := func(to *[]TextsOf, what string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			r.readEntries(n, what, func(key string, at, value *yaml.Node) { *to = append(*to, r.readTextsOf(key, at, value)) })
		}
	}
	r.readMapping(n, "expect", readers{
		"status":       func(n *yaml.Node) { e.Status, e.StatusPos = r.readStatus(n), r.at(n) },
		"exit_code":    matcher(&e.ExitCode),
		"error":        matcher(&e.Error),
		"output":       matcher(&e.Output),
		"model_calls":  matcher(&e.ModelCalls),
		"cost":         matcher(&e.Cost),
		"path":         sequence(&e.Path, r.readNodeItem),
		"calls":        sequence(&e.Calls, r.readCallItem),
		"questions":    sequence(&e.Questions, r.readQuestionItem),
		"state":        func(n *yaml.Node) { e.State = r.readFieldList(n, "state") },
		"prompts":      texts(&e.Prompts, "prompts"),
		"instructions": texts(&e.Instructions, "instructions"),
	})
}

func (r *reader) readStatus(n *yaml.Node) string {
	status := r.ReadText(n, "status")
	if !slices.Contains(statuses, status) {
		r.ReportFault(n, wording.SuggestNearest(status, statuses, ""), "unknown status %q; it is one of %s", status, strings.Join(statuses, ", "))
	}
	return status
}

// matcherKeys are the words of a matcher. A mapping without any other key is a matcher.
var matcherKeys = []string{"absent", "above", "below", "contains", "equal", "never", "pattern", "schema"}

// isMatcher reports whether a value is a matcher, and not the expected value itself.
func isMatcher(n *yaml.Node) bool {
	n = strictyaml.ResolveAlias(n)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if !slices.Contains(matcherKeys, n.Content[i].Value) {
			return false
		}
	}
	return true
}

// readMatcher reads a matcher, or the value that is expected.
func (r *reader) readMatcher(n *yaml.Node) Matcher {
	m := Matcher{Pos: r.at(n)}
	if !isMatcher(n) {
		v := strictyaml.DecodeValue(n)
		m.Equal = &v
		return m
	}
	r.readMapping(n, "an expectation", readers{
		"equal":    func(n *yaml.Node) { v := strictyaml.DecodeValue(n); m.Equal, m.Pos = &v, r.at(n) },
		"contains": func(n *yaml.Node) { m.Contains = r.ReadTexts(n, "contains") },
		"never":    func(n *yaml.Node) { m.Never = r.ReadTexts(n, "never") },
		"pattern":  func(n *yaml.Node) { m.Pattern = r.readPattern(n) },
		"schema":   func(n *yaml.Node) { m.schema = strictyaml.DecodeValue(n); m.Schema = r.readSchema(n) },
		"above":    func(n *yaml.Node) { m.Above = r.readNumber(n) },
		"below":    func(n *yaml.Node) { m.Below = r.readNumber(n) },
		"absent":   func(n *yaml.Node) { m.Absent = r.readFlag(n) },
	})
	return m
}

func (r *reader) readPattern(n *yaml.Node) *regexp.Regexp {
	pattern, err := regexp.Compile(r.ReadText(n, "pattern"))
	if err != nil {
		r.ReportFault(n, "the syntax is that of Go: https://pkg.go.dev/regexp/syntax", "the pattern is not a regular expression: %v", err)
		return nil
	}
	return pattern
}

func (r *reader) readSchema(n *yaml.Node) *jsonschema.Resolved {
	var s jsonschema.Schema
	err := json.Unmarshal([]byte(jsonvalue.Compact(strictyaml.DecodeValue(n))), &s)
	if err != nil {
		r.ReportFault(n, "", "the schema is not a JSON schema: %v", err)
		return nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		r.ReportFault(n, "", "the schema is not a JSON schema: %v", err)
		return nil
	}
	return resolved
}

func (r *reader) readNumber(n *yaml.Node) *float64 {
	f, ok := jsonvalue.AsFloat(strictyaml.DecodeValue(n))
	if !ok {
		r.ReportFault(n, "", "expected a number, found %s", strictyaml.NameKind(n))
		return nil
	}
	return &f
}

func (r *reader) readFlag(n *yaml.Node) *bool {
	b, ok := strictyaml.DecodeValue(n).(bool)
	if !ok {
		r.ReportFault(n, "", "expected true or false, found %s", strictyaml.NameKind(n))
		return nil
	}
	return &b
}

// readFieldList reads expectations about values by their path.
func (r *reader) readFieldList(n *yaml.Node, what string) (fields []Field) {
	r.readEntries(n, what, func(key string, at, value *yaml.Node) {
		if _, err := splitPath(key); err != nil {
			r.ReportFault(at, "write key.member[0]", "%v", err)
		}
		fields = append(fields, Field{Path: key, Pos: r.at(at), Matcher: r.readMatcher(value)})
	})
	return fields
}

func (r *reader) readTextsOf(node string, at, n *yaml.Node) TextsOf {
	t := TextsOf{Node: node, Pos: r.at(at)}
	if t.InOrder = strictyaml.ResolveAlias(n).Kind == yaml.SequenceNode; !t.InOrder {
		t.Matchers = []Matcher{r.readMatcher(n)}
		return t
	}
	for _, item := range r.ReadItems(n, "the list for "+node) {
		t.Matchers = append(t.Matchers, r.readMatcher(item))
	}
	return t
}

// readSequence reads a list of all items, or a mapping that says more about them.
func (r *reader) readSequence(n *yaml.Node, read func(*yaml.Node) Item) *Sequence {
	s := &Sequence{Pos: r.at(n)}
	items := func(n *yaml.Node) []Item {
		list := []Item{}
		if strictyaml.ResolveAlias(n).Kind == yaml.ScalarNode && !strictyaml.IsEmpty(strictyaml.ResolveAlias(n)) {
			return append(list, read(n))
		}
		for _, item := range r.ReadItems(n, "the list") {
			list = append(list, read(item))
		}
		return list
	}
	if strictyaml.ResolveAlias(n).Kind != yaml.MappingNode {
		s.Exact = items(n)
		return s
	}
	r.readMapping(n, "the expectation", readers{
		"equal":    func(n *yaml.Node) { s.Exact, s.Pos = items(n), r.at(n) },
		"contains": func(n *yaml.Node) { s.Contains = items(n) },
		"never":    func(n *yaml.Node) { s.Never = items(n) },
	})
	return s
}

func (r *reader) readNodeItem(n *yaml.Node) Item {
	return Item{Name: r.ReadName(n, "a node"), Pos: r.at(n)}
}

// readCallItem reads a call: the name of its tool, or the name with what is expected of the arguments.
func (r *reader) readCallItem(n *yaml.Node) Item {
	return r.readNamedItem(n, "a call", func(i *Item, value *yaml.Node) { i.Args = r.readFieldList(value, "the arguments") })
}

// readQuestionItem reads a question: the node that asks, or the node with what is expected of the text.
func (r *reader) readQuestionItem(n *yaml.Node) Item {
	return r.readNamedItem(n, "a question", func(i *Item, value *yaml.Node) { m := r.readMatcher(value); i.Text = &m })
}

func (r *reader) readNamedItem(n *yaml.Node, what string, read func(i *Item, value *yaml.Node)) Item {
	n = strictyaml.ResolveAlias(n)
	i := Item{Pos: r.at(n)}
	if n.Kind != yaml.MappingNode {
		i.Name = r.ReadName(n, what)
		return i
	}
	if len(n.Content) != 2 {
		r.ReportFault(n, "write `- name: ...` for each of them", "%s must be one name, or one name with what is expected of it", what)
		return i
	}
	r.readEntries(n, what, func(key string, _, value *yaml.Node) { i.Name = key; read(&i, value) })
	return i
}

// ReadMatcher reads a matcher, or a value that is expected as it is, from a part of another file than one of test cases.
// The document gets what is wrong with it.
func ReadMatcher(d *strictyaml.Document, n *yaml.Node) Matcher {
	return (&reader{Document: d}).readMatcher(n)
}

// ReadPath reads what is expected of the path of a run, in the same way.
func ReadPath(d *strictyaml.Document, n *yaml.Node) *Sequence {
	r := &reader{Document: d}
	return r.readSequence(n, r.readNodeItem)
}

// ReadCalls reads what is expected of the calls of tools, in the same way.
func ReadCalls(d *strictyaml.Document, n *yaml.Node) *Sequence {
	r := &reader{Document: d}
	return r.readSequence(n, r.readCallItem)
}
