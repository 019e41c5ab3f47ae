package provider

import (
	"strings"

	"raddle.dev/internal/config"
	"raddle.dev/internal/failure"
	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/gemini"
	"raddle.dev/llm/openai"
)

// openClientModel returns the model of a client with the limits of the configuration. It opens no connection.
func (r *Resolver) openClientModel(c *client, name string) (llm.Model, error) {
	c, err := r.withKey(c)
	if err != nil {
		return nil, err
	}
	model, err := wireOf(c, name, *r.config)
	if err != nil {
		return nil, err
	}
	return &explainedModel{model: model, client: c, env: r.env}, nil
}

// wireOf returns the model of a client; its errors know only the name of a variable.
func wireOf(c *client, name string, limits config.Config) (llm.Model, error) {
	key := c.keyNames[0]
	if c.Key == "" && c.needsKey() {
		text := "no API key: set " + key
		if c.KeyVar != "" {
			text += ", which config.yaml names as the api_key of client " + c.Name
		}
		text += ", or store one: raddle login " + c.Name
		return nil, &llm.Error{Class: llm.Auth, Message: text}
	}
	config := openai.Config{ // the wires' configurations have the same fields
		Model: name, BaseURL: c.Base, APIKey: c.Key, KeyName: key,
		ReadTimeout: limits.ReadTimeout, StreamTimeout: limits.StreamTimeout, MaxReply: limits.MaxReply,
	}
	switch c.Type {
	case "openai", "openai-compatible":
		return openai.New(config)
	case "ollama":
		config.BaseURL = ollamaBase(c.Base)
		return openai.New(config)
	case "anthropic":
		config.BaseURL = cutVersion(c.Base)
		return anthropic.New(anthropic.Config(config))
	case "gemini":
		config.BaseURL = cutVersion(c.Base)
		return gemini.New(gemini.Config(config))
	}
	return nil, notYet(c)
}

func notYet(c *client) *failure.Error {
	return failure.NewInvalid("use another client; gateways that are compatible with OpenAI's interface work today", "client %q: models of type %s cannot be called yet", c.Name, c.Type)
}

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
