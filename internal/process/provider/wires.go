package provider

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/catalogue"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/gemini"
	"raddle.dev/llm/ollama"
	"raddle.dev/llm/openai"
	"raddle.dev/rag/embed"
)

// openClientModel returns the model of a client with the limits of the configuration. It opens no connection.
func (r *Resolver) openClientModel(ctx context.Context, c *client, name string) (llm.Model, error) {
	c, err := r.withKey(ctx, c)
	if err != nil {
		return nil, err
	}
	model, err := openWire(ctx, c, name, *r.config)
	if err != nil {
		return nil, err
	}
	facts := r.known.findModel(c, name)
	if own := c.findModel(name); own != nil && own.Efforts != nil {
		facts.Budgets = false // the user knows its levels
	}
	return &explainedModel{model: &leveledModel{model, facts, editForm(name)}, client: c, env: r.env}, nil
}

// leveledModel is a model whose requests have the efforts that the catalogue knows for it, and the tools in the form
// that it was trained on.
type leveledModel struct {
	model llm.Model
	facts catalogue.Model
	form  llm.Form
}

// Stream implements [llm.Model].
func (m *leveledModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	r.Effort, r.Tools = m.facts.MapEffort(r.Effort), keepForm(r.Tools, m.form)
	return m.model.Stream(ctx, r)
}

// openWire returns the model of a client; its errors know only the name of a variable.
func openWire(ctx context.Context, c *client, name string, limits config.Config) (llm.Model, error) {
	if c.Key == "" && c.needsKey() {
		return nil, &llm.Error{Class: llm.Auth, Message: "no API key: " + c.describeMissingKey()}
	}
	endpoint := llm.Endpoint{
		BaseURL:       c.Base,
		APIKey:        c.Key,
		KeyName:       c.keyNames[0],
		Headers:       c.Headers,
		Body:          c.bodyOf(name),
		ReadTimeout:   limits.ReadTimeout,
		StreamTimeout: limits.StreamTimeout,
		MaxReply:      limits.MaxReply,
	}
	through, err := throughProxy(c.Proxy)
	if err != nil {
		return nil, err
	}
	endpoint.HTTPClient = watchClient(through, c.watch)
	if open := wires[c.Type].open; open != nil {
		return open(ctx, c, name, endpoint)
	}
	return nil, failure.NewInvalid("", "client %q: models of type %s cannot be called", c.Name, c.Type)
}

// A wire is how the models of a type of clients are called.
type wire struct {
	// open returns the model of a client at its endpoint; nil: they cannot be called
	open func(ctx context.Context, c *client, name string, at llm.Endpoint) (llm.Model, error)
	// tools of the provider that it carries
	tools []string
	// completes where models that embed are called; nil: there are none
	embed func(e *embed.Config)
}

// wires has the wire of each type of clients in [config.Providers].
var wires = map[string]wire{
	"openai": {
		open:  openOpenAI,
		tools: []string{},
		embed: func(e *embed.Config) { e.BaseURL = cmp.Or(e.BaseURL, "https://api.openai.com/v1") },
	},
	"openai-compatible": {
		open:  openOpenAI,
		tools: []string{},
		embed: func(*embed.Config) {},
	},
	"anthropic": {
		open:  openAnthropic,
		tools: []string{llm.ToolWebSearch, llm.ToolWebFetch, llm.ToolCodeInterpreter},
	},
	"gemini": {
		open:  openGemini,
		tools: []string{llm.ToolWebSearch, llm.ToolWebFetch, llm.ToolCodeInterpreter},
		embed: func(e *embed.Config) {
			e.API = embed.Gemini
			e.BaseURL = cmp.Or(e.BaseURL, "https://generativelanguage.googleapis.com/v1beta")
		},
	},
	"ollama": {
		open:  openOllama,
		tools: []string{},
		embed: func(e *embed.Config) {
			e.API = embed.Ollama
			e.BaseURL = strings.TrimSuffix(strings.TrimRight(e.BaseURL, "/"), "/v1")
		},
	},
	"script": {
		tools: []string{},
	},
	"bedrock": {
		open:  openBedrock,
		tools: []string{},
	},
	"vertex": {
		open:  openVertex,
		tools: []string{llm.ToolWebSearch, llm.ToolWebFetch, llm.ToolCodeInterpreter},
	},
}

