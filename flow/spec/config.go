package spec

import (
	"fmt"
	"strings"

	"raddle.dev/flow/hook"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/tool"
)

// Config is a config.yaml that has been read: an agent that is a model with
// tools. Defaults are filled in. It does not change after ParseConfig returns it.
type Config struct {
	Path        string // as given to ParseConfig
	Name        string
	Description string
	Version     string // free text
	Sampling    Sampling
	Prompting   Prompting
	Variables   []Variable
	Session     *string // agent_session: the session to open if the caller names none; nil: none
	GlobalTools []string
	MCPServers  []string // a single entry "all" means every server
	Documents   Documents
	Continue    Continue
	Team        Team
	Limits      Limits
	InDoubt     tool.Doubt // of calls whose tools do not set it; unset: the host's setting
	Skills      Skills
	Hooks       []hook.Hook
	Triggers    []Trigger

	// Findings are the warnings of ParseConfig: unknown keys, and values that
	// were changed.
	Findings []strictyaml.Finding

	Text   []byte
	Source strictyaml.Mapping
}

// Sampling says how the model of an agent, or those of the llm nodes of a graph, are called.
type Sampling struct {
	Model             string // default model; empty: the caller's
	Temperature, TopP *float64
	ReasoningEffort   string
	ParallelCalls     *bool               // nil: the model may make several calls at once
	ProviderTools     []string            // tools of the provider that the model may use by itself
	Patience          *strictyaml.Seconds // retry_patience; nil: the caller's
}

// Prompting is the text that an agent receives before a conversation.
type Prompting struct {
	Instructions string
	Dynamic      bool     // the function _instructions of the tools script returns the instructions
	Starters     []string // conversation_starters
	Project      bool     // inject_project_instructions: the AGENTS.md of the workspace is a part of the instructions
	ToolTexts    ToolTexts
}

// ToolTexts enables the texts about built-in tools in the instructions. It does not
// enable or disable the tools themselves.
type ToolTexts struct{ Todo, Spawn, Teammates, User bool }

// Continue says whether and how an agent continues on its own while its todo
// list has open items.
type Continue struct {
	Auto   bool // it also enables the agent's todo tools
	Max    int  // in one turn
	Prompt string
}

// Team says what an agent may spawn.
type Team struct {
	CanSpawn          bool
	MaxConcurrent     int
	MaxDepth          int                // of the children; the root has depth 0
	Spawnable         *[]string          // nil: any agent
	SummaryModel      string             // empty: the agent's own
	SummaryThreshold  int                // number of characters above which a child's output is summarized
	Escalate          bool               // the children's questions for the person go to the agent that spawned them
	EscalationTimeout strictyaml.Seconds // how long a question to the parent model may stay open
}

// Documents are what an agent can search.
type Documents struct {
	Paths                   []string
	Model                   string // of embedding; empty: the host's
	ChunkSize, ChunkOverlap *int   // nil: the host's
	Fusion                  Fusion
}

// Limits limit the work of an agent.
type Limits struct {
	Iterations int // model calls of one turn
	// Compression is the number of tokens above which a conversation is summarized; nil: it depends on the model's
	// window.
	Compression *int
	KeepLast    int                 // number of messages that a summary keeps as they are
	ToolResult  int                 // maximum number of characters of a tool result for the model; 0: the host's limit
	Timeout     *strictyaml.Seconds // of one turn; nil: none
	Tokens      int                 // of one turn; 0: no limit
	Cost        *float64            // in US dollars, of one turn; nil: no limit
}

// These are the defaults of the file format.
const (
	defaultContinues         = 10
	defaultConcurrentAgents  = 4
	defaultSummaryThreshold  = 4000
	defaultEscalationTimeout = 300
	defaultIterations        = 100
	defaultKeepLast          = 6
	DefaultMaxDepth          = 3
)

// At returns the position of a top-level field's value, or the top of the file
// if the field is missing.
func (c *Config) At(field string) strictyaml.Pos { return c.Source.FieldPosition(field) }

// Variable returns a declared variable, or nil if there is none with that name.
func (c *Config) Variable(name string) *Variable {
	for i := range c.Variables {
		if c.Variables[i].Name == name {
			return &c.Variables[i]
		}
	}
	return nil
}

// ParseConfig reads the text of an agent's config.yaml. path is only used to
// name the file in messages. All errors are reported at once, in a
// [*ParseError]. Unknown keys are not errors; they are among the findings of
// the [Config].
func ParseConfig(path string, text []byte) (*Config, error) {
	d := strictyaml.Read(path, text)
	c := &Config{Path: path, Text: text}
	if d.Fatal {
		return nil, Kinds(nil).newParseError(d, nil, nil)
	}
	c.Source = d.ReadMapping()
	if d.HoldsMapping() {
		m := strictyaml.NewFields(&d.Problems, c.Source, "")
		m.Plain = true
		m.Forgiving = true
		c.ReadFields(m)
	}
	if len(d.List) > 0 {
		return nil, Kinds(nil).newParseError(d, nil, c.Findings)
	}
	strictyaml.SortFindings(c.Findings)
	return c, nil
}

