package provider

import (
	"errors"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/process/catalogue"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
	"raddle.dev/llm/openai"
)

// CatalogueName is the name of the user's own catalogue in the directory of config.yaml.
const CatalogueName = "models.json"

// listedProfiles has the names that the catalogue uses for compatible servers that are no [config.Provider], by their
// profiles.
var listedProfiles = map[string]string{
	"gemini-openai": "google", "cerebras": "cerebras", "moonshot": "moonshotai", "together": "togetherai", "fireworks": "fireworks-ai",
	"github": "github-models", "qwen": "alibaba", "zai": "zai", "minimax": "minimax",
}

// listedAs returns the name that the catalogue uses for a type of clients or the profile of a compatible server, "" if
// it has none.
func listedAs(name string) string {
	if p := config.FindProvider(name); p != nil {
		return p.Listed
	}
	return listedProfiles[name]
}

// listedName returns the name that the catalogue uses for the provider that a client reaches, "" if it is not known.
func (c *client) listedName() string {
	host := ""
	if address, err := url.Parse(c.Base); err == nil {
		host = address.Hostname()
	}
	switch {
	case c.Type == "openai" && openai.IsAzure(host):
		return "azure"
	case c.Type != "openai-compatible":
		return listedAs(c.Type)
	case c.Profile != "":
		return listedAs(c.Profile)
	}
	return listedAs(openai.ProfileAt(host).Name)
}

// A Catalogue is what a process knows about the models of all providers. It is opened when it is first needed, and is
// safe for concurrent use.
type Catalogue struct {
	path string // of the user's own

	once  sync.Once
	all   *catalogue.Catalogue
	fault error
}

// Catalogue returns what is known about models.
func (r *Resolver) Catalogue() *Catalogue { return r.known }

// About says where the facts are from: the newer of models.json in the directory of config.yaml and the catalogue that
// is in the program counts. The error says why that file is not used.
func (k *Catalogue) About() (catalogue.About, error) {
	return k.openFile().About, k.fault
}

func (k *Catalogue) openFile() *catalogue.Catalogue {
	k.once.Do(func() {
		k.all = catalogue.Embedded()
		own, err := k.readOwn()
		switch {
		case err != nil:
			k.fault = failure.NewInvalid("write it again: raddle models update", "%s: %v", k.path, err)
		case own != nil && own.About.Date >= k.all.About.Date:
			k.all = own
		}
	})
	return k.all
}

