package provider

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
)

// Resolver finds models by their ids, and opens them. It also knows their clients, and
// what models can do and cost. It is safe for concurrent use.
type Resolver struct {
	dirs    config.Dirs
	config  *config.Config
	env     environ.Environ
	clients []client
	known   *Catalogue
	stored  *keystore.Store   // keys that the user stored; nil: none
	learned func(key string)  // called with every key that is read from stored or written by a command; may be nil
	replays func(file string) // called once for every transcript that is replayed

	confined bool   // transcripts that an agent names lie beneath its directory
	named    string // the model that a person at this machine named for the run, whose transcript may lie anywhere

	recorded func() ([]string, error) // returns the ids of replies that the run has recorded; may be nil

	mu      sync.Mutex
	scripts map[transcriptPlace]*lazyModel
}

var _ flow.Models = (*Resolver)(nil)

// NewResolver returns the models of the clients that a configuration and an environment
// name. The clients of the configuration must not change afterwards.
func NewResolver(c *config.Config, dirs config.Dirs, env environ.Environ) *Resolver {
	return &Resolver{
		dirs:    dirs,
		config:  c,
		env:     env,
		clients: collectClients(c, dirs.Home, env),
		known:   &Catalogue{path: filepath.Join(dirs.Config, CatalogueName)},
	}
}

// UseStoredKeys makes clients without a key in the configuration and the environment use the one that is stored for
// them. It must be called before all other methods. learned is called with every key that is read.
func (r *Resolver) UseStoredKeys(keys *keystore.Store, learned func(key string)) {
	r.stored = keys
	r.learned = learned
	for i := range r.clients {
		if c := &r.clients[i]; c.Key == "" && c.command == nil {
			c.stored = keys.PlaceOf(c.Name)
		}
		if c := &r.clients[i]; c.cloud != nil {
			c.cloud.learned = learned
		}
	}
}

// withKey returns a client that can be called: with the key that its command writes or that is stored for it, if it has
// no other.
func (r *Resolver) withKey(ctx context.Context, c *client) (*client, error) {
	if unset := c.FindUnset("api_base"); unset != nil {
		return nil, failure.NewInvalid("set "+unset.Name+", or write the address", "client %q: %s", c.Name, unset)
	}
	var key string
	var err error
	switch {
	case c.Key != "":
		return c, nil
	case c.command != nil:
		if key, err = c.command.readKey(ctx, r.learnKey); err != nil {
			return nil, err
		}
	case c.stored != keystore.Nowhere:
		if key, err = r.stored.Read(c.Name); err != nil {
			return nil, &llm.Error{
				Class:   llm.Auth,
				Err:     err,
				Message: fmt.Sprintf("the stored key of client %q cannot be read: %v; to store it again: raddle login %s", c.Name, err, c.Name),
			}
		}
		r.learnKey(key)
	default:
		return c, nil
	}
	with := *c
	with.Key = key
	return &with, nil
}

// learnKey tells the redactor of a key before it is used.
func (r *Resolver) learnKey(key string) {
	if r.learned != nil {
		r.learned(key)
	}
}

// ForRun returns the same models for one run: transcripts start after the replies that the
// run has recorded, and replays is called once for every transcript. Both may be nil. A transcript is
// opened, and recorded called, when a model is first called.
func (r *Resolver) ForRun(recorded func() ([]string, error), replays func(file string)) *Resolver {
	return &Resolver{
		dirs:     r.dirs,
		config:   r.config,
		env:      r.env,
		clients:  r.clients,
		known:    r.known,
		stored:   r.stored,
		learned:  r.learned,
		confined: r.confined,
		recorded: recorded,
		replays:  replays,
	}
}

// ConfineTranscripts makes agents replay only transcripts beneath their own directories: those of a server need not be
// its operator's. It must be called before all other methods.
func (r *Resolver) ConfineTranscripts() { r.confined = true }

// AllowTranscript makes a model id, which a person at this machine named, name a transcript anywhere. It must be called
// before all other methods.
func (r *Resolver) AllowTranscript(id string) { r.named = id }

// findClient returns the client and the model's name for an id.
func (r *Resolver) findClient(id string) (*client, string) {
	clientName, name := splitModel(id)
	named := func(name string) int {
		return slices.IndexFunc(r.clients, func(c client) bool { return c.Name == name })
	}
	i := named(clientName)
	if i < 0 {
		i = named(config.ClientAliases[clientName])
	}
	if i < 0 {
		return nil, ""
	}
	c := &r.clients[i]
	name = cmp.Or(name, c.firstChatModel())
	return c, name
}

