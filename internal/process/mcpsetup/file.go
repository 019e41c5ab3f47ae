package mcpsetup

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/mcp"
)

// An Entry is a server to add.
type Entry struct {
	Kind    string            // "http" or "sse"; empty: a command, or http for an address
	Target  []string          // an address, or a command with its arguments
	Env     map[string]string // of a command
	Headers map[string]string // of an address
	Shared  bool              // the file belongs to a project, and others read it
}

// largestFile is the size in bytes above which a file is not changed.
const largestFile = 1 << 20

// AddServer adds a server to a file, which need not exist.
func AddServer(path, id string, e Entry) error {
	value, err := e.buildValue()
	if err != nil {
		return err
	}
	root, servers, err := readServers(path)
	if err != nil {
		return err
	}
	if _, there := servers.Get(id); there {
		return failure.NewUsage("remove it first: raddle mcp rm "+id, "%s has a server %q already", path, id)
	}
	servers.Set(id, value)
	return writeServers(path, root)
}

// buildValue returns the value of the entry.
func (e Entry) buildValue() (*jsonvalue.Object, error) {
	o := jsonvalue.NewObject()
	first := e.Target[0]
	remote := strings.HasPrefix(first, "https://") || strings.HasPrefix(first, "http://")
	switch {
	case remote && len(e.Target) > 1:
		return nil, failure.NewUsage("", "an address takes no arguments: %s", strings.Join(e.Target[1:], " "))
	case remote && len(e.Env) > 0:
		return nil, failure.NewUsage("write --header for a server on the network", "--env is for a command")
	case !remote && (len(e.Headers) > 0 || e.Kind != ""):
		return nil, failure.NewUsage("write --env for a command", "--header and --type are for an address")
	case remote:
		o.Set("type", cmp.Or(e.Kind, "http"))
		o.Set("url", first)
	default:
		o.Set("command", first)
		if len(e.Target) > 1 {
			o.Set("args", listTexts(e.Target[1:]))
		}
	}
	for name, table := range map[string]map[string]string{"env": e.Env, "headers": e.Headers} {
		if len(table) == 0 {
			continue
		}
		own := jsonvalue.NewObject()
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if v := table[key]; e.Shared && redact.IsSecretField(key) && !strings.Contains(v, "{{") && !strings.Contains(v, "${") {
				return nil, failure.NewUsage("write {{NAME}} and set the variable", "%s looks like a secret, and the file belongs to the project", key)
			}
			own.Set(key, table[key])
		}
		o.Set(name, own)
	}
	return o, nil
}

func listTexts(list []string) (values []any) {
	for _, text := range list {
		values = append(values, text)
	}
	return values
}

// FindServer returns the entry of a server in a file, and whether it is there. A file that does not exist has none.
func FindServer(path, id string) (entry any, there bool, err error) {
	_, servers, err := readServers(path)
	if err != nil {
		return nil, false, err
	}
	entry, there = servers.Get(id)
	return entry, there, nil
}

// SetServer writes the entry of a server into a file, which need not exist, and replaces an entry with its id.
func SetServer(path, id string, entry *jsonvalue.Object) error {
	root, servers, err := readServers(path)
	if err != nil {
		return err
	}
	servers.Set(id, entry)
	return writeServers(path, root)
}

// RemoveServer removes a server from a file, and reports whether it was there.
func RemoveServer(path, id string) (bool, error) {
	root, servers, err := readServers(path)
	if err != nil || !servers.Delete(id) {
		return false, err
	}
	return true, writeServers(path, root)
}

// readServers returns the content of a file and the object with its servers, which is a part of it.
func readServers(path string) (root, servers *jsonvalue.Object, err error) {
	text, err := plainfile.Read(path, largestFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(text)) == "" {
		text = []byte(`{}`)
		err = nil
	}
	if err != nil {
		return nil, nil, err
	}
	value, err := jsonvalue.Parse(text)
	root, ok := value.(*jsonvalue.Object)
	if err != nil || !ok {
		return nil, nil, failure.NewInvalid("change it by hand", "%s is not an object in plain JSON, so that a change would lose comments", path)
	}
	existing, has := root.Get("mcpServers")
	if !has {
		existing = jsonvalue.NewObject()
		root.Set("mcpServers", existing)
	}
	servers, ok = existing.(*jsonvalue.Object)
	if !ok {
		return nil, nil, failure.NewInvalid("change it by hand", "mcpServers in %s is not an object", path)
	}
	return root, servers, nil
}

// writeServers writes a file, for the user only if it is new, after a check that it can be read.
func writeServers(path string, root *jsonvalue.Object) error {
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	f, err := mcp.Parse(path, text)
	if err != nil {
		return err
	}
	if len(f.Problems) > 0 {
		return errors.New(f.Problems[0].Message)
	}
	return config.WritePrivate(path, text)
}

// ParsePairs returns the names and values of texts such as NAME=VALUE, or with another separator.
func ParsePairs(list []string, separator string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, separator)
		if !ok || strings.TrimSpace(name) == "" {
			return nil, failure.NewUsage("", "%q is not NAME%sVALUE", text, separator)
		}
		pairs[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return pairs, nil
}
