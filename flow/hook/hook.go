// Package hook holds hooks: commands that raddle runs around the calls of tools, at the start and the end of turns, and
// when a question opens.
package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/tool/permission"
)

// These are the points at which hooks run.
const (
	BeforeTool = "before_tool"
	AfterTool  = "after_tool"
	TurnStart  = "turn_start"
	TurnEnd    = "turn_end"
	Question   = "question"
)

// Points are all of them.
var Points = []string{BeforeTool, AfterTool, TurnStart, TurnEnd, Question}

// A Hook is one entry of a list of hooks.
type Hook struct {
	On      string            // one of Points
	Tools   []permission.Rule // of BeforeTool and AfterTool: the calls that it is about; none: all
	Run     string            // shell text
	Timeout time.Duration
	Pos     strictyaml.Pos
}

// The limits of hooks.
const (
	DefaultTimeout = 60 * time.Second
	longestTimeout = 600
	most           = 100
	longestRun     = 16 << 10
)

// ID identifies a hook by what it does. It is the same wherever the hook is written.
func (h Hook) ID() string {
	var tools []string
	for _, r := range h.Tools {
		tools = append(tools, r.Text)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", h.On, tools, h.Run))
	return hex.EncodeToString(sum[:8])
}

// Name returns the place of a hook, for people.
func (h Hook) Name() string { return h.Pos.String() }

// fields are the keys of an entry.
var fields = []string{"on", "tools", "run", "timeout"}

// A Reporter takes what is wrong at a node of a file.
type Reporter func(at *yaml.Node, hint, format string, args ...any)

// Parse reads a file that has nothing but hooks. Its errors are of type *[Error]; path names the file in them.
func Parse(path string, text []byte) (hooks []Hook, err error) {
	d := strictyaml.Read(path, text)
	place := func(n *yaml.Node) strictyaml.Pos { return strictyaml.Pos{File: path, Line: n.Line, Col: n.Column} }
	if d.Root != nil {
		d.ReadKeys(d.Root, "the file", []string{"hooks"}, func(_ string, v *yaml.Node) { hooks = Read(v, place, d.ReportFault) })
	}
	if len(d.List) > 0 {
		strictyaml.SortFindings(d.List)
		return nil, &Error{Findings: d.List}
	}
	return hooks, nil
}

// Read reads a list of hooks. Everything that it does not know is a fault: a hook that is misspelt would not guard what
// it should.
func Read(n *yaml.Node, place func(*yaml.Node) strictyaml.Pos, report Reporter) (hooks []Hook) {
	list := strictyaml.ResolveAlias(n)
	switch {
	case strictyaml.IsBroken(list) || strictyaml.IsEmpty(list):
		return nil
	case list.Kind != yaml.SequenceNode:
		report(n, "write a list: - on: before_tool", "hooks must be a list, not %s", strictyaml.NameKind(list))
		return nil
	case len(list.Content) > most:
		report(n, "", "hooks has %d entries, and at most %d are allowed", len(list.Content), most)
		return nil
	}
	for _, item := range list.Content {
		entry := strictyaml.ResolveAlias(item)
		switch {
		case strictyaml.IsBroken(entry):
		case entry.Kind != yaml.MappingNode:
			report(item, "write `on` and `run`", "a hook must be a mapping, not %s", strictyaml.NameKind(entry))
		default:
			h := readHook(entry, report)
			h.Pos = place(item)
			hooks = append(hooks, h)
		}
	}
	return hooks
}

// readHook reads one entry.
func readHook(entry *yaml.Node, report Reporter) Hook {
	h := Hook{Timeout: DefaultTimeout}
	set := map[string]*yaml.Node{}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		key := entry.Content[i]
		value := strictyaml.ResolveAlias(entry.Content[i+1])
		set[key.Value] = key
		if strictyaml.IsBroken(key) || strictyaml.IsBroken(value) {
			continue
		}
		switch key.Value {
		case "on":
			h.On = readWord(value, "on", report)
			if h.On != "" && !slices.Contains(Points, h.On) {
				report(value, wording.SuggestNearest(h.On, Points, ""), "on must be one of %s, not %q", strings.Join(Points, ", "), h.On)
			}
		case "run":
			h.Run = readWord(value, "run", report)
			if len(h.Run) > longestRun {
				report(value, "put it into a file and run that", "run has %d bytes, and at most %d are allowed", len(h.Run), longestRun)
			}
		case "tools":
			h.Tools = readTools(value, report)
		case "timeout":
			text := readWord(value, "timeout", report)
			seconds, err := strconv.Atoi(text)
			if text != "" && (err != nil || seconds < 1 || seconds > longestTimeout) {
				report(value, "", "timeout must be a whole number of seconds from 1 to %d, not %q", longestTimeout, text)
			}
			h.Timeout = time.Duration(seconds) * time.Second
		default:
			report(key, wording.SuggestNearest(key.Value, fields, ""), "unknown key %q in a hook", key.Value)
		}
	}
	for _, must := range []string{"on", "run"} {
		if set[must] == nil {
			report(entry, "", "a hook needs the key %q", must)
		}
	}
	if at := set["tools"]; at != nil && h.On != BeforeTool && h.On != AfterTool && slices.Contains(Points, h.On) {
		report(at, "", "tools has no meaning for a hook on %s, which is about no call", h.On)
	}
	return h
}

// readWord reads a text.
func readWord(n *yaml.Node, key string, report Reporter) string {
	text, ok := strictyaml.ScalarText(n, true)
	if !ok || strings.TrimSpace(text) == "" {
		report(n, "", "%s of a hook must be a text", key)
		return ""
	}
	return text
}

// An Error says that a file of hooks cannot be used, and lists everything that is wrong with it.
type Error struct{ Findings []strictyaml.Finding }

// Error lists the findings, one on each line.
func (e *Error) Error() string {
	return "the file has faults:\n" + strictyaml.JoinFindings(e.Findings, "  ")
}

// ListFindings returns the findings.
func (e *Error) ListFindings() []strictyaml.Finding { return e.Findings }

// readTools reads the calls that a hook is about: a rule, or a list of them.
func readTools(n *yaml.Node, report Reporter) (rules []permission.Rule) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if len(items) == 0 {
		report(n, "leave it out to mean every call", "tools of a hook is empty, so that the hook would never run")
	}
	for _, item := range items {
		text := readWord(strictyaml.ResolveAlias(item), "tools", report)
		if text == "" {
			continue
		}
		r, err := permission.ParseRule(text)
		if err != nil {
			report(item, "", "tools: %v", err)
			continue
		}
		rules = append(rules, r)
	}
	return rules
}
