package flow

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow/check"
	"raddle.dev/flow/hook"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/proc"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// HostSkills are the skills that the agents of a host may enable.
type HostSkills struct {
	Installed []string // in addition to those of an agent's own directory
	// Dirs are directories whose folders are skills that agents can load, in addition to an agent's own; the first with
	// a name counts.
	Dirs    []string
	Visible []string // the only skills that may be enabled; nil: all installed ones
	Off     bool     // skills are disabled: their names are not checked
}

// Replacements replace what the files of an agent say.
type Replacements struct {
	Override string // replaces every model of the graph and its children
	// Templates replace templates of prompts, by the names of nodes of the graph that is loaded, and not of those that
	// it calls.
	Templates map[string]string
	// Unsaved are texts that an editor has not saved yet, by the absolute paths of their files: definitions of agents and
	// scripts are read from here first. Nothing runs them.
	Unsaved map[string][]byte
}

// Host is the environment in which an agent is loaded and runs. Its zero value
// works for graphs that call no model.
type Host struct {
	Models Models // nil: model names are not checked, and calling a model fails
	Model  string // the caller's current model, for graphs that name none
	Replacements

	Temperature, TopP *float64 // the caller's values, used if neither graph nor node sets one

	AgentDirs AgentDirs // where the names of `agent:` are searched
	Depth     int       // number of agents above this one
	Bounds    Bounds
	// Child runs an agent that is not a graph; nil: such agents cannot run. Its
	// result is recorded before it is used.
	Child func(ctx context.Context, s Spawn) (string, error)

	Tooling   Tooling
	Retrieval Retrieval
	Around    NodeMiddleware // wraps the work of script and agent nodes; nil: nothing does
	Headless  bool           // there is never a person to ask; models are informed of this

	Skills  HostSkills
	Offline bool // the validator does not check names of tools, servers, models and skills

	// Getenv returns the variables that override an agent's values, such as
	// WRITER_MODEL; nil: os.Getenv. All of them are read when the agent is
	// loaded.
	Getenv func(name string) string

	Session   string            // a session that the caller requested: graphs reject it
	Variables map[string]string // agent variables that the caller set
	// Env is the environment of scripts; nil: this process's, without variables whose names end in _API_KEY.
	Env       []string
	ConfigDir string       // the value of LLM_ROOT_DIR for scripts; empty: not set
	Workspace string       // the value of RADDLE_WORKSPACE for scripts; empty: not set
	Redactor  Redactor     // removes secrets from texts; nil: one that knows the agents' own secrets
	Strict    bool         // unknown keys are errors
	Log       *slog.Logger // nil: no log

	kinds spec.Kinds // the types of nodes; nil: graphKinds
}

func (h *Host) nodeKinds() spec.Kinds {
	if h.kinds != nil {
		return h.kinds
	}
	return graphKinds
}

// Bounds limit what an agent may do. The zero value has the default limits.
type Bounds struct {
	Remote  bool    // a node with a queue does not run its child, but waits for a run of its own: see RemoteInput
	Branch  *Branch // the only node of the graph that runs; nil: the whole agent
	Depth   int     // the deepest level an agent may be spawned at; 0: 3
	NoSpawn bool    // function calling is disabled, so agent nodes cannot spawn
	// Patience is how long an agent repeats a request that a provider cannot
	// answer now, if its file does not set it; 0: agent.DefaultPatience;
	// negative: requests are not repeated.
	Patience time.Duration
	Value    int // maximum size in bytes of a text that a template may create; 0: 16 MiB; negative: no limit
}

