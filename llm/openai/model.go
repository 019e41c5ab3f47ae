// Package openai implements llm.Model for OpenAI's two APIs: NewResponses for
// the Responses API, which OpenAI's models of today require for tools, and New
// for chat completions. With a base URL, New works with every compatible
// server: vLLM, llama.cpp, LM Studio, Groq, DeepSeek, Mistral, OpenRouter and
// many more.
//
//	m, err := openai.NewResponses(openai.Config{Model: "gpt-5.6", Endpoint: llm.Endpoint{APIKey: key}})
//
//	local := llm.Endpoint{BaseURL: "http://localhost:8000/v1"}
//	m, err := openai.New(openai.Config{Model: "llama3.2", Endpoint: local})
//
// The package reads nothing from the environment and does not retry.
//
// It accepts differences of compatible servers as long as the meaning is clear:
// missing usage, a missing [DONE] after the finish reason, reasoning under two
// names, tool calls without an index or an id, events with another content
// type. A reply that is cut off or garbled is an error.
package openai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

const (
	defaultURL = "https://api.openai.com/v1/"
	// chatOrigin begins the origin of the parts that chat completions send; "@" and the host follow.
	chatOrigin = "chat"
	// oldOrigin is the origin of parts of older conversations, which do not say the host.
	oldOrigin = "openai"
)

// callRule contains OpenAI's rules for tool calls. Names in the list of tools
// are always sent unchanged, because some compatible servers accept more.
var callRule = wire.CallRule{NameMax: 64, IDMax: 40, AnyID: true}

// A Config selects a model and its endpoint. Only Model is required for a server that needs no key; OpenAI's own
// service needs APIKey.
type Config struct {
	Model string // the provider's name for the model
	// Endpoint is where the model is: BaseURL without "chat/completions" or "responses", and KeyName "OPENAI_API_KEY"
	// if it is empty.
	llm.Endpoint
	Profile string // the name of the profile of the server, for New; empty: by its host
	// Strict says whether the provider must hold the model to schemas of tools and replies that fit its rules: "on" or
	// "off"; empty: where OpenAI's own models answer. A schema that does not fit is never strict.
	Strict string
}

// A Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	name   string
	client *wire.Client
	url    string            // of the chat completions endpoint
	header map[string]string // of every request
	origin string
	server Profile
	strict bool
	calls  wire.CallRule
}

var _ llm.Model = (*Model)(nil)

// New checks c and returns a Model; it opens no connection. A missing key is an
// *llm.Error of class llm.Auth.
func New(c Config) (*Model, error) {
	client, err := newClient(c)
	if err != nil {
		return nil, err
	}
	base := client.BaseURL()
	m := &Model{
		name:   c.Model,
		client: client,
		url:    base.JoinPath("chat/completions").String(),
		header: authHeader(base.Hostname(), c.APIKey),
		origin: chatOrigin + "@" + base.Host,
		server: ProfileAt(base.Hostname()),
		calls:  callRule,
	}
	if c.Profile != "" {
		known := false
		if m.server, known = FindProfile(c.Profile); !known {
			return nil, fmt.Errorf("openai: there is no profile %q", c.Profile)
		}
	}
	m.strict = c.wantsStrict(m.server.Name == "openai")
	if len(m.server.Body) > 0 {
		c.Body = joinBodies(m.server.Body, c.Body)
		if m.client, err = newClient(c); err != nil {
			return nil, err
		}
	}
	if m.server.IDLength > 0 {
		m.calls = wire.CallRule{NameMax: callRule.NameMax, IDMax: m.server.IDLength, IDLength: m.server.IDLength}
	}
	return m, nil
}

// joinBodies returns the members of both bodies; those of own come first where both have one.
func joinBodies(profile, own map[string]any) map[string]any {
	body := maps.Clone(profile)
	maps.Copy(body, own)
	return body
}

// wantsStrict reports whether schemas that fit are strict. own is true where OpenAI's own models answer.
func (c Config) wantsStrict(own bool) bool { return c.Strict == "on" || c.Strict == "" && own }

func newClient(c Config) (*wire.Client, error) {
	return wire.New(wire.Config{
		Name:     "openai",
		Model:    c.Model,
		Default:  defaultURL,
		Endpoint: c.Endpoint,
	})
}

// azureHosts are the ends of the names of Azure's resources.
var azureHosts = []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"}

// IsAzure reports whether a host is one of Azure, whose models have the names of deployments.
func IsAzure(host string) bool {
	return slices.ContainsFunc(azureHosts, func(end string) bool { return strings.HasSuffix(host, end) })
}

// isOpenAI reports whether OpenAI's own models answer at a host.
func isOpenAI(host string) bool { return host == "api.openai.com" || IsAzure(host) }

// authHeader returns the header that carries a key. Azure takes keys in a header of its own, and tokens of Entra, which
// are JSON web tokens, like everyone else.
func authHeader(host, key string) map[string]string {
	switch {
	case key == "":
		return map[string]string{}
	case IsAzure(host) && !strings.HasPrefix(key, "eyJ"):
		return map[string]string{"api-key": key}
	}
	return map[string]string{"Authorization": "Bearer " + key}
}

// explainEndpoint adds what to do to the error of a server that has no Responses API.
func explainEndpoint(err error, host string) error {
	var failure *llm.Error
	if !errors.As(err, &failure) || isOpenAI(host) || failure.Status != http.StatusNotFound && failure.Status != http.StatusMethodNotAllowed {
		return err
	}
	named := *failure
	named.Message += "; if the server has no Responses API, set wire: chat, or type: openai-compatible, for this client"
	return &named
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		body, err := m.buildRequest(wire.RepairCalls(r, m.calls))
		if err != nil {
			return llm.Reply{}, err
		}
		d := &decoder{client: m.client, parts: m.client.NewAssembly(m.origin, emit)}
		if err := m.client.Exchange(ctx, m.url, m.header, body, d); err != nil {
			return llm.Reply{}, err
		}
		if err := d.keepOthers(); err != nil {
			return llm.Reply{}, err
		}
		return d.buildReply(len(r.Messages)), nil
	})
}
