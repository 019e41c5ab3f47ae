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
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// HostSkills are the skills that the agents of a host may enable.
type HostSkills struct {
	Installed []string // besides those of an agent's own directory
	Visible   []string // the only ones that may be enabled; nil: all that are installed
	Off       bool     // skills are switched off: their names are not checked
}

// Host is the surroundings that an agent is loaded into and runs in. Its zero
// value works for graphs that call no model.
type Host struct {
	Models   Models // nil: model names are taken on trust, and calling one fails
	Model    string // the caller's current model, for graphs that name none
	Override string // takes the place of every model of the graph and its children

	Temperature, TopP *float64 // the caller's, where neither graph nor node sets one

	AgentDirs []string // where `agent:` names are looked for, after the directory beside the agent's own
	Depth     int      // how many agents are above this one
	Bounds    Bounds
	NoSpawn   bool // function calling is off, so agent nodes cannot spawn
	// Child runs an agent that is not a graph; nil: such agents cannot run. Its
	// result is recorded before it is used.
	Child func(ctx context.Context, s Spawn) (string, error)

	Tooling   Tooling
	Retrieval Retrieval
	Headless  bool // nobody will ever be asked: models are told so

	Skills  HostSkills
	Offline bool // the validator trusts names of tools, servers, models and skills

	// Getenv looks up the variables that override an agent's values, such as
	// WRITER_MODEL; nil: os.Getenv. All of them are looked up while it is loaded.
	Getenv func(name string) string

	Session   string            // a session that the caller asked for: graphs refuse it
	Variables map[string]string // agent variables that the caller set
	Env       []string          // environment of scripts; nil: this process's without what ends in _API_KEY
	ConfigDir string            // what scripts know as LLM_ROOT_DIR; empty: not set
	Workspace string            // what scripts know as RADDLE_WORKSPACE; empty: not set
	Redactor  Redactor          // takes secrets out of texts; nil: one that knows the agents' own
	Strict    bool              // unknown keys are errors
	Log       *slog.Logger      // nil: no log
}

// Bounds are limits of what an agent does. The zero value has the usual ones.
type Bounds struct {
	Depth int // the deepest level an agent may be spawned at; 0: 3
	// Patience is how long an agent repeats a request that a provider cannot answer
	// now, where its file does not say it; 0: agent.DefaultPatience; negative: not.
	Patience time.Duration
	Value    int // bytes of the largest text that a template may make; 0: 16 MiB; negative: no limit
}

// Tooling is what models may call, and what that may cost.
type Tooling struct {
	Box  Toolbox    // nil: agents have no tools but the built-in ones
	Gate agent.Gate // gives permission for calls; nil: every call may be made
	// Doubts tells whether nobody stands for the scripts of an agent's directory:
	// each of its script nodes then asks before it runs. nil: somebody does for all.
	Doubts func(dir string) bool
	// Packages lists the directories whose interpreters and packages the scripts of an
	// agent's directory may use: see package tool/script. nil: the agent's own.
	Packages func(dir string) []string
	// Bin is a directory that comes first in the PATH of script nodes; empty: none.
	Bin string
	// PromptUtils returns the file that script nodes find as LLM_PROMPT_UTILS_FILE; nil:
	// they have none. It must be safe for concurrent use.
	PromptUtils func() (string, error)
	// InDoubt is what is done with calls that a crash cut off, where neither the tool nor
	// the agent says it; Doubt is the same for all calls, whatever those say.
	InDoubt, Doubt tool.Doubt
	Budget         agent.Budget // of a turn, for all that runs in it; what an agent's file says bounds this one besides
}

// Models opens the models that agents name as "client:name".
type Models interface {
	// Known tells whether an agent in dir may name a model. It opens nothing.
	Known(dir, id string) bool
	// Open opens a model for an agent in dir. Missing credentials may be an
	// error of the first call instead.
	Open(ctx context.Context, dir, id string) (llm.Model, error)
	// Facts tells what is known of a model. It opens nothing.
	Facts(dir, id string) ModelFacts
}

// Hinter is what [Models] may have besides.
type Hinter interface {
	// Hint returns what to do about a model that is not known, or "".
	Hint(id string) string
}

// modelHint returns what to do about a model that is not known, or "".
func (h *Host) modelHint(id string) string {
	if m, ok := h.Models.(Hinter); ok {
		return m.Hint(id)
	}
	return ""
}

// unknownModel returns the end of an error text about a model that is not known.
func (h *Host) unknownModel(id string) string {
	text := "Unknown chat model '" + id + "'"
	if hint := h.modelHint(id); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// ModelFacts is what is known of a model. A zero field is not known.
type ModelFacts struct {
	Window  int      // tokens of a request and its reply together
	Output  int      // tokens of a reply
	Efforts []string // levels of reasoning effort: empty for a model that has none, nil where that is not known
	NoTools bool     // it cannot call tools
	Price   agent.Price
}

// Spawn is a child agent that is about to run.
type Spawn struct {
	Agent  string
	Prompt string
	Depth  int    // the child's own
	Model  string // the parent's, for children that set none
}

const defaultMaxDepth = 3

func (h *Host) maxDepth() int {
	if h.Bounds.Depth > 0 {
		return h.Bounds.Depth
	}
	return defaultMaxDepth
}

// mostValue is the largest text that a template may make, in bytes; negative: any.
func (h *Host) mostValue() int { return cmp.Or(h.Bounds.Value, 16<<20) }

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

func (h *Host) packages(dir string) []string {
	if h.Tooling.Packages == nil {
		return []string{dir}
	}
	return h.Tooling.Packages(dir)
}

func (h *Host) environ() []string {
	if h.Env != nil {
		return h.Env
	}
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasSuffix(name, "_API_KEY")
	})
}

// known is what the validator may know of the surroundings.
func (h *Host) known(dir string, tools *Toolset) Known {
	k := Known{Dir: dir, Workspace: h.Workspace, AgentDirs: append([]string{parentOf(dir)}, h.AgentDirs...), Loaded: !h.Offline,
		Tools: tools.names(), Servers: tools.Servers, Skills: slices.Concat(h.Skills.Installed, InstalledSkills(dir)), VisibleSkills: h.Skills.Visible, NoSkills: h.Skills.Off}
	k.ModelHint = h.modelHint
	k.Model = func(id string) bool { return h.Models == nil || h.Override != "" || h.Models.Known(dir, id) }
	return k
}

// toolset opens the tools that an agent's file asks for.
func (h *Host) toolset(n ToolNeed) (*Toolset, error) {
	if h.Tooling.Box == nil {
		return &Toolset{}, nil
	}
	return h.Tooling.Box.Open(n)
}
