package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/wording"
	"raddle.dev/llm"
)

// A LoadError lists the errors of a transcript.
type LoadError struct {
	File   string
	Faults []Fault // in the order of the file; at least one
}

// A Fault is one error at one position.
type Fault struct {
	Line, Col int // starting with 1; 0: the position is unknown
	Message   string
}

// Error returns one line per fault, each "file:line:col: message".
func (e *LoadError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		switch {
		case f.Line == 0:
			lines[i] = fmt.Sprintf("%s: %s", e.File, f.Message)
		default:
			lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.File, f.Line, f.Col, f.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// A loader converts a YAML tree to entries and collects the errors.
type loader struct {
	faults []Fault
	nodes  int // nodes visited in arguments, counted because aliases could multiply them
}

func loadEntries(data []byte) ([]*entry, []Fault) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		if len(strings.TrimSpace(string(data))) == 0 {
			return nil, []Fault{{Line: 1, Col: 1, Message: "the transcript is empty; it must be a list of replies"}}
		}
		return nil, []Fault{syntaxFault(err)}
	}
	var l loader
	var entries []*entry
	root := resolveAlias(&doc)
	switch {
	case root.Kind != yaml.SequenceNode:
		l.addFault(root, "expected a list of replies, found %s", describeNode(root))
	case len(root.Content) == 0:
		l.addFault(root, "the list of replies is empty")
	default:
		for _, n := range root.Content {
			entries = append(entries, l.parseEntry(n))
		}
	}
	slices.SortStableFunc(l.faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	return entries, l.faults
}

func syntaxFault(err error) Fault {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return Fault{Message: err.Error()}
	}
	message := strings.TrimPrefix(e.Message, "yaml: ")
	if e.ContextMsg != "" {
		message = e.ContextMsg + ": " + message
	}
	return Fault{Line: e.Mark.Line, Col: e.Mark.Column, Message: message}
}

func (l *loader) addFault(n *yaml.Node, format string, args ...any) {
	l.faults = append(l.faults, Fault{Line: n.Line, Col: n.Column, Message: fmt.Sprintf(format, args...)})
}

// resolveAlias follows documents and aliases to the actual node.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for {
		switch {
		case n.Kind == yaml.AliasNode && n.Alias != nil:
			n = n.Alias
		case n.Kind == yaml.DocumentNode && len(n.Content) == 1:
			n = n.Content[0]
		default:
			return n
		}
	}
}

func describeNode(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return "nothing"
		}
		return strconv.Quote(truncateLine(n.Value, 40))
	}
	return "something else"
}

