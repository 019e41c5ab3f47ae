package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/rag"
)

// Search is a search in a knowledge base as the journal stores it.
type Search struct {
	Node   string  `json:"node,omitempty"` // of the base; empty: the agent's own documents
	Query  string  `json:"query"`
	Chunks []Chunk `json:"chunks"` // best first
}

// IsSearch reports whether an effect of an agent's run is a search. what is the
// effect's id, as [graph.Entry] has it in ID.
func IsSearch(what string) bool { return effectName(what) == effectSearch }

// ReadSearch decodes the data of a record for which [IsSearch] is true.
func ReadSearch(data []byte) (s Search, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("the recorded search: %w", err)
	}
	return s, nil
}

// Chunk is a part of a document that a search found.
type Chunk struct {
	Source string  `json:"source"`
	Index  int     `json:"index"` // of the chunk in its document, starting with 0
	Text   string  `json:"text"`
	Score  float64 `json:"score,omitempty"`
}

// runRAG searches the node's knowledge base with its query. The result is
// recorded, so that a run that continues in another process uses the same one.
func (v *nodeRun) runRAG(b *spec.RAGNode) error {
	query, err := v.renderStrict(b.Query, "Failed to interpolate rag node query")
	if err != nil {
		return err
	}
	if v.agent.bases[v.node.ID] == nil {
		return spec.Failf("rag node '%s' has no initialized knowledge base", v.node.ID)
	}
	ctx, cancel := context.WithTimeoutCause(v, b.Timeout.Duration(), errNodeTimeout)
	defer cancel()
	found, err := v.agent.searchBase(ctx, SearchRequest{v.node.ID, query, valueOr(b.TopK, 0)})
	switch {
	case err == nil:
	case v.Err() == nil && context.Cause(ctx) == errNodeTimeout:
		return spec.Failf("rag node '%s' timed out after %ds", v.node.ID, b.Timeout)
	case v.Err() != nil:
		return err
	default:
		return newChainError(fmt.Sprintf("rag node '%s' retrieval failed", v.node.ID), err)
	}
	hits := found.ragHits()
	sources := []any{}
	for _, s := range rag.SourcePaths(hits) {
		sources = append(sources, s)
	}
	v.applyUpdates("output", jsonvalue.NewObject(jsonvalue.Member{Key: "context", Value: v.host().redact(rag.FormatContext(hits))}, jsonvalue.Member{Key: "sources", Value: sources}))
	return v.goNext()
}

// effectSearch is the name of the effect of a search.
const effectSearch = "search"

// searchBase searches a base once: a recorded search is not repeated.
func (a *Agent) searchBase(ctx context.Context, s SearchRequest) (Search, error) {
	base := a.bases[orElse(s.Node, ownBase)]
	return graph.Do(ctx, effectSearch, func(ctx context.Context) (Search, error) {
		if graph.IsEmitEnabled(ctx) {
			graph.Emit(ctx, s)
		}
		hits, err := base.Search(ctx, s.Query, rag.SearchOptions{TopK: s.TopK})
		if err != nil {
			return Search{}, err
		}
		found := Search{Node: s.Node, Query: a.host.redact(s.Query), Chunks: []Chunk{}}
		for _, h := range hits {
			found.Chunks = append(found.Chunks, Chunk{Source: a.host.redact(h.Path), Index: h.Chunk, Text: a.host.redact(h.Text), Score: h.Score})
		}
		graph.Emit(ctx, SearchDone{found.Chunks})
		return found, nil
	})
}

func (r *Search) ragHits() []rag.Hit {
	hits := make([]rag.Hit, len(r.Chunks))
	for i, c := range r.Chunks {
		hits[i] = rag.Hit{Path: c.Source, Chunk: c.Index, Text: c.Text, Score: c.Score}
	}
	return hits
}
