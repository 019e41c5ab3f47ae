package testcase

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm/script"
	"raddle.dev/rag"
)

// Read reads the text of a file of test cases. If it has errors, the error is a [*strictyaml.FileError] with all of them.
func Read(path string, text []byte) (*File, error) {
	r := &reader{Document: strictyaml.Read(path, text)}
	f := &File{Path: path, Text: text}
	switch {
	case r.Fatal:
	case r.Root == nil:
		r.ReportFault(nil, "", "the file is empty; it must have a list `tests`")
	default:
		r.readFile(f)
	}
	if len(r.List) > 0 {
		strictyaml.SortFindings(r.List)
		return nil, &strictyaml.FileError{Findings: r.List}
	}
	return f, nil
}

// reader reads the parts of a file and collects what is wrong.
type reader struct{ *strictyaml.Document }

// readers are the keys of a mapping, and what reads their values.
type readers map[string]func(*yaml.Node)

func (r *reader) readMapping(n *yaml.Node, what string, list readers) {
	r.ReadKeys(n, what, slices.Sorted(maps.Keys(list)), func(key string, value *yaml.Node) { list[key](value) })
}

func (r *reader) at(n *yaml.Node) strictyaml.Pos {
	return strictyaml.Pos{File: r.Path, Line: n.Line, Col: n.Column}
}

func (r *reader) readFile(f *File) {
	var common Setup
	var tests *yaml.Node
	keys := r.setupReaders(&common)
	keys["tests"] = func(n *yaml.Node) { tests = n }
	before := len(r.List)
	r.readMapping(r.Root, "the file", keys)
	if tests == nil {
		if len(r.List) == before {
			r.ReportFault(r.Root, "add `tests:` with a list of cases", "the file has no `tests`")
		}
		return
	}
	names := map[string]int{}
	for _, n := range r.ReadItems(tests, "tests") {
		c := r.readCase(n)
		c.inherit(common)
		if line := names[c.Name]; c.Name != "" && line > 0 {
			r.ReportFault(n, "", "the name %q is that of another case, in line %d", c.Name, line)
		}
		names[c.Name] = n.Line
		f.Cases = append(f.Cases, c)
	}
	if len(f.Cases) == 0 && len(r.List) == before {
		r.ReportFault(tests, "", "the list of tests is empty")
	}
}

func (r *reader) readCase(n *yaml.Node) *Case {
	c := &Case{Pos: r.at(n), Expect: Expect{Pos: r.at(n)}}
	keys := r.setupReaders(&c.Setup)
	keys["name"] = func(n *yaml.Node) { c.Name = r.ReadText(n, "the name") }
	keys["faults"] = func(n *yaml.Node) {
		r.readEntries(n, "faults", func(key string, at, value *yaml.Node) {
			c.Faults = append(c.Faults, Fault{Node: key, Pos: r.at(at), Kinds: r.readFaults(value)})
		})
	}
	keys["expect"] = func(n *yaml.Node) { r.readExpect(n, &c.Expect) }
	before := len(r.List)
	r.readMapping(n, "a test", keys)
	if c.Name == "" && len(r.List) == before {
		r.ReportFault(n, "add `name: ...`", "the test has no name")
	}
	return c
}

// inherit adds what the file says about all cases.
func (c *Case) inherit(common Setup) {
	if !c.promptSet {
		c.Prompt = common.Prompt
	}
	c.At = cmp.Or(c.At, common.At)
	c.Variables = addMissing(c.Variables, common.Variables, func(p strictyaml.Pair) string { return p.Key })
	shared := slices.DeleteFunc(slices.Clone(common.Nodes), func(s NodeStub) bool { // the case's own replies come first
		return slices.ContainsFunc(c.Replies, func(r Reply) bool { return r.Node == s.Node })
	})
	c.Nodes = addMissing(c.Nodes, shared, func(s NodeStub) string { return s.Node })
	c.Tools = addMissing(c.Tools, common.Tools, func(s ToolStub) string { return s.Tool })
	c.Searches = addMissing(c.Searches, common.Searches, func(s SearchStub) string { return s.Node })
	c.Answers = addMissing(c.Answers, common.Answers, func(a Answer) string { return a.Question })
	c.Real = addMissing(c.Real, common.Real, func(s string) string { return s })
	c.Replies = append(c.Replies, common.Replies...)
	if common.State == nil {
		return
	}
	state := common.State.Clone()
	if c.State != nil {
		for key, v := range c.State.All() {
			state.Set(key, v)
		}
	}
	c.State = state
}

