package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
)

// ListChoices returns the models to offer to a person who has chosen none: those of the clients that are ready, or only
// those of one client.
func (r *Resolver) ListChoices(only string) []Model {
	list := []Model{}
	for i := range r.clients {
		c := &r.clients[i]
		if !c.isReady() || only != "" && c.Name != only {
			continue
		}
		for _, name := range c.chatChoices() {
			list = append(list, r.describeModel(c.Name+":"+name, name))
		}
	}
	return list
}

// chatChoices returns the chat models that the configuration lists for the client, otherwise those that are suggested
// for its provider.
func (c *client) chatChoices() (names []string) {
	for _, model := range c.Models {
		if model.Kind == "chat" {
			names = append(names, model.Name)
		}
	}
	p := cmp.Or(providerOf(c.Name), providerOf(c.Type))
	if len(names) > 0 || p == nil || c.configured && c.Base != p.Base {
		return names // an address of its own may have any models
	}
	return p.Suggested
}

// A KnownProvider is a provider that raddle knows without configuration and that needs a key.
type KnownProvider struct {
	Name     string
	Variable string // that may hold the key
	Ready    bool   // there is a key
}

// ListProviders returns the providers that only need a key.
func (r *Resolver) ListProviders() []KnownProvider {
	var list []KnownProvider
	for _, p := range config.Providers {
		if !p.IsKnown() || p.Free {
			continue
		}
		c, _ := r.findClient(p.Name + ":x")
		list = append(list, KnownProvider{
			Name:     p.Name,
			Variable: p.Keys[0],
			Ready:    c.isReady(),
		})
	}
	return list
}

// localWait is how long a server on this machine may take to list its models.
const localWait = 300 * time.Millisecond

// ListLocalModels returns the models of Ollama on this machine, if it answers at once. It connects only to loopback
// addresses.
func (r *Resolver) ListLocalModels(ctx context.Context) []Model {
	var list []Model
	for i := range r.clients {
		c := &r.clients[i]
		if c.Type != "ollama" || !isLoopback(c.Base) {
			continue
		}
		for _, name := range listOllama(ctx, strings.TrimSuffix(ollamaBase(c.Base), "/v1")) {
			list = append(list, r.describeModel(c.Name+":"+name, name))
		}
	}
	return list
}

// isLoopback reports whether the address of a server is on this machine.
func isLoopback(base string) bool {
	u, err := url.Parse(ollamaBase(base))
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// listOllama returns the names of the models that a server of Ollama has, nil if it does not answer.
func listOllama(ctx context.Context, base string) []string {
	ctx, cancel := context.WithTimeout(ctx, localWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/tags", nil)
	if err != nil {
		return nil
	}
	local := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // without a proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := local.Do(request)
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	var reply struct {
		Models []struct{ Name string }
	}
	const most = 1 << 20
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, most)).Decode(&reply) != nil {
		return nil
	}
	var names []string
	for _, model := range reply.Models {
		if model.Name != "" {
			names = append(names, model.Name)
		}
	}
	slices.Sort(names)
	return names
}

// SuggestModel returns a model that can be called now, otherwise an example and the client that needs a key first.
func (r *Resolver) SuggestModel() (model, needs string) {
	if list := r.ListChoices(""); len(list) > 0 {
		return list[0].ID, ""
	}
	first := config.Providers[0]
	return first.Name + ":" + first.Suggested[0], first.Name
}

// FindKey returns where the key of a client comes from, and whether raddle knows the client.
func (r *Resolver) FindKey(name string) (info ClientInfo, known bool) {
	name = cmp.Or(config.ClientAliases[name], name)
	list := r.ListClients()
	i := slices.IndexFunc(list, func(c ClientInfo) bool { return c.Client == name })
	if i < 0 {
		return ClientInfo{}, false
	}
	return list[i], true
}

// ListUnset returns the variables that the clients of models take addresses and keys from, and that have no value. A
// key that is stored instead counts.
func (r *Resolver) ListUnset(ids []string) []config.UnsetVariable {
	var list []config.UnsetVariable
	for _, id := range ids {
		c, _ := r.findClient(id)
		if c == nil {
			continue
		}
		for _, unset := range c.Unset {
			if !slices.Contains(list, unset) && (unset.Key != "api_key" || c.stored == keystore.Nowhere) {
				list = append(list, unset)
			}
		}
	}
	return list
}