// Tooling says which tools models may call, and what the calls may cost.
type Tooling struct {
	Box  Toolbox    // nil: agents have only the built-in tools
	Gate agent.Gate // permits or denies calls; nil: every call may be made
	// Hooks returns the hooks around the work of an agent: those of its file and those of its surroundings. nil: none
	// run, and an agent whose file has hooks cannot run.
	Hooks func(agentDir string, own []hook.Hook) agent.FindHooks
	// TrustsDir reports whether the scripts of an agent's directory are trusted.
	// If not, each of its script nodes asks before it runs. nil: all scripts are
	// trusted. It must be safe for concurrent use.
	TrustsDir func(dir string) bool
	// HoldsBox reports whether Confine can run scripts; nil: it cannot. Then script nodes whose directory is not
	// trusted do not ask: Confine runs them in place of proc.Run. Both must be safe for concurrent use.
	HoldsBox func() bool
	Confine  func(ctx context.Context, c proc.Command) (proc.Result, error)
	// OnlyReads reports whether calls may only read now: then script nodes do
	// not run, and models are informed. nil: they may change things. It must be
	// safe for concurrent use.
	OnlyReads func() bool
	// Packages returns the directories whose interpreters and packages the
	// scripts of an agent's directory may use: see package tool/script. nil:
	// the agent's own directory.
	Packages func(dir string) []string
	// Bin is a directory that comes first in the PATH of script nodes; empty: none.
	Bin string
	// PromptUtils returns the file whose path script nodes receive in
	// LLM_PROMPT_UTILS_FILE; nil: they receive none. It must be safe for
	// concurrent use.
	PromptUtils func() (string, error)
	// InDoubt says what happens to calls that a crash interrupted, if neither
	// the tool nor the agent sets it. InDoubtForAll applies to all calls, whatever
	// the tools and agents set; unset: it has no effect.
	InDoubt, InDoubtForAll tool.Doubt
	// Around wraps the calls of all tools, outside of what agents themselves add; nil: nothing does.
	Around []agent.ToolMiddleware
	Budget agent.Budget // of a turn, for everything that runs in it; limits in an agent's file apply in addition
}

// Models opens the models that agents name as "client:name".
type Models interface {
	// IsKnown reports whether an agent in dir may use a model with this name. It
	// opens nothing.
	IsKnown(dir, id string) bool
	// Open opens a model for an agent in dir. If credentials are missing, Open
	// may succeed and the first call fail.
	Open(ctx context.Context, dir, id string) (llm.Model, error)
	// Facts returns what is known about a model. It opens nothing.
	Facts(dir, id string) ModelFacts
}

// Hinter is an optional interface of [Models].
type Hinter interface {
	// Hint returns what to do about an unknown model, or "".
	Hint(id string) string
}

// modelHint returns what to do about an unknown model, or "".
func (h *Host) modelHint(id string) string {
	if m, ok := h.Models.(Hinter); ok {
		return m.Hint(id)
	}
	return ""
}

// unknownModel returns the end of an error text about an unknown model.
func (h *Host) unknownModel(id string) string {
	text := "Unknown chat model '" + id + "'"
	if hint := h.modelHint(id); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// ModelFacts is what is known about a model. A zero field is unknown.
type ModelFacts struct {
	Window  int      // maximum tokens of a request and its reply together
	Output  int      // maximum tokens of a reply
	Efforts []string // levels of reasoning effort: empty for a model that has none, nil if unknown
	NoTools bool     // it cannot call tools
	Price   agent.Price
	Free    bool // its calls cost nothing

	EffortTokens bool // its effort may be a number of tokens

	Provided []string // tools that its provider offers; nil if unknown
}

// SplitModels returns the models that an id names, in the order in which they are asked: those of a list such as
// "openai:gpt-5.4,anthropic:claude-sonnet-5", or the one model of another id.
func SplitModels(id string) []string {
	list := strings.Split(id, ",")
	for i, one := range list {
		list[i] = strings.TrimSpace(one)
		if !strings.Contains(one, ":") {
			return []string{id} // the comma is part of a name
		}
	}
	return list
}

// Merge returns what is true of a request that either of two models may answer: the smaller limits, the efforts that
// both have, and the higher prices.
func (f ModelFacts) Merge(other ModelFacts) ModelFacts {
	f.Window = least(f.Window, other.Window)
	f.Output = least(f.Output, other.Output)
	f.NoTools = f.NoTools || other.NoTools
	f.EffortTokens = f.EffortTokens && other.EffortTokens
	f.Efforts = intersect(f.Efforts, other.Efforts)
	f.Provided = intersect(f.Provided, other.Provided)
	switch {
	case f.IsUnpriced() || other.IsUnpriced():
		f.Price = agent.Price{}
	case f.Free:
		f.Price = other.Price
	case !other.Free:
		f.Price = f.Price.Max(other.Price)
	}
	f.Free = f.Free && other.Free
	return f
}

// IsUnpriced reports whether nobody knows what a call of the model costs.
func (f ModelFacts) IsUnpriced() bool { return !f.Free && f.Price.IsZero() }

// intersect returns what two lists have in common. A list that is nil is unknown.
func intersect(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(one string) bool { return !slices.Contains(b, one) })
}

