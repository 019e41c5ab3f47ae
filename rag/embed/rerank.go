package embed

import (
	"context"

	"raddle.dev/rag"
)

// NewReranker returns a model that orders texts: POST {base}/rerank, as Cohere, Jina and others define it. It sends
// nothing yet.
func NewReranker(c Config) (rag.Reranker, error) {
	s, err := newServer(c)
	if err != nil {
		return nil, err
	}
	return reranker{s}, nil
}

type reranker struct{ *server }

func (m reranker) Rerank(ctx context.Context, query string, texts []string, top int) ([]int, error) {
	body := map[string]any{"model": m.c.Model, "query": query, "documents": texts, "top_n": min(top, len(texts))}
	var reply struct {
		Results []struct {
			Index *int `json:"index"`
		} `json:"results"`
	}
	if err := m.postJSON(ctx, httpCall{path: "/rerank", header: m.authHeader(), body: body}, &reply); err != nil {
		return nil, err
	}
	order := []int{}
	for _, r := range reply.Results {
		if r.Index == nil || *r.Index < 0 || *r.Index >= len(texts) {
			return nil, m.unusableAnswer("an index that is none of a text came back")
		}
		order = append(order, *r.Index)
	}
	if len(order) == 0 && len(texts) > 0 {
		return nil, m.unusableAnswer("no results came back")
	}
	return order, nil
}
