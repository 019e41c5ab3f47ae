// Size: Config has a field for each key of config.yaml that is no group.

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/flow/hook"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// FileName is the name of the configuration file.
const FileName = "config.yaml"

// Config is the configuration from config.yaml, the environment and the caller's
// flags; later sources override earlier ones. The zero Config works.
type Config struct {
	Model           string // for graphs that do not name a model
	Temperature     *float64
	TopP            *float64
	FunctionCalling *bool  // nil: on
	Session         string // for agents that are not graphs and name no session; "": no session
	Store           string
	Retention       Retention
	ReadTimeout     time.Duration // longest time without data from a provider; 0: the default of the wire
	StreamTimeout   time.Duration // longest duration of a reply; 0: the default of the wire; negative: no limit
	// MaxValue is the largest text that a template produces, in bytes; 0: the default of flow; negative: no limit.
	MaxValue    int
	MaxState    int   // largest state of a run, in bytes; 0: 64 MiB; negative: no limit
	AssumePrice Price // of models whose price is not known; zero: it stays unknown
	// MaxReply is the largest reply of a model, in bytes; 0: the default of the wire; negative: no limit.
	MaxReply int
	// MinFreeDisk is the room on the disks of the store and of the state below which a server starts no run, in bytes;
	// 0: 64 MiB; negative: no limit.
	MinFreeDisk int
	// Patience is how long agents that do not set it wait for a provider that cannot answer now; 0:
	// agent.DefaultPatience; negative: they do not wait.
	Patience    time.Duration
	ToolTimeout time.Duration   // of one call of a tool; 0: the default of the tool; negative: no limit
	InDoubt     tool.Doubt      // for calls that a crash interrupted, if neither tool nor agent says it
	MCP         *bool           // nil: on
	MCPFile     string          // a further file of MCP servers, relative to the configuration
	Mode        permission.Mode // of permissions, of runs and conversations that name none; "": edits and ask
	NoBox       bool            // commands that nothing else lets run ask, also where a box holds
	// UpdateNotice is whether conversations say that there is a newer release; nil: no, and the user was not asked.
	UpdateNotice *bool
	Theme        string // colours of formatted text on a terminal: one of Themes; "": the first
	Permissions  permission.Rules
	RAG          RAG
	Skills       Skills
	Hooks        []hook.Hook
	Clients      []Client
}

// Client is a named provider of models.
type Client struct {
	Name    string
	Type    string
	Base    string // URL; "": the default of the provider
	BaseAt  int    // line of api_base in config.yaml; 0: there is no such key
	Key     string
	KeyVar  string  // variable that Key is taken from; "": config.yaml holds the key itself, or no key
	KeyLine int     // line of api_key in config.yaml; 0: there is no such key
	Models  []Model // in file order; the client's bare name means the first chat model
	Wire    string  // one of Wires; "": that of the type
	// Profile says how its server differs from OpenAI's; "": by its address. That of a client of Bedrock is the profile
	// of AWS's files.
	Profile string
	Context int    // window of its models in tokens; 0: what is known about each
	Strict  string // one of StrictModes: whether its models are held to schemas; "": auto
	Cache   string // one of CacheTimes: how long a prompt cache with marks keeps tokens; "": 5m
	Proxy   string // URL of a proxy, or ProxyNone; "": as the environment says
	Headers map[string]string
	Body    map[string]any // members of each request, as JSON has them

	Region            string // of Bedrock; "": as the environment or the profile says
	Project, Location string // of Vertex; "": as the environment or the credentials say
	Instance          bool   // the credentials of a cloud are those of the machine

	KeyCommand   []string // program and arguments that write the key; nil: none
	KeyCommandAt int      // its line in config.yaml

	Unset []UnsetVariable // variables of its address and key that have no value
}

// Wires are the interfaces of OpenAI that a client may name.
var Wires = []string{"responses", "chat"}

// StrictModes are the values of strict, of a client and of a model.
var StrictModes = []string{"auto", "on", "off"}

// CacheTimes are the values of cache_ttl.
var CacheTimes = []string{"5m", "1h"}

// ProxyNone is the value of a client's proxy that uses none.
const ProxyNone = "none"

// Skills says which skills graphs may enable.
type Skills struct {
	Enabled *bool    // nil: on; off: names of skills are not checked
	Visible []string // nil: all installed skills
}

// RAG says how to build knowledge bases if agents do not say it.
type RAG struct {
	Model, Reranker         string // for embedding and for reranking; "": none
	Extractor               string // model that finds entities; "": none
	ChunkSize, ChunkOverlap *int
	TopK                    *int
	Template                string            // text around a question and the passages that were found
	Loaders                 map[string]string // commands that read documents, by extension or protocol
}

