package config

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

// FileError reports a config.yaml that cannot be used, with all its errors.
type FileError struct{ Faults []Fault }

// Error lists the errors, one per line.
func (e *FileError) Error() string {
	lines := []string{"the configuration has errors:"}
	for _, f := range e.Faults {
		lines = append(lines, "  "+f.String())
	}
	return strings.Join(lines, "\n")
}

// A configReader reads a file strictly: everything it does not know is an error.
type configReader struct {
	path   string
	env    Environ
	faults []Fault
}

func (r *configReader) addFault(n *yaml.Node, hint, format string, args ...any) {
	f := Fault{Path: r.path, Line: 1, Col: 1, Msg: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil && n.Line > 0 {
		f.Line, f.Col = n.Line, n.Column
	}
	r.faults = append(r.faults, f)
}

func (r *configReader) readConfig(text []byte, c *Config) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		r.addSyntaxFault(err)
		return
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			r.addSyntaxFault(err)
		}
		return
	}
	if len(doc.Content) != 1 {
		return
	}
	r.readMapping(doc.Content[0], "the file", configKeys(), func(key string, v *yaml.Node) {
		switch i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key }); {
		case i >= 0:
			if s, ok := r.readScalar(v, key); ok {
				if err := settings[i].set(c, s); err != nil {
					r.addFault(v, "", "%s: %v", key, err)
				}
			}
		case key == "clients":
			r.readClients(v, c)
		case key == "document_loaders":
			c.RAG.Loaders = map[string]string{}
			r.readMapping(v, "document_loaders", nil, func(name string, command *yaml.Node) {
				if s, ok := r.readScalar(command, name); ok {
					c.RAG.Loaders[name] = s
				}
			})
		case key == "permissions":
			r.readPermissions(v, c)
		case key == "visible_skills":
			c.Skills.Visible = []string{}
			for _, item := range r.readList(v, key) {
				if name, ok := r.readScalar(item, "a name in visible_skills"); ok {
					c.Skills.Visible = append(c.Skills.Visible, name)
				}
			}
		}
	})
}

// readPermissions reads the user's rules for calls of tools.
func (r *configReader) readPermissions(n *yaml.Node, c *Config) {
	var err error
	c.Permissions, err = permission.ReadRules(r.path, n)
	if faults, ok := errors.AsType[*permission.Error](err); ok {
		for _, f := range faults.Faults {
			r.faults = append(r.faults, Fault{Path: f.File, Line: f.Line, Col: f.Col, Msg: f.Msg})
		}
	} else if err != nil {
		r.addFault(n, "", "permissions: %v", err)
	}
}

// addSyntaxFault adds the error of the YAML library, with its place.
func (r *configReader) addSyntaxFault(err error) {
	if load, ok := errors.AsType[*yaml.LoadError](err); ok && load.Mark.Line > 0 {
		r.addFault(&yaml.Node{Line: load.Mark.Line, Column: load.Mark.Column + 1}, "", "%s", load.Message)
		return
	}
	r.addFault(nil, "", "%v", err)
}

// readMapping calls each for every known key of a mapping, in file order; if known is nil,
// for every key.
func (r *configReader) readMapping(n *yaml.Node, what string, known []string, each func(key string, v *yaml.Node)) {
	n = resolveAlias(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.addFault(n, "", "%s must be a mapping of keys to values", what)
		return
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case slices.Contains(seen, key.Value):
			r.addFault(key, "", "key %q is given twice", key.Value)
		case key.Kind != yaml.ScalarNode || known != nil && !slices.Contains(known, key.Value):
			r.addFault(key, wording.SuggestNearest(key.Value, known, ""), "unknown key %q in %s", key.Value, what)
		default:
			each(key.Value, n.Content[i+1])
		}
		seen = append(seen, key.Value)
	}
}

// reference matches a value that is replaced by a variable of the environment.
var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// readScalar returns a value as text. ${NAME} is replaced by the variable's value, or by
// nothing if the variable is not set; a call that misses its key reports that itself.
func (r *configReader) readScalar(n *yaml.Node, what string) (string, bool) {
	n = resolveAlias(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.addFault(n, "", "%s must be a single value", what)
		return "", false
	}
	if m := reference.FindStringSubmatch(n.Value); m != nil {
		return r.env.Get(m[1]), true
	}
	return n.Value, true
}

func (r *configReader) readList(n *yaml.Node, what string) []*yaml.Node {
	n = resolveAlias(n)
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!null" {
		r.addFault(n, "", "%s must be a list", what)
	}
	return nil
}

// resolveAlias follows aliases. The library refuses aliases that contain themselves.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}
