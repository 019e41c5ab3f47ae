package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/rag"
	"raddle.dev/tool"
)

// defaultRAGTemplate is the text around a question and the passages that were
// found for it.
const defaultRAGTemplate = `Answer from the context below, and name the sources you use. If it does not hold the answer, say so.

<context>
__CONTEXT__
</context>

<sources>
__SOURCES__
</sources>

<question>
__INPUT__
</question>`

// withDocuments returns what the user says, together with passages from the agent's
// documents.
func (c *conversation) withDocuments(ctx context.Context, prompt string) (string, error) {
	a := c.agent
	if a.bases[ownBase] == nil || strings.TrimSpace(prompt) == "" {
		return prompt, nil
	}
	found, err := searchBase(ctx, a, SearchRequest{Query: prompt})
	if err != nil || len(found.Chunks) == 0 {
		return prompt, err
	}
	template := cmp.Or(a.host.Retrieval.Template, defaultRAGTemplate)
	hits := found.Hits()
	return c.agent.host.redact(strings.NewReplacer(
		"__CONTEXT__", rag.FormatContext(hits),
		"__SOURCES__", "- "+strings.Join(rag.SourcePaths(hits), "\n- "),
		"__INPUT__", prompt,
	).Replace(template)), nil
}

// usesDocuments reports whether the documents of a config.yaml can be searched.
// They cannot if no embedding model is set, there is no person to choose one,
// and no base was built.
func usesDocuments(a *Agent) bool {
	if a.Config == nil || len(a.Config.Documents.Paths) == 0 {
		return false
	}
	r := &a.host.Retrieval
	if a.Config.Documents.Model != "" || r.Model != "" || r.Confirm != nil || r.Base != nil || a.bases[ownBase] != nil {
		return true
	}
	_, err := os.Stat(filepath.Join(a.Dir, ownBase+".yaml"))
	return err == nil
}

// queryTool returns a tool with which a model searches the agent's documents.
func queryTool(a *Agent) tool.Tool {
	type chunk struct {
		Text   string    `json:"text"`
		Source string    `json:"source"`
		Place  rag.Place `json:"place,omitzero"`
	}
	type result struct {
		Name   string  `json:"rag_name"`
		Count  int     `json:"count"`
		Chunks []chunk `json:"chunks"`
	}
	return tool.Tool{
		Name: "rag__query", Effect: tool.ReadOnly, Parallel: true,
		Description: "Search the documents of this agent, and get the parts that fit the query best.",
		Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"What to look for"},` +
			`"top_k":{"type":"integer","description":"How many parts to get"}},"required":["query"]}`),
		Touches: func(json.RawMessage) (tool.Touch, error) { return tool.Touch{}, nil },
		Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			var in struct {
				Query string `json:"query"`
				TopK  int    `json:"top_k"`
			}
			if err := json.Unmarshal(c.Args, &in); err != nil || in.Query == "" {
				return tool.FailedResult("'query' is required"), nil
			}
			if a.bases[ownBase] == nil {
				return tool.FailedResult("the documents of this agent have no knowledge base: it was not built"), nil
			}
			hits, err := findHits(ctx, a, SearchRequest{Query: in.Query, TopK: max(in.TopK, 0)})
			if err != nil {
				return tool.FailedResult("RAG query failed: %v", err), nil
			}
			r := result{Name: a.Name, Count: len(hits), Chunks: []chunk{}}
			for _, h := range hits {
				r.Chunks = append(r.Chunks, chunk{h.Text, h.Path, h.Place})
			}
			return tool.JSONResult(r), nil
		},
	}
}