// Model is a model that config.yaml lists for a client.
type Model struct {
	Name    string
	Kind    string   // "chat", "embedding" or "reranker"
	Efforts []string // levels of reasoning effort that it supports

	// Window and Output are tokens of a request and its reply, and of a reply; 0: the value of the catalogue.
	Window, Output          int
	InputPrice, OutputPrice *float64       // of a million tokens, in US dollars; nil: the value of the catalogue
	NoTools                 bool           // it cannot call tools
	Strict                  string         // as that of the client; "": that of the client
	Body                    map[string]any // members of each request, besides those of the client
}

// Price is the price of a million tokens in US dollars.
type Price struct{ Input, Output float64 }

// Retention says how long after their last record runs are kept by raddle serve and raddle runs gc. 0: nothing is said.
type Retention struct {
	Done   time.Duration // of those that ended or were cancelled
	Failed time.Duration // of those that failed or crashed
}

// A setting is a key of config.yaml whose value is one word or number. The variable
// RADDLE_ followed by the key in upper case overrides it.
type setting struct {
	key string
	set func(c *Config, text string) error
}

var settings = []setting{
	{"agent_session", func(c *Config, s string) error { c.Session = s; return nil }},
	{"assume_price", func(c *Config, s string) (err error) { c.AssumePrice, err = parsePrice(s); return }},
	{"box", func(c *Config, s string) error {
		on, err := parseBool(s)
		c.NoBox = on != nil && !*on
		return err
	}},
	{"function_calling_support", func(c *Config, s string) (err error) { c.FunctionCalling, err = parseBool(s); return }},
	{"in_doubt", func(c *Config, s string) (err error) { c.InDoubt, err = parseDoubt(s); return }},
	{"max_state", func(c *Config, s string) (err error) { c.MaxState, err = parseMebibytes(s); return }},
	{"max_value", func(c *Config, s string) (err error) { c.MaxValue, err = parseMebibytes(s); return }},
	{"max_reply", func(c *Config, s string) (err error) { c.MaxReply, err = parseMebibytes(s); return }},
	{"mcp", func(c *Config, s string) error { c.MCPFile = s; return nil }},
	{"mcp_server_support", func(c *Config, s string) (err error) { c.MCP, err = parseBool(s); return }},
	{"min_free_disk", func(c *Config, s string) (err error) { c.MinFreeDisk, err = parseMebibytes(s); return }},
	{"permission_mode", func(c *Config, s string) (err error) { c.Mode, err = parseMode(s); return }},
	{"model", func(c *Config, s string) error { c.Model = s; return nil }},
	{"rag_chunk_overlap", func(c *Config, s string) (err error) { c.RAG.ChunkOverlap, err = parseCount(s); return }},
	{"rag_chunk_size", func(c *Config, s string) (err error) { c.RAG.ChunkSize, err = parseCount(s); return }},
	{"rag_embedding_model", func(c *Config, s string) error { c.RAG.Model = s; return nil }},
	{"rag_extractor_model", func(c *Config, s string) error { c.RAG.Extractor = s; return nil }},
	{"rag_reranker_model", func(c *Config, s string) error { c.RAG.Reranker = s; return nil }},
	{"rag_template", func(c *Config, s string) error { c.RAG.Template = s; return nil }},
	{"rag_top_k", func(c *Config, s string) (err error) { c.RAG.TopK, err = parseCount(s); return }},
	{"read_timeout", func(c *Config, s string) (err error) { c.ReadTimeout, err = parseSeconds(s); return }},
	{"retention_done", func(c *Config, s string) (err error) { c.Retention.Done, err = ParseAge(s); return }},
	{"retention_failed", func(c *Config, s string) (err error) { c.Retention.Failed, err = ParseAge(s); return }},
	{"retry_patience", func(c *Config, s string) (err error) { c.Patience, err = parseTimeLimit(s); return }},
	{"skills_enabled", func(c *Config, s string) (err error) { c.Skills.Enabled, err = parseBool(s); return }},
	{"store", func(c *Config, s string) error { c.Store = s; return nil }},
	{"stream_timeout", func(c *Config, s string) (err error) { c.StreamTimeout, err = parseTimeLimit(s); return }},
	{"temperature", func(c *Config, s string) (err error) { c.Temperature, err = parseNumber(s, 0, 2); return }},
	{"tool_timeout", func(c *Config, s string) (err error) { c.ToolTimeout, err = parseTimeLimit(s); return }},
	{"theme", func(c *Config, s string) (err error) { c.Theme, err = parseTheme(s); return }},
	{"update_notice", func(c *Config, s string) (err error) { c.UpdateNotice, err = parseBool(s); return }},
	{"top_p", func(c *Config, s string) (err error) { c.TopP, err = parseNumber(s, 0, 1); return }},
}

