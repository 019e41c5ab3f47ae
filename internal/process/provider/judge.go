package provider

import (
	"slices"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/storage/config"
)

// foreignForms are the beginnings of keys that others publish than the providers that raddle knows, with who they are.
// They are in the documentation of each, and in the lists of tools that look for keys in repositories.
var foreignForms = []config.Provider{
	{Name: "GitHub", KeyForms: []string{"github_pat_", "ghp_"}},
	{Name: "Hugging Face", KeyForms: []string{"hf_"}},
	{Name: "Perplexity", KeyForms: []string{"pplx-"}},
	{Name: "NVIDIA", KeyForms: []string{"nvapi-"}},
	{Name: "Cerebras", KeyForms: []string{"csk-"}},
}

// ownerOf returns who publishes that its keys begin like this one, with that beginning; "" if nobody does. A key with
// the beginning of another provider belongs to that one: no beginning is that of a longer one.
func ownerOf(key string) (owner, form string) {
	for _, p := range slices.Concat(config.Providers, foreignForms) {
		for _, form := range p.KeyForms {
			if strings.HasPrefix(key, form) {
				return p.Name, form
			}
		}
	}
	return "", ""
}

// placeholder matches what examples write where a key belongs.
var placeholder = pattern.CompileLater(`(?i)^<.*>$|^\[.*\]$|\.\.\.|…|your[-_ ]?(own[-_ ]?)?(api|secret|access|openai|anthropic|gemini|provider)?[-_ ]?(key|token)|(api[-_ ]?)?(key|token)[-_ ]?here|^(sk-)?(x{4,}|\*{3,}|change[-_ ]?me|replace[-_ ]?me|todo|insert.*|placeholder)$`)

// shortestKey is the length below which no key of a provider is.
const shortestKey = 16

// JudgeKey returns why a text can be no key, "" if it may be one. name is the provider that raddle knows and whose own
// address is called; "" for other servers, which may take any text. The reason shows at most the first four characters
// of the text.
func JudgeKey(name, key string) string {
	trimmed := strings.TrimSpace(key)
	unquoted := strings.Trim(trimmed, "\"'`")
	switch {
	case trimmed == "":
		return "it is empty"
	case environ.HasReference(key), strings.HasPrefix(trimmed, "{{"), strings.HasPrefix(trimmed, "${"):
		return "it names a variable, and is not the key itself"
	case strings.HasPrefix(trimmed, "$") && strings.ToUpper(trimmed) == trimmed && trimmed != "$":
		return "it names a variable, and is not the key itself"
	case len(unquoted) < len(trimmed):
		return "there are quotes around it"
	case placeholder().MatchString(trimmed):
		return "it is the placeholder of an example"
	case strings.HasPrefix(strings.ToLower(trimmed), "bearer "):
		return "it begins with Bearer, which raddle adds itself"
	case strings.ContainsFunc(key, isNoKeyCharacter):
		return "it has white space or characters that no key has"
	case name == "":
		return ""
	case len(trimmed) < shortestKey:
		return "it is too short"
	case strings.Trim(trimmed, trimmed[:1]) == "":
		return "it is one character, repeated"
	}
	if owner, form := ownerOf(trimmed); owner != "" && owner != name {
		return "it begins with " + trimmed[:min(len(form), 4)] + " like a key of " + owner
	}
	return ""
}

// judgedName returns the provider at whose own address the key of the client is used, "" for other addresses.
func (c *client) judgedName() string {
	p := providerOf(c.Type)
	if p == nil {
		p = providerOf(c.Name)
	}
	if p == nil || p.Free || c.Base != p.Base {
		return ""
	}
	return p.Name
}

// JudgeClientKey returns why the key that a client has from the configuration or the environment can be none, "" if it may be one. It reads no stored
// key and runs no command.
func (r *Resolver) JudgeClientKey(name string) string {
	c, _ := r.findClient(name + ":x")
	if c == nil || c.Key == "" {
		return ""
	}
	return JudgeKey(c.judgedName(), c.Key)
}

// JudgeKeyFor returns why a text can be no key of a client, "" if it may be one.
func (r *Resolver) JudgeKeyFor(name, key string) string {
	c, _ := r.findClient(name + ":x")
	if c == nil {
		return JudgeKey("", key)
	}
	return JudgeKey(c.judgedName(), key)
}

// IsOpenRouter reports whether a client calls OpenRouter at its own address.
func (r *Resolver) IsOpenRouter(name string) bool {
	c, _ := r.findClient(name + ":x")
	return c != nil && c.judgedName() == "openrouter"
}
