package app

import (
	"cmp"
	"errors"
	"log/slog"
	"path/filepath"

	"raddle.dev/flow"
	"raddle.dev/flow/check"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
	"raddle.dev/tool/script"
)

// UIHooks are the functions and settings with which a user interface takes part in a run. The
// zero value works.
type UIHooks struct {
	Log     *slog.Logger      // of a run; nil: that of the process
	Replays func(file string) // called once for every transcript that replaces a model
	Notify  func(line string) // called with messages about the build of a knowledge base; nil: only the log says it
	// StoreAway is called when a run begins to wait for a store that is not available, with the error, and when the
	// store is back, with nil. It may be called on any goroutine. nil: only the log says it.
	StoreAway func(err error)
	// Progress is called with the progress of a build, instead of a message for each
	// document. If nil, Notify is called.
	Progress func(flow.BuildProgress)
	// Confirm asks a person before a run starts whether to build a knowledge base. If
	// nil, there is no person to ask.
	Confirm func(question string) (bool, error)
	// Ask asks that person for a value, with a default. If nil, there is no person to ask.
	Ask func(question, usual string) (string, error)

	// Terminal lends the terminal to the script that makes the instructions of the
	// agent that was started; the error says why there is none. If nil, there is none.
	Terminal func() (*toolbox.Terminal, error)

	// Mode is the permission mode of the run, which may change while the run works. nil: that of the start record, or
	// of the configuration for a new run.
	Mode *permission.ModeSwitch
	// Person reports that a person is at a terminal, whom calls may ask that want out of the box in the mode box.
	Person bool

	// Adjust is called last when the environment of a run is made: it may replace models, and wrap nodes, tools and
	// searches. With it, raddle does not check before the run whether its models can be called. nil: nothing is
	// changed.
	Adjust func(*flow.Host)

	// Journal returns the store that a drive of the run writes to, instead of the store of the process. nil: the
	// latter.
	Journal func(journal.Store) journal.Store

	// Clock is that of the run; nil: that of the machine.
	Clock graph.Clock

	InDoubt tool.Doubt // for every call that a crash interrupted; unset: as tool, agent and configuration say

	// directories whose scripts the user approved when the run started, with the files that they have now
	approved []string
	unnamed  bool        // no one at this machine named the agent: what it would run asks
	files    *agentFiles // of a run that uses files from the store; nil: those of its directory
	// recorded returns the ids of the replies that the run had recorded when it was prepared; nil: there are none
	recorded func() ([]string, error)
}

// chooseAdjust returns what changes the environment of a run; nil: nothing does.
func (p *Process) chooseAdjust(s UIHooks) func(*flow.Host) {
	if s.Adjust != nil {
		return s.Adjust
	}
	return p.Adjust
}