// least returns the smaller of two limits, of which 0 is unknown.
func least(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Spawn is a child agent that is about to run.
type Spawn struct {
	Agent  string
	Prompt string
	Depth  int        // the child's own
	Model  string     // the parent's, for children that set none
	Media  []llm.Part // pictures and documents that are attached to the prompt
}

func (h *Host) maxDepth() int {
	if h.Bounds.Depth > 0 {
		return h.Bounds.Depth
	}
	return spec.DefaultMaxDepth
}

// maxValue returns the maximum size in bytes of a text that a template may
// create; negative: no limit.
func (h *Host) maxValue() int { return cmp.Or(h.Bounds.Value, 16<<20) }

func (h *Host) getenv(name string) string {
	if h.Getenv == nil {
		return os.Getenv(name)
	}
	return h.Getenv(name)
}

func (h *Host) log() *slog.Logger {
	if h.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.Log
}

func (h *Host) packageDirs(dir string) []string {
	if h.Tooling.Packages == nil {
		return []string{dir}
	}
	return h.Tooling.Packages(dir)
}

func (h *Host) childEnviron() []string {
	if h.Env != nil {
		return h.Env
	}
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := environ.SplitPair(pair)
		return strings.HasSuffix(environ.FoldName(name), "_API_KEY")
	})
}

// checkContext returns what the validator knows about the environment.
func (h *Host) checkContext(dir string, tools *Toolset) check.Context {
	k := check.Context{Dir: dir, Workspace: h.Workspace, AgentDirs: h.searchFrom(dir), Loaded: !h.Offline,
		Unsaved: h.Unsaved, Tools: tools.toolNames(), Servers: tools.Servers, Skills: slices.Concat(h.Skills.Installed, check.InstalledSkills(dir)), VisibleSkills: h.Skills.Visible, NoSkills: h.Skills.Off}
	k.ModelHint = h.modelHint
	k.Model = func(id string) bool { return h.Models == nil || h.Override != "" || h.Models.IsKnown(dir, id) }
	return k
}

// AgentDirs are the directories in which an agent is searched that another one names, after the parent of that one's own
// directory if it is none of them.
type AgentDirs struct {
	Dirs []string
	// Outdated reports whether the directory of an agent in Dirs is passed over for one in a later directory; nil: none
	// is.
	Outdated func(dir string) bool
}

// searchFrom returns the directories in which the agents of an agent are searched: next to it, then those of the host,
// in their order.
func (h *Host) searchFrom(dir string) []string {
	if slices.Contains(h.AgentDirs.Dirs, parentOf(dir)) {
		return h.AgentDirs.Dirs
	}
	return append([]string{parentOf(dir)}, h.AgentDirs.Dirs...)
}

// openToolset opens the tools that an agent's file needs.
func (h *Host) openToolset(n ToolNeed) (*Toolset, error) {
	if h.Tooling.Box == nil {
		return &Toolset{}, nil
	}
	return h.Tooling.Box.Open(n)
}

// findUnknownModel returns the first model that does not exist of those that a file in dir names; "": there is none.
func (h *Host) findUnknownModel(dir, id string) string {
	if id == "" || h.Models == nil || h.Offline {
		return ""
	}
	for _, one := range SplitModels(id) {
		if !h.Models.IsKnown(dir, one) {
			return one
		}
	}
	return ""
}
