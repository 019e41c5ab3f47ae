package testcase

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
)

// schemaLine is the first line of a file, for editors.
const schemaLine = "# yaml-language-server: $schema=https://raddle.dev/schema/test.json\n"

// Encode writes cases as a file that [Read] reads. The short forms are used where they say the same.
func Encode(cases []*Case) ([]byte, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, c := range cases {
		n, err := c.makeNode()
		if err != nil {
			return nil, fmt.Errorf("the test %q: %w", c.Name, err)
		}
		list.Content = append(list.Content, n)
	}
	root := block{}
	root.set("tests", list)
	text, err := dump(root.node())
	if err != nil {
		return nil, err
	}
	text = append([]byte(schemaLine), text...)
	if _, err := Read("", text); err != nil {
		return nil, fmt.Errorf("the cases cannot be written: %w", err)
	}
	return text, nil
}

func dump(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	d, err := yaml.NewDumper(&b, yaml.WithLineWidth(-1), yaml.WithIndent(2))
	if err != nil {
		return nil, err
	}
	if err := d.Dump(n); err != nil {
		return nil, err
	}
	return b.Bytes(), d.Close()
}

// block is a mapping that is built in the order of its keys.
type block struct{ content []*yaml.Node }

// set adds a key with its value, unless the value is nil.
func (b *block) set(key string, value *yaml.Node) {
	if value != nil {
		b.content = append(b.content, valueNode(key), value)
	}
}

// setText adds a key with a text, unless the text is empty.
func (b *block) setText(key, text string) {
	if text != "" {
		b.set(key, valueNode(text))
	}
}

// setTexts adds a key with a list of texts, or with the only one; none: it adds nothing.
func (b *block) setTexts(key string, list []string) {
	if len(list) > 0 {
		b.set(key, oneOrList(texts(list)))
	}
}

// setItems adds a key with a list of items, unless the list is empty.
func (b *block) setItems(key string, items []Item) {
	if len(items) > 0 {
		b.set(key, itemsNode(items))
	}
}

// node returns the mapping, or nil if it has no keys.
func (b *block) node() *yaml.Node {
	if len(b.content) == 0 {
		return nil
	}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: b.content}
}

// switchWords are texts that older readers of YAML take for booleans.
var switchWords = []string{"yes", "no", "on", "off", "y", "n"}

