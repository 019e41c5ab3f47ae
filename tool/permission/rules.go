package permission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/wording"
)

// Rules are the rules of one file, each list in the order of the file. The order does not matter:
// deny beats ask, and ask beats allow.
type Rules struct {
	Allow, Ask, Deny []Rule
}

// WithoutAllow returns the rules without those that allow: the part that counts before a person has
// consented to the file.
func (r Rules) WithoutAllow() Rules { return Rules{Ask: r.Ask, Deny: r.Deny} }

// A Fault is one thing that is wrong with rules in a file.
type Fault struct {
	File      string
	Line, Col int
	Msg       string
}

// String returns the fault in one line, with its place.
func (f Fault) String() string { return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Msg) }

// An Error says that rules cannot be used, and lists all faults in them.
type Error struct{ Faults []Fault }

// Error lists the faults, one on each line.
func (e *Error) Error() string {
	lines := []string{"the permission rules have faults:"}
	for _, f := range e.Faults {
		lines = append(lines, "  "+f.String())
	}
	return strings.Join(lines, "\n")
}

// LoadRules reads the text of a file that holds nothing but rules: the lists allow,
// ask and deny. The file's name is for messages. Faults are an *Error.
func LoadRules(file string, text []byte) (Rules, error) {
	r := reader{file: file}
	var doc yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err == nil {
		err = loader.Load(&doc)
	}
	if errors.Is(err, io.EOF) {
		return Rules{}, nil
	}
	if err != nil {
		r.addSyntaxError(err)
	} else if len(doc.Content) == 1 {
		return ReadRules(file, doc.Content[0])
	}
	return Rules{}, r.faultsError()
}

// ReadRules takes the rules from a part of a YAML document, such as the value of
// permissions in a configuration. The file's name is for messages. Faults are an
// *Error.
func ReadRules(file string, node *yaml.Node) (Rules, error) {
	r := reader{file: file}
	rules := r.readMapping(node)
	if err := r.faultsError(); err != nil {
		return Rules{}, err
	}
	return rules, nil
}

// A reader collects what is wrong.
type reader struct {
	file   string
	faults []Fault
}

func (r *reader) faultsError() error {
	if len(r.faults) == 0 {
		return nil
	}
	return &Error{Faults: r.faults}
}

func (r *reader) addFault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, Fault{File: r.file, Line: max(n.Line, 1), Col: max(n.Column, 1), Msg: fmt.Sprintf(format, args...)})
}

func (r *reader) addSyntaxError(err error) {
	if load, ok := errors.AsType[*yaml.LoadError](err); ok && load.Mark.Line > 0 {
		r.addFault(&yaml.Node{Line: load.Mark.Line, Column: load.Mark.Column + 1}, "%s", load.Message)
		return
	}
	r.addFault(&yaml.Node{}, "%v", err)
}

var lists = []string{"allow", "ask", "deny"}

func (r *reader) readMapping(n *yaml.Node) (rules Rules) {
	n = resolveAlias(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return rules
	}
	if n.Kind != yaml.MappingNode {
		r.addFault(n, "permissions are a mapping with the lists allow, ask and deny")
		return rules
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if slices.Contains(seen, key.Value) {
			r.addFault(key, "key %q is given twice", key.Value)
			continue
		}
		seen = append(seen, key.Value)
		switch key.Value {
		case "allow":
			rules.Allow = r.readList(key.Value, value)
		case "ask":
			rules.Ask = r.readList(key.Value, value)
		case "deny":
			rules.Deny = r.readList(key.Value, value)
		default:
			hint := "the keys are allow, ask and deny"
			if near := wording.FindNearest(key.Value, lists); near != "" {
				hint = "did you mean " + near + "?"
			}
			r.addFault(key, "unknown key %q in permissions: %s", key.Value, hint)
		}
	}
	return rules
}

func (r *reader) readList(key string, n *yaml.Node) (rules []Rule) {
	n = resolveAlias(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.addFault(n, "%s is a list of rules", key)
		return nil
	}
	for _, item := range n.Content {
		item = resolveAlias(item)
		if item.Kind != yaml.ScalarNode {
			r.addFault(item, "a rule is a text such as fs_write(src/**); one with ': ' or a leading * needs quotes")
			continue
		}
		rule, err := ParseRule(item.Value)
		if err != nil {
			r.addFault(item, "%v", err)
			continue
		}
		rule.file, rule.line, rule.col = r.file, item.Line, item.Column
		rule.Source = fmt.Sprintf("%s:%d:%d", r.file, item.Line, item.Column)
		rules = append(rules, rule)
	}
	return rules
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}
