package provider

import (
	"context"

	"raddle.dev/internal/base/failure"
	"raddle.dev/llm"
	"raddle.dev/rag/embed"
)

// EmbeddingConfig returns where a model of embedding or reranking is called, and with which key.
func (r *Resolver) EmbeddingConfig(id string) (embed.Config, error) {
	c, name := r.findClient(id)
	if c == nil {
		return embed.Config{}, r.unknownClientError(id)
	}
	c, err := r.withKey(context.Background(), c) // a command has a limit of its own
	switch {
	case err != nil:
		return embed.Config{}, err
	case c.Key == "" && c.needsKey():
		return embed.Config{}, &llm.Error{
			Class:   llm.Auth,
			Host:    c.Name,
			Message: "there is no key for the embedding model " + id + ": " + c.describeMissingKey(),
		}
	}
	e := embed.Config{
		API:       embed.OpenAI,
		BaseURL:   c.Base,
		Key:       c.Key,
		KeyName:   c.keyNames[0],
		KeySource: c.keySource(r.env),
		Model:     name,
		Timeout:   r.config.ReadTimeout,
	}
	complete := wires[c.Type].embed
	if complete == nil {
		return embed.Config{}, failure.NewInvalid("name a model of a client that embeds: openai, gemini, ollama or an openai-compatible one, or write `keyword`",
			"client %q (%s) has no embedding models", c.Name, c.Type)
	}
	complete(&e)
	return e, nil
}
