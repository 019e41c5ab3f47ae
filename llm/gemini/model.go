// Package gemini is the wire of Google's Gemini API.
//
//	m, err := gemini.New(gemini.Config{Model: "gemini-3-pro", APIKey: key})
//
// Requests are built and sent with the official SDK. Nothing is retried, and
// nothing in the environment changes what is sent. (The SDK does look at the
// environment, and says so through the standard logger when it finds both
// GOOGLE_API_KEY and GEMINI_API_KEY; the key that is used is always that of
// [Config].)
//
// The thoughts of the model are asked for when llm.Request.Effort is set: to one
// of Google's levels, such as "low" or "high", or, for models that have no
// levels, to a number of tokens, such as "4096"; "none" is a budget of no tokens.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"path"
	"strings"
	"time"

	"google.golang.org/genai"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

const (
	defaultURL     = "https://generativelanguage.googleapis.com/"
	defaultVersion = "v1beta"
	origin         = "gemini"
)

// callRule is what Google accepts.
var callRule = wire.CallRule{NameMax: 64, NameMarks: ".:", LetterFirst: true, IDMax: 64, AnyID: true}

// A Config says which model to use and where. At Google, Model and APIKey are
// required.
type Config struct {
	Model       string            // Google's name of the model
	BaseURL     string            // with or without the version; empty: Google
	APIKey      string            // required at Google; empty: no key is sent
	KeyName     string            // what a person must set to supply the key; empty: "GEMINI_API_KEY"
	HTTPClient  *http.Client      // nil: a shared client with a connect timeout of 10 s
	ReadTimeout time.Duration     // longest silence of the server; 0: 300 s
	Headers     map[string]string // sent with every request
}

// A Model is one model at one endpoint. It is safe for concurrent use.
type Model struct {
	name   string
	client *wire.Client
	models *genai.Models
}

var _ llm.Model = (*Model)(nil)

// New checks c; it opens no connection. A missing key is an *llm.Error of class
// llm.Auth.
func New(c Config) (*Model, error) {
	client, err := wire.New(wire.Config{
		Name: "gemini", Model: c.Model, Default: defaultURL, BaseURL: c.BaseURL, Key: c.APIKey, KeyName: c.KeyName,
		HTTP: c.HTTPClient, Read: c.ReadTimeout, Headers: c.Headers,
	})
	if err != nil {
		return nil, err
	}
	base, version := client.Base(), defaultVersion
	if v := path.Base(base.Path); strings.HasPrefix(v, "v1") {
		base.Path, version = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), v), v
	}
	config := &genai.ClientConfig{
		Backend:     genai.BackendGeminiAPI,
		APIKey:      c.APIKey,
		HTTPClient:  &http.Client{Transport: transport{client: client, keyless: c.APIKey == ""}},
		HTTPOptions: genai.HTTPOptions{BaseURL: base.String(), APIVersion: version},
	}
	if config.APIKey == "" {
		config.APIKey = "none" // else the SDK takes one from the environment, or fails
	}
	sdk, err := genai.NewClient(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("gemini: %w", err)
	}
	return &Model{name: c.Model, client: client, models: sdk.Models}, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		turn := len(r.Messages)
		r = wire.RepairCalls(r, callRule)
		contents, err := m.contents(r)
		if err != nil {
			return llm.Reply{}, err
		}
		c := config(r)
		if len(contents) == 0 && r.System != "" { // Google answers nobody who says nothing
			contents = join(contents, genai.RoleUser, c.SystemInstruction.Parts)
			c.SystemInstruction = nil
		}
		resp, err := m.send(ctx, contents, c)
		if err != nil {
			return llm.Reply{}, err
		}
		defer resp.Body.Close()
		d := &decoder{client: m.client, parts: m.client.NewAssembly(origin, emit)}
		if err := d.read(resp.Body); err != nil {
			return llm.Reply{}, err
		}
		return d.reply(turn)
	})
}

// send lets the SDK send the request, and returns the response that transport
// has kept from it.
func (m *Model) send(ctx context.Context, contents []*genai.Content, config *genai.GenerateContentConfig) (*http.Response, error) {
	var resp *http.Response
	for _, err := range m.models.GenerateContentStream(context.WithValue(ctx, keep{}, &resp), m.name, contents, config) {
		if err != nil {
			if resp != nil {
				resp.Body.Close()
			}
			return nil, err
		}
	}
	if resp == nil {
		return nil, errors.New("gemini: the SDK has sent nothing")
	}
	return resp, nil
}

// keep is the context key of the place where transport puts a response.
type keep struct{}

// A transport carries the SDK's requests. It keeps every response for the
// caller and gives the SDK an empty one, because the SDK's stream reader
// rounds numbers in the arguments of tool calls to float64, takes an early end
// of the stream for its end, and prints failures through the standard logger.
type transport struct {
	client  *wire.Client
	keyless bool
}

// RoundTrip implements http.RoundTripper; its errors are *llm.Error.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	place, ok := req.Context().Value(keep{}).(**http.Response)
	if !ok {
		return nil, errors.New("gemini: a request of the SDK's own")
	}
	if t.keyless {
		req = req.Clone(req.Context())
		req.Header.Del("X-Goog-Api-Key")
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, err
	}
	*place = resp
	return &http.Response{StatusCode: http.StatusOK, Header: resp.Header, Body: http.NoBody, Request: req}, nil
}
