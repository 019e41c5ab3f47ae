package moving

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/process/mcpsetup"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/permission"
)

// A Target is where things are written.
type Target struct {
	Dirs    config.Dirs
	Environ environ.Environ // the variables that config.yaml sees
}

// settingPart is a key of config.yaml with one value.
type settingPart struct{ key, value string }

func (p settingPart) compareWith(t *Target) presence {
	old, there := config.ReadKey(t.Dirs.Config, p.key)
	switch {
	case !there:
		return absent
	case old == p.value:
		return same
	}
	return other
}

func (p settingPart) writeTo(t *Target) error {
	_, err := config.SetValue(t.Dirs.Config, p.key, p.value, t.Environ)
	return err
}

// entryPart is a client, or a key of config.yaml with more than one value.
type entryPart struct {
	client bool
	name   string
	fields any // as YAML writes it
}

func (p entryPart) compareWith(t *Target) presence {
	if p.client && config.HasClient(t.Dirs.Config, p.name) {
		return fixed
	}
	if _, there := config.ReadKey(t.Dirs.Config, p.name); !p.client && there {
		return fixed
	}
	return absent
}

func (p entryPart) writeTo(t *Target) error {
	if p.client {
		return config.AddClientEntry(t.Dirs.Config, p.name, p.fields, t.Environ)
	}
	return config.AddKey(t.Dirs.Config, p.name, p.fields, t.Environ)
}

// filesPart is a file, or the files of a directory.
type filesPart struct {
	dir   string // absolute
	files []copied
}

func (p filesPart) compareWith(*Target) presence {
	found := absent
	for _, f := range p.files {
		path := filepath.Join(p.dir, f.path)
		text, err := plainfile.Read(path, 8*largestText)
		switch {
		case err == nil && bytes.Equal(text, f.text):
			found = max(found, same)
		case err == nil || !os.IsNotExist(err):
			return other
		case found == same:
			return other // a part of it is there
		}
	}
	return found
}

func (p filesPart) writeTo(*Target) error {
	for _, f := range p.files {
		path := filepath.Join(p.dir, f.path)
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is a link or a directory: move it away, and import again", path)
		}
		if err := config.WritePrivate(path, f.text); err != nil {
			return err
		}
		if f.mode&0o100 != 0 {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// serverPart is an entry of mcp.json.
type serverPart struct {
	id    string
	entry *jsonvalue.Object
}

func (t *Target) serversFile() string { return filepath.Join(t.Dirs.Config, "mcp.json") }

func (p serverPart) compareWith(t *Target) presence {
	old, there, err := mcpsetup.FindServer(t.serversFile(), p.id)
	switch {
	case err != nil:
		return fixed
	case !there:
		return absent
	case jsonvalue.Equal(old, p.entry):
		return same
	}
	return other
}

func (p serverPart) writeTo(t *Target) error {
	return mcpsetup.SetServer(t.serversFile(), p.id, p.entry)
}

// rulePart are rules of a list of permissions.yaml, which together mean one rule of another program.
type rulePart struct {
	list  string // allow, ask or deny
	rules []string
}

func (t *Target) rulesFile() string { return filepath.Join(t.Dirs.Config, "permissions.yaml") }

func (p rulePart) compareWith(t *Target) presence {
	text, err := plainfile.Read(t.rulesFile(), largestText)
	if err != nil {
		return absent
	}
	old, err := permission.LoadRules(t.rulesFile(), text)
	if err != nil {
		return fixed
	}
	for _, rule := range p.rules {
		if !slices.ContainsFunc(old.List(p.list), func(r permission.Rule) bool { return r.Text == rule }) {
			return absent
		}
	}
	return same
}

func (p rulePart) writeTo(t *Target) error {
	return permission.AddRules(t.rulesFile(), p.list, p.rules)
}

// writeFailed begins the reason of a thing that could not be written.
const writeFailed = "it could not be written: "

// Write carries out a plan. It continues after a failure: the thing is left then, with the error as its reason.
func (p *Plan) Write(t *Target) (failed int) {
	for i := range p.Things {
		thing := &p.Things[i]
		if thing.part == nil {
			continue
		}
		if err := thing.part.writeTo(t); err != nil {
			thing.leaveThing(writeFailed + err.Error())
			failed++
		}
	}
	return failed
}
