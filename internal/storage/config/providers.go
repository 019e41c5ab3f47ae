package config

import (
	"slices"
	"strings"
)

// A Provider is what raddle knows about a provider of models, or about a type of clients. Its wire is in
// internal/process/provider. To add a provider is to add its row to [Providers], and its wire if it has one of its own.
type Provider struct {
	Name     string   // of the provider, and of its client if config.yaml names none
	Type     string   // of its clients; "": Name is a type itself
	Settings []string // what clients of the type Name have in config.yaml that only some types have; see typeSettings

	// Keys are variables that may hold the key, of which the first that is set counts; nil: it exists only if
	// config.yaml names a client.
	Keys      []string
	Addresses []string // variables that may hold another address
	Base      string   // its address; "": the default of the wire
	Free      bool     // it needs no key

	Listed     string   // its name in the catalogue of models; "": none
	Maker      bool     // it makes its models itself: other servers have them under the same ids, with the same limits
	Suggested  []string // models for a person who has chosen none: first the one that raddle suggests
	KeyForms   []string // beginnings of its keys, which it publishes
	ModelForms []string // beginnings of the names of its models
}

// Providers are the types of clients in the order in which messages name them, and the providers that clients of these
// types reach. None may be changed.
var Providers = []Provider{
	{
		Name:       "openai",
		Settings:   []string{"wire", "strict"},
		Keys:       []string{"OPENAI_API_KEY"},
		Addresses:  []string{"OPENAI_API_BASE", "OPENAI_BASE_URL"},
		Listed:     "openai",
		Maker:      true,
		Suggested:  []string{"gpt-5.4-mini", "gpt-5.5", "gpt-5.4-nano"},
		KeyForms:   []string{"sk-proj-", "sk-svcacct-", "sk-admin-"},
		ModelForms: []string{"gpt-", "o1", "o3", "o4"},
	},
	{
		Name:     "openai-compatible",
		Settings: []string{"wire", "strict", "profile"},
	},
	{
		Name:       "anthropic",
		Settings:   []string{"strict", "cache_ttl"},
		Keys:       []string{"ANTHROPIC_API_KEY", "CLAUDE_API_KEY"},
		Addresses:  []string{"ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"},
		Listed:     "anthropic",
		Maker:      true,
		Suggested:  []string{"claude-sonnet-5", "claude-haiku-4-5", "claude-opus-4-8"},
		KeyForms:   []string{"sk-ant-"},
		ModelForms: []string{"claude"},
	},
	{
		Name:       "gemini",
		Keys:       []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Addresses:  []string{"GEMINI_API_BASE"},
		Listed:     "google",
		Maker:      true,
		Suggested:  []string{"gemini-3.5-flash", "gemini-3.1-pro-preview", "gemini-3.1-flash-lite"},
		KeyForms:   []string{"AIza"},
		ModelForms: []string{"gemini"},
	},
	{
		Name:      "ollama",
		Settings:  []string{"wire"},
		Keys:      []string{"OLLAMA_API_KEY"},
		Addresses: []string{"OLLAMA_API_BASE", "OLLAMA_HOST"},
		Base:      "http://localhost:11434",
		Free:      true,
	},
	{
		Name: "script",
	},
	{
		Name:     "bedrock",
		Settings: []string{"profile", "region", "credentials"},
		Listed:   "amazon-bedrock",
	},
	{
		Name:     "vertex",
		Settings: []string{"project", "credentials"},
		Listed:   "google-vertex",
	},
	{
		Name:      "deepseek",
		Type:      "openai-compatible",
		Keys:      []string{"DEEPSEEK_API_KEY"},
		Addresses: []string{"DEEPSEEK_API_BASE"},
		Base:      "https://api.deepseek.com/v1",
		Listed:    "deepseek",
		Suggested: []string{"deepseek-v4-flash", "deepseek-v4-pro"},
	},
	{
		Name:      "groq",
		Type:      "openai-compatible",
		Keys:      []string{"GROQ_API_KEY"},
		Addresses: []string{"GROQ_API_BASE"},
		Base:      "https://api.groq.com/openai/v1",
		Listed:    "groq",
		Suggested: []string{"openai/gpt-oss-120b", "llama-3.3-70b-versatile"},
		KeyForms:  []string{"gsk_"},
	},
	{
		Name:      "mistral",
		Type:      "openai-compatible",
		Keys:      []string{"MISTRAL_API_KEY"},
		Addresses: []string{"MISTRAL_API_BASE"},
		Base:      "https://api.mistral.ai/v1",
		Listed:    "mistral",
		Suggested: []string{"mistral-medium-2604", "mistral-small-latest"},
	},
	{
		Name:      "openrouter",
		Type:      "openai-compatible",
		Keys:      []string{"OPENROUTER_API_KEY"},
		Addresses: []string{"OPENROUTER_API_BASE"},
		Base:      "https://openrouter.ai/api/v1",
		Listed:    "openrouter",
		Suggested: []string{"openai/gpt-5.4-mini", "anthropic/claude-sonnet-4.6"},
		KeyForms:  []string{"sk-or-"},
	},
	{
		Name:      "xai",
		Type:      "openai-compatible",
		Keys:      []string{"XAI_API_KEY"},
		Addresses: []string{"XAI_API_BASE"},
		Base:      "https://api.x.ai/v1",
		Listed:    "xai",
		Suggested: []string{"grok-4.3"},
		KeyForms:  []string{"xai-"},
	},
}

// FindProvider returns the row with a name, nil if there is none.
func FindProvider(name string) *Provider {
	for i := range Providers {
		if Providers[i].Name == name {
			return &Providers[i]
		}
	}
	return nil
}

// ClientType returns the type of the provider's clients.
func (p *Provider) ClientType() string {
	if p.Type == "" {
		return p.Name
	}
	return p.Type
}

// IsKnown reports whether the provider can be called without a client in config.yaml.
func (p *Provider) IsKnown() bool { return len(p.Keys) > 0 }

// ClientTypes returns the values of the type of a client in config.yaml.
func ClientTypes() (types []string) {
	for _, p := range Providers {
		if p.Type == "" {
			types = append(types, p.Name)
		}
	}
	return types
}

// A typeSetting is a setting of a client that only some types have.
type typeSetting struct {
	name  string
	isSet func(c *Client) bool
	says  string // what only these types do, as the end of a sentence
}

var typeSettings = []typeSetting{
	{"wire", func(c *Client) bool { return c.Wire != "" }, "have a choice of wire"},
	{"cache_ttl", func(c *Client) bool { return c.Cache != "" }, "have a cache_ttl"},
	{"strict", func(c *Client) bool { return c.Strict != "" }, "can be strict"},
	{"profile", func(c *Client) bool { return c.Profile != "" }, "have a profile"},
	{"region", func(c *Client) bool { return c.Region != "" }, "have a region"},
	{"project", func(c *Client) bool { return c.Project != "" || c.Location != "" }, "have a project and a location"},
	{"credentials", func(c *Client) bool { return c.Instance }, "have credentials"},
}

// findMisplaced returns a setting of the client that its type does not have, and says which types have it; nil if there
// is none.
func (c *Client) findMisplaced() (setting *typeSetting, types string) {
	for i := range typeSettings {
		s := &typeSettings[i]
		if !s.isSet(c) {
			continue
		}
		var has []string
		for _, p := range Providers {
			if slices.Contains(p.Settings, s.name) {
				has = append(has, p.Name)
			}
		}
		if !slices.Contains(has, c.Type) {
			return s, joinAlternatives(has)
		}
	}
	return nil, ""
}

// joinAlternatives joins words as in "a, b or c".
func joinAlternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
