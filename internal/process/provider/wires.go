package provider

import (
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
	"raddle.dev/llm/bedrock"
	"raddle.dev/llm/gemini"
	"raddle.dev/llm/ollama"
	"raddle.dev/llm/openai"
)

// openClientModel returns the model of a client with the limits of the configuration. It opens no connection.
func (r *Resolver) openClientModel(ctx context.Context, c *client, name string) (llm.Model, error) {
	c, err := r.withKey(ctx, c)
	if err != nil {
		return nil, err
	}
	model, err := wireOf(ctx, c, name, *r.config)
	if err != nil {
		return nil, err
	}
	facts := r.known.findModel(c, name)
	if own := c.findModel(name); own != nil && own.Efforts != nil {
		facts.Budgets = false // the user knows its levels
	}
	return &explainedModel{model: &leveledModel{model, facts, editForm(name)}, client: c, env: r.env}, nil
}

// leveledModel is a model whose requests have the efforts that the catalogue knows for it, and the tools in the form that it was trained on.
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

// wireOf returns the model of a client; its errors know only the name of a variable.
func wireOf(ctx context.Context, c *client, name string, limits config.Config) (llm.Model, error) {
	key := c.keyNames[0]
	if c.Key == "" && c.needsKey() {
		return nil, &llm.Error{Class: llm.Auth, Message: "no API key: " + c.describeMissingKey()}
	}
	wire := openai.Config{
		Model: name, BaseURL: c.Base, APIKey: c.Key, KeyName: key, Headers: c.Headers, Body: c.bodyOf(name), Profile: c.Profile, Strict: c.strictOf(name),
		ReadTimeout: limits.ReadTimeout, StreamTimeout: limits.StreamTimeout, MaxReply: limits.MaxReply,
	}
	var err error
	if wire.HTTPClient, err = throughProxy(c.Proxy); err != nil {
		return nil, err
	}
	wire.HTTPClient = watchClient(wire.HTTPClient, c.watch)
	switch c.Type {
	case "openai", "openai-compatible":
		if c.usesResponses() {
			return openai.NewResponses(wire)
		}
		return openai.New(wire)
	case "ollama":
		wire.BaseURL = ollamaBase(c.Base)
		switch c.Wire {
		case "chat":
			return openai.New(wire)
		case "responses":
			return openai.NewResponses(wire)
		}
		return ollama.New(ollama.Config{
			Model: name, BaseURL: wire.BaseURL, APIKey: c.Key, KeyName: key, Context: c.contextOf(name), HTTPClient: wire.HTTPClient, Headers: wire.Headers, Body: wire.Body,
			ReadTimeout: wire.ReadTimeout, StreamTimeout: wire.StreamTimeout, MaxReply: wire.MaxReply,
		})
	case "anthropic":
		wire.BaseURL = cutVersion(c.Base)
		return anthropic.New(anthropic.Config{
			Model: name, BaseURL: wire.BaseURL, APIKey: c.Key, KeyName: key, HTTPClient: wire.HTTPClient, Headers: wire.Headers, Body: wire.Body,
			ReadTimeout: wire.ReadTimeout, StreamTimeout: wire.StreamTimeout, MaxReply: wire.MaxReply, CacheTTL: c.Cache, Strict: wire.Strict == "on",
		})
	case "bedrock":
		return c.openBedrock(bedrock.Config{
			Model: name, BaseURL: c.Base, APIKey: c.Key, KeyName: key, HTTPClient: wire.HTTPClient, Headers: wire.Headers, Body: wire.Body,
			ReadTimeout: wire.ReadTimeout, StreamTimeout: wire.StreamTimeout, MaxReply: wire.MaxReply,
		})
	case "vertex":
		return c.openVertex(ctx, name, wire)
	case "gemini":
		wire.BaseURL = cutVersion(c.Base)
		return gemini.New(gemini.Config{
			Model: name, BaseURL: wire.BaseURL, APIKey: c.Key, KeyName: key, HTTPClient: wire.HTTPClient, Headers: wire.Headers, Body: wire.Body,
			ReadTimeout: wire.ReadTimeout, StreamTimeout: wire.StreamTimeout, MaxReply: wire.MaxReply,
		})
	}
	return nil, failure.NewInvalid("", "client %q: models of type %s cannot be called", c.Name, c.Type)
}

// usesResponses reports whether a client speaks OpenAI's Responses API, the wire of OpenAI itself unless the client names another.
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

// bodyOf returns the members that every request for a model gets: those of the client, and those of the model instead where both have one.
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
