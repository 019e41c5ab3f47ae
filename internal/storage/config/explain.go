package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
)

// A Setting is one effective value of the configuration, and where it comes from.
type Setting struct {
	Key    string `json:"key"`    // the path in config.yaml, such as clients.local.api_base
	Value  string `json:"value"`  // "": not set, and there is no default
	Source string `json:"source"` // config.yaml:LINE, the name of a variable, or SourceDefault
}

// SourceDefault is the source of a value that neither the file nor the environment sets.
const SourceDefault = "default"

// HiddenValue replaces a key of a provider.
const HiddenValue = "(hidden)"

// defaults are the values of settings that nothing sets, where there is one for all agents.
var defaults = map[string]string{
	"box": "true", "function_calling_support": "true", "mcp_server_support": "true", "skills_enabled": "true",
	"max_reply": "16", "max_state": "64", "max_value": "16", "min_free_disk": "64",
	"read_timeout": "5m", "retry_patience": "2m", "stream_timeout": "30m", "theme": "auto", "update_notice": "false",
}

// ListSettings returns the values of all keys of config.yaml in alphabetical order. Errors of the file are a
// [*FileError].
func ListSettings(dirs Dirs, env environ.Environ) ([]Setting, error) {
	path := filepath.Join(dirs.Config, FileName)
	text, err := plainfile.Read(path, 2*strictyaml.MaxFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := checkText(path, text, env, true); err != nil {
		return nil, err
	}
	l := settingLister{env: env}
	root := strictyaml.Read(path, text).Root
	for _, key := range configKeys() {
		_, value := findKey(root, key)
		variable := "RADDLE_" + strings.ToUpper(key)
		fromEnv, set := env.Lookup(variable)
		_, notScalar := findSetting(key)
		switch {
		case notScalar == nil && set:
			l.list = append(l.list, Setting{key, fromEnv, variable})
		case value != nil:
			l.addNode(key, value)
		case key == "store":
			l.list = append(l.list, Setting{key, "sqlite:" + filepath.Join(dirs.State, "runs.db"), SourceDefault})
		default:
			l.list = append(l.list, Setting{key, defaults[key], SourceDefault})
		}
	}
	return l.list, nil
}

// A settingLister collects the scalars of a tree with their paths.
type settingLister struct {
	env  environ.Environ
	list []Setting
}

func (l *settingLister) addNode(path string, n *yaml.Node) {
	n = strictyaml.ResolveAlias(n)
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			l.addNode(path+"."+n.Content[i].Value, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			l.addNode(path+"."+cmp.Or(itemName(item), fmt.Sprint(i+1)), item)
		}
	case yaml.ScalarNode:
		l.addScalar(path, n)
	}
}

// itemName returns the name of an item of a list that is a mapping: that of a client, or of a model.
func itemName(n *yaml.Node) string {
	for _, key := range []string{"name", "type"} {
		if _, name := findKey(strictyaml.ResolveAlias(n), key); name != nil {
			return name.Value
		}
	}
	return ""
}

func (l *settingLister) addScalar(path string, n *yaml.Node) {
	s := Setting{path, n.Value, fmt.Sprintf("%s:%d", FileName, n.Line)}
	if ref, ok := environ.ParseReference(n.Value); ok {
		s.Value = l.env.Get(ref.Name)
		s.Source = ref.Name + ", named in " + s.Source
	}
	secret := strings.HasSuffix(path, ".api_key") || strings.Contains(path, ".extra_headers.")
	if strings.HasPrefix(path, "clients.") && secret && s.Value != "" {
		s.Value = HiddenValue
	}
	l.list = append(l.list, s)
}

// FindSettings returns the settings of a key and of what is below it.
func FindSettings(list []Setting, key string) []Setting {
	return slices.DeleteFunc(slices.Clone(list), func(s Setting) bool {
		return s.Key != key && !strings.HasPrefix(s.Key, key+".")
	})
}

// ListKeys returns the keys of config.yaml; scalar leaves out those with more than one value.
func ListKeys(scalar bool) []string {
	if !scalar {
		return configKeys()
	}
	var keys []string
	for _, s := range settings {
		keys = append(keys, s.key)
	}
	return keys
}
