package spec

import (
	"fmt"

	"raddle.dev/internal/strictyaml"
)

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
	Timeout         strictyaml.Seconds
	ExtractorModel  string
	ExtractorPrompt string
	GraphHops       *int
	Driver          string
}

// Kind returns "rag".
func (*RAGNode) Kind() string { return "rag" }

// DefaultQuery is the query of a rag node that sets none.
const DefaultQuery = "{{initial_prompt}}"

var ragKind = kind{
	Name:     "rag",
	Doc:      "Searches the documents that belong to the node.",
	Required: []string{"documents"},
	Optional: []string{
		"query", "top_k", "embedding_model", "chunk_size", "chunk_overlap", "reranker_model",
		"batch_size", "state_updates", "timeout", "extractor_model", "extractor_prompt",
		"graph_hops", "driver",
	},
	Scoped: "output",
	Decode: func(m *strictyaml.Fields) Body {
		query := DefaultQuery
		if m.HasValue("query") {
			query = m.ReadText("query", strictyaml.Optional)
		}
		return &RAGNode{
			Documents:       m.ReadTexts("documents", strictyaml.Required),
			Query:           ParseTemplate(query),
			TopK:            m.ReadOptionalCount("top_k"),
			EmbeddingModel:  m.ReadText("embedding_model", strictyaml.Optional),
			ChunkSize:       m.ReadOptionalCount("chunk_size"),
			ChunkOverlap:    m.ReadOptionalCount("chunk_overlap"),
			RerankerModel:   m.ReadText("reranker_model", strictyaml.Optional),
			BatchSize:       m.ReadOptionalCount("batch_size"),
			Timeout:         m.ReadSeconds("timeout", 120),
			ExtractorModel:  m.ReadText("extractor_model", strictyaml.Optional),
			ExtractorPrompt: m.ReadText("extractor_prompt", strictyaml.Optional),
			GraphHops:       m.ReadOptionalCount("graph_hops"),
			Driver:          m.ReadText("driver", strictyaml.Optional),
		}
	},
}

// OwnDriver is the driver of the format for which raddle uses its own file.
const OwnDriver = "yaml"

// DescribeDriver says that a driver of another program has no effect.
func DescribeDriver(driver string) string {
	return fmt.Sprintf("`driver: %s` has no effect: the knowledge base is a file of raddle's own, with vectors, words and entities in it", driver)
}