// addMissing returns the own entries, and those of the others whose name they lack.
func addMissing[T any](own, others []T, name func(T) string) []T {
	all := slices.Clone(own)
	for _, o := range others {
		if !slices.ContainsFunc(own, func(t T) bool { return name(t) == name(o) }) {
			all = append(all, o)
		}
	}
	return all
}

// setupReaders returns the readers of what a file and a case have in common.
func (r *reader) setupReaders(s *Setup) readers {
	return readers{
		"prompt": func(n *yaml.Node) {
			s.Prompt = r.ReadText(n, "the prompt")
			s.promptSet = true
		},
		"at": func(n *yaml.Node) {
			s.At = r.ReadText(n, "at")
			if _, err := spec.ParseSpan(strings.TrimPrefix(s.At, "+")); err != nil && strictyaml.ResolveAlias(n).Kind == yaml.ScalarNode {
				r.ReportFault(n, "write for example `at: +49h`", "at: %s", err)
			}
		},
		"variables": func(n *yaml.Node) {
			r.readEntries(n, "variables", func(key string, _, value *yaml.Node) {
				s.Variables = append(s.Variables, strictyaml.Pair{Key: key, Value: r.ReadText(value, "a variable")})
			})
		},
		"initial_state": func(n *yaml.Node) {
			s.State = &jsonvalue.Object{}
			r.readEntries(n, "initial_state", func(key string, _, value *yaml.Node) { s.State.Set(key, strictyaml.DecodeValue(value)) })
		},
		"nodes": func(n *yaml.Node) {
			r.readEntries(n, "nodes", func(key string, at, value *yaml.Node) {
				s.Nodes = append(s.Nodes, NodeStub{Node: key, Pos: r.at(at), Outputs: readOutputs(value)})
			})
		},
		"replies": func(n *yaml.Node) {
			for _, item := range r.ReadItems(n, "replies") {
				s.Replies = append(s.Replies, r.readReply(item))
			}
		},
		"tools": func(n *yaml.Node) {
			r.readEntries(n, "tools", func(key string, at, value *yaml.Node) {
				s.Tools = append(s.Tools, ToolStub{Tool: key, Pos: r.at(at), Results: r.readResults(value)})
			})
		},
		"real": func(n *yaml.Node) { s.Real = r.ReadTexts(n, "real") },
		"searches": func(n *yaml.Node) {
			r.readEntries(n, "searches", func(key string, at, value *yaml.Node) {
				s.Searches = append(s.Searches, SearchStub{Node: key, Pos: r.at(at), Hits: r.readHits(value)})
			})
		},
		"answers": func(n *yaml.Node) {
			r.readEntries(n, "answers", func(key string, at, value *yaml.Node) {
				s.Answers = append(s.Answers, Answer{Question: key, Pos: r.at(at), Values: r.readAnswers(value)})
			})
		},
	}
}

// readEntries calls each for every member of a mapping with any keys.
func (r *reader) readEntries(n *yaml.Node, what string, each func(key string, at, value *yaml.Node)) {
	i := 0
	mapping := strictyaml.ResolveAlias(n)
	r.ReadKeys(n, what, nil, func(key string, value *yaml.Node) {
		for mapping.Content[i+1] != value {
			i += 2
		}
		each(key, mapping.Content[i], value)
	})
}

