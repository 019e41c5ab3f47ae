package provider

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
)

// otherKeys are keys of model providers that raddle does not call by itself, and
// that scripts do not get either.
var otherKeys = []string{
	bedrockKey, "AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY", "COHERE_API_KEY", "FIREWORKS_API_KEY", "HUGGINGFACE_API_KEY", "JINA_API_KEY",
	"MOONSHOT_API_KEY", "NVIDIA_API_KEY", "PERPLEXITY_API_KEY", "TOGETHER_API_KEY", "VOYAGE_API_KEY",
}

// A client is a provider with an address and a key, from config.yaml or from the
// environment.
type client struct {
	config.Client
	keyNames   []string // variables that may hold the key; messages name the first
	baseFrom   string   // variable that Base is from; "": none
	configured bool
	stored     keystore.Place // where the key is if Key is ""; it is read for a call
	command    *keyCommand    // that writes the key; nil: none

	watch func(http.RoundTripper) http.RoundTripper // what its connections go through in a trial; nil: nothing
	cloud *cloudAccess                              // instead of a key; nil: none
}

// needsKey reports whether a call without a key would fail: config.yaml names a
// source for the key, or the client is a provider that raddle knows without
// configuration and that requires a key at its own address.
func (c *client) needsKey() bool {
	if c.KeyVar != "" || c.command != nil {
		return true
	}
	p := providerOf(c.Name)
	return !c.configured && p != nil && !p.Free && c.Base == p.Base
}

// providerOf returns the provider with a name that can be called without a client in config.yaml, nil if there is none.
func providerOf(name string) *config.Provider {
	if p := config.FindProvider(name); p != nil && p.IsKnown() {
		return p
	}
	return nil
}

// collectClients returns the clients that models can be called from: the clients of
// config.yaml, then the known providers that it does not name.
func collectClients(c *config.Config, home string, env environ.Environ) []client {
	var all []client
	for _, cc := range c.Clients {
		cl := configuredClient(cc, env)
		cl.cloud = newCloudAccess(cl.Client, home, env)
		all = append(all, cl)
	}
	for _, p := range config.Providers {
		if !p.IsKnown() || slices.ContainsFunc(all, func(c client) bool { return c.Name == p.Name }) {
			continue
		}
		cl := client{
			Client:   config.Client{Name: p.Name, Type: p.ClientType(), Base: p.Base},
			keyNames: p.Keys,
		}
		cl.Key, _ = env.LookupFirst(p.Keys)
		if base, ok := env.LookupFirst(p.Addresses); ok {
			cl.Base = base
			cl.baseFrom = findFirst(env, p.Addresses)
		}
		all = append(all, cl)
	}
	return all
}

// CompleteClients returns the clients that models can be called from, with the keys and
// addresses that their calls use.
func CompleteClients(c *config.Config, env environ.Environ) []config.Client {
	var all []config.Client
	for _, cl := range collectClients(c, "", env) {
		all = append(all, cl.Client)
	}
	return all
}

// configuredClient completes a client of config.yaml with values from the
// environment, <CLIENT>_API_KEY and <CLIENT>_API_BASE, and with the defaults of its
// type.
func configuredClient(cc config.Client, env environ.Environ) client {
	cl := client{Client: cc, configured: true, keyNames: []string{environ.FormatVariable(cc.Name) + "_API_KEY"}}
	at := []string{environ.FormatVariable(cc.Name) + "_API_BASE"}
	p := cmp.Or(providerOf(cc.Type), providerOf(cc.Name)) // a known name with another type
	if p != nil && (cc.Base == "" || cc.Type == p.Name) {
		cl.keyNames = append(cl.keyNames, p.Keys...)
		at = append(at, p.Addresses...)
	}
	// what the client itself names counts before the environment
	if cc.Type == "bedrock" && cc.Profile == "" && !cc.Instance {
		cl.keyNames = append(cl.keyNames, bedrockKey)
	}
	switch {
	case cc.KeyCommand != nil:
		cl.command = newKeyCommand(cc, env)
	case cc.KeyVar != "":
		cl.keyNames = []string{cc.KeyVar}
	case cl.Key == "":
		cl.Key, _ = env.LookupFirst(cl.keyNames)
	}
	if cl.FindUnset("api_base") != nil {
		return cl // its key must not be sent to another address
	}
	if cl.Base == "" {
		cl.Base, _ = env.LookupFirst(at)
		cl.baseFrom = findFirst(env, at)
	}
	if cl.Base == "" && p != nil {
		cl.Base = p.Base
	}
	return cl
}

// findFirst returns the name of the first variable that is set and not empty, or "".
func findFirst(env environ.Environ, names []string) string {
	for _, name := range names {
		if _, ok := env.Lookup(name); ok {
			return name
		}
	}
	return ""
}

// firstChatModel returns the first chat model of the client.
func (c *client) firstChatModel() string {
	for _, m := range c.Models {
		if m.Kind == "chat" {
			return m.Name
		}
	}
	return ""
}

// isReady reports whether the client has the key that its calls need.
func (c *client) isReady() bool {
	if c.FindUnset("api_base") != nil {
		return false
	}
	if c.cloud != nil && c.Key == "" && c.command == nil && c.stored == keystore.Nowhere && c.KeyVar == "" {
		_, err := c.cloud.describe()
		return err == nil
	}
	p := providerOf(c.Name)
	return c.Key != "" || c.command != nil || c.stored != keystore.Nowhere || c.KeyVar == "" && (c.configured && c.Base != "" || p != nil && p.Free)
}

// ListKeyVariables returns the variables that may hold keys, including configured ones.
func ListKeyVariables(c *config.Config) []string {
	names := slices.Clone(otherKeys)
	for _, p := range config.Providers {
		names = append(names, p.Keys...)
	}
	for _, cc := range c.Clients {
		names = append(names, environ.FormatVariable(cc.Name)+"_API_KEY")
		if cc.KeyVar != "" {
			names = append(names, cc.KeyVar)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ListKeysFound returns the names of the variables that hold a provider's key.
func (r *Resolver) ListKeysFound() []string {
	var found []string
	for _, name := range ListKeyVariables(r.config) {
		if _, ok := r.env.Lookup(name); ok {
			found = append(found, name)
		}
	}
	return found
}

// splitModel splits a model id: "client:name", or only a client.
func splitModel(id string) (client, name string) {
	client, name, _ = strings.Cut(id, ":")
	return client, name
}
