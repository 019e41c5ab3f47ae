package flow

import (
	"fmt"
	"strings"

	"raddle.dev/tool"
)

// Config is a config.yaml that has been read: an agent that is a model with
// tools. Defaults are filled in. It does not change after Load.
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

	// Findings are the warnings of ParseConfig: unknown keys, and values that
	// were changed.
	Findings []Finding

	text []byte
	src  source
}

// Sampling says how the model of an agent is called.
type Sampling struct {
	Model             string // empty: the caller's
	Temperature, TopP *float64
	ReasoningEffort   string
	Patience          *Seconds // retry_patience; nil: the caller's
}

// Prompting is the text that an agent receives before a conversation.
type Prompting struct {
	Instructions string
	Dynamic      bool     // the function _instructions of the tools script returns the instructions
	Starters     []string // conversation_starters
	Tell         Tell
}

// Tell enables the texts about built-in tools in the instructions. It does not
// enable or disable the tools themselves.
type Tell struct{ Todo, Spawn, Teammates, User bool }

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
	MaxDepth          int       // of the children; the root has depth 0
	Spawnable         *[]string // nil: any agent
	SummaryModel      string    // empty: the agent's own
	SummaryThreshold  int       // number of characters above which a child's output is summarized
	Escalate          bool      // the children's questions for the person go to the agent that spawned them
	EscalationTimeout Seconds   // how long a question to the parent model may stay open
}

// Documents are what an agent can search.
type Documents struct {
	Paths                   []string
	Model                   string // of embedding; empty: the host's
	ChunkSize, ChunkOverlap *int   // nil: the host's
}

// Limits limit the work of an agent.
type Limits struct {
	Iterations  int      // model calls of one turn
	Compression *int     // number of tokens above which a conversation is summarized; nil: depends on the model's window
	KeepLast    int      // number of messages that a summary keeps as they are
	ToolResult  int      // maximum number of characters of a tool result for the model; 0: the host's limit
	Timeout     *Seconds // of one turn; nil: none
	Tokens      int      // of one turn; 0: no limit
	Cost        *float64 // in US dollars, of one turn; nil: no limit
}

// These are the defaults of the file format.
const (
	defaultContinues         = 10
	defaultConcurrentAgents  = 4
	defaultSummaryThreshold  = 4000
	defaultEscalationTimeout = 300
	defaultIterations        = 100
	defaultKeepLast          = 6
)

// At returns the position of a top-level field's value, or the top of the file
// if the field is missing.
func (c *Config) At(field string) Pos { return c.src.fieldPosition(field) }

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
	d := readYAML(path, text)
	c := &Config{Path: path, text: text}
	if d.fatal {
		return nil, newParseError(d, nil, nil)
	}
	c.src = d.mapping()
	if d.holdsMapping() {
		m := newFields(&d.problems, c.src, "")
		m.plain, m.config = true, true
		c.readFields(m)
	}
	if len(d.list) > 0 {
		return nil, newParseError(d, nil, c.Findings)
	}
	sortFindings(c.Findings)
	return c, nil
}

