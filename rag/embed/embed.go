// Package embed calls servers that turn texts into vectors (OpenAI and all servers with its protocol, Gemini, Ollama),
// and servers that order texts by a question (rerankers with the protocol of Cohere and Jina).
//
//	model, err := embed.New(embed.Config{API: embed.OpenAI, BaseURL: "https://api.openai.com/v1", Key: key, Model: "text-embedding-3-small"})
//
// Failures are of type *[llm.Error], as those of chat models, and never hold the key. This package does not retry:
// package rag does. A redirection is a failure, because a key must only be sent to its own host.
package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"raddle.dev/internal/base/redact"
	"raddle.dev/rag"
)

// An API is the protocol of a server.
type API string

// The APIs of embedding models.
const (
	OpenAI API = "openai" // POST {base}/embeddings
	Gemini API = "gemini" // POST {base}/models/{model}:batchEmbedContents
	Ollama API = "ollama" // POST {base}/api/embed
)

// DefaultTimeout limits the time of one request if [Config.Timeout] is zero.
const DefaultTimeout = time.Minute

// A Config says which model to ask, and where.
type Config struct {
	// API is required for embedding. For rerankers there is only one protocol.
	API API
	// BaseURL is the address to which the paths of the API are appended, such as "http://localhost:11434". It is
	// required.
	BaseURL string
	// Key is sent only to that address; empty: no key is sent.
	Key string
	// KeyName is the variable that Key comes from, for messages; it may be empty.
	KeyName string
	// KeySource names the owner of the key and where it comes from, for messages: client "x"
	// (X_API_KEY); it may be empty.
	KeySource string
	// Model is the name that the server knows.
	Model string
	// Dimensions asks for vectors of this length, which not every model supports; zero: the default of the model.
	Dimensions int
	// Timeout limits the time of one request; zero: [DefaultTimeout].
	Timeout time.Duration
	// Transport carries the requests; nil: [http.DefaultTransport].
	Transport http.RoundTripper
}

// New returns an embedding model. It sends nothing yet.
func New(c Config) (rag.Embedder, error) {
	s, err := newServer(c)
	if err != nil {
		return nil, err
	}
	switch c.API {
	case OpenAI:
		return openAI{s}, nil
	case Gemini:
		return gemini{s}, nil
	case Ollama:
		return ollama{s}, nil
	}
	return nil, fmt.Errorf("embedding model %s: API %q is not known; there are openai, gemini and ollama", c.Model, c.API)
}

func newServer(c Config) (*server, error) {
	u, err := url.Parse(c.BaseURL)
	switch {
	case c.Model == "":
		return nil, errors.New("the model's name is empty")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("model %s: the base URL %q is not one: it needs http:// or https:// and a host", c.Model, redact.RedactURL(c.BaseURL))
	}
	secrets := redact.New(c.Key)
	secrets.Add(redact.FindPasswords(c.BaseURL)...)
	return &server{c: c, secrets: secrets, host: u.Host, base: strings.TrimSuffix(c.BaseURL, "/"), client: &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       cmp.Or(c.Timeout, DefaultTimeout),
	}}, nil
}

type openAI struct{ *server }

func (m openAI) Embed(ctx context.Context, _ rag.Purpose, texts []string) ([][]float32, error) {
	body := map[string]any{"model": m.c.Model, "input": texts, "encoding_format": "float"}
	if m.c.Dimensions > 0 {
		body["dimensions"] = m.c.Dimensions
	}
	var reply struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := m.postJSON(ctx, httpCall{path: "/embeddings", header: m.authHeader(), body: body}, &reply); err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(reply.Data))
	for _, d := range reply.Data {
		if d.Index < 0 || d.Index >= len(vectors) || vectors[d.Index] != nil {
			return nil, m.unusableAnswer(fmt.Sprintf("the indexes of %d vectors are not those of a list", len(vectors)))
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, nil
}

type gemini struct{ *server }

// geminiBatch is the most texts that the API takes at a time.
const geminiBatch = 100

func (m gemini) Embed(ctx context.Context, purpose rag.Purpose, texts []string) ([][]float32, error) {
	var vectors [][]float32
	for len(texts) > 0 {
		n := min(len(texts), geminiBatch)
		some, err := m.embedBatch(ctx, purpose, texts[:n])
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, some...)
		texts = texts[n:]
	}
	return vectors, nil
}

func (m gemini) embedBatch(ctx context.Context, purpose rag.Purpose, texts []string) ([][]float32, error) {
	task := "RETRIEVAL_DOCUMENT"
	if purpose == rag.ForQuery {
		task = "RETRIEVAL_QUERY"
	}
	name := "models/" + strings.TrimPrefix(m.c.Model, "models/")
	var requests []map[string]any
	for _, t := range texts {
		r := map[string]any{"model": name, "taskType": task, "content": map[string]any{"parts": []any{map[string]any{"text": t}}}}
		if m.c.Dimensions > 0 {
			r["outputDimensionality"] = m.c.Dimensions
		}
		requests = append(requests, r)
	}
	var reply struct {
		Embeddings []struct {
			Values []float32 `json:"values"`
		} `json:"embeddings"`
	}
	c := httpCall{path: "/" + name + ":batchEmbedContents", header: map[string]string{"x-goog-api-key": m.c.Key},
		body: map[string]any{"requests": requests}}
	if err := m.postJSON(ctx, c, &reply); err != nil {
		return nil, err
	}
	if len(reply.Embeddings) != len(texts) {
		return nil, m.unusableAnswer(fmt.Sprintf("%d vectors came back for %d texts", len(reply.Embeddings), len(texts)))
	}
	var vectors [][]float32
	for _, e := range reply.Embeddings {
		vectors = append(vectors, e.Values)
	}
	return vectors, nil
}

type ollama struct{ *server }

func (m ollama) Embed(ctx context.Context, _ rag.Purpose, texts []string) ([][]float32, error) {
	body := map[string]any{"model": m.c.Model, "input": texts, "truncate": false}
	if m.c.Dimensions > 0 {
		body["dimensions"] = m.c.Dimensions
	}
	var reply struct {
		Embeddings [][]float32 `json:"embeddings"`
	}
	err := m.postJSON(ctx, httpCall{path: "/api/embed", header: m.authHeader(), body: body}, &reply)
	return reply.Embeddings, err
}