// ReadFields reads the fields of a config.yaml from m.
func (c *Config) ReadFields(m *strictyaml.Fields) {
	c.Name = m.ReadText("name", strictyaml.Required)
	c.Description = m.ReadText("description", strictyaml.Optional)
	c.Version = m.ReadText("version", strictyaml.Optional)
	c.Sampling = Sampling{
		Model: m.ReadAlternatives("model"), Temperature: m.ReadFloat("temperature"), TopP: m.ReadFloat("top_p"),
		ReasoningEffort: m.ReadText("reasoning_effort", strictyaml.Optional), Patience: m.ReadOptionalSeconds("retry_patience"),
		ParallelCalls: m.ReadSwitch("parallel_calls"), ProviderTools: m.ReadTexts("provider_tools", strictyaml.Optional),
	}
	c.Prompting = Prompting{
		Instructions: m.ReadText("instructions", strictyaml.Optional), Dynamic: m.ReadFlag("dynamic_instructions", false),
		Starters: m.ReadTexts("conversation_starters", strictyaml.Optional), Project: m.ReadFlag("inject_project_instructions", false),
		ToolTexts: ToolTexts{
			Todo: m.ReadFlag("inject_todo_instructions", true), Spawn: m.ReadFlag("inject_spawn_instructions", true),
			Teammates: m.ReadFlag("inject_teammate_instructions", true), User: m.ReadFlag("inject_user_instructions", true),
		},
	}
	var found []strictyaml.Finding
	c.Variables, found = readVariables(m)
	if m.HasValue("agent_session") {
		c.Session = new(m.ReadText("agent_session", strictyaml.Optional))
	}
	c.GlobalTools = m.ReadTexts("global_tools", strictyaml.Optional)
	c.MCPServers = m.ReadTexts("mcp_servers", strictyaml.Optional)
	c.Documents = Documents{Paths: m.ReadTexts("documents", strictyaml.Optional), Model: m.ReadText("embedding_model", strictyaml.Optional),
		ChunkSize: m.ReadOptionalCount("chunk_size"), ChunkOverlap: m.ReadOptionalCount("chunk_overlap"), Fusion: ReadFusion(m)}
	c.Continue = Continue{
		Auto: m.ReadFlag("auto_continue", false), Max: m.ReadCount("max_auto_continues", defaultContinues),
		Prompt: m.ReadText("continuation_prompt", strictyaml.Optional),
	}
	c.Team = readTeam(m)
	c.Limits = readLimits(m)
	c.InDoubt = readDoubt(m)
	c.Skills = readSkills(m)
	c.Hooks = readHooks(m)
	var about []strictyaml.Finding
	c.Triggers, about = readTriggers(m, false)
	found = append(found, about...)
	for _, without := range []string{"enabled_macros", "memory"} {
		m.FindField(without)
	}
	c.Findings = append(append(c.Findings, found...), m.UnknownKeys("", nil)...)
	c.warnUnusedFields(m)
}

// warnUnusedFields warns about fields that are set but have no effect yet.
func (c *Config) warnUnusedFields(m *strictyaml.Fields) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"enabled_macros", m.HasValue("enabled_macros")}, {"memory", m.HasValue("memory")},
	} {
		if f.set {
			c.Findings = append(c.Findings, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: "not-yet",
				Message: "`" + f.name + "` has no effect yet", Pos: c.At(f.name)})
		}
	}
}

func readTeam(m *strictyaml.Fields) Team {
	t := Team{
		CanSpawn:          m.ReadFlag("can_spawn_agents", false),
		MaxConcurrent:     m.ReadCount("max_concurrent_agents", defaultConcurrentAgents),
		MaxDepth:          m.ReadCount("max_agent_depth", DefaultMaxDepth),
		SummaryModel:      m.ReadText("summarization_model", strictyaml.Optional),
		SummaryThreshold:  m.ReadCount("summarization_threshold", defaultSummaryThreshold),
		EscalationTimeout: m.ReadSeconds("escalation_timeout", defaultEscalationTimeout),
	}
	switch to := m.ReadText("escalate", strictyaml.Optional); to {
	case "":
	case "agent":
		t.Escalate = true
	default:
		m.AddFault(m.FindField("escalate"), "escalate", "invalid-value", fmt.Sprintf("invalid value: %q, expected agent", to))
	}
	if m.HasValue("spawnable_agents") {
		t.Spawnable = new(m.ReadTexts("spawnable_agents", strictyaml.Optional))
	}
	return t
}

func readDoubt(m *strictyaml.Fields) tool.Doubt {
	name := m.ReadText("in_doubt", strictyaml.Optional)
	d, ok := tool.ParseDoubt(name)
	if !ok && name != "" {
		m.AddFault(m.FindField("in_doubt"), "in_doubt", "invalid-value", fmt.Sprintf("invalid value: %q, expected %s", name, strings.Join(tool.Doubts, ", ")))
	}
	return d
}

func readLimits(m *strictyaml.Fields) Limits {
	l := Limits{
		Iterations:  m.ReadCount("max_iterations", defaultIterations),
		Compression: m.ReadOptionalCount("compression_threshold"),
		KeepLast:    m.ReadCount("compression_keep_last", defaultKeepLast),
		ToolResult:  m.ReadCount("max_tool_result_chars", 0),
		Timeout:     m.ReadOptionalSeconds("timeout"),
		Tokens:      m.ReadCount("max_tokens_per_turn", 0),
		Cost:        m.ReadFloat("max_cost_per_turn"),
	}
	if l.Cost != nil && *l.Cost < 0 {
		m.AddFault(m.FindField("max_cost_per_turn"), "max_cost_per_turn", "invalid-value", fmt.Sprintf("invalid value: %v, expected an amount in US dollars", *l.Cost))
	}
	return l
}
