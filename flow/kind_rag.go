package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/rag"
	"raddle.dev/rag/load"
)

// ragNode searches the knowledge base that belongs to the node.
type ragNode struct {
	documents       []string
	query           spec.Template // strict
	topK            *int          // nil: the knowledge base's own
	embeddingModel  string
	chunkSize       *int
	chunkOverlap    *int
	rerankerModel   string
	batchSize       *int
	timeout         strictyaml.Seconds
	extractorModel  string
	extractorPrompt string
	graphHops       *int
	driver          string
	fusion          spec.Fusion
}

// defaultQuery is the query of a rag node that sets none.
const defaultQuery = "{{initial_prompt}}"

var ragKind = &kind{
	Kind: spec.Kind{
		Name:     "rag",
		Doc:      "Searches the documents that belong to the node.",
		Required: []string{"documents"},
		Optional: []string{
			"query", "top_k", "embedding_model", "chunk_size", "chunk_overlap", "reranker_model",
			"batch_size", "state_updates", "timeout", "extractor_model", "extractor_prompt",
			"graph_hops", "driver", "fusion", "weights",
		},
		Scoped:      "output",
		Result:      spec.NewSchema("object", jsonvalue.Member{Key: "context", Value: spec.NewSchema("string")}, jsonvalue.Member{Key: "sources", Value: jsonvalue.NewObject()}),
		NotInBranch: true,
	},
	decode: func(m *spec.NodeFields) nodeBody {
		query := defaultQuery
		if m.HasValue("query") {
			query = m.ReadText("query", strictyaml.Optional)
		}
		return &ragNode{
			documents:       m.ReadTexts("documents", strictyaml.Required),
			query:           m.AddStrict("query", query),
			topK:            m.ReadOptionalCount("top_k"),
			embeddingModel:  m.ReadText("embedding_model", strictyaml.Optional),
			chunkSize:       m.ReadOptionalCount("chunk_size"),
			chunkOverlap:    m.ReadOptionalCount("chunk_overlap"),
			rerankerModel:   m.ReadText("reranker_model", strictyaml.Optional),
			batchSize:       m.ReadOptionalCount("batch_size"),
			timeout:         m.ReadSeconds("timeout", 120),
			extractorModel:  m.ReadText("extractor_model", strictyaml.Optional),
			extractorPrompt: m.ReadText("extractor_prompt", strictyaml.Optional),
			graphHops:       m.ReadOptionalCount("graph_hops"),
			driver:          m.ReadText("driver", strictyaml.Optional),
			fusion:          spec.ReadFusion(m.Fields),
		}
	}}

// ownDriver is the driver of the format for which raddle uses its own file.
const ownDriver = "yaml"

// ragDrivers are the storage drivers of knowledge bases.
var ragDrivers = map[string]bool{"": true, ownDriver: true, "duckdb": true, "qdrant": true}

// describeDriver says that a driver of another program has no effect.
func describeDriver(driver string) string {
	return fmt.Sprintf("`driver: %s` has no effect: the knowledge base is a file of raddle's own, with vectors, words and entities in it", driver)
}

// Checks returns the checks of the documents and of the models.
func (b *ragNode) Checks() check.Checks {
	return check.Checks{check.Sources: b.checkSources, check.Names: b.checkModels}
}

func (b *ragNode) checkSources(c *check.Checker, n *spec.Node) {
	if len(b.documents) == 0 {
		c.ErrorAt(n, n.At("documents"), "rag-documents", "RAG node has no 'documents'; at least one knowledge source is required")
	}
	if n.Updates == nil {
		c.WarnAt(n, n.Pos(), "rag-result-unused", "RAG node has no 'state_updates'; its retrieval result will not be written to state")
	}
	if b.extractorPrompt != "" && !strings.Contains(b.extractorPrompt, rag.ChunkMark) {
		c.ErrorAt(n, n.At("extractor_prompt"), "rag-extractor", "`extractor_prompt` does not contain %s, so it never shows the model a chunk", rag.ChunkMark)
	}
	if !ragDrivers[b.driver] {
		c.ErrorAt(n, n.At("driver"), "rag-driver", "Unknown RAG driver '%s'. Valid drivers: yaml, duckdb, qdrant.", b.driver)
	}
}