func (c *Config) readFields(m *fields) {
	c.Name = m.readText("name", required)
	c.Description = m.readText("description", optional)
	c.Version = m.readText("version", optional)
	c.Sampling = Sampling{
		Model: m.readText("model", optional), Temperature: m.readFloat("temperature"), TopP: m.readFloat("top_p"),
		ReasoningEffort: m.readText("reasoning_effort", optional), Patience: m.maybeSeconds("retry_patience"),
	}
	c.Prompting = Prompting{
		Instructions: m.readText("instructions", optional), Dynamic: m.readFlag("dynamic_instructions", false),
		Starters: m.readTexts("conversation_starters", optional),
		Tell: Tell{
			Todo: m.readFlag("inject_todo_instructions", true), Spawn: m.readFlag("inject_spawn_instructions", true),
			Teammates: m.readFlag("inject_teammate_instructions", true), User: m.readFlag("inject_user_instructions", true),
		},
	}
	var found []Finding
	c.Variables, found = readVariables(m)
	if m.hasValue("agent_session") {
		session := m.readText("agent_session", optional)
		c.Session = &session
	}
	c.GlobalTools = m.readTexts("global_tools", optional)
	c.MCPServers = m.readTexts("mcp_servers", optional)
	c.Documents = Documents{Paths: m.readTexts("documents", optional), Model: m.readText("embedding_model", optional),
		ChunkSize: m.maybeCount("chunk_size"), ChunkOverlap: m.maybeCount("chunk_overlap")}
	c.Continue = Continue{
		Auto: m.readFlag("auto_continue", false), Max: m.readCount("max_auto_continues", defaultContinues),
		Prompt: m.readText("continuation_prompt", optional),
	}
	c.Team = readTeam(m)
	c.Limits = readLimits(m)
	c.InDoubt = readDoubt(m)
	c.Skills = Skills{
		Enabled: m.maybeFlag("skills_enabled"), Names: m.readTexts("enabled_skills", optional),
		Inject: m.maybeFlag("inject_skill_instructions"), Instructions: m.readText("skill_instructions", optional),
	}
	for _, without := range []string{"enabled_macros", "memory"} {
		m.findField(without)
	}
	c.Findings = append(append(c.Findings, found...), m.unknownKeys("", nil)...)
	c.warnUnusedFields(m)
}

// warnUnusedFields warns about fields that are set but have no effect yet.
func (c *Config) warnUnusedFields(m *fields) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"enabled_macros", m.hasValue("enabled_macros")}, {"enabled_skills", len(c.Skills.Names) > 0}, {"memory", m.hasValue("memory")},
	} {
		if f.set {
			c.Findings = append(c.Findings, Finding{Severity: SeverityWarning, Class: ClassAdvice, Code: "not-yet",
				Message: "`" + f.name + "` has no effect yet", Pos: c.At(f.name)})
		}
	}
}

func readTeam(m *fields) Team {
	t := Team{
		CanSpawn:          m.readFlag("can_spawn_agents", false),
		MaxConcurrent:     m.readCount("max_concurrent_agents", defaultConcurrentAgents),
		MaxDepth:          m.readCount("max_agent_depth", defaultMaxDepth),
		SummaryModel:      m.readText("summarization_model", optional),
		SummaryThreshold:  m.readCount("summarization_threshold", defaultSummaryThreshold),
		EscalationTimeout: m.readSeconds("escalation_timeout", defaultEscalationTimeout),
	}
	switch to := m.readText("escalate", optional); to {
	case "":
	case "agent":
		t.Escalate = true
	default:
		m.addFault(m.findField("escalate"), "escalate", "invalid-value", fmt.Sprintf("invalid value: %q, expected agent", to))
	}
	if m.hasValue("spawnable_agents") {
		names := m.readTexts("spawnable_agents", optional)
		t.Spawnable = &names
	}
	return t
}

func readDoubt(m *fields) tool.Doubt {
	name := m.readText("in_doubt", optional)
	d, ok := tool.ParseDoubt(name)
	if !ok && name != "" {
		m.addFault(m.findField("in_doubt"), "in_doubt", "invalid-value", fmt.Sprintf("invalid value: %q, expected %s", name, strings.Join(tool.Doubts, ", ")))
	}
	return d
}

func readLimits(m *fields) Limits {
	l := Limits{
		Iterations:  m.readCount("max_iterations", defaultIterations),
		Compression: m.maybeCount("compression_threshold"),
		KeepLast:    m.readCount("compression_keep_last", defaultKeepLast),
		ToolResult:  m.readCount("max_tool_result_chars", 0),
		Timeout:     m.maybeSeconds("timeout"),
		Tokens:      m.readCount("max_tokens_per_turn", 0),
		Cost:        m.readFloat("max_cost_per_turn"),
	}
	if l.Cost != nil && *l.Cost < 0 {
		m.addFault(m.findField("max_cost_per_turn"), "max_cost_per_turn", "invalid-value", fmt.Sprintf("invalid value: %v, expected an amount in US dollars", *l.Cost))
	}
	return l
}
