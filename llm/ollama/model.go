// Package ollama implements llm.Model for Ollama's own API, on this machine or elsewhere.
//
//	m, err := ollama.New(ollama.Config{Model: "qwen3:8b"})
//
// Ollama's interface that is compatible with OpenAI's cannot set the window, and silently cuts a conversation to what
// the server has set, often 4,096 tokens. This package asks for a window, and for an error where a conversation does
// not fit.
//
// The package reads nothing from the environment and does not retry.
//
// Reasoning is requested when llm.Request.Effort is set: "none" turns it off, levels are for models that have some, and
// a number of tokens turns it on. Without it, models that think do.
package ollama

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

const defaultURL = "http://localhost:11434"

// DefaultContext is the largest window in tokens that a model gets unless Config.Context says more. A model has a
// smaller one if it can do no more. A larger window takes more memory, also for short conversations.
const DefaultContext = 32_768

// callRule contains the rules for tool calls.
var callRule = wire.CallRule{NameMax: 64, IDMax: 64, AnyID: true}

// A Config selects a model and its server. Only Model is required.
type Config struct {
	Model string // Ollama's name for the model
	// Endpoint is where the model is: BaseURL with or without /v1, this machine if it is empty, and KeyName
	// "OLLAMA_API_KEY" if that is. ReadTimeout contains the time in which the server loads the model.
	llm.Endpoint
	Context int // window in tokens; 0: what the model can do, at most DefaultContext
}

// A Model is one model at one server. It is safe for concurrent use.
type Model struct {
	name   string
	client *wire.Client
	base   string
	header map[string]string // of every request
	origin string

	turn   chan struct{} // has room for the call that finds the window
	window int           // tokens; 0: not yet known
}

var _ llm.Model = (*Model)(nil)

// New checks c and returns a Model; it opens no connection.
func New(c Config) (*Model, error) {
	c.BaseURL = cmp.Or(strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/v1"), defaultURL)
	client, err := wire.New(wire.Config{
		Name:     "ollama",
		Model:    c.Model,
		Default:  defaultURL,
		Endpoint: c.Endpoint,
	})
	if err != nil {
		return nil, err
	}
	base := client.BaseURL()
	m := &Model{
		name:   c.Model,
		client: client,
		base:   strings.TrimRight(base.String(), "/"),
		header: map[string]string{},
		origin: "ollama@" + base.Host,
		window: max(0, c.Context),
		turn:   make(chan struct{}, 1),
	}
	if c.APIKey != "" {
		m.header["Authorization"] = "Bearer " + c.APIKey
	}
	return m, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		if err := m.client.RefuseProvided(r.Provided); err != nil {
			return llm.Reply{}, err
		}
		window, err := m.findWindow(ctx)
		if err != nil {
			return llm.Reply{}, err
		}
		body, err := m.buildRequest(wire.RepairCalls(r, callRule), window)
		if err != nil {
			return llm.Reply{}, err
		}
		d := &decoder{client: m.client, parts: m.client.NewAssembly(m.origin, emit)}
		if err := m.client.Exchange(ctx, m.base+"/api/chat", m.header, body, d); err != nil {
			return llm.Reply{}, explainLength(err, window)
		}
		return d.buildReply(len(r.Messages)), nil
	})
}

// explainLength gives the error of a conversation that does not fit its class, and says what to do.
func explainLength(err error, window int) error {
	var e *llm.Error
	if !errors.As(err, &e) || e.Class != llm.BadRequest && e.Class != llm.Server {
		return err
	}
	text := strings.ToLower(e.Message)
	if !strings.Contains(text, "exceeds the context length") && !strings.Contains(text, "exceeds the available context") {
		return err
	}
	long := *e
	long.Class = llm.ContextLength
	long.Message = fmt.Sprintf("%s: the window is %d tokens; set context for this client to a larger one if the machine has the memory", e.Message, window)
	return &long
}

// findWindow returns the window of requests. It asks the server once what the model can do; a server that cannot be
// reached is asked again by the next request. A call whose ctx ends does not wait for the one that asks.
func (m *Model) findWindow(ctx context.Context) (int, error) {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-m.turn }()
	if m.window > 0 {
		return m.window, nil
	}
	most, err := m.readLimit(ctx)
	if err != nil {
		return 0, err
	}
	m.window = DefaultContext
	if most > 0 {
		m.window = min(most, DefaultContext)
	}
	return m.window, nil
}

// maxDescription bounds the description of a model, whose licence and template can be long.
const maxDescription = 16 << 20

// readLimit returns the largest window of the model in tokens; 0: the server does not say.
func (m *Model) readLimit(ctx context.Context) (int, error) {
	body, err := json.Marshal(object{"model": m.name})
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base+"/api/show", bytes.NewReader(body))
	if err != nil {
		return 0, m.client.UnsupportedError("the address cannot be used: " + err.Error())
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"raddle"}}
	for k, v := range m.header {
		req.Header.Set(k, v)
	}
	resp, err := m.client.DoJSON(req)
	if e, is := errors.AsType[*llm.Error](err); is && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
		return 0, nil // a server that is only compatible, or has no such model, which it says of the request itself
	}
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var shown struct {
		Info map[string]any `json:"model_info"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDescription)).Decode(&shown); err != nil {
		return 0, nil // no description
	}
	family, _ := shown.Info["general.architecture"].(string)
	most, _ := shown.Info[family+".context_length"].(float64)
	return max(0, int(most)), nil
}