// IsKnown implements [flow.Models].
func (r *Resolver) IsKnown(dir, id string) bool {
	for _, one := range flow.SplitModels(id) {
		if !r.isKnown(dir, one) {
			return false
		}
	}
	return true
}

// isKnown does the same for the id of one model.
func (r *Resolver) isKnown(dir, id string) bool {
	if c, name := r.findClient(id); c != nil {
		return name != "" && (c.Type != "script" || isTranscript(r.findTranscript(dir, id, c, name)))
	}
	file, ok := strings.CutPrefix(id, "script:")
	return ok && isTranscript(r.findTranscript(dir, id, nil, file))
}

// Open implements [flow.Models]. It opens no connection: a wrong key or address of a
// client is an error of the first call.
func (r *Resolver) Open(_ context.Context, dir, id string) (llm.Model, error) {
	var list []agent.Alternative
	for _, one := range flow.SplitModels(id) {
		model, err := r.open(dir, one)
		if err != nil {
			return nil, err
		}
		list = append(list, agent.Alternative{Name: one, Model: model})
	}
	if len(list) == 1 {
		return list[0].Model, nil
	}
	return agent.Fallback(list...), nil
}

// open does the same for the id of one model.
func (r *Resolver) open(dir, id string) (llm.Model, error) {
	c, name := r.findClient(id)
	file, replays := strings.CutPrefix(id, "script:")
	switch {
	case c != nil && c.Type == "script":
		return r.openTranscript(r.findTranscript(dir, id, c, name))
	case c != nil && name == "":
		return nil, failure.NewInvalid("name the model: "+c.Name+":MODEL", "client %q lists no chat model", c.Name)
	case c != nil:
		return &lazyModel{open: func(ctx context.Context) (llm.Model, error) { return r.openClientModel(ctx, c, name) }}, nil
	case replays:
		return r.openTranscript(r.findTranscript(dir, id, nil, file))
	}
	return nil, r.unknownClientError(id)
}

// Hint implements [flow.Hinter].
func (r *Resolver) Hint(id string) string {
	clientName, _ := splitModel(id)
	return cmp.Or(config.ClientHint(clientName), r.suggestID(id))
}

// suggestID returns the id that an unknown one probably means: a model without its client, or a misspelt client.
// Otherwise it says what ids look like.
func (r *Resolver) suggestID(id string) string {
	clientName, model, hasClient := strings.Cut(id, ":")
	names := []string{}
	for _, c := range r.clients {
		if !hasClient && slices.ContainsFunc(c.Models, func(k config.Model) bool { return k.Name == id }) {
			return "write " + c.Name + ":" + id
		}
		names = append(names, c.Name)
	}
	if !hasClient {
		if vendor := vendorOf(id); vendor != "" && slices.Contains(names, vendor) {
			return "write " + vendor + ":" + id
		}
		return "model ids are CLIENT:MODEL, such as openai:gpt-5-mini; raddle models ls lists them"
	}
	if near := wording.FindNearest(clientName, append(names, "script")); near != "" {
		return "did you mean " + near + ":" + model + "?"
	}
	return "there is no client " + clientName + "; the clients are " + strings.Join(names, ", ")
}

// vendorOf returns the client of the vendor whose models have a name, "" if it is not known.
func vendorOf(model string) string {
	for _, p := range config.Providers {
		if slices.ContainsFunc(p.ModelForms, func(form string) bool { return strings.HasPrefix(strings.ToLower(model), form) }) {
			return p.Name
		}
	}
	return ""
}

// unknownClientError returns the error for an id that names no client.
func (r *Resolver) unknownClientError(id string) *failure.Error {
	clientName, _ := splitModel(id)
	var names []string
	for _, c := range r.clients {
		names = append(names, c.Name)
	}
	next := cmp.Or(config.ClientHint(clientName), wording.SuggestNearest(clientName, append(names, "script"), ""),
		"model ids are CLIENT:MODEL; the clients are "+strings.Join(names, ", ")+" and script (raddle info)")
	return failure.NewInvalid(next, "unknown model %q: there is no client %q", id, clientName)
}