// newHost returns the environment that an agent runs in, as its start record says.
func (p *Process) newHost(r *runs.Record, s UIHooks) (flow.Host, error) {
	named := r.NamedDir()
	if s.unnamed {
		named = ""
	}
	box := p.Tools.NewToolbox(r.Workspace, named)
	box.Approved = s.approved
	if s.files != nil {
		box.Approved = s.files.approved
		box.Homes = s.files.homes
	}
	log := cmp.Or(s.Log, p.Log)
	box.Log = log
	switch {
	case r.Headless:
		box.Terminal = func() (*toolbox.Terminal, error) { return nil, errors.New("raddle was started with --headless") }
	case s.Terminal != nil:
		box.Terminal = s.Terminal
	}
	secrets := p.Tools.SecretSet()
	p.Tools.AddDotenv(r.Dir)
	p.Tools.AddDotenv(r.NamedDir())
	box.Person = s.Person && !r.Headless
	gate, err := p.Tools.NewGate(box, named, s.Mode)
	if err == nil && s.Mode.Mode() == permission.ModeBox {
		err = box.RequireBox()
	}
	if err != nil {
		return flow.Host{}, err
	}
	hooks, err := box.OpenHooks()
	if err != nil {
		return flow.Host{}, err
	}
	m := p.Models.ForRun(s.recorded, s.Replays)
	m.AllowTranscript(r.Override)
	h := flow.Host{
		Models:       m,
		Model:        r.Model,
		Replacements: flow.Replacements{Override: r.Override, Templates: r.Templates},
		Temperature:  r.Temperature,
		TopP:         r.TopP,
		Bounds: flow.Bounds{
			Remote:   r.Remote,
			NoSpawn:  r.NoSpawn,
			Patience: p.Config.Patience,
			Value:    p.Config.MaxValue,
		},
		AgentDirs: p.agentDirs(),
		Variables: r.Variables,
		Getenv:    p.overrideLookup(r),
		Skills: flow.HostSkills{
			Installed: p.installedSkills(r.Workspace),
			Dirs:      box.SkillDirs(),
			Visible:   p.Config.Skills.Visible,
			Off:       p.Config.Skills.Enabled != nil && !*p.Config.Skills.Enabled,
		},
		Env:       box.ChildEnv(),
		ConfigDir: p.Dirs.Config,
		Workspace: r.Workspace,
		Redactor:  secrets,
		Strict:    r.Strict,
		Log:       log,
		Tooling: flow.Tooling{
			Box:           box,
			Gate:          gate,
			Hooks:         hooks,
			TrustsDir:     box.TrustsDir,
			HoldsBox:      box.HoldsBox,
			Confine:       box.ConfineScript,
			OnlyReads:     func() bool { return s.Mode.Mode() == permission.ModePlan },
			Packages:      box.PackageDirs,
			Bin:           filepath.Join(p.Dirs.Functions, "bin"),
			PromptUtils:   func() (string, error) { return script.PromptUtils(p.Dirs.Functions, p.Dirs.Cache) },
			InDoubt:       p.Config.InDoubt,
			InDoubtForAll: s.InDoubt,
		},
		Retrieval: p.newRetrieval(s),
		Headless:  r.Headless,
	}
	if h.Tooling.Budget = h.Tooling.Budget.Limit(r.Budget); r.Budget != nil {
		h.Tooling.Budget.At = "which it was started with"
	}
	if in := r.Input; in != nil {
		h.Depth = in.Depth
		h.Bounds.Branch = in.Branch
		if h.Tooling.Budget = h.Tooling.Budget.Limit(in.Budget); in.Budget != nil {
			h.Tooling.Budget.At = "its part of the budget of the run that waits for it"
		}
	}
	p.trace.wrapHost(&h)
	if adjust := p.chooseAdjust(s); adjust != nil {
		adjust(&h)
	}
	return h, nil
}

// installedSkills returns the names of the skills that agents in a workspace may enable, whether or not the user has
// consented to them.
func (p *Process) installedSkills(workspace string) (names []string) {
	for _, dir := range append(toolbox.ProjectSkillDirs(workspace), filepath.Join(p.Dirs.Config, "skills")) {
		names = append(names, check.InstalledSkills(filepath.Dir(dir))...)
	}
	return names
}

// overrideLookup looks up the variables that replace an agent's values: in the start
// record if they were recorded when the run started, otherwise in this process.
func (p *Process) overrideLookup(r *runs.Record) func(string) string {
	if r.Overrides == nil {
		return p.env.Get
	}
	return func(name string) string { return r.Overrides[name] }
}

// LoadRequest says which agent to load without running it.
type LoadRequest struct {
	Agent  string // name or path
	Model  string // replaces every model; "": as the agent says
	Strict bool   // unknown keys are errors

	Variables map[string]string // of the agent, set by the caller

	Mode permission.Mode // empty: edits

	Unsaved map[string][]byte // texts of an editor, as flow.Host has them
}

// Load reads and checks an agent. It calls no model and needs no key.
func (p *Process) Load(l LoadRequest) (*flow.Agent, error) {
	a, _, err := p.loadWithHost(l)
	return a, err
}

func (p *Process) loadWithHost(l LoadRequest) (*flow.Agent, flow.Host, error) {
	place, err := p.FindAgent(l.Agent)
	if err != nil {
		return nil, flow.Host{}, err
	}
	r := &runs.Record{
		Agent:     place.Name,
		Dir:       place.Dir,
		Model:     p.Config.Model,
		Override:  p.resolveOverride(l.Model),
		Strict:    l.Strict,
		Variables: l.Variables,
		Workspace: p.Dirs.Work,
	}
	host, err := p.newHost(r, UIHooks{Mode: permission.NewModeSwitch(l.Mode)})
	if err != nil {
		return nil, host, err
	}
	host.Unsaved = l.Unsaved
	a, err := flow.Load(place.Dir, host)
	return a, host, err
}

// ListTools returns the tools that an agent's models may call; without an agent, those that
// every agent may name. It starts no server.
func (p *Process) ListTools(l LoadRequest) (*toolbox.ToolList, error) {
	if l.Agent == "" {
		return p.Tools.ListGlobalTools(l.Mode)
	}
	a, host, err := p.loadWithHost(l)
	if err != nil {
		return nil, err
	}
	return p.Tools.ListAgentTools(a, host.Tooling.Gate), nil
}
