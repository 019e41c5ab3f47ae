package flow

// RAGNode searches the knowledge base that belongs to the node.
type RAGNode struct {
	Documents       []string
	Query           Template // strict
	TopK            *int     // nil: the knowledge base's own
	EmbeddingModel  string
	ChunkSize       *int
	ChunkOverlap    *int
	RerankerModel   string
	BatchSize       *int
	Timeout         Seconds
	ExtractorModel  string
	ExtractorPrompt string
	GraphHops       *int
	Driver          string
}

// Kind returns "rag".
func (*RAGNode) Kind() string { return "rag" }

// defaultQuery is the query of a rag node that sets none.
const defaultQuery = "{{initial_prompt}}"

var ragKind = kind{
	name:     "rag",
	doc:      "Searches the documents that belong to the node.",
	required: []string{"documents"},
	optional: []string{
		"query", "top_k", "embedding_model", "chunk_size", "chunk_overlap", "reranker_model",
		"batch_size", "state_updates", "timeout", "extractor_model", "extractor_prompt",
		"graph_hops", "driver",
	},
	scoped: "output",
	decode: func(m *fields) Body {
		query := defaultQuery
		if m.hasValue("query") {
			query = m.readText("query", optional)
		}
		return &RAGNode{
			Documents:       m.readTexts("documents", required),
			Query:           ParseTemplate(query),
			TopK:            m.maybeCount("top_k"),
			EmbeddingModel:  m.readText("embedding_model", optional),
			ChunkSize:       m.maybeCount("chunk_size"),
			ChunkOverlap:    m.maybeCount("chunk_overlap"),
			RerankerModel:   m.readText("reranker_model", optional),
			BatchSize:       m.maybeCount("batch_size"),
			Timeout:         m.readSeconds("timeout", 120),
			ExtractorModel:  m.readText("extractor_model", optional),
			ExtractorPrompt: m.readText("extractor_prompt", optional),
			GraphHops:       m.maybeCount("graph_hops"),
			Driver:          m.readText("driver", optional),
		}
	},
}