// configKeys returns all keys of config.yaml.
func configKeys() []string {
	keys := []string{"clients", "document_loaders", "hooks", "permissions", "visible_skills"}
	for _, s := range settings {
		keys = append(keys, s.key)
	}
	slices.Sort(keys)
	return keys
}

// Load reads config.yaml of a directory, if it exists, and then the environment. Errors of
// the file are a [*FileError]; other errors are a [*failure.Error].
func Load(dir string, env environ.Environ) (Config, error) {
	var c Config
	path := filepath.Join(dir, FileName)
	text, err := plainfile.Read(path, 2*strictyaml.MaxFileSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return c, &failure.Error{Kind: failure.Invalid, Msg: "the configuration cannot be read", Err: err, Next: "make the file readable, or move it away"}
	default:
		r := &configReader{Document: strictyaml.Read(path, text), env: env}
		if r.readConfig(&c); len(r.List) > 0 {
			strictyaml.SortFindings(r.List)
			return c, &FileError{Findings: r.List}
		}
	}
	return c, c.applyEnvironment(env)
}

// applyEnvironment applies the RADDLE_ variables.
func (c *Config) applyEnvironment(env environ.Environ) error {
	for _, s := range settings {
		name := "RADDLE_" + strings.ToUpper(s.key)
		if text, ok := env.Lookup(name); ok {
			if err := s.set(c, text); err != nil {
				return failure.NewInvalid("correct it, or unset it", "environment variable %s: %v", name, err)
			}
		}
	}
	return nil
}

func parseBool(s string) (*bool, error) {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "on":
		return new(true), nil
	case "false", "0", "no", "off":
		return new(false), nil
	}
	return nil, fmt.Errorf("%q is neither true nor false", s)
}

func parseDoubt(s string) (tool.Doubt, error) {
	d, ok := tool.ParseDoubt(s)
	if !ok {
		return d, fmt.Errorf("%q must be one of %s", s, strings.Join(tool.Doubts, ", "))
	}
	return d, nil
}

// parsePrice reads the prices of a million tokens of requests and of replies, such as 5/25, or one price for both.
func parsePrice(s string) (Price, error) {
	in, out, both := strings.Cut(s, "/")
	if !both {
		out = in
	}
	input, errIn := strconv.ParseFloat(strings.TrimSpace(in), 64)
	output, errOut := strconv.ParseFloat(strings.TrimSpace(out), 64)
	const most = 100_000
	if errIn != nil || errOut != nil || !(input > 0 && output > 0 && input <= most && output <= most) {
		return Price{}, fmt.Errorf("%q is not a price such as 5/25: US dollars for a million tokens of requests and of replies", s)
	}
	return Price{Input: input, Output: output}, nil
}

func parseNumber(s string, least, most float64) (*float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", s)
	}
	if !(f >= least && f <= most) {
		return nil, fmt.Errorf("%s is not between %g and %g", s, least, most)
	}
	return &f, nil
}

// parseCount parses a number of things.
func parseCount(s string) (*int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q must be a whole number", s)
	}
	return &n, nil
}

// parseMebibytes reads a size in MiB and returns it in bytes; 0 means no limit and becomes -1.
func parseMebibytes(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1<<20 {
		return 0, fmt.Errorf("%q must be a whole number of MiB, such as 16; 0 is no limit", s)
	}
	if n == 0 {
		return -1, nil
	}
	return n << 20, nil
}

func parseMode(s string) (permission.Mode, error) {
	m, ok := permission.ParseMode(s)
	if !ok || s == "" {
		return "", fmt.Errorf("must be one of %s", strings.Join(permission.Modes, ", "))
	}
	return m, nil
}

// Themes are the names of the themes. The colours of the first one suit every background.
var Themes = []string{"auto", "dark", "light", "mono"}

func parseTheme(s string) (string, error) {
	if slices.Contains(Themes, s) {
		return s, nil
	}
	return "", fmt.Errorf("must be one of %s", strings.Join(Themes, ", "))
}

// parseTimeLimit parses a time in seconds; 0 means no limit.
func parseTimeLimit(s string) (time.Duration, error) {
	if s == "0" {
		return -1, nil
	}
	return parseSeconds(s)
}

func parseSeconds(s string) (time.Duration, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && f > 0 && f < 1e9 {
		return time.Duration(f * float64(time.Second)), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a time: use seconds (300) or a duration (5m)", s)
}

// ParseAge parses an age: a duration in Go's format, or days, such as 30d.
func ParseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not an age: write 90m, 12h or 7d", s)
}