// readMapping calls the reader of every key of a mapping, and reports unknown and
// duplicate keys.
func (l *loader) readMapping(n *yaml.Node, what string, readers map[string]func(*yaml.Node)) {
	n = resolveAlias(n)
	if n.Kind != yaml.MappingNode {
		l.addFault(n, "expected %s as a mapping, found %s", what, describeNode(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := readers[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode:
			l.addFault(key, "unknown key %q of %s%s", key.Value, what, suggestName(key.Value, readers))
		case seen[key.Value]:
			l.addFault(key, "the key %q is given twice", key.Value)
		default:
			seen[key.Value] = true
			read(value)
		}
	}
}

func (l *loader) parseEntry(n *yaml.Node) *entry {
	e := &entry{line: n.Line, col: n.Column}
	said := false
	says := func(read func(*yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) { said = true; read(n) }
	}
	before := len(l.faults)
	l.readMapping(n, "a reply", map[string]func(*yaml.Node){
		"match":      func(n *yaml.Node) { e.match = l.parseStrings(n) },
		"turn":       func(n *yaml.Node) { e.turn = l.parseNumber(n, 1) },
		"request":    func(n *yaml.Node) { e.digest = l.parseText(n) },
		"after":      func(n *yaml.Node) { e.after = l.parseStrings(n) },
		"text":       says(func(n *yaml.Node) { e.text = l.parseText(n) }),
		"reasoning":  says(func(n *yaml.Node) { e.reasoning = l.parseText(n) }),
		"tool_calls": says(func(n *yaml.Node) { e.calls = l.parseCalls(n) }),
		"error":      says(func(n *yaml.Node) { e.err = l.parseFailure(n) }),
		"delay_ms":   func(n *yaml.Node) { e.delay = time.Duration(l.parseNumber(n, 0)) * time.Millisecond },
		"repeat":     func(n *yaml.Node) { e.repeat = l.parseBool(n) },
		"usage":      func(n *yaml.Node) { e.usage = l.parseUsage(n) },
		"stop":       func(n *yaml.Node) { e.stop = llm.StopReason(l.parseText(n)) },
	})
	e.fills = e.hasPlaceholders()
	switch {
	case len(l.faults) > before:
	case !said:
		l.addFault(n, "the reply is empty; set text, reasoning, tool_calls or error")
	case e.err != nil && (e.text != "" || e.reasoning != "" || len(e.calls) > 0):
		l.addFault(n, "the reply has an error and something else; a failure is the whole reply")
	}
	return e
}

func (l *loader) parseUsage(n *yaml.Node) (u llm.Usage) {
	count := func(to *int) func(*yaml.Node) { return func(n *yaml.Node) { *to = l.parseNumber(n, 0) } }
	l.readMapping(n, "usage", map[string]func(*yaml.Node){
		"input": count(&u.Input), "output": count(&u.Output), "cached": count(&u.Cached), "reasoning": count(&u.Reasoning),
	})
	return u
}

func (l *loader) parseCalls(n *yaml.Node) []llm.ToolCall {
	n = resolveAlias(n)
	if n.Kind != yaml.SequenceNode {
		l.addFault(n, "expected a list of tool calls, found %s", describeNode(n))
		return nil
	}
	var calls []llm.ToolCall
	for _, item := range n.Content {
		c := llm.ToolCall{Args: []byte("{}")}
		before := len(l.faults)
		l.readMapping(item, "a tool call", map[string]func(*yaml.Node){
			"id":   func(n *yaml.Node) { c.ID = l.parseText(n) },
			"name": func(n *yaml.Node) { c.Name = l.parseText(n) },
			"args": func(n *yaml.Node) { c.Args = l.parseArguments(n) },
		})
		if c.Name == "" && len(l.faults) == before {
			l.addFault(item, "the tool call has no name")
		}
		calls = append(calls, c)
	}
	return calls
}

// classes are the values of error.class.
var classes = []llm.Class{
	llm.Auth, llm.RateLimited, llm.Overloaded, llm.ContextLength, llm.BadRequest, llm.Network, llm.Timeout, llm.Server,
}

func (l *loader) parseFailure(n *yaml.Node) error {
	n = resolveAlias(n)
	if n.Kind == yaml.ScalarNode {
		if n.ShortTag() == "!!null" || n.Value == "" {
			l.addFault(n, "expected the text of an error, or a mapping with its class or status")
		}
		return errors.New(n.Value)
	}
	e := &llm.Error{}
	l.readMapping(n, "error", map[string]func(*yaml.Node){
		"class":          func(n *yaml.Node) { e.Class = l.parseClass(n) },
		"status":         func(n *yaml.Node) { e.Status = l.parseNumber(n, 400) },
		"code":           func(n *yaml.Node) { e.Code = l.parseText(n) },
		"message":        func(n *yaml.Node) { e.Message = l.parseText(n) },
		"retry_after_ms": func(n *yaml.Node) { e.RetryAfter = time.Duration(l.parseNumber(n, 0)) * time.Millisecond },
	})
	switch {
	case e.Class == "" && e.Status == 0 && n.Kind == yaml.MappingNode:
		l.addFault(n, "the error needs a class or a status")
	case e.Class == "" && e.Status != 0:
		e.Class = llm.StatusClass(e.Status)
	}
	return e
}

func (l *loader) parseClass(n *yaml.Node) llm.Class {
	class := llm.Class(l.parseText(n))
	if !slices.Contains(classes, class) {
		names := make([]string, len(classes))
		for i, c := range classes {
			names[i] = string(c)
		}
		l.addFault(n, "unknown class %q; the classes are %s", class, strings.Join(names, ", "))
	}
	return class
}

func (l *loader) parseText(n *yaml.Node) string {
	n = resolveAlias(n)
	switch {
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		l.addFault(n, "expected text, found a mapping; put quotes around text that starts with a brace")
	case n.Kind != yaml.ScalarNode:
		l.addFault(n, "expected text, found %s", describeNode(n))
	case n.ShortTag() == "!!null":
		return ""
	default:
		return n.Value
	}
	return ""
}

func (l *loader) parseStrings(n *yaml.Node) []string {
	n = resolveAlias(n)
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	var texts []string
	for _, item := range list {
		before := len(l.faults)
		s := l.parseText(item)
		if s == "" && len(l.faults) == before {
			l.addFault(item, "an empty match fits every request; leave it out")
		}
		texts = append(texts, s)
	}
	if len(list) == 0 {
		l.addFault(n, "an empty match fits every request; leave it out")
	}
	return texts
}

func (l *loader) parseNumber(n *yaml.Node, least int) int {
	n = resolveAlias(n)
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > 1<<31 {
		l.addFault(n, "expected a whole number of at least %d, found %s", least, describeNode(n))
		return least
	}
	return v
}

func (l *loader) parseBool(n *yaml.Node) bool {
	n = resolveAlias(n)
	if n.ShortTag() != "!!bool" {
		l.addFault(n, "expected true or false, found %s", describeNode(n))
	}
	return strings.EqualFold(n.Value, "true")
}

// suggestName returns " (did you mean x?)" if one of the known keys is close to key.
func suggestName(key string, known map[string]func(*yaml.Node)) string {
	near := wording.FindNearest(key, slices.Sorted(maps.Keys(known)))
	if near == "" {
		return ""
	}
	return " (did you mean " + near + "?)"
}