// readOutputs returns the outputs of a node: one value, or one for each execution.
func readOutputs(n *yaml.Node) []any {
	if list, ok := strictyaml.DecodeValue(n).([]any); ok {
		return list
	}
	return []any{strictyaml.DecodeValue(n)}
}

func (r *reader) readReply(n *yaml.Node) Reply {
	reply := Reply{Pos: r.at(n)}
	reply.Reply = script.ReadReply(r.Document, n, readers{"node": func(n *yaml.Node) { reply.Node = r.ReadText(n, "the node") }})
	return reply
}

// readResults returns the results of a tool: one, or one for each call.
func (r *reader) readResults(n *yaml.Node) (results []ToolResult) {
	items := []*yaml.Node{n}
	if strictyaml.ResolveAlias(n).Kind == yaml.SequenceNode {
		items = r.ReadItems(n, "the results")
	}
	for _, item := range items {
		results = append(results, r.readResult(item))
	}
	return results
}

func (r *reader) readResult(n *yaml.Node) (t ToolResult) {
	read := func(n *yaml.Node) {
		v := strictyaml.DecodeValue(n)
		_, isText := v.(string)
		t.Text = Text(v)
		t.JSON = !isText && v != nil
	}
	if n = strictyaml.ResolveAlias(n); n.Kind != yaml.MappingNode {
		read(n)
		return t
	}
	said := false
	data := false
	for i := 0; i < len(n.Content); i += 2 {
		said = said || slices.Contains([]string{"text", "error"}, n.Content[i].Value)
		data = data || !slices.Contains([]string{"match", "text", "error"}, n.Content[i].Value)
	}
	if data || !said { // a result that is data
		read(n)
		return t
	}
	r.readMapping(n, "a result", readers{
		"match": func(n *yaml.Node) { t.Match = r.ReadText(n, "match") },
		"text":  read,
		"error": func(n *yaml.Node) {
			read(n)
			t.JSON = false
			t.Error = true
		},
	})
	return t
}

func (r *reader) readHits(n *yaml.Node) (hits []Hit) {
	for _, item := range r.ReadItems(n, "the hits of a search") {
		if item.Kind != yaml.MappingNode {
			hits = append(hits, Hit{Text: r.ReadText(item, "a hit")})
			continue
		}
		var h Hit
		r.readMapping(item, "a hit", readers{
			"source": func(n *yaml.Node) { h.Source = r.ReadText(n, "the source") },
			"text":   func(n *yaml.Node) { h.Text = r.ReadText(n, "the text") },
			"place":  func(n *yaml.Node) { h.Place = r.readPlace(n) },
		})
		hits = append(hits, h)
	}
	return hits
}

// readPlace reads a place as the JSON of a chunk has it.
func (r *reader) readPlace(n *yaml.Node) (p rag.Place) {
	text, err := jsonvalue.Append(nil, strictyaml.DecodeValue(n))
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		err = dec.Decode(&p)
	}
	if err != nil {
		r.ReportFault(n, "write it as raddle rag search --output json does, for example {page: 3}", "the place of a hit cannot be read: %v", err)
	}
	return p
}

// readAnswers returns the answers to a question: one, or one for each time. An answer with several texts is a list in
// the list.
func (r *reader) readAnswers(n *yaml.Node) (values []any) {
	if strictyaml.ResolveAlias(n).Kind != yaml.SequenceNode {
		return []any{r.ReadText(n, "an answer")}
	}
	for _, item := range r.ReadItems(n, "the answers") {
		if item.Kind == yaml.SequenceNode {
			values = append(values, r.ReadTexts(item, "an answer"))
		} else {
			values = append(values, r.ReadText(item, "an answer"))
		}
	}
	return values
}

func (r *reader) readFaults(n *yaml.Node) []string {
	kinds := r.ReadTexts(n, "the faults of a node")
	for _, k := range kinds {
		if !slices.Contains(faultKinds, k) {
			r.ReportFault(n, "", "unknown fault %q; the faults are %s", k, strings.Join(faultKinds, ", "))
		}
	}
	return kinds
}
