package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/wording"
	"raddle.dev/tool/permission"
)

// Fault is one error in config.yaml.
type Fault struct {
	Path      string
	Line, Col int
	Msg, Hint string
}

// String returns the error on one line, with its place.
func (f Fault) String() string {
	s := fmt.Sprintf("%s:%d:%d: error: %s", f.Path, f.Line, f.Col, f.Msg)
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}

// ConfigError reports a config.yaml that cannot be used, with all its errors.
type ConfigError struct{ Faults []Fault }

// Error lists the errors, one per line.
func (e *ConfigError) Error() string {
	lines := []string{"the configuration has errors:"}
	for _, f := range e.Faults {
		lines = append(lines, "  "+f.String())
	}
	return strings.Join(lines, "\n")
}

// A configReader reads a file strictly: everything it does not know is an error.
type configReader struct {
	path   string
	env    environ
	faults []Fault
}

func (r *configReader) fault(n *yaml.Node, hint, format string, args ...any) {
	f := Fault{Path: r.path, Line: 1, Col: 1, Msg: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil && n.Line > 0 {
		f.Line, f.Col = n.Line, n.Column
	}
	r.faults = append(r.faults, f)
}

func (r *configReader) read(text []byte, c *Config) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		r.syntax(err)
		return
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			r.syntax(err)
		}
		return
	}
	if len(doc.Content) != 1 {
		return
	}
	r.mapping(doc.Content[0], "the file", known(), func(key string, v *yaml.Node) {
		switch i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key }); {
		case i >= 0:
			if s, ok := r.scalar(v, key); ok {
				if err := settings[i].set(c, s); err != nil {
					r.fault(v, "", "%s: %v", key, err)
				}
			}
		case key == "clients":
			r.clients(v, c)
		case key == "document_loaders":
			c.RAG.Loaders = map[string]string{}
			r.mapping(v, "document_loaders", nil, func(name string, command *yaml.Node) {
				if s, ok := r.scalar(command, name); ok {
					c.RAG.Loaders[name] = s
				}
			})
		case key == "permissions":
			r.permissions(v, c)
		case key == "visible_skills":
			c.Skills.Visible = []string{}
			for _, item := range r.list(v, key) {
				if name, ok := r.scalar(item, "a name in visible_skills"); ok {
					c.Skills.Visible = append(c.Skills.Visible, name)
				}
			}
		}
	})
}

// permissions reads the user's rules for calls of tools.
func (r *configReader) permissions(n *yaml.Node, c *Config) {
	var err error
	c.Permissions, err = permission.Read(r.path, n)
	if faults, ok := errors.AsType[*permission.Error](err); ok {
		for _, f := range faults.Faults {
			r.faults = append(r.faults, Fault{Path: f.File, Line: f.Line, Col: f.Col, Msg: f.Msg})
		}
	} else if err != nil {
		r.fault(n, "", "permissions: %v", err)
	}
}

// syntax adds the error of the YAML library, with its place.
func (r *configReader) syntax(err error) {
	if load, ok := errors.AsType[*yaml.LoadError](err); ok && load.Mark.Line > 0 {
		r.fault(&yaml.Node{Line: load.Mark.Line, Column: load.Mark.Column + 1}, "", "%s", load.Message)
		return
	}
	r.fault(nil, "", "%v", err)
}

// mapping calls each for every known key of a mapping, in file order; if known is nil,
// for every key.
func (r *configReader) mapping(n *yaml.Node, what string, known []string, each func(key string, v *yaml.Node)) {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "", "%s must be a mapping of keys to values", what)
		return
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case slices.Contains(seen, key.Value):
			r.fault(key, "", "key %q is given twice", key.Value)
		case key.Kind != yaml.ScalarNode || known != nil && !slices.Contains(known, key.Value):
			r.fault(key, wording.SuggestNearest(key.Value, known, ""), "unknown key %q in %s", key.Value, what)
		default:
			each(key.Value, n.Content[i+1])
		}
		seen = append(seen, key.Value)
	}
}

// reference matches a value that is replaced by a variable of the environment.
var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// scalar returns a value as text. ${NAME} is replaced by the variable's value, or by
// nothing if the variable is not set; a call that misses its key reports that itself.
func (r *configReader) scalar(n *yaml.Node, what string) (string, bool) {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fault(n, "", "%s must be a single value", what)
		return "", false
	}
	if m := reference.FindStringSubmatch(n.Value); m != nil {
		return r.env.get(m[1]), true
	}
	return n.Value, true
}

func (r *configReader) list(n *yaml.Node, what string) []*yaml.Node {
	n = resolve(n)
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!null" {
		r.fault(n, "", "%s must be a list", what)
	}
	return nil
}

// resolve follows aliases. The library refuses aliases that contain themselves.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}
