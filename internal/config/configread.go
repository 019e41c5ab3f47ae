package config

import (
	"cmp"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/environ"
	"raddle.dev/internal/strictyaml"
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
}

func (r *configReader) readConfig(c *Config) {
	if r.Root == nil {
		return
	}
	r.ReadKeys(r.Root, "the file", configKeys(), func(key string, v *yaml.Node) {
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

// reference matches a value that is replaced by a variable of the environment: ${NAME}, or {{NAME}} as other programs write it.
var reference = regexp.MustCompile(`^(?:\$\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}|\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\})$`)

// referencedVariable returns the name of the variable that a value stands for, "" if it stands for itself.
func referencedVariable(value string) string {
	m := reference.FindStringSubmatch(value)
	if m == nil {
		return ""
	}
	return cmp.Or(m[1], m[2])
}

// readScalar returns a value as text. ${NAME} is replaced by the variable's value, or by
// nothing if the variable is not set; a call that misses its key reports that itself.
func (r *configReader) readScalar(n *yaml.Node, what string) (string, bool) {
	n = strictyaml.ResolveAlias(n)
	if strictyaml.IsBroken(n) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || strictyaml.IsEmpty(n) {
		r.ReportFault(n, "", "%s must be a single value", what)
		return "", false
	}
	if name := referencedVariable(n.Value); name != "" {
		return r.env.Get(name), true
	}
	return n.Value, true
}