// transcriptPath returns the file that a script model replays: relative to the agent's
// directory, or, for a client of config.yaml, to that file's.
func (r *Resolver) transcriptPath(dir string, c *client, name string) string {
	if c != nil && c.Base != "" {
		name = c.Base
		dir = r.dirs.Config
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// A transcriptPlace is where a transcript is, and the directory that it must not be outside of; "" if it may be
// anywhere.
type transcriptPlace struct{ path, root string }

// findTranscript returns the place of the transcript of a model id, for the client and name of the id.
func (r *Resolver) findTranscript(dir, id string, c *client, name string) transcriptPlace {
	place := transcriptPlace{path: r.transcriptPath(dir, c, name)}
	if operators := c != nil && c.Base != "" || id == r.named || id == r.config.Model; r.confined && !operators {
		place.root = dir
	}
	return place
}

// read returns the transcript.
func (t transcriptPlace) read() (*script.Transcript, error) {
	if t.root != "" {
		return script.OpenBeneath(t.root, t.path)
	}
	return script.Open(t.path)
}

// openTranscript returns the one model that replays a file: several nodes take their
// replies from the same transcript, in the order of their calls.
func (r *Resolver) openTranscript(place transcriptPlace) (llm.Model, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if model := r.scripts[place]; model != nil {
		return model, nil
	}
	model := &lazyModel{open: func(context.Context) (llm.Model, error) {
		var recorded []string
		if r.recorded != nil {
			var err error
			if recorded, err = r.recorded(); err != nil {
				return nil, err
			}
		}
		model, err := openScript(place, recorded)
		if err == nil && r.replays != nil {
			r.replays(place.path)
		}
		return model, err
	}}
	if r.scripts == nil {
		r.scripts = map[transcriptPlace]*lazyModel{}
	}
	r.scripts[place] = model
	return model, nil
}

// isTranscript reports whether there is a file at a path that a transcript may be read from.
func isTranscript(place transcriptPlace) bool {
	if place.root != "" && plainfile.CheckBeneath(place.root, place.path) != nil {
		return false
	}
	info, err := os.Stat(place.path)
	return err == nil && !info.IsDir()
}

// ClientInfo is a client as it is shown to a person, without its key.
type ClientInfo struct {
	Client string `json:"client"`
	Type   string `json:"type"`
	Base   string `json:"api_base,omitempty"`
	// Key is where the key is: a variable, "config.yaml", "a command", "keychain" or "keys.json".
	Key   string `json:"key,omitempty"`
	From  string `json:"credentials,omitempty"` // where those of a cloud are from, if there is no key
	Lacks string `json:"lacks,omitempty"`       // what is missing of the credentials of a cloud
	// Needs is the variable to set to a key; empty: there is a key, or none is needed.
	Needs  string   `json:"needs,omitempty"`
	Unset  []string `json:"unset,omitempty"` // what config.yaml names and has no value, with its place
	Ready  bool     `json:"ready"`           // nothing is missing, as far as raddle can see without a call
	Models []string `json:"models"`
}

// ListClients returns the clients that can be named in model ids.
func (r *Resolver) ListClients() []ClientInfo {
	var infos []ClientInfo
	for _, c := range r.clients {
		info := ClientInfo{
			Client: c.Name,
			Type:   c.Type,
			Base:   redact.RedactURL(c.Base),
			Ready:  c.isReady(),
			Models: []string{},
		}
		for _, model := range c.Models {
			info.Models = append(info.Models, model.Name)
		}
		for _, unset := range c.Unset {
			info.Unset = append(info.Unset, unset.String())
		}
		for _, name := range c.keyNames {
			if _, ok := r.env.Lookup(name); ok && info.Key == "" {
				info.Key = name
			}
		}
		if c.configured && c.KeyVar == "" && configuredKey(r.config, c.Name) != "" {
			info.Key = config.FileName
		}
		if c.command != nil {
			info.Key = commandSource
		}
		if info.Key == "" && c.stored != keystore.Nowhere {
			info.Key = nameStored(c.stored)
		}
		if c.cloud != nil {
			info.Base = redact.RedactURL(c.cloud.address())
		}
		if c.cloud != nil && info.Key == "" {
			var missing error
			if info.From, missing = c.cloud.describe(); missing != nil {
				info.Lacks = missing.Error()
			}
		}
		if !info.Ready && info.Key == "" && info.Lacks == "" && len(c.keyNames) > 0 {
			info.Needs = c.keyNames[0]
		}
		infos = append(infos, info)
	}
	return infos
}

// configuredKey returns what config.yaml itself says about a client's key.
func configuredKey(c *config.Config, name string) string {
	for _, cc := range c.Clients {
		if cc.Name == name {
			return cc.Key
		}
	}
	return ""
}
