package app

import (
	"log/slog"
	"path/filepath"
	"slices"

	"raddle.dev/flow"
	"raddle.dev/tool"
	"raddle.dev/tool/script"
)

// Surroundings are what the user interface adds to an agent's surroundings. The
// zero value works.
type Surroundings struct {
	Log     *slog.Logger      // nil: no log
	Replays func(file string) // told once of every transcript that is replayed in place of a model
	Told    func(line string) // told what the building of a knowledge base does; nil: nobody
	// Progress is told how far that is, in place of a line for each document: nil: Told
	// is.
	Progress func(flow.Building)
	// Confirm asks a person before a run begins whether a knowledge base is to be
	// built; nil: nobody can be asked.
	Confirm func(question string) (bool, error)
	// Ask asks that person for a value, with the usual one; nil: as Confirm.
	Ask func(question, usual string) (string, error)

	InDoubt tool.Doubt // of every call that a crash cut off; unset: as tool, agent and configuration say

	recorded []string // ids of replies that the run has recorded
}

// host is what an agent runs in, as its start record says.
func (p *Process) host(r *Record, s Surroundings) (flow.Host, error) {
	box := p.toolbox(r.Workspace, r.Dir)
	box.log = s.Log
	secrets := p.Secrets()
	p.addDotenv(r.Dir)
	gate, err := p.gate(box, r.Dir)
	if err != nil {
		return flow.Host{}, rulesError(err)
	}
	m := p.models()
	m.replays, m.recorded = s.Replays, s.recorded
	return flow.Host{
		Models:      m,
		Model:       r.Model,
		Override:    r.Override,
		Temperature: r.Temperature,
		TopP:        r.TopP,
		Bounds:      flow.Bounds{Patience: p.Config.Patience, Value: p.Config.MaxValue},
		AgentDirs:   []string{p.Dirs.Agents},
		NoSpawn:     r.NoSpawn,
		Variables:   r.Variables,
		Getenv:      p.overrides(r),
		Skills:      slices.Concat(flow.InstalledSkills(p.Dirs.Config), flow.InstalledSkills(r.Workspace), flow.InstalledSkills(filepath.Join(r.Workspace, ".raddle"))),
		Env:         box.childEnv(),
		ConfigDir:   p.Dirs.Config,
		Workspace:   r.Workspace,
		Redactor:    secrets,
		Strict:      r.Strict,
		Log:         s.Log,
		Tooling: flow.Tooling{Box: box, Gate: gate, Doubts: func(dir string) bool { return !box.standsFor(dir) }, Packages: box.packages,
			Bin:         filepath.Join(p.Dirs.Functions, "bin"),
			PromptUtils: func() (string, error) { return script.PromptUtils(p.Dirs.Functions, p.Dirs.Cache) },
			InDoubt:     p.Config.InDoubt, Doubt: s.InDoubt},
		Retrieval: p.retrieval(s),
		Headless:  r.Headless,
	}, nil
}

// overrides looks up the variables that replace an agent's values: in the start
// record, where they were found when the run was started; else here.
func (p *Process) overrides(r *Record) func(string) string {
	if r.Overrides == nil {
		return p.env.get
	}
	return func(name string) string { return r.Overrides[name] }
}

// Look is what to load an agent for without running it.
type Look struct {
	Agent  string // name or path
	Model  string // in place of every model; "": as the agent says
	Strict bool   // unknown keys are errors

	Variables map[string]string // of the agent, set by the caller
}

// Load reads and checks an agent. It calls no model and needs no key.
func (p *Process) Load(l Look) (*flow.Agent, error) {
	place, err := p.Find(l.Agent)
	if err != nil {
		return nil, err
	}
	r := &Record{Agent: place.Name, Dir: place.Dir, Model: p.Config.Model, Override: p.override(l.Model), Strict: l.Strict, Variables: l.Variables, Workspace: p.Dirs.Work}
	host, err := p.host(r, Surroundings{})
	if err != nil {
		return nil, err
	}
	return flow.Load(place.Dir, host)
}
