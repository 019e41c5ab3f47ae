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

func load(data []byte) ([]*entry, []Fault) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		if len(strings.TrimSpace(string(data))) == 0 {
			return nil, []Fault{{Line: 1, Col: 1, Message: "the transcript is empty; it must be a list of replies"}}
		}
		return nil, []Fault{syntaxFault(err)}
	}
	var l loader
	var entries []*entry
	root := resolve(&doc)
	switch {
	case root.Kind != yaml.SequenceNode:
		l.fault(root, "expected a list of replies, found %s", describe(root))
	case len(root.Content) == 0:
		l.fault(root, "the list of replies is empty")
	default:
		for _, n := range root.Content {
			entries = append(entries, l.entry(n))
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

func (l *loader) fault(n *yaml.Node, format string, args ...any) {
	l.faults = append(l.faults, Fault{Line: n.Line, Col: n.Column, Message: fmt.Sprintf(format, args...)})
}

// resolve follows documents and aliases to the actual node.
func resolve(n *yaml.Node) *yaml.Node {
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

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return "nothing"
		}
		return strconv.Quote(shorten(n.Value, 40))
	}
	return "something else"
}

// fields calls the reader of every key of a mapping, and reports unknown and
// duplicate keys.
func (l *loader) fields(n *yaml.Node, what string, readers map[string]func(*yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		l.fault(n, "expected %s as a mapping, found %s", what, describe(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := readers[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode:
			l.fault(key, "unknown key %q of %s%s", key.Value, what, suggest(key.Value, readers))
		case seen[key.Value]:
			l.fault(key, "the key %q is given twice", key.Value)
		default:
			seen[key.Value] = true
			read(value)
		}
	}
}

func (l *loader) entry(n *yaml.Node) *entry {
	e := &entry{line: n.Line, col: n.Column}
	said := false
	says := func(read func(*yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) { said = true; read(n) }
	}
	before := len(l.faults)
	l.fields(n, "a reply", map[string]func(*yaml.Node){
		"match":      func(n *yaml.Node) { e.match = l.strings(n) },
		"turn":       func(n *yaml.Node) { e.turn = l.number(n, 1) },
		"request":    func(n *yaml.Node) { e.digest = l.text(n) },
		"after":      func(n *yaml.Node) { e.after = l.strings(n) },
		"text":       says(func(n *yaml.Node) { e.text = l.text(n) }),
		"reasoning":  says(func(n *yaml.Node) { e.reasoning = l.text(n) }),
		"tool_calls": says(func(n *yaml.Node) { e.calls = l.calls(n) }),
		"error":      says(func(n *yaml.Node) { e.err = l.failure(n) }),
		"delay_ms":   func(n *yaml.Node) { e.delay = time.Duration(l.number(n, 0)) * time.Millisecond },
		"repeat":     func(n *yaml.Node) { e.repeat = l.boolean(n) },
		"usage":      func(n *yaml.Node) { e.usage = l.usage(n) },
		"stop":       func(n *yaml.Node) { e.stop = llm.StopReason(l.text(n)) },
	})
	e.fills = e.holds()
	switch {
	case len(l.faults) > before:
	case !said:
		l.fault(n, "the reply is empty; set text, reasoning, tool_calls or error")
	case e.err != nil && (e.text != "" || e.reasoning != "" || len(e.calls) > 0):
		l.fault(n, "the reply has an error and something else; a failure is the whole reply")
	}
	return e
}

func (l *loader) usage(n *yaml.Node) (u llm.Usage) {
	count := func(to *int) func(*yaml.Node) { return func(n *yaml.Node) { *to = l.number(n, 0) } }
	l.fields(n, "usage", map[string]func(*yaml.Node){
		"input": count(&u.Input), "output": count(&u.Output), "cached": count(&u.Cached), "reasoning": count(&u.Reasoning),
	})
	return u
}

func (l *loader) calls(n *yaml.Node) []llm.ToolCall {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		l.fault(n, "expected a list of tool calls, found %s", describe(n))
		return nil
	}
	var calls []llm.ToolCall
	for _, item := range n.Content {
		c := llm.ToolCall{Args: []byte("{}")}
		before := len(l.faults)
		l.fields(item, "a tool call", map[string]func(*yaml.Node){
			"id":   func(n *yaml.Node) { c.ID = l.text(n) },
			"name": func(n *yaml.Node) { c.Name = l.text(n) },
			"args": func(n *yaml.Node) { c.Args = l.arguments(n) },
		})
		if c.Name == "" && len(l.faults) == before {
			l.fault(item, "the tool call has no name")
		}
		calls = append(calls, c)
	}
	return calls
}

// classes are the values of error.class.
var classes = []llm.Class{
	llm.Auth, llm.RateLimited, llm.Overloaded, llm.ContextLength, llm.BadRequest, llm.Network, llm.Timeout, llm.Server,
}

func (l *loader) failure(n *yaml.Node) error {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode {
		if n.ShortTag() == "!!null" || n.Value == "" {
			l.fault(n, "expected the text of an error, or a mapping with its class or status")
		}
		return errors.New(n.Value)
	}
	e := &llm.Error{}
	l.fields(n, "error", map[string]func(*yaml.Node){
		"class":          func(n *yaml.Node) { e.Class = l.class(n) },
		"status":         func(n *yaml.Node) { e.Status = l.number(n, 400) },
		"code":           func(n *yaml.Node) { e.Code = l.text(n) },
		"message":        func(n *yaml.Node) { e.Message = l.text(n) },
		"retry_after_ms": func(n *yaml.Node) { e.RetryAfter = time.Duration(l.number(n, 0)) * time.Millisecond },
	})
	switch {
	case e.Class == "" && e.Status == 0 && n.Kind == yaml.MappingNode:
		l.fault(n, "the error needs a class or a status")
	case e.Class == "" && e.Status != 0:
		e.Class = llm.StatusClass(e.Status)
	}
	return e
}

func (l *loader) class(n *yaml.Node) llm.Class {
	class := llm.Class(l.text(n))
	if !slices.Contains(classes, class) {
		names := make([]string, len(classes))
		for i, c := range classes {
			names[i] = string(c)
		}
		l.fault(n, "unknown class %q; the classes are %s", class, strings.Join(names, ", "))
	}
	return class
}

func (l *loader) text(n *yaml.Node) string {
	n = resolve(n)
	switch {
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		l.fault(n, "expected text, found a mapping; put quotes around text that starts with a brace")
	case n.Kind != yaml.ScalarNode:
		l.fault(n, "expected text, found %s", describe(n))
	case n.ShortTag() == "!!null":
		return ""
	default:
		return n.Value
	}
	return ""
}

func (l *loader) strings(n *yaml.Node) []string {
	n = resolve(n)
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	var texts []string
	for _, item := range list {
		before := len(l.faults)
		s := l.text(item)
		if s == "" && len(l.faults) == before {
			l.fault(item, "an empty match fits every request; leave it out")
		}
		texts = append(texts, s)
	}
	if len(list) == 0 {
		l.fault(n, "an empty match fits every request; leave it out")
	}
	return texts
}

func (l *loader) number(n *yaml.Node, least int) int {
	n = resolve(n)
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > 1<<31 {
		l.fault(n, "expected a whole number of at least %d, found %s", least, describe(n))
		return least
	}
	return v
}

func (l *loader) boolean(n *yaml.Node) bool {
	n = resolve(n)
	if n.ShortTag() != "!!bool" {
		l.fault(n, "expected true or false, found %s", describe(n))
	}
	return strings.EqualFold(n.Value, "true")
}

// suggest returns " (did you mean x?)" if one of the known keys is close to key.
func suggest(key string, known map[string]func(*yaml.Node)) string {
	near := wording.FindNearest(key, slices.Sorted(maps.Keys(known)))
	if near == "" {
		return ""
	}
	return " (did you mean " + near + "?)"
}