// openOpenAI opens a model that is called with chat completions, or with responses.
func openOpenAI(_ context.Context, c *client, name string, at llm.Endpoint) (llm.Model, error) {
	config := openai.Config{
		Model:    name,
		Endpoint: at,
		Profile:  c.Profile,
		Strict:   c.strictOf(name),
	}
	if c.usesResponses() {
		return openai.NewResponses(config)
	}
	return openai.New(config)
}

func openOllama(ctx context.Context, c *client, name string, at llm.Endpoint) (llm.Model, error) {
	at.BaseURL = ollamaBase(c.Base)
	if c.Wire == "chat" || c.Wire == "responses" {
		return openOpenAI(ctx, c, name, at)
	}
	return ollama.New(ollama.Config{
		Model:    name,
		Endpoint: at,
		Context:  c.contextOf(name),
	})
}

func openAnthropic(_ context.Context, c *client, name string, at llm.Endpoint) (llm.Model, error) {
	at.BaseURL = cutVersion(c.Base)
	return anthropic.New(anthropic.Config{
		Model:    name,
		Endpoint: at,
		CacheTTL: c.Cache,
		Strict:   c.strictOf(name) == "on",
	})
}

func openGemini(_ context.Context, c *client, name string, at llm.Endpoint) (llm.Model, error) {
	at.BaseURL = cutVersion(c.Base)
	return gemini.New(gemini.Config{Model: name, Endpoint: at})
}

// usesResponses reports whether a client speaks OpenAI's Responses API, the wire of OpenAI itself unless the client
// names another.
func (c *client) usesResponses() bool {
	return c.Wire == "responses" || c.Wire == "" && c.Type == "openai"
}

// strictOf returns the mode of a model, "" for auto: its own, else that of the client.
func (c *client) strictOf(name string) string {
	mode := c.Strict
	if own := c.findModel(name); own != nil && own.Strict != "" {
		mode = own.Strict
	}
	if mode == "auto" {
		return ""
	}
	return mode
}

// contextOf returns the window that config.yaml sets for a model in tokens, 0 if it sets none.
func (c *client) contextOf(name string) int {
	if own := c.findModel(name); own != nil && own.Window > 0 {
		return own.Window
	}
	return c.Context
}

// bodyOf returns the members that every request for a model gets: those of the client, and those of the model instead
// where both have one.
func (c *client) bodyOf(name string) map[string]any {
	i := slices.IndexFunc(c.Models, func(m config.Model) bool { return m.Name == name && len(m.Body) > 0 })
	if i < 0 {
		return c.Body
	}
	body := maps.Clone(c.Body)
	if body == nil {
		body = map[string]any{}
	}
	maps.Copy(body, c.Models[i].Body)
	return body
}

// throughProxy returns an HTTP client that uses a proxy, nil for the proxy that the environment names.
func throughProxy(proxy string) (*http.Client, error) {
	if proxy == "" {
		return nil, nil
	}
	t := &http.Transport{TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true}
	t.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
	if proxy != config.ProxyNone {
		address, err := url.Parse(proxy)
		if err != nil {
			return nil, err
		}
		t.Proxy = http.ProxyURL(address)
	}
	return &http.Client{Transport: t}, nil
}

// connectTimeout is the longest time until a connection through a proxy stands.
const connectTimeout = 10 * time.Second

// ollamaBase turns a value of OLLAMA_HOST, such as "host:11434", into the
// address of the API that is compatible with OpenAI's.
func ollamaBase(host string) string {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	host = strings.TrimRight(host, "/")
	if strings.HasSuffix(host, "/v1") {
		return host
	}
	return host + "/v1"
}

// cutVersion removes the version from an address, because the wires of Anthropic
// and Gemini add it, and configurations contain it.
func cutVersion(base string) string {
	base = strings.TrimRight(base, "/")
	for _, version := range []string{"/v1beta", "/v1"} {
		base = strings.TrimSuffix(base, version)
	}
	return base
}