// checkModels warns about models that no client has.
func (b *ragNode) checkModels(c *check.Checker, n *spec.Node) {
	if c.IsUnknownModel(b.extractorModel) {
		c.WarnAt(n, n.At("extractor_model"), "unknown-model", fmt.Sprintf("rag node references unknown model '%s'", b.extractorModel))
	}
	if b.embeddingModel != rag.Keyword && c.IsUnknownModel(b.embeddingModel) {
		c.WarnAt(n, n.At("embedding_model"), "unknown-model", fmt.Sprintf("rag node references unknown embedding model '%s'", b.embeddingModel))
	}
	if c.IsUnknownModel(b.rerankerModel) {
		c.WarnAt(n, n.At("reranker_model"), "unknown-model", fmt.Sprintf("rag node references unknown reranker model '%s'", b.rerankerModel))
	}
}

// Advise reports limits of zero, and documents and names that cannot be used.
func (b *ragNode) Advise(a *check.Adviser, n *spec.Node) {
	a.WarnZero(n, "timeout", b.timeout == 0, check.EndsAtOnce)
	a.WarnZero(n, "top_k", isZero(b.topK), "nothing is ever found")
	a.WarnZero(n, "chunk_size", isZero(b.chunkSize), "documents cannot be split")
	a.WarnZero(n, "batch_size", isZero(b.batchSize), "nothing can be embedded")
	switch id := strings.ToLower(n.ID); {
	case id == "graph" || id == "config" || id == "rag":
		a.WarnAt(n, n.Pos(), "rag-file", fmt.Sprintf("the knowledge base of this node would be the file %s.yaml, which means something else", n.ID), "give the node another id")
	case strings.ContainsAny(n.ID, `/\`) || strings.HasPrefix(n.ID, "."):
		a.WarnAt(n, n.Pos(), "rag-file", fmt.Sprintf("the knowledge base of this node would be the file '%s.yaml', outside the agent directory or hidden", n.ID), "give the node an id of letters, digits, - and _")
	}
	if b.chunkSize != nil && b.chunkOverlap != nil && *b.chunkSize > 0 && *b.chunkOverlap >= *b.chunkSize {
		a.WarnAt(n, n.At("chunk_overlap"), "rag-chunks", fmt.Sprintf("`chunk_overlap` (%d) must be smaller than `chunk_size` (%d)", *b.chunkOverlap, *b.chunkSize), "")
	}
	if b.driver != "" && b.driver != ownDriver && ragDrivers[b.driver] {
		a.Add(strictyaml.Finding{Severity: strictyaml.SeverityInfo, Code: "rag-driver", Node: n.ID, Message: describeDriver(b.driver), Pos: n.At("driver")})
	}
	place := n.Source.ItemPositions("documents")
	for i, d := range b.documents {
		if fault := load.FindPathFault(d); fault != "" && !strings.Contains(d, "://") {
			a.WarnAt(n, place(i), "rag-document", fmt.Sprintf("Invalid document path: '%s'", d), fault)
		}
	}
}

func isZero(n *int) bool { return n != nil && *n == 0 }

func (b *ragNode) needs(n *spec.Node) nodeNeeds {
	return nodeNeeds{base: &knowledge{id: n.ID, documents: b.documents, sized: b.chunkOverlap != nil, driver: b.driver, options: rag.Options{
		Model: b.embeddingModel, ChunkSize: valueOr(b.chunkSize, 0), ChunkOverlap: valueOr(b.chunkOverlap, 0),
		TopK: valueOr(b.topK, 0), Batch: valueOr(b.batchSize, 0), RerankerModel: b.rerankerModel, Fusion: fusionOf(b.fusion),
		Extraction: rag.Extraction{Model: b.extractorModel, Prompt: b.extractorPrompt, Hops: b.graphHops},
	}}}
}

// fusionOf returns how searches join their rankings; a weight that is not set has its default.
func fusionOf(f spec.Fusion) rag.Fusion {
	w := rag.DefaultWeights
	w.Meaning = valueOr(f.Meaning, w.Meaning)
	w.Words = valueOr(f.Words, w.Words)
	w.Entities = valueOr(f.Entities, w.Entities)
	return rag.Fusion{Method: rag.Method(f.Method), Weights: w}
}

func (b *ragNode) compile(*nodeCompiler, *graph.Node) error { return nil }

// Search is a search in a knowledge base as the journal stores it.
type Search struct {
	Node   string  `json:"node,omitempty"` // of the base; empty: the agent's own documents
	Query  string  `json:"query"`
	Chunks []Chunk `json:"chunks"` // best first
}

// IsSearch reports whether an effect of an agent's run is a search. id is the
// effect's id, as [history.Entry] has it in ID.
func IsSearch(id string) bool { return graph.ParseEffectID(id).Name == effectSearch }

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
	// Place is the place of the chunk in its document.
	Place rag.Place `json:"place,omitzero"`
}

// FormatPart returns the number of the chunk in its document, from one, with its place there if that is known: as in
// "3 (page 2)".
func (c *Chunk) FormatPart() string {
	part := strconv.Itoa(c.Index + 1)
	if place := c.hit().FormatPlace(); place != "" {
		part += " (" + place + ")"
	}
	return part
}

// NewChunks returns hits as chunks.
func NewChunks(hits []rag.Hit) []Chunk {
	chunks := make([]Chunk, len(hits))
	for i, h := range hits {
		chunks[i] = Chunk{Source: h.Path, Index: h.Chunk, Text: h.Text, Score: h.Score, Place: h.Place}
	}
	return chunks
}

// run searches the node's knowledge base with its query. The result is
// recorded, so that a run that continues in another process uses the same one.
func (b *ragNode) run(nr *nodeRun) error {
	query, err := nr.renderStrict(b.query, "Failed to interpolate rag node query")
	if err != nil {
		return err
	}
	if nr.agent.bases[nr.node.ID] == nil {
		return spec.Errorf("rag node '%s' has no initialized knowledge base", nr.node.ID)
	}
	ctx, cancel := context.WithTimeoutCause(nr, b.timeout.Duration(), errNodeTimeout)
	defer cancel()
	found, err := searchBase(ctx, nr.agent, SearchRequest{nr.node.ID, query, valueOr(b.topK, 0)})
	switch {
	case err == nil:
	case nr.Err() == nil && context.Cause(ctx) == errNodeTimeout:
		return spec.Errorf("rag node '%s' timed out after %ds", nr.node.ID, b.timeout)
	case nr.Err() != nil:
		return err
	default:
		return newChainError(fmt.Sprintf("rag node '%s' retrieval failed", nr.node.ID), err)
	}
	hits := found.Hits()
	sources := []any{}
	for _, s := range rag.SourcePaths(hits) {
		sources = append(sources, s)
	}
	nr.applyUpdates("output", jsonvalue.NewObject(jsonvalue.Member{Key: "context", Value: nr.host().redact(rag.FormatContext(hits))}, jsonvalue.Member{Key: "sources", Value: sources}))
	return nr.goNext()
}

// effectSearch is the name of the effect of a search.
const effectSearch = "search"

// searchBase searches a base once: a recorded search is not repeated.
func searchBase(ctx context.Context, a *Agent, s SearchRequest) (Search, error) {
	return graph.Do(ctx, effectSearch, func(ctx context.Context) (Search, error) {
		if graph.IsEmitEnabled(ctx) {
			graph.Emit(ctx, s)
		}
		hits, err := findHits(ctx, a, s)
		if err != nil {
			return Search{}, err
		}
		found := Search{Node: s.Node, Query: a.host.redact(s.Query), Chunks: NewChunks(hits)}
		for i := range found.Chunks {
			c := &found.Chunks[i]
			c.Source = a.host.redact(c.Source)
			c.Text = a.host.redact(c.Text)
			c.Place = redactPlace(c.Place, a.host.redact)
		}
		graph.Emit(ctx, SearchDone{found.Chunks})
		return found, nil
	})
}

// redactPlace removes secrets from the texts of a place.
func redactPlace(p rag.Place, redact func(string) string) rag.Place {
	p.Sheet = redact(p.Sheet)
	p.Headings = slices.Clone(p.Headings)
	for i, heading := range p.Headings {
		p.Headings[i] = redact(heading)
	}
	return p
}

// findHits searches a base, inside of what the host puts around searches.
func findHits(ctx context.Context, a *Agent, s SearchRequest) ([]rag.Hit, error) {
	search := SearchFunc(func(ctx context.Context, s SearchRequest) ([]rag.Hit, error) {
		return a.bases[cmp.Or(s.Node, ownBase)].Search(ctx, s.Query, rag.SearchOptions{TopK: s.TopK})
	})
	if around := a.host.Retrieval.Around; around != nil {
		search = around(search)
	}
	return search(ctx, s)
}

// Hits returns the chunks as a search returned them, without metadata.
func (s *Search) Hits() []rag.Hit {
	hits := make([]rag.Hit, len(s.Chunks))
	for i, c := range s.Chunks {
		hits[i] = c.hit()
	}
	return hits
}

// hit returns the chunk as a search returned it, without metadata.
func (c *Chunk) hit() rag.Hit {
	return rag.Hit{Path: c.Source, Chunk: c.Index, Text: c.Text, Score: c.Score, Place: c.Place}
}
