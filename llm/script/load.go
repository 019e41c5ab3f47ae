package script

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
)

// maxFileSize is the size of a transcript above which it is rejected.
const maxFileSize = 256 << 20

// A LoadError lists what is wrong with a transcript.
type LoadError struct {
	Findings []strictyaml.Finding // in the order of the file; at least one
}

// Error returns one line per finding, with its position.
func (e *LoadError) Error() string { return strictyaml.JoinFindings(e.Findings, "") }

// ListFindings returns the findings.
func (e *LoadError) ListFindings() []strictyaml.Finding { return e.Findings }

// A loader converts a YAML tree to entries and collects what is wrong.
type loader struct {
	*strictyaml.Document
	skipped int // values that were wrong already when they were to be read
}

// faultCount grows with each value that cannot be used.
func (l *loader) faultCount() int { return len(l.List) + l.skipped }

// loadEntries reads the text of a transcript; name is for messages.
func loadEntries(name string, data []byte) ([]*entry, []strictyaml.Finding) {
	l := loader{Document: strictyaml.ReadUpTo(name, data, maxFileSize)}
	var entries []*entry
	switch {
	case l.Fatal:
	case l.Root == nil:
		l.ReportFault(nil, "", "the transcript is empty; it must be a list of replies")
	case l.resolve(l.Root) == nil:
	case l.Root.Kind == yaml.SequenceNode && len(l.Root.Content) == 0:
		l.ReportFault(l.Root, "", "the list of replies is empty")
	default:
		for _, n := range l.ReadItems(l.Root, "a transcript") {
			entries = append(entries, l.parseEntry(n, nil))
		}
	}
	strictyaml.SortFindings(l.List)
	return entries, l.List
}

// resolve follows aliases to the actual node. It returns nil for a node that has been
// reported already.
func (l *loader) resolve(n *yaml.Node) *yaml.Node {
	if n = strictyaml.ResolveAlias(n); strictyaml.IsBroken(n) {
		l.skipped++
		return nil
	}
	return n
}

// describeNode says what a node is. A transcript holds no secrets, so that it may show values.
func describeNode(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !strictyaml.IsEmpty(n) {
		return strconv.Quote(truncateLine(n.Value, 40))
	}
	return strictyaml.NameKind(n)
}

// readMapping calls the reader of every key of a mapping.
func (l *loader) readMapping(n *yaml.Node, what string, readers map[string]func(*yaml.Node)) {
	n = l.resolve(n)
	if n != nil && n.Kind != yaml.MappingNode {
		l.ReportFault(n, "", "expected %s as a mapping, found %s", what, describeNode(n))
	} else if n != nil {
		l.ReadKeys(n, what, slices.Sorted(maps.Keys(readers)), func(key string, value *yaml.Node) { readers[key](value) })
	}
}

// parseEntry reads one reply. own reads the keys that the file has in addition to those of a transcript.
func (l *loader) parseEntry(n *yaml.Node, own map[string]func(*yaml.Node)) *entry {
	e := &entry{line: n.Line, col: n.Column}
	said := false
	says := func(read func(*yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) { said = true; read(n) }
	}
	before := l.faultCount()
	readers := map[string]func(*yaml.Node){
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
	}
	maps.Copy(readers, own)
	l.readMapping(n, "a reply", readers)
	e.fills = e.hasPlaceholders()
	switch {
	case l.faultCount() > before:
	case !said:
		l.ReportFault(n, "", "the reply is empty; set text, reasoning, tool_calls or error")
	case e.err != nil && (e.text != "" || e.reasoning != "" || len(e.calls) > 0):
		l.ReportFault(n, "", "the reply has an error and something else; a failure is the whole reply")
	}
	return e
}

func (l *loader) parseUsage(n *yaml.Node) (u llm.Usage) {
	count := func(to *int) func(*yaml.Node) { return func(n *yaml.Node) { *to = l.parseNumber(n, 0) } }
	l.readMapping(n, "usage", map[string]func(*yaml.Node){
		"input": count(&u.Input), "output": count(&u.Output), "cached": count(&u.Cached), "written": count(&u.Written), "searches": count(&u.Searches), "reasoning": count(&u.Reasoning),
	})
	return u
}

func (l *loader) parseCalls(n *yaml.Node) []llm.ToolCall {
	var calls []llm.ToolCall
	for _, item := range l.ReadItems(n, "tool_calls") {
		c := llm.ToolCall{Args: []byte("{}")}
		before := l.faultCount()
		l.readMapping(item, "a tool call", map[string]func(*yaml.Node){
			"id":   func(n *yaml.Node) { c.ID = l.parseText(n) },
			"name": func(n *yaml.Node) { c.Name = l.parseText(n) },
			"args": func(n *yaml.Node) { c.Args = l.parseArguments(n) },
		})
		if c.Name == "" && l.faultCount() == before {
			l.ReportFault(item, "", "the tool call has no name")
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
	if n = l.resolve(n); n == nil {
		return errors.New("")
	}
	if n.Kind == yaml.ScalarNode {
		if strictyaml.IsEmpty(n) || n.Value == "" {
			l.ReportFault(n, "", "expected the text of an error, or a mapping with its class or status")
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
		l.ReportFault(n, "", "the error needs a class or a status")
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
		l.ReportFault(n, "", "unknown class %q; the classes are %s", class, strings.Join(names, ", "))
	}
	return class
}

func (l *loader) parseText(n *yaml.Node) string {
	n = l.resolve(n)
	switch {
	case n == nil:
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		l.ReportFault(n, "", "expected text, found a mapping; put quotes around text that starts with a brace")
	case n.Kind != yaml.ScalarNode:
		l.ReportFault(n, "", "expected text, found %s", describeNode(n))
	case strictyaml.IsEmpty(n):
		return ""
	default:
		return n.Value
	}
	return ""
}

func (l *loader) parseStrings(n *yaml.Node) []string {
	if n = l.resolve(n); n == nil {
		return nil
	}
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	var texts []string
	for _, item := range list {
		before := l.faultCount()
		s := l.parseText(item)
		if s == "" && l.faultCount() == before {
			l.ReportFault(item, "", "an empty match fits every request; leave it out")
		}
		texts = append(texts, s)
	}
	if len(list) == 0 {
		l.ReportFault(n, "", "an empty match fits every request; leave it out")
	}
	return texts
}

func (l *loader) parseNumber(n *yaml.Node, least int) int {
	if n = l.resolve(n); n == nil {
		return least
	}
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > 1<<31 {
		l.ReportFault(n, "", "expected a whole number of at least %d, found %s", least, describeNode(n))
		return least
	}
	return v
}

func (l *loader) parseBool(n *yaml.Node) bool {
	if n = l.resolve(n); n == nil {
		return false
	}
	v, _ := strictyaml.DecodeValue(n).(bool)
	if n.ShortTag() != "!!bool" {
		l.ReportFault(n, "", "expected true or false, found %s", describeNode(n))
	}
	return v
}
