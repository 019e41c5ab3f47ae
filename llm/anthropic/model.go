// Package anthropic is the wire of Anthropic's messages.
//
//	m, err := anthropic.New(anthropic.Config{Model: "claude-opus-4-5", APIKey: key})
//
// Nothing is read from the environment, and nothing is retried.
//
// A request that belongs to a conversation, because it has tools or an answer of the model, marks its beginning and its last two turns for
// Anthropic's prompt cache, so that the next request reads them at a tenth of the price. A single question is not marked: writing to the cache
// costs a quarter more.
//
// Anthropic wants a limit for every reply; a request that names none gets
// [DefaultMaxTokens]. The thoughts of the model are asked for when
// llm.Request.Effort is set: to one of Anthropic's levels, such as "low" or
// "high", or, for models that have no levels, to a number of tokens, such as
// "4096"; "none" forbids thinking.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

const (
	defaultURL = "https://api.anthropic.com/"
	version    = "2023-06-01" // of the interface
	origin     = "anthropic"
)

// callRule is what Anthropic accepts.
var callRule = wire.CallRule{NameMax: 64, IDMax: 64}

// DefaultMaxTokens is the limit of a reply whose request names none. Every model
// that is on offer can write that much.
const DefaultMaxTokens = 32000

// A Config says which model to use and where. At Anthropic, Model and APIKey are
// required.
type Config struct {
	Model       string            // the provider's name of the model
	BaseURL     string            // without "v1/messages"; empty: Anthropic
	APIKey      string            // required at Anthropic; empty: no key is sent
	KeyName     string            // what a person must set to supply the key; empty: "ANTHROPIC_API_KEY"
	HTTPClient  *http.Client      // nil: a shared client with a connect timeout of 10 s
	ReadTimeout time.Duration     // longest silence of the server; 0: 300 s
	Headers     map[string]string // sent with every request

	StreamTimeout time.Duration // longest time from the request to the end of the reply; 0: 30 minutes; negative: no limit
	MaxReply      int           // largest reply in bytes; 0: 16 MiB; negative: no limit
}

// A Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	name   string
	client *wire.Client
	url    string            // of the messages
	header map[string]string // of every request
}

var _ llm.Model = (*Model)(nil)

// New checks c; it opens no connection. A missing key is an *llm.Error of class
// llm.Auth.
func New(c Config) (*Model, error) {
	client, err := wire.New(wire.Config{
		Name: "anthropic", Model: c.Model, Default: defaultURL, BaseURL: c.BaseURL, Key: c.APIKey, KeyName: c.KeyName,
		HTTP: c.HTTPClient, Read: c.ReadTimeout, Headers: c.Headers,
		StreamTimeout: c.StreamTimeout, MaxReply: c.MaxReply,
	})
	if err != nil {
		return nil, err
	}
	base := client.Base()
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1")
	m := &Model{name: c.Model, client: client, url: base.JoinPath("v1/messages").String(), header: map[string]string{"anthropic-version": version}}
	if c.APIKey != "" {
		m.header["x-api-key"] = c.APIKey
	}
	return m, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		body, err := m.request(wire.RepairCalls(r, callRule))
		if err != nil {
			return llm.Reply{}, err
		}
		d := &decoder{client: m.client, parts: m.client.NewAssembly(origin, emit)}
		if err := m.client.Exchange(ctx, m.url, m.header, body, d); err != nil {
			return llm.Reply{}, err
		}
		return d.reply(len(r.Messages))
	})
}
