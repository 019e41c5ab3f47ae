package moving

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/fetchagent"
)

// originFile is the file of an agent that says where it is from.
const originFile = ".origin"

// AddShared fetches agents, skills, tools, roles and commands from an address, shows them, asks, and takes them.
func (m *Importer) AddShared(ctx context.Context, address string, env []string, o Options) error {
	if m.Ask == nil && !o.Yes {
		return failure.NewUsage("look at it on a terminal, or add --yes", "what comes from an address can run programs here, and there is no terminal to ask on")
	}
	dir, remove, err := tempdir.New("shared-*")
	if err != nil {
		return err
	}
	defer remove()
	from, err := fetchagent.Fetch(ctx, address, m.Target.Dirs.Work, env, dir)
	if err != nil {
		return err
	}
	p := Program{Name: from.Address, read: func(r *reader) { r.readShared(from) }}
	s := p.readHome(m.Target.Dirs, from.Dir)
	for i := range s.things {
		s.things[i].From = from.Address + "@" + from.Pin
	}
	sortThings(s.things)
	plan := &Plan{Things: s.things}
	if len(plan.Things) == 0 {
		return failure.NewInvalid("an agent is a directory with a config.yaml or a graph.yaml; a skill has a SKILL.md", "there is nothing for raddle at %s", from.Address)
	}
	plan.settleAll(m.Target, o.Replace)
	m.PrintNote("raddle: %s at %s", from.Address, from.Pin)
	return m.carryOut(ctx, plan, o)
}

// readShared reads a tree of files that others share.
func (r *reader) readShared(from fetchagent.Origin) {
	if r.isAgent("") {
		r.takeShared(from.Name, "", from) // what lies in it is its own
		return
	}
	for _, dir := range []string{"", "agents", "assets/agents"} {
		for _, name := range r.listNames(dir) {
			if path := filepath.Join(dir, name); isName(name) && !strings.HasPrefix(name, ".") && r.isAgent(path) {
				r.takeShared(name, path, from)
			}
		}
	}
	if r.isDir(filepath.Join("agents", ".shared")) {
		r.takeDir(kindAgent, ".shared", filepath.Join("agents", ".shared"), r.makePath("agents", ".shared"))
	}
	r.takeSkills("skills")
	for _, path := range r.listFiles("roles", ".md") {
		r.takeRole(path, nil)
	}
	r.takeCommands("commands")
	r.readLokiFunctions()
}

func (r *reader) isAgent(dir string) bool {
	return r.hasFile(filepath.Join(dir, "config.yaml")) || r.hasFile(filepath.Join(dir, "graph.yaml"))
}

// takeShared takes an agent with a file that says where it is from, and says which of its files may run.
func (r *reader) takeShared(name, dir string, from fetchagent.Origin) {
	if !isName(name) {
		r.leaveThing(kindAgent, name, dir, "the name cannot be that of a directory")
		return
	}
	files, left := r.copyDir(dir)
	var programs []string
	for _, f := range files {
		if slices.Contains([]string{".sh", ".py", ".ts", ".js"}, filepath.Ext(f.path)) || f.mode&0o100 != 0 {
			programs = append(programs, f.path)
		}
	}
	notes := []string{"it runs no programs of its own"}
	if len(programs) > 0 {
		notes[0] = fmt.Sprintf("it may run %s: %s", wording.FormatCount(len(programs), "program"), strings.Join(programs, ", "))
	}
	notes = append(notes, describeLeft(left), noteBundled(name))
	notes = slices.DeleteFunc(notes, func(n string) bool { return n == "" })
	files = append(files, copied{path: originFile, text: []byte(from.Address + "\n" + from.Pin + "\n"), mode: 0o600})
	to := r.makePath("agents", name)
	r.takeThing(kindAgent, name, dir, to, filesPart{dir: to, files: files}, strings.Join(notes, "; "))
}
