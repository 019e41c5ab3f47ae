package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"raddle.dev/flow/hook"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/tool/permission"
)

// FileError reports a config.yaml that cannot be used, with everything that is wrong with it.
type FileError struct{ Findings []strictyaml.Finding }

// Error lists the findings, one per line.
func (e *FileError) Error() string {
	return "the configuration has errors:\n" + strictyaml.JoinFindings(e.Findings, "  ")
}

// ListFindings returns the findings.
func (e *FileError) ListFindings() []strictyaml.Finding { return e.Findings }

// A configReader reads a file strictly: everything it does not know is an error.
type configReader struct {
	*strictyaml.Document
	env environ.Environ
	// the file is for another environment as well: a value whose variable is not set here is not looked at
	elsewhere bool
}

// readSetKeys is ReadKeys for the keys that have a value: null means the default.
func (r *configReader) readSetKeys(n *yaml.Node, what string, known []string, each func(key string, value *yaml.Node)) {
	r.Replaced = replacedKeys
	r.ReadKeys(n, what, known, func(key string, value *yaml.Node) {
		if !strictyaml.IsEmpty(strictyaml.ResolveAlias(value)) {
			each(key, value)
		}
	})
}

func (r *configReader) readConfig(c *Config) {
	if r.Root == nil {
		return
	}
	r.readSetKeys(r.Root, "the file", configKeys(), func(key string, v *yaml.Node) {
		switch i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key }); {
		case i >= 0:
			if s, ok := r.readScalar(v, key); ok {
				if err := settings[i].set(c, s); err != nil {
					r.ReportFault(v, "", "%s: %v", key, err)
				}
			}
		case key == "clients":
			r.readClients(v, c)
		case key == "document_loaders":
			c.RAG.Loaders = map[string]string{}
			r.ReadKeys(v, "document_loaders", nil, func(name string, command *yaml.Node) {
				if s, ok := r.readScalar(command, name); ok {
					c.RAG.Loaders[name] = s
				}
			})
		case key == "permissions":
			c.Permissions = permission.ReadRules(r.Document, v)
		case key == "hooks":
			place := func(n *yaml.Node) strictyaml.Pos { return strictyaml.Pos{File: r.Path, Line: n.Line, Col: n.Column} }
			c.Hooks = hook.Read(v, place, r.ReportFault)
		case key == "visible_skills":
			c.Skills.Visible = []string{}
			for _, item := range r.ReadItems(v, key) {
				if name, ok := r.readScalar(item, "a name in visible_skills"); ok {
					c.Skills.Visible = append(c.Skills.Visible, name)
				}
			}
		}
	})
}

// An UnsetVariable is a reference of a client to a variable that has no value.
type UnsetVariable struct {
	Key   string // of the client
	Name  string // of the variable
	Empty bool   // it is set, to nothing
	Pos   strictyaml.Pos
}

// String says what is wrong, and where.
func (u UnsetVariable) String() string { return u.Pos.String() + ": " + u.Text() }

// Text says what is wrong.
func (u UnsetVariable) Text() string {
	return fmt.Sprintf("%s names the variable %s, which is %s", u.Key, u.Name, describeUnset(u.Empty))
}

func describeUnset(empty bool) string {
	if empty {
		return "empty"
	}
	return "not set"
}

// readScalar returns a value as text. A reference, ${NAME} or {{NAME}}, is replaced by the variable's value; without
// one it is a fault.
func (r *configReader) readScalar(n *yaml.Node, what string) (string, bool) {
	text, unset, ok := r.readReference(n, what)
	if ok && unset != nil {
		if r.elsewhere {
			return "", false
		}
		r.ReportFault(n, "set it, or write the value", "%s names the variable %s, which is %s", what, unset.Name, describeUnset(unset.Empty))
		return "", false
	}
	return text, ok
}

// readReference is like readScalar, but returns the variable that a reference names if it has no value.
func (r *configReader) readReference(n *yaml.Node, what string) (text string, unset *UnsetVariable, ok bool) {
	n = strictyaml.ResolveAlias(n)
	if strictyaml.IsBroken(n) {
		return "", nil, false
	}
	if n.Kind != yaml.ScalarNode || strictyaml.IsEmpty(n) {
		r.ReportFault(n, "", "%s must be a single value", what)
		return "", nil, false
	}
	ref, isReference := environ.ParseReference(n.Value)
	if !isReference {
		return n.Value, nil, true
	}
	value, set := r.env.Lookup(ref.Name)
	if !set {
		unset = &UnsetVariable{Key: what, Name: ref.Name, Empty: r.env.IsSet(ref.Name), Pos: strictyaml.Pos{File: r.Path, Line: n.Line, Col: n.Column}}
	}
	return value, unset, true
}
