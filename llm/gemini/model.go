// Package gemini implements llm.Model for Google's Gemini API.
//
//	m, err := gemini.New(gemini.Config{Model: "gemini-3-pro", Endpoint: llm.Endpoint{APIKey: key}})
//
// The package reads nothing from the environment and does not retry.
//
// Reasoning is requested when llm.Request.Effort is set: to one of Google's
// levels, such as "low" or "high", or, for models without levels, to a number
// of tokens, such as "4096"; "none" is a budget of zero tokens.
package gemini

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

const (
	defaultURL     = "https://generativelanguage.googleapis.com/"
	defaultVersion = "v1beta"
)

// callRule contains Google's rules for tool calls.
var callRule = wire.CallRule{NameMax: 64, NameMarks: ".:", LetterFirst: true, IDMax: 64, AnyID: true}

// A Config selects a model and its endpoint. Model is required, and APIKey for Google's own service.
type Config struct {
	Model string // Google's name for the model
	// Endpoint is where the model is: BaseURL with or without the version, and KeyName "GEMINI_API_KEY" if it is empty.
	llm.Endpoint

	// Vertex says that BaseURL is a location of a project at Google's Vertex, such as
	// https://aiplatform.googleapis.com/v1/projects/P/locations/global. APIKey is then an access token.
	Vertex bool
	// Authorize adds to a request what it is accepted by, and returns the secrets that no message may have; nil: APIKey
	// is all.
	Authorize func(r *http.Request) (secrets []string, err error)
}

// A Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	client *wire.Client
	url    string            // of the model's streaming endpoint
	header map[string]string // of every request
	origin string
	vertex bool
}

var _ llm.Model = (*Model)(nil)

// New checks c and returns a Model; it opens no connection. A missing key is an
// *llm.Error of class llm.Auth.
func New(c Config) (*Model, error) {
	client, err := wire.New(wire.Config{
		Name:      "gemini",
		Model:     c.Model,
		Default:   defaultURL,
		Endpoint:  c.Endpoint,
		Authorize: c.Authorize,
	})
	if err != nil {
		return nil, err
	}
	m := &Model{client: client, header: map[string]string{}, origin: "gemini"}
	base := client.BaseURL()
	switch {
	case c.Vertex:
		m.origin = "gemini.vertex"
		m.vertex = true
		base = base.JoinPath("publishers/google/models/" + url.PathEscape(c.Model) + ":streamGenerateContent")
	case !strings.HasPrefix(path.Base(base.Path), "v1"):
		base = base.JoinPath(defaultVersion)
		fallthrough
	default:
		base = base.JoinPath(modelPath(c.Model) + ":streamGenerateContent")
	}
	query := base.Query()
	query.Set("alt", "sse")
	base.RawQuery = query.Encode()
	m.url = base.String()
	switch {
	case c.APIKey == "":
	case c.Vertex:
		m.header["Authorization"] = "Bearer " + c.APIKey
	default:
		m.header["x-goog-api-key"] = c.APIKey
	}
	return m, nil
}

// modelPath returns the escaped path of a model. The names of tuned models
// contain their own folder.
func modelPath(name string) string {
	if !strings.HasPrefix(name, "models/") && !strings.HasPrefix(name, "tunedModels/") {
		name = "models/" + name
	}
	segments := strings.Split(name, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
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
		d := &decoder{client: m.client, origin: m.origin, parts: m.client.NewAssembly(m.origin, emit)}
		if err := m.client.Exchange(ctx, m.url, m.header, body, d); err != nil {
			return llm.Reply{}, err
		}
		if err := d.addGrounding(); err != nil {
			return llm.Reply{}, err
		}
		return d.buildReply(len(r.Messages)), nil
	})
}
