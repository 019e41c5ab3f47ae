package app

import (
	"cmp"
	"context"

	"raddle.dev/flow"
	"raddle.dev/internal/base/redact"
	"raddle.dev/memory"
	"raddle.dev/rag"
	"raddle.dev/rag/embed"
)

// newRetrieval says how the knowledge bases of agents are built and searched.
func (p *Process) newRetrieval(s UIHooks) flow.Retrieval {
	c := &p.Config.RAG
	notify := s.Notify
	if log := cmp.Or(s.Log, p.Log); notify == nil && log != nil {
		notify = func(line string) { log.Info(line) }
	}
	r := flow.Retrieval{
		Memory:         p.Runs.OpenMemory,
		Model:          c.Model,
		RerankerModel:  c.Reranker,
		ExtractorModel: c.Extractor,
		ChunkSize:      c.ChunkSize,
		ChunkOverlap:   c.ChunkOverlap,
		Template:       c.Template,
		Loaders:        c.Loaders,
		Env:            p.Tools.WorkEnv(),
		Confirm:        s.Confirm,
		Ask:            s.Ask,
		Notify:         notify,
		Progress:       s.Progress,
		Embedder: func(id string) (rag.Embedder, error) {
			e, err := p.Models.EmbeddingConfig(id)
			if err != nil {
				return nil, err
			}
			m, err := embed.New(e)
			return redactedEmbedder{m, p.Tools.SecretSet()}, err
		},
		Reranker: func(id string) (rag.Reranker, error) {
			e, err := p.Models.EmbeddingConfig(id)
			if err != nil {
				return nil, err
			}
			m, err := embed.NewReranker(e)
			return redactedReranker{m, p.Tools.SecretSet()}, err
		},
	}
	if c.TopK != nil {
		r.TopK = *c.TopK
	}
	return r
}

// openMemoryEmbedder returns the embedding model of knowledge bases, for what agents remember; nil if none is
// configured or it cannot be opened.
func (p *Process) openMemoryEmbedder() memory.Embedder {
	id := p.Config.RAG.Model
	if id == "" || id == rag.Keyword {
		return nil
	}
	m, err := p.newRetrieval(UIHooks{}).Embedder(id)
	if err != nil {
		return nil
	}
	return memoryEmbedder{id, m}
}

// A memoryEmbedder embeds what agents remember.
type memoryEmbedder struct {
	id    string
	model rag.Embedder
}

// Model implements [memory.Embedder].
func (m memoryEmbedder) Model() string { return m.id }

// Embed implements [memory.Embedder].
func (m memoryEmbedder) Embed(ctx context.Context, query bool, texts []string) ([][]float32, error) {
	if query {
		return m.model.Embed(ctx, rag.ForQuery, texts)
	}
	return m.model.Embed(ctx, rag.ForDocument, texts)
}

// A redactedEmbedder keeps secrets in documents and queries from the embedding
// model.
type redactedEmbedder struct {
	model   rag.Embedder
	secrets *redact.Set
}

// Embed implements [rag.Embedder].
func (m redactedEmbedder) Embed(ctx context.Context, purpose rag.Purpose, texts []string) ([][]float32, error) {
	return m.model.Embed(ctx, purpose, redactAll(texts, m.secrets))
}

// A redactedReranker keeps secrets in documents and queries from the reranking
// model.
type redactedReranker struct {
	model   rag.Reranker
	secrets *redact.Set
}

// Rerank implements [rag.Reranker].
func (m redactedReranker) Rerank(ctx context.Context, query string, texts []string, top int) ([]int, error) {
	return m.model.Rerank(ctx, m.secrets.Text(query), redactAll(texts, m.secrets), top)
}

func redactAll(texts []string, secrets *redact.Set) []string {
	clean := make([]string, len(texts))
	for i, t := range texts {
		clean[i] = secrets.Text(t)
	}
	return clean
}
