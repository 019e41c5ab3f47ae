package app

import (
	"slices"
	"strings"
)

// clientTypes are the values of a client's type in config.yaml.
var clientTypes = []string{"openai", "openai-compatible", "anthropic", "gemini", "ollama", "script", "bedrock"}

// provider is a service that is known without configuration: its models are
// called NAME:MODEL as soon as its key is in the environment.
type provider struct {
	name string
	typ  string
	keys []string // variables that hold the key, the first set one counts
	base string   // URL; "": the wire's own
	at   []string // variables that hold another URL
	free bool     // it wants no key
}

var providers = []provider{
	{name: "openai", typ: "openai", keys: []string{"OPENAI_API_KEY"}, at: []string{"OPENAI_API_BASE", "OPENAI_BASE_URL"}},
	{name: "anthropic", typ: "anthropic", keys: []string{"ANTHROPIC_API_KEY", "CLAUDE_API_KEY"}, at: []string{"ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"}},
	{name: "gemini", typ: "gemini", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, at: []string{"GEMINI_API_BASE"}},
	{name: "ollama", typ: "ollama", keys: []string{"OLLAMA_API_KEY"}, at: []string{"OLLAMA_API_BASE", "OLLAMA_HOST"}, base: "http://localhost:11434", free: true},
	{name: "deepseek", typ: "openai-compatible", keys: []string{"DEEPSEEK_API_KEY"}, at: []string{"DEEPSEEK_API_BASE"}, base: "https://api.deepseek.com/v1"},
	{name: "groq", typ: "openai-compatible", keys: []string{"GROQ_API_KEY"}, at: []string{"GROQ_API_BASE"}, base: "https://api.groq.com/openai/v1"},
	{name: "mistral", typ: "openai-compatible", keys: []string{"MISTRAL_API_KEY"}, at: []string{"MISTRAL_API_BASE"}, base: "https://api.mistral.ai/v1"},
	{name: "openrouter", typ: "openai-compatible", keys: []string{"OPENROUTER_API_KEY"}, at: []string{"OPENROUTER_API_BASE"}, base: "https://openrouter.ai/api/v1"},
	{name: "xai", typ: "openai-compatible", keys: []string{"XAI_API_KEY"}, at: []string{"XAI_API_BASE"}, base: "https://api.x.ai/v1"},
}

// otherKeys are keys of model providers that raddle does not call by itself, and
// that are kept from scripts all the same.
var otherKeys = []string{
	"AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY", "COHERE_API_KEY", "FIREWORKS_API_KEY", "HUGGINGFACE_API_KEY", "JINA_API_KEY",
	"MOONSHOT_API_KEY", "NVIDIA_API_KEY", "PERPLEXITY_API_KEY", "TOGETHER_API_KEY", "VOYAGE_API_KEY",
}

// client is a provider with an address and a key, from config.yaml or from the
// environment.
type client struct {
	ClientConfig
	keyNames   []string // variables that may hold the key, the first to be named in messages
	configured bool
}

// needsKey tells whether a call without a key is of no use: config.yaml says where
// to take one from, or it is a provider that is known without configuration, which
// wants one unless it is free or stands elsewhere.
func (c *client) needsKey() bool {
	if c.KeyVar != "" {
		return true
	}
	p := providerOf(c.Name)
	return !c.configured && p != nil && !p.free && c.Base == p.base
}

func providerOf(typ string) *provider {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == typ })
	if i < 0 {
		return nil
	}
	return &providers[i]
}

// clients lists what models can be asked of: the clients of config.yaml, then the
// known providers that it does not name.
func clients(c *Config, env environ) []client {
	var all []client
	for _, cc := range c.Clients {
		all = append(all, configuredClient(cc, env))
	}
	for _, p := range providers {
		if slices.ContainsFunc(all, func(c client) bool { return c.Name == p.name }) {
			continue
		}
		cl := client{ClientConfig: ClientConfig{Name: p.name, Type: p.typ, Base: p.base}, keyNames: p.keys}
		cl.Key, _ = env.first(p.keys)
		if base, ok := env.first(p.at); ok {
			cl.Base = base
		}
		all = append(all, cl)
	}
	return all
}

// configuredClient fills in from the environment what a client of config.yaml
// leaves open: <CLIENT>_API_KEY and <CLIENT>_API_BASE, and what is usual for its
// type.
func configuredClient(cc ClientConfig, env environ) client {
	cl := client{ClientConfig: cc, configured: true, keyNames: []string{upper(cc.Name) + "_API_KEY"}}
	at := []string{upper(cc.Name) + "_API_BASE"}
	p := providerOf(cc.Type)
	if p == nil {
		p = providerOf(cc.Name) // a known name of another type
	}
	if p != nil && (cc.Base == "" || cc.Type == p.name) {
		cl.keyNames = append(cl.keyNames, p.keys...)
		at = append(at, p.at...)
	}
	switch {
	case cc.KeyVar != "":
		cl.keyNames = []string{cc.KeyVar}
	case cl.Key == "":
		cl.Key, _ = env.first(cl.keyNames)
	}
	if cl.Base == "" {
		cl.Base, _ = env.first(at)
	}
	if cl.Base == "" && p != nil {
		cl.Base = p.base
	}
	return cl
}

// first is the value of the first variable that is set.
func (e environ) first(names []string) (string, bool) {
	for _, name := range names {
		if v, ok := e.lookup(name); ok {
			return v, true
		}
	}
	return "", false
}

// chat is the client's first chat model.
func (c *client) chat() string {
	for _, m := range c.Models {
		if m.Kind == "chat" {
			return m.Name
		}
	}
	return ""
}

// ready tells whether calls to the client can succeed as far as keys go.
func (c *client) ready() bool {
	p := providerOf(c.Name)
	return c.Key != "" || c.KeyVar == "" && (c.configured && c.Base != "" || p != nil && p.free)
}

// keyVariables lists the variables that may hold keys, configured ones included.
func keyVariables(c *Config) []string {
	names := slices.Clone(otherKeys)
	for _, p := range providers {
		names = append(names, p.keys...)
	}
	for _, cc := range c.Clients {
		names = append(names, upper(cc.Name)+"_API_KEY")
		if cc.KeyVar != "" {
			names = append(names, cc.KeyVar)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// KeysFound lists the variables that hold a provider's key, and only their names.
func (p *Process) KeysFound() []string {
	var found []string
	for _, name := range keyVariables(&p.Config) {
		if _, ok := p.env.lookup(name); ok {
			found = append(found, name)
		}
	}
	return found
}

// splitModel splits a model id: "client:name", or a client alone.
func splitModel(id string) (client, name string) {
	client, name, _ = strings.Cut(id, ":")
	return client, name
}
