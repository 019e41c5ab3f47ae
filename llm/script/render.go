package script

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/llm"
)

// renderEntry writes an entry as a list with one element, so that reading it gives
// the same entry.
func renderEntry(e *entry, others []llm.Part) ([]byte, error) {
	if len(others) > 0 {
		return nil, fmt.Errorf("a transcript cannot hold a reply with %T", others[0])
	}
	// Block style is easier to read, but cannot represent every text.
	for _, style := range []yaml.Style{yaml.LiteralStyle, yaml.DoubleQuotedStyle} {
		n, err := e.yamlNode(style)
		if err != nil {
			return nil, err
		}
		data, err := yaml.Dump(&yaml.Node{
			Kind:    yaml.SequenceNode,
			Tag:     "!!seq",
			Content: []*yaml.Node{n},
		}, yaml.WithLineWidth(-1))
		if err != nil {
			continue
		}
		if back, faults := loadEntries("", data); len(faults) == 0 && len(back) == 1 && back[0].equalTo(e) {
			return data, nil
		}
	}
	return nil, errors.New("the reply cannot be written as YAML")
}

// equalTo reports whether two entries have the same content; e.line and e.col may
// differ.
func (e *entry) equalTo(o *entry) bool {
	equalCalls := func(c, p llm.ToolCall) bool {
		return c.ID == p.ID && c.Name == p.Name && compactJSON(c.Args) == compactJSON(p.Args)
	}
	return slices.Equal(e.match, o.match) && slices.EqualFunc(e.calls, o.calls, equalCalls) &&
		e.turn == o.turn && e.digest == o.digest && e.text == o.text && e.reasoning == o.reasoning && e.repeat == o.repeat &&
		e.delay == o.delay && e.usage == o.usage && e.stop == o.stop && sameError(e.err, o.err)
}

func sameError(a, b error) bool {
	var x, y *llm.Error
	if errors.As(a, &x) && errors.As(b, &y) {
		return *x == *y
	}
	return x == nil && y == nil && fmt.Sprint(a) == fmt.Sprint(b)
}

// A mapping is built in the order of its keys.
type mapping struct {
	node  *yaml.Node
	style yaml.Style // of texts with several lines
}

func newMapping(style yaml.Style) mapping {
	return mapping{node: &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, style: style}
}

func (m mapping) set(key string, value *yaml.Node) {
	m.node.Content = append(m.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func (m mapping) setText(key, value string) {
	m.set(key, m.scalarNode(value))
}

// setTexts adds a text, or a list of several. It adds nothing for none.
func (m mapping) setTexts(key string, values []string) {
	if len(values) == 1 {
		m.setText(key, values[0])
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, v := range values {
		list.Content = append(list.Content, &yaml.Node{
			Kind:  yaml.ScalarNode,
			Tag:   "!!str",
			Value: v,
			Style: yaml.DoubleQuotedStyle,
		})
	}
	if len(values) > 0 {
		m.set(key, list)
	}
}

func (m mapping) scalarNode(value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if m.style == yaml.DoubleQuotedStyle || strings.Contains(strings.TrimSuffix(value, "\n"), "\n") {
		n.Style = m.style
	}
	return n
}

// setCount adds a number unless it is zero.
func (m mapping) setCount(key string, value int) {
	if value != 0 {
		m.set(key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(value)})
	}
}

func (e *entry) yamlNode(style yaml.Style) (*yaml.Node, error) {
	m := newMapping(style)
	m.setTexts("match", e.match)
	m.setCount("turn", e.turn)
	if e.digest != "" {
		m.set("request", &yaml.Node{
			Kind:  yaml.ScalarNode,
			Tag:   "!!str",
			Value: e.digest,
			Style: yaml.SingleQuotedStyle,
		})
	}
	m.setTexts("after", e.after)
	m.setCount("delay_ms", int(e.delay/time.Millisecond))
	if e.repeat {
		m.set("repeat", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	if e.err != nil {
		m.set("error", failureNode(e.err, style))
		return m.node, nil
	}
	if e.reasoning != "" {
		m.setText("reasoning", e.reasoning)
	}
	if e.text != "" || len(e.calls) == 0 {
		m.setText("text", e.text)
	}
	if len(e.calls) > 0 {
		calls, err := callsNode(e.calls, style)
		if err != nil {
			return nil, err
		}
		m.set("tool_calls", calls)
	}
	if e.usage != (llm.Usage{}) {
		u := newMapping(style)
		u.node.Style = yaml.FlowStyle
		u.setCount("input", e.usage.Input)
		u.setCount("output", e.usage.Output)
		u.setCount("cached", e.usage.Cached)
		u.setCount("written", e.usage.Written)
		u.setCount("searches", e.usage.Searches)
		u.setCount("reasoning", e.usage.Reasoning)
		m.set("usage", u.node)
	}
	if e.stop != "" {
		m.setText("stop", string(e.stop))
	}
	return m.node, nil
}

func callsNode(calls []llm.ToolCall, style yaml.Style) (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, c := range calls {
		m := newMapping(style)
		if c.ID != "" {
			m.setText("id", c.ID)
		}
		m.setText("name", c.Name)
		args, err := argumentsNode(c.Args)
		if err != nil {
			return nil, fmt.Errorf("the arguments of the tool call %s: %w", c.Name, err)
		}
		m.set("args", args)
		list.Content = append(list.Content, m.node)
	}
	return list, nil
}

func failureNode(err error, style yaml.Style) *yaml.Node {
	m := newMapping(style)
	var e *llm.Error
	if !errors.As(err, &e) {
		return m.scalarNode(err.Error())
	}
	m.setText("class", string(e.Class))
	m.setCount("status", e.Status)
	if e.Code != "" {
		m.setText("code", e.Code)
	}
	if e.Message != "" {
		m.setText("message", e.Message)
	}
	m.setCount("retry_after_ms", int(e.RetryAfter/time.Millisecond))
	return m.node
}
