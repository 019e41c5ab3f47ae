package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/bundle"
	"raddle.dev/internal/storage/config"
)

// Place is the location of an agent.
type Place struct {
	Name string `json:"name"` // name of its directory, which is the agent's identity
	Dir  string `json:"dir"`  // absolute
}

// definitions are the files that make a directory an agent.
var definitions = []string{"graph.yaml", "config.yaml"}

// IsPath reports whether a word names an agent by its path: it has a separator, a
// leading dot, or the suffix of a YAML file.
func IsPath(s string) bool {
	ext := strings.ToLower(filepath.Ext(s))
	return strings.HasPrefix(s, ".") || strings.ContainsAny(s, "/"+string(filepath.Separator)) || ext == ".yaml" || ext == ".yml"
}

// FindAgent locates an agent by its path, or by its name: in the agents directory, or among those that come with the
// program. A copy of one of those in the agents directory counts once it was changed. [RolePrefix] and a name mean a
// role, as does the name of a role that is no agent.
func (p *Process) FindAgent(agent string) (place Place, err error) {
	if agent == "" {
		return Place{}, failure.NewUsage("name one: an agent in "+p.Dirs.ShortPath(p.Dirs.Agents)+", or a path", "the agent's name is empty")
	}
	if name, ok := strings.CutPrefix(agent, RolePrefix); ok {
		return p.openRole(name)
	}
	if IsPath(agent) {
		return p.findPath(agent)
	}
	place = Place{Name: filepath.Base(p.agentDir(agent)), Dir: p.agentDir(agent)}
	if p.Bundled.replaces(place.Dir) {
		dir, err := p.Bundled.Unpack()
		if err == nil {
			return Place{Name: agent, Dir: filepath.Join(dir, agent)}, nil
		}
		if !config.IsDir(place.Dir) {
			return Place{}, &failure.Error{Kind: failure.Usage, Err: err, Next: "raddle agents copy " + agent + " writes it to " + p.Dirs.ShortPath(p.Dirs.Agents)}
		}
	}
	if !config.IsDir(place.Dir) {
		if role, err := p.openRole(agent); err == nil {
			return role, nil
		}
		return Place{}, p.unknownAgent(agent)
	}
	return place, nil
}

// agentDirs returns the directories in which agents that others name are searched.
func (p *Process) agentDirs() flow.AgentDirs {
	dirs := []string{p.Dirs.Agents}
	if bundled, err := p.Bundled.Unpack(); err == nil {
		dirs = append(dirs, bundled)
	}
	return flow.AgentDirs{Dirs: dirs, Outdated: p.Bundled.replaces}
}

// agentDir returns the directory of the agent with a name; <AGENT>_DATA_DIR may move it.
func (p *Process) agentDir(name string) string {
	if moved, ok := p.env.Lookup(environ.FormatVariable(name) + "_DATA_DIR"); ok {
		return p.Dirs.AbsPath(moved)
	}
	return filepath.Join(p.Dirs.Agents, name)
}

func (p *Process) unknownAgent(name string) error {
	var known []string
	for _, a := range p.ListAgents() {
		known = append(known, a.Name)
	}
	next := wording.SuggestNearest(name, known, "")
	switch local := filepath.Join(p.Dirs.Work, name); {
	case hasDefinition(local):
		next = "the directory here is ./" + name
	case next != "":
	case len(known) == 0:
		next = "that directory has no agents; for a path, write ./" + name
	default:
		next = "the agents there are " + strings.Join(known, ", ") + "; for a path, write ./" + name
	}
	return failure.NewUsage(next, "unknown agent %q: there is no directory %s", name, p.Dirs.ShortPath(p.agentDir(name)))
}

// findPath locates an agent by its directory or by its definition file.
func (p *Process) findPath(path string) (Place, error) {
	abs := p.Dirs.AbsPath(path)
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Place{}, failure.NewUsage(suggestSibling(abs, path), "unknown agent %q: there is no such file or directory", path)
	case err != nil:
		return Place{}, &failure.Error{Kind: failure.Usage, Msg: "unknown agent " + path, Err: err}
	case info.IsDir():
		return Place{Name: filepath.Base(abs), Dir: abs}, nil
	case !slices.Contains(definitions, filepath.Base(abs)):
		return Place{}, failure.NewUsage("name the agent's directory", "%s is not an agent: the file of an agent is graph.yaml or config.yaml", path)
	}
	dir := filepath.Dir(abs)
	return Place{Name: filepath.Base(dir), Dir: dir}, nil
}

// suggestSibling suggests other names for those parts of a path that do not exist, if all of them have one that is
// near. It is written as the user wrote the path.
func suggestSibling(abs, written string) string {
	parts := strings.Split(filepath.Clean(written), string(filepath.Separator))
	// The longest path that exists, and how many of the parts it has.
	at := abs
	missing := len(parts)
	for ; missing > 0; missing-- {
		if _, err := os.Lstat(at); err == nil {
			break
		}
		at = filepath.Dir(at)
	}
	for i := missing; i < len(parts); i++ {
		if _, err := os.Lstat(filepath.Join(at, parts[i])); err != nil {
			near := findNearestName(at, parts[i])
			if near == "" {
				return ""
			}
			parts[i] = near
		}
		at = filepath.Join(at, parts[i])
	}
	other := strings.Join(parts, string(filepath.Separator))
	if here := "." + string(filepath.Separator); strings.HasPrefix(written, here) && len(parts) == 1 {
		other = here + other
	}
	return "did you mean " + other + "?"
}

// findNearestName returns the name in a directory that is nearest to another one, or "".
func findNearestName(dir, name string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return wording.FindNearest(name, names)
}

// ListAgents returns the agents that can be called by their name, sorted: those in the agents directory, and those that
// come with the program.
func (p *Process) ListAgents() []Place {
	var agents []Place
	if dir, err := p.Bundled.Unpack(); err == nil {
		for _, name := range bundle.Names() {
			if p.Bundled.replaces(filepath.Join(p.Dirs.Agents, name)) {
				agents = append(agents, Place{Name: name, Dir: filepath.Join(dir, name)})
			}
		}
	}
	entries, _ := os.ReadDir(p.Dirs.Agents) // a directory that does not exist has no agents
	for _, e := range entries {
		if dir := filepath.Join(p.Dirs.Agents, e.Name()); hasDefinition(dir) && !slices.ContainsFunc(agents, func(a Place) bool { return a.Name == e.Name() }) {
			agents = append(agents, Place{Name: e.Name(), Dir: dir})
		}
	}
	slices.SortFunc(agents, func(a, b Place) int { return strings.Compare(a.Name, b.Name) })
	return agents
}

func hasDefinition(dir string) bool {
	return slices.ContainsFunc(definitions, func(name string) bool { return config.IsFile(filepath.Join(dir, name)) })
}
