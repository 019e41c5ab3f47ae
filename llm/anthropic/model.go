// Package anthropic implements llm.Model for Anthropic's Messages API.
//
//	m, err := anthropic.New(anthropic.Config{Model: "claude-opus-4-5", Endpoint: llm.Endpoint{APIKey: key}})
//
// The package reads nothing from the environment and does not retry.
//
// A request that belongs to a conversation, because it has tools or a reply of
// the model, marks its beginning and its last two turns for Anthropic's prompt
// cache, so that the next request reads them at a tenth of the price. A single
// question is not marked, because writing to the cache costs a quarter more.
//
// Anthropic requires a limit for every reply; a request without one gets
// [DefaultMaxTokens]. Reasoning is requested when llm.Request.Effort is set: to
// one of Anthropic's levels, such as "low" or "high", or, for models without
// levels, to a number of tokens, such as "4096"; "none" disables reasoning.
package anthropic

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

const (
	defaultURL = "https://api.anthropic.com/"
	version    = "2023-06-01" // of the API

	vertexVersion = "vertex-2023-10-16" // of the API on Vertex
)

// callRule contains Anthropic's rules for tool calls.
var callRule = wire.CallRule{NameMax: 64, IDMax: 64}

// mostPauses is how often a reply that Anthropic has paused is continued. It pauses a reply in which its own tools have
// worked for long.
const mostPauses = 20

// DefaultMaxTokens is the limit of a reply if the request sets none. Every
// available model supports it.
const DefaultMaxTokens = 32000

// A Config selects a model and its endpoint. Model is required, and APIKey for Anthropic's own service.
type Config struct {
	Model string // the provider's name for the model
	// Endpoint is where the model is: BaseURL without "v1/messages", and KeyName "ANTHROPIC_API_KEY" if it is empty.
	llm.Endpoint
	// CacheTTL is how long marked tokens stay in the prompt cache after their last use: "5m" or "1h", at twice the
	// price of input; empty: "5m".
	CacheTTL string
	// Strict holds the model to the schemas of tools that fit Anthropic's rules; models before Claude 4.5 refuse this.
	Strict bool

	// Vertex says that BaseURL is a location of a project at Google's Vertex, such as
	// https://aiplatform.googleapis.com/v1/projects/P/locations/global. APIKey is then an access token.
	Vertex bool
	// Authorize adds to a request what it is accepted by, and returns the secrets that no message may have; nil: APIKey
	// is all.
	Authorize func(r *http.Request) (secrets []string, err error)
}

// A Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	name   string
	client *wire.Client
	mark   object            // of what the prompt cache keeps
	strict bool              // see Config.Strict
	url    string            // of the messages endpoint
	header map[string]string // of every request
	origin string
	vertex bool
}

var _ llm.Model = (*Model)(nil)

// New checks c and returns a Model; it opens no connection. A missing key is an
// *llm.Error of class llm.Auth.
func New(c Config) (*Model, error) {
	client, err := wire.New(wire.Config{
		Name:      "anthropic",
		Model:     c.Model,
		Default:   defaultURL,
		Endpoint:  c.Endpoint,
		Authorize: c.Authorize,
	})
	if err != nil {
		return nil, err
	}
	base := client.BaseURL()
	if c.Vertex {
		m := &Model{
			name:   c.Model,
			client: client,
			header: map[string]string{},
			origin: "anthropic.vertex",
			vertex: true,
		}
		m.url = strings.TrimRight(base.String(), "/") + "/publishers/anthropic/models/" + url.PathEscape(c.Model) + ":streamRawPredict"
		if c.APIKey != "" {
			m.header["Authorization"] = "Bearer " + c.APIKey
		}
		return m, nil
	}
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1")
	m := &Model{
		name:   c.Model,
		client: client,
		mark:   cacheMark(c.CacheTTL),
		strict: c.Strict,
		url:    base.JoinPath("v1/messages").String(),
		header: map[string]string{"anthropic-version": version},
		origin: "anthropic",
	}
	if c.APIKey != "" {
		m.header["x-api-key"] = c.APIKey
	}
	return m, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		rule := callRule
		rule.Items = m.origin
		body, err := m.buildRequest(wire.RepairCalls(r, rule))
		if err != nil {
			return llm.Reply{}, err
		}
		d := &decoder{
			client:    m.client,
			origin:    m.origin,
			parts:     m.client.NewAssembly(m.origin, emit),
			kept:      map[int]*keptBlock{},
			citations: map[int][]json.RawMessage{},
		}
		said := body.Messages
		for range mostPauses {
			if err := m.client.Exchange(ctx, m.url, m.header, body, d); err != nil {
				return llm.Reply{}, err
			}
			if d.stop != pauseTurn || d.slots == d.first {
				break
			}
			so, err := m.messageBlocks(d.buildReply(len(r.Messages)).Message)
			if err != nil {
				return llm.Reply{}, err
			}
			body.Messages = append(slices.Clip(said), message{Role: "assistant", Content: so})
			d.startAgain()
		}
		return d.buildReply(len(r.Messages)), nil
	})
}
