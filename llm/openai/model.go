// Package openai implements llm.Model for OpenAI's chat completions API. With a
// base URL it works with every compatible server: Ollama, vLLM, llama.cpp, LM
// Studio, Groq, DeepSeek, Mistral, OpenRouter and many more.
//
//	m, err := openai.New(openai.Config{Model: "gpt-5", APIKey: key})
//	m, err := openai.New(openai.Config{Model: "llama3.2", BaseURL: "http://localhost:11434/v1"})
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
	"iter"
	"net/http"
	"strings"
	"time"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

const (
	defaultURL = "https://api.openai.com/v1/"
	origin     = "openai"
)

// callRule contains OpenAI's rules for tool calls. Names in the list of tools
// are always sent unchanged, because some compatible servers accept more.
var callRule = wire.CallRule{NameMax: 64, IDMax: 40, AnyID: true}

// A Config selects a model and its endpoint. Only Model is required for a
// server that needs no key.
type Config struct {
	Model       string            // the provider's name for the model
	BaseURL     string            // without "chat/completions"; empty: OpenAI's service
	APIKey      string            // required for OpenAI's service; empty: no Authorization header
	KeyName     string            // the name of the setting with the key, for messages; empty: "OPENAI_API_KEY"
	HTTPClient  *http.Client      // nil: a shared client with a connect timeout of 10 s
	ReadTimeout time.Duration     // longest time without data from the server; 0: 300 s
	Headers     map[string]string // sent with every request

	StreamTimeout time.Duration // longest time from the request to the end of the reply; 0: 30 minutes; negative: no limit
	MaxReply      int           // largest reply in bytes; 0: 16 MiB; negative: no limit
}

// A Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	name   string
	client *wire.Client
	url    string            // of the chat completions endpoint
	header map[string]string // of every request
	newer  bool              // the endpoint requires max_completion_tokens
}

var _ llm.Model = (*Model)(nil)

// New checks c and returns a Model; it opens no connection. A missing key is an
// *llm.Error of class llm.Auth.
func New(c Config) (*Model, error) {
	client, err := wire.New(wire.Config{
		Name: "openai", Model: c.Model, Default: defaultURL, BaseURL: c.BaseURL, Key: c.APIKey, KeyName: c.KeyName,
		HTTP: c.HTTPClient, Read: c.ReadTimeout, Headers: c.Headers,
		StreamTimeout: c.StreamTimeout, MaxReply: c.MaxReply,
	})
	if err != nil {
		return nil, err
	}
	m := &Model{name: c.Model, client: client, url: client.BaseURL().JoinPath("chat/completions").String(), header: map[string]string{}}
	if c.APIKey != "" {
		m.header["Authorization"] = "Bearer " + c.APIKey
	}
	host := client.BaseURL().Hostname()
	m.newer = host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
	return m, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		body, err := m.buildRequest(wire.RepairCalls(r, callRule))
		if err != nil {
			return llm.Reply{}, err
		}
		d := &decoder{client: m.client, parts: m.client.NewAssembly(origin, emit)}
		if err := m.client.Exchange(ctx, m.url, m.header, body, d); err != nil {
			return llm.Reply{}, err
		}
		return d.buildReply(len(r.Messages)), nil
	})
}