// valueNode returns a value as YAML. Texts with several lines become blocks.
func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		plain := strictyaml.Read("", []byte("- "+v+"\n"))
		switch {
		case strings.Contains(strings.TrimSuffix(v, "\n"), "\n") && !strings.ContainsAny(v, "\r\t") && !strings.HasPrefix(v, " ") && !strings.Contains(v, " \n"):
			n.Style = yaml.LiteralStyle
		case v == "" || slices.Contains(switchWords, strings.ToLower(v)) || strings.Contains(v, "\n") || len(plain.List) > 0 || plain.Root == nil || len(plain.Root.Content) != 1 || strictyaml.DecodeValue(plain.Root.Content[0]) != any(v):
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	case []any:
		return listNode(v)
	case []string:
		return listNode(texts(v))
	case *jsonvalue.Object:
		var b block
		for key, member := range v.All() {
			b.set(key, valueNode(member))
		}
		if n := b.node(); n != nil {
			return n
		}
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
	text := jsonvalue.Compact(v)
	tag := "!!int"
	switch {
	case text == "true" || text == "false":
		tag = "!!bool"
	case strings.ContainsAny(text, ".eE"):
		tag = "!!float"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// numberNode returns a number, without a fraction if it has none.
func numberNode(f float64) *yaml.Node {
	if whole := int64(f); float64(whole) == f {
		return valueNode(whole)
	}
	return valueNode(f)
}

// listNode returns a list: in one line if it holds only short words.
func listNode(items []any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	total := 0
	for _, item := range items {
		child := valueNode(item)
		total += len(child.Value) + 2
		if child.Kind != yaml.ScalarNode || child.Style == yaml.LiteralStyle || total > 100 {
			n.Style = 0
		}
		n.Content = append(n.Content, child)
	}
	return n
}

// oneOrList returns a value alone, or several as a list.
func oneOrList(values []any) *yaml.Node {
	if len(values) == 1 {
		if n := valueNode(values[0]); n.Kind != yaml.SequenceNode {
			return n
		}
	}
	return listNode(values)
}

// texts returns texts as values.
func texts(list []string) []any {
	values := make([]any, len(list))
	for i, s := range list {
		values[i] = s
	}
	return values
}

func (c *Case) makeNode() (*yaml.Node, error) {
	var b block
	b.set("name", valueNode(c.Name))
	if err := c.Setup.write(&b); err != nil {
		return nil, err
	}
	var faults block
	for _, f := range c.Faults {
		faults.set(f.Node, oneOrList(texts(f.Kinds)))
	}
	b.set("faults", faults.node())
	b.set("expect", c.Expect.makeNode())
	return b.node(), nil
}

func (s *Setup) write(b *block) error {
	b.setText("prompt", s.Prompt)
	b.setText("at", s.At)
	var variables, nodes, tools, searches, answers block
	for _, v := range s.Variables {
		variables.set(v.Key, valueNode(v.Value))
	}
	b.set("variables", variables.node())
	if s.State != nil {
		b.set("initial_state", valueNode(s.State))
	}
	for _, n := range s.Nodes {
		nodes.set(n.Node, oneOrList(n.Outputs))
	}
	b.set("nodes", nodes.node())
	if len(s.Replies) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, r := range s.Replies {
			n, err := r.makeNode()
			if err != nil {
				return err
			}
			list.Content = append(list.Content, n)
		}
		b.set("replies", list)
	}
	for _, t := range s.Tools {
		results := sequenceNode(t.Results, (*ToolResult).makeNode)
		if len(results.Content) == 1 {
			results = results.Content[0]
		}
		tools.set(t.Tool, results)
	}
	b.set("tools", tools.node())
	if len(s.Real) > 0 {
		b.set("real", listNode(texts(s.Real)))
	}
	for _, search := range s.Searches {
		searches.set(search.Node, sequenceNode(search.Hits, (*Hit).makeNode))
	}
	b.set("searches", searches.node())
	for _, a := range s.Answers {
		answers.set(a.Question, oneOrList(a.Values))
	}
	b.set("answers", answers.node())
	return nil
}

// makeNode returns a reply: its text alone if it has nothing else.
func (r *Reply) makeNode() (*yaml.Node, error) {
	plain := r.Node == "" && len(r.Match) == 0 && r.Turn == 0 && len(r.After) == 0 && r.Reasoning == "" && len(r.Calls) == 0 && r.Err == nil &&
		r.Delay == 0 && !r.Repeat && r.Usage == (llm.Usage{}) && r.Stop == ""
	if plain && r.Text != "" {
		return valueNode(r.Text), nil
	}
	n, err := r.Reply.MakeNode()
	if err != nil {
		return nil, err
	}
	if r.Node != "" {
		n.Content = append([]*yaml.Node{valueNode("node"), valueNode(r.Node)}, n.Content...)
	}
	return n, nil
}

func (t *ToolResult) makeNode() *yaml.Node {
	value := any(t.Text)
	if t.JSON {
		if v, err := jsonvalue.Parse([]byte(t.Text)); err == nil {
			value = v
		}
	}
	_, isObject := value.(*jsonvalue.Object)
	if t.Match == "" && !t.Error && !isObject {
		return valueNode(value)
	}
	var b block
	b.setText("match", t.Match)
	if t.Error {
		b.set("error", valueNode(t.Text))
	} else {
		b.set("text", valueNode(value))
	}
	return b.node()
}

func (h *Hit) makeNode() *yaml.Node {
	if h.Source == "" && h.Place.IsZero() {
		return valueNode(h.Text)
	}
	var b block
	b.set("source", valueNode(h.Source))
	b.set("text", valueNode(h.Text))
	if text, err := json.Marshal(h.Place); err == nil && !h.Place.IsZero() {
		if place, err := jsonvalue.Parse(text); err == nil {
			b.set("place", valueNode(place))
		}
	}
	return b.node()
}

func (e *Expect) makeNode() *yaml.Node {
	var b block
	b.setText("status", e.Status)
	b.set("exit_code", e.ExitCode.makeNode())
	b.set("error", e.Error.makeNode())
	b.set("path", e.Path.makeNode())
	var state, prompts, instructions block
	for i := range e.State {
		state.set(e.State[i].Path, e.State[i].makeNode())
	}
	b.set("state", state.node())
	for i := range e.Prompts {
		prompts.set(e.Prompts[i].Node, e.Prompts[i].makeNode())
	}
	b.set("prompts", prompts.node())
	for i := range e.Instructions {
		instructions.set(e.Instructions[i].Node, e.Instructions[i].makeNode())
	}
	b.set("instructions", instructions.node())
	b.set("calls", e.Calls.makeNode())
	b.set("questions", e.Questions.makeNode())
	b.set("model_calls", e.ModelCalls.makeNode())
	b.set("cost", e.Cost.makeNode())
	b.set("output", e.Output.makeNode())
	return b.node()
}

func (t *TextsOf) makeNode() *yaml.Node {
	if !t.InOrder && len(t.Matchers) == 1 {
		return t.Matchers[0].makeNode()
	}
	return sequenceNode(t.Matchers, (*Matcher).makeNode)
}

// makeNode returns the matcher, or nil if m is nil.
func (m *Matcher) makeNode() *yaml.Node {
	if m == nil {
		return nil
	}
	var b block
	if m.Equal != nil {
		n := valueNode(*m.Equal)
		others := len(m.Contains)+len(m.Never) > 0 || m.Pattern != nil || m.schema != nil || m.Above != nil || m.Below != nil
		if !others && m.Absent == nil && !isMatcher(n) {
			return n
		}
		b.set("equal", n)
	}
	b.setTexts("contains", m.Contains)
	b.setTexts("never", m.Never)
	if m.Pattern != nil {
		b.set("pattern", valueNode(m.Pattern.String()))
	}
	if m.schema != nil {
		b.set("schema", valueNode(m.schema))
	}
	if m.Above != nil {
		b.set("above", numberNode(*m.Above))
	}
	if m.Below != nil {
		b.set("below", numberNode(*m.Below))
	}
	if m.Absent != nil {
		b.set("absent", valueNode(*m.Absent))
	}
	return b.node()
}

// makeNode returns the sequence, or nil if s is nil.
func (s *Sequence) makeNode() *yaml.Node {
	if s == nil {
		return nil
	}
	if s.Exact != nil && s.Contains == nil && s.Never == nil {
		return itemsNode(s.Exact)
	}
	var b block
	if s.Exact != nil {
		b.set("equal", itemsNode(s.Exact))
	}
	b.setItems("contains", s.Contains)
	b.setItems("never", s.Never)
	return b.node()
}

func itemsNode(items []Item) *yaml.Node {
	names := make([]any, len(items))
	plain := true
	for i := range items {
		names[i] = items[i].Name
		plain = plain && items[i].Text == nil && items[i].Args == nil
	}
	if plain {
		return listNode(names)
	}
	return sequenceNode(items, (*Item).makeNode)
}

// sequenceNode returns a list with a node for each item.
func sequenceNode[T any](items []T, makeNode func(*T) *yaml.Node) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for i := range items {
		list.Content = append(list.Content, makeNode(&items[i]))
	}
	return list
}

func (i *Item) makeNode() *yaml.Node {
	var b block
	switch {
	case i.Text != nil:
		b.set(i.Name, i.Text.makeNode())
	case i.Args != nil:
		var args block
		for n := range i.Args {
			args.set(i.Args[n].Path, i.Args[n].makeNode())
		}
		b.set(i.Name, args.node())
	default:
		return valueNode(i.Name)
	}
	return b.node()
}
