package app

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/storage/config"
)

// RolePrefix begins a name that means a role: role:NAME is the agent that roles/NAME.md in the directory of config.yaml
// describes.
const RolePrefix = "role:"

func (p *Process) rolesDir() string { return filepath.Join(p.Dirs.Config, "roles") }

// openedRoles is the directory below which roles are agents, as files.
func (p *Process) openedRoles() string { return filepath.Join(p.Dirs.Cache, "roles") }

// ReadRole reads the role with a name.
func (p *Process) ReadRole(name string) (agentfile.Role, error) {
	if name == "" || filepath.Base(name) != name || strings.HasPrefix(name, ".") {
		return agentfile.Role{}, p.unknownRole(name)
	}
	text, err := plainfile.Read(filepath.Join(p.rolesDir(), name+".md"), strictyaml.MaxFileSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return agentfile.Role{}, p.unknownRole(name)
	case err != nil:
		return agentfile.Role{}, &failure.Error{Kind: failure.Invalid, Msg: "the role " + name + " cannot be read", Err: err}
	}
	return agentfile.ReadRole(name, text), nil
}

func (p *Process) unknownRole(name string) error {
	var known []string
	for _, r := range p.ListRoles() {
		known = append(known, r.Name)
	}
	next := wording.SuggestNearest(name, known, "")
	switch {
	case next != "":
	case known == nil:
		next = "write its instructions into " + p.Dirs.ShortPath(filepath.Join(p.rolesDir(), "NAME.md"))
	default:
		next = "the roles are " + strings.Join(known, ", ")
	}
	return failure.NewUsage(next, "unknown role %q: there is no such file in %s", name, p.Dirs.ShortPath(p.rolesDir()))
}

// ListRoles returns the roles that can be read, sorted by name.
func (p *Process) ListRoles() (roles []agentfile.Role) {
	entries, _ := os.ReadDir(p.rolesDir()) // a directory that does not exist has no roles
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || name == "" || strings.HasPrefix(name, ".") {
			continue
		}
		text, err := plainfile.Read(filepath.Join(p.rolesDir(), e.Name()), strictyaml.MaxFileSize)
		if err == nil {
			roles = append(roles, agentfile.ReadRole(name, text))
		}
	}
	return roles
}

// openRole returns the agent that a role is. Its config.yaml is written below the cache, unless it is there.
func (p *Process) openRole(name string) (Place, error) {
	role, err := p.ReadRole(name)
	if err != nil {
		return Place{}, err
	}
	text, err := role.Config()
	if err != nil {
		return Place{}, failure.NewInvalid("correct the head of the file", "%v", err)
	}
	dir := filepath.Join(p.openedRoles(), name)
	path := filepath.Join(dir, config.FileName)
	if old, err := plainfile.Read(path, 2*strictyaml.MaxFileSize); err == nil && bytes.Equal(old, text) {
		return Place{Name: name, Dir: dir}, nil
	}
	return Place{Name: name, Dir: dir}, config.WritePrivate(path, text)
}