// readOwn returns the user's own catalogue, nil if there is none.
func (k *Catalogue) readOwn() (*catalogue.Catalogue, error) {
	data, err := plainfile.Read(k.path, catalogue.MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return catalogue.Open(data)
}

// findModel returns what the catalogue says about a model of a client. Of a model at a server that the catalogue does
// not know, it has what the model's maker says, without a price.
func (k *Catalogue) findModel(c *client, name string) catalogue.Model {
	m := k.findListed(c, name)
	if !m.Price.IsZero() {
		m.Price.Search = searchPrices[c.listedName()]
	}
	if c.Cache == "1h" {
		m.Price = writeForAnHour(m.Price)
	}
	return m
}

// searchPrices are the prices of one search of the web by the names of providers in the catalogue, which does not have
// them: 10 dollars for 1,000 at OpenAI (https://platform.openai.com/docs/pricing) and Anthropic
// (https://platform.claude.com/docs/en/about-claude/pricing), 14 dollars at Google
// (https://ai.google.dev/gemini-api/docs/pricing, of Gemini 3).
var searchPrices = map[string]float64{"openai": 0.01, "azure": 0.01, "anthropic": 0.01, "google": 0.014}

// writeForAnHour returns a price with that of tokens which Anthropic keeps for an hour in its cache: twice that of
// input (https://platform.claude.com/docs/en/build-with-claude/prompt-caching, "Pricing").
func writeForAnHour(p agent.Price) agent.Price {
	const times = 2
	p.Written = times * p.Input
	p.Long = slices.Clone(p.Long)
	for i := range p.Long {
		p.Long[i].Written = times * p.Long[i].Input
	}
	return p
}

func (k *Catalogue) findListed(c *client, name string) catalogue.Model {
	provider := c.listedName()
	if c.Type == "vertex" {
		return k.findOnVertex(name)
	}
	if m, found := k.openFile().Find(provider, name); found || provider != "" {
		return m
	}
	if c.Type != "openai-compatible" {
		return catalogue.Model{}
	}
	own := name[strings.LastIndexByte(name, '/')+1:] // resellers write the name of the maker before it
	for _, maker := range config.Providers {
		if !maker.Maker {
			continue
		}
		if m, found := k.openFile().Find(maker.Listed, own); found {
			m.Price = agent.Price{}
			m.Free = false
			return m
		}
	}
	return catalogue.Model{}
}

// findOnVertex returns what the catalogue says about a model of Vertex. Its list has no maker before the models of
// Google and Anthropic, and the newest version of one of Anthropic's as @default.
func (k *Catalogue) findOnVertex(name string) catalogue.Model {
	own := strings.TrimPrefix(strings.TrimPrefix(name, "google/"), "anthropic/")
	listed := listedAs("vertex")
	m, found := k.openFile().Find(listed, own)
	if !found {
		m, _ = k.openFile().Find(listed, own+"@default")
	}
	return m
}

// Facts implements [flow.Models].
func (r *Resolver) Facts(_, id string) flow.ModelFacts {
	var facts flow.ModelFacts
	for i, one := range flow.SplitModels(id) {
		c, name := r.findClient(one)
		own := r.known.factsOf(c, name, one, r.config)
		if i > 0 {
			own = facts.Merge(own)
		}
		facts = own
	}
	return facts
}

// factsOf returns the facts about one model of a client, nil if its id names no client.
func (k *Catalogue) factsOf(c *client, name, id string, settings *config.Config) flow.ModelFacts {
	if c == nil {
		return flow.ModelFacts{Free: IsReplay(id)}
	}
	listed := k.findModel(c, name)
	facts := flow.ModelFacts{
		Window:       listed.Window,
		Output:       listed.Output,
		Price:        listed.Price,
		Efforts:      listed.Efforts,
		EffortTokens: listed.Budgets,
		Free:         listed.Free || c.Type == "script" || c.Type == "ollama" && isLoopback(c.Base),
	}
	facts.Provided = c.providedTools()
	if c.Context > 0 {
		facts.Window = c.Context
	}
	if own := c.findModel(name); own != nil {
		facts = overrideFacts(facts, own)
	}
	if facts.IsUnpriced() {
		facts.Price = assumedPrice(settings)
	}
	return facts
}

// providedTools returns the tools of the provider that the wire of a client carries; nil: unknown.
func (c *client) providedTools() []string {
	if c.usesResponses() {
		return []string{llm.ToolWebSearch, llm.ToolCodeInterpreter}
	}
	return wires[c.Type].tools
}

// findModel returns what config.yaml says about a model of the client, nil if it does not list the model.
func (c *client) findModel(name string) *config.Model {
	for i := range c.Models {
		if c.Models[i].Name == name {
			return &c.Models[i]
		}
	}
	return nil
}

// assumedPrice returns the price that config.yaml assumes for models whose price is not known; zero: none.
func assumedPrice(c *config.Config) agent.Price {
	return agent.Price{Input: c.AssumePrice.Input, Output: c.AssumePrice.Output}
}

// overrideFacts returns facts, overridden by what the configuration says about the model.
func overrideFacts(f flow.ModelFacts, m *config.Model) flow.ModelFacts {
	if m.Window > 0 {
		f.Window = m.Window
	}
	if m.Output > 0 {
		f.Output = m.Output
	}
	if m.Efforts != nil {
		f.Efforts = m.Efforts
	}
	if price, set := configuredPrice(m); set {
		price.Search = f.Price.Search
		f.Price = price
		f.Free = price.IsZero()
	}
	f.NoTools = m.NoTools
	return f
}

// configuredPrice returns the price that config.yaml sets for a model.
func configuredPrice(m *config.Model) (price agent.Price, set bool) {
	if m.InputPrice == nil && m.OutputPrice == nil {
		return agent.Price{}, false
	}
	return agent.Price{Input: floatOrZero(m.InputPrice), Output: floatOrZero(m.OutputPrice)}, true
}

func floatOrZero(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}
