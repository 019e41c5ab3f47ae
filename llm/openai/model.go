// Package openai is the wire of OpenAI's chat completions, which also reaches
// every server that is compatible with them: Ollama, vLLM, llama.cpp, LM Studio,
// Groq, DeepSeek, Mistral, OpenRouter and many more, by their base URL.
//
//	m, err := openai.New(openai.Config{Model: "gpt-5", APIKey: key})
//	m, err := openai.New(openai.Config{Model: "llama3.2", BaseURL: "http://localhost:11434/v1"})
//
// Nothing is read from the environment, and nothing is retried.
//
// What compatible servers do differently is tolerated as long as no meaning is
// lost: usage that is not sent, a missing [DONE] after the finish reason,
// reasoning under two names, tool calls without an index or an id, events
// under another content type. A reply that is cut off or garbled is an error.
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

// callRule is what OpenAI accepts. Compatible servers that accept more still read names that are in the list of tools as they are there.
var callRule = wire.CallRule{NameMax: 64, IDMax: 40, AnyID: true}

// A Config says which model to use and where. Only Model is required at a
// server that wants no key.
type Config struct {
	Model       string            // the provider's name of the model
	BaseURL     string            // without "chat/completions"; empty: OpenAI
	APIKey      string            // required at OpenAI; empty: no Authorization header
	KeyName     string            // what a person must set to supply the key; empty: "OPENAI_API_KEY"
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
	url    string            // of chat completions
	header map[string]string // of every request
	newer  bool              // the endpoint wants max_completion_tokens
}

var _ llm.Model = (*Model)(nil)

// New checks c; it opens no connection. A missing key is an *llm.Error of class
// llm.Auth.
func New(c Config) (*Model, error) {
	client, err := wire.New(wire.Config{
		Name: "openai", Model: c.Model, Default: defaultURL, BaseURL: c.BaseURL, Key: c.APIKey, KeyName: c.KeyName,
		HTTP: c.HTTPClient, Read: c.ReadTimeout, Headers: c.Headers,
		StreamTimeout: c.StreamTimeout, MaxReply: c.MaxReply,
	})
	if err != nil {
		return nil, err
	}
	m := &Model{name: c.Model, client: client, url: client.Base().JoinPath("chat/completions").String(), header: map[string]string{}}
	if c.APIKey != "" {
		m.header["Authorization"] = "Bearer " + c.APIKey
	}
	host := client.Base().Hostname()
	m.newer = host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
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
