package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/rag/keyword"
	"raddle.dev/rag/split"
)

// SearchOptions say how to search.
type SearchOptions struct {
	// TopK is the most chunks that are returned; zero: the setting of the base.
	TopK int
}

// A Hit is a chunk that was found.
type Hit struct {
	Path  string // of its document
	Text  string // of the chunk
	Chunk int    // its place in the document, from zero
	// Score is that of the ranking that decided, higher is better; it compares with the hits of the same search only.
	Score    float64
	Metadata map[string]string // of the document
}

// Search returns the chunks that match query best, best first. It sees one published state of the base, even if a build
// publishes another one at the same time. The error wraps ErrNotBuilt if the base was never built.
func (b *Base) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	hits, err := b.runSearch(ctx, query, o)
	if err != nil {
		return nil, b.wrapError("search", err)
	}
	return hits, nil
}

func (b *Base) runSearch(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	settings, builds, err := b.publishedSettings(ctx)
	if err != nil {
		return nil, err
	}
	if builds == 0 {
		return nil, ErrNotBuilt
	}
	top := cmp.Or(o.TopK, settings.TopK, DefaultTopK)
	if top < 0 {
		return nil, fmt.Errorf("top_k is %d: it must be at least 1", top)
	}
	questions, err := b.embedQuery(ctx, settings, query)
	if err != nil {
		return nil, err
	}
	var found candidates
	err = b.runReadOnly(ctx, func(tx *sql.Tx) error {
		found, err = b.findCandidates(ctx, tx, lookup{query: query, questions: questions, top: top, settings: settings})
		return err
	})
	if err != nil {
		return nil, err
	}
	if settings.RerankerModel == "" || len(found.hits) == 0 {
		return found.fuseHits(top), nil
	}
	return b.rerankHits(ctx, settings.RerankerModel, query, found.hits, top)
}

// runReadOnly runs do in a transaction that sees one state.
func (b *Base) runReadOnly(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return do(tx)
}

// embedQuery returns the vectors of the query's pieces, or none if the base has no vectors.
func (b *Base) embedQuery(ctx context.Context, s Settings, query string) ([][]float32, error) {
	if s.Model == Keyword || s.Dimensions == 0 {
		return nil, nil
	}
	pieces := split.Text(query, split.Options{Size: s.ChunkSize, Overlap: s.ChunkOverlap})
	if len(pieces) == 0 {
		return nil, nil
	}
	e, err := b.openEmbedder(s.Model)
	if err != nil {
		return nil, err
	}
	return embedTexts(ctx, e, request{model: s.Model, purpose: ForQuery, texts: pieces, attempts: b.o.Attempts, dims: s.Dimensions})
}

// A lookup is the part of a search that needs no network.
type lookup struct {
	query     string
	questions [][]float32
	top       int
	settings  Settings
}

// candidates returns the chunks of all rankings: first those of vectors, then those of words, then those of entities,
// each once.
type candidates struct {
	near, words, entities []uint32
	hits                  []Hit
	at                    map[uint32]int // in hits
}

func (b *Base) findCandidates(ctx context.Context, tx *sql.Tx, l lookup) (c candidates, err error) {
	v, err := b.currentView(ctx, tx)
	if err != nil {
		return c, err
	}
	if len(l.questions) > 0 && v.settings.Model == l.settings.Model && v.dims == len(l.questions[0]) {
		if err := v.readVectors(ctx, tx); err != nil {
			return c, err
		}
		if c.near, err = v.rankByVectors(ctx, tx, l.questions, l.top); err != nil {
			return c, err
		}
	}
	related := v.entities && l.settings.RerankerModel == ""
	most := l.top
	if related {
		most = 2 * l.top // where the search by entities may begin
	}
	matches, err := v.rankByWords(ctx, tx, l.query, most)
	if err != nil {
		return c, err
	}
	for _, m := range matches[:min(len(matches), l.top)] {
		c.words = append(c.words, m.Text)
	}
	if related {
		if c.entities, err = v.rankByEntities(ctx, tx, l, matches); err != nil {
			return c, err
		}
	}
	c.at = map[uint32]int{}
	for _, i := range slices.Concat(c.near, c.words, c.entities) {
		if _, known := c.at[i]; known {
			continue
		}
		hit, err := readHit(ctx, tx, v.ids[i])
		if err != nil {
			return c, err
		}
		c.at[i] = len(c.hits)
		c.hits = append(c.hits, hit)
	}
	return c, nil
}

// rankByVectors ranks the chunks by the best of their cosines to the questions.
func (v *view) rankByVectors(ctx context.Context, tx *sql.Tx, questions [][]float32, top int) (ids []uint32, err error) {
	scores := map[uint32]float64{}
	for _, q := range questions {
		matches, err := v.rankByVector(ctx, tx, q, top)
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			if _, known := scores[m.Text]; !known {
				ids = append(ids, m.Text)
			}
			scores[m.Text] = max(scores[m.Text], m.Score)
		}
	}
	best := keyword.NewBest(top, v.ranksBefore)
	for _, id := range ids {
		best.Add(keyword.Match{Text: id, Score: scores[id]})
	}
	ids = ids[:0]
	for _, m := range best.SortMatches() {
		ids = append(ids, m.Text)
	}
	return ids, nil
}

func readHit(ctx context.Context, tx *sql.Tx, id int64) (h Hit, err error) {
	var metadata string
	err = tx.QueryRowContext(ctx, `SELECT d.path, d.metadata, c.place, c.text FROM chunk c JOIN document d ON d.id = c.document WHERE c.id = ?`,
		id).Scan(&h.Path, &metadata, &h.Chunk, &h.Text)
	if err == nil {
		err = json.Unmarshal([]byte(metadata), &h.Metadata)
	}
	return h, err
}

// fuseHits joins the rankings.
func (c candidates) fuseHits(top int) []Hit {
	order, scores := fuseRankings(top, ranking[uint32]{vectorWeight, c.near}, ranking[uint32]{keywordWeight, c.words}, ranking[uint32]{entityWeight, c.entities})
	hits := make([]Hit, 0, len(order))
	for i, id := range order {
		h := c.hits[c.at[id]]
		h.Score = scores[i]
		hits = append(hits, h)
	}
	return hits
}

// rerankHits orders the hits with a reranking model.
func (b *Base) rerankHits(ctx context.Context, model, query string, hits []Hit, top int) ([]Hit, error) {
	r, err := b.openReranker(model)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = h.Text
	}
	order, err := r.Rerank(ctx, query, texts, top)
	if err != nil {
		return nil, failf("Failed to rerank: %w", err)
	}
	var out []Hit
	seen := map[int]bool{}
	for _, i := range order {
		if i < 0 || i >= len(hits) || seen[i] {
			return nil, failf("Failed to rerank: index %d came back for %d texts", i, len(hits))
		}
		seen[i] = true
		hits[i].Score = 1 / float64(len(out)+1)
		if out = append(out, hits[i]); len(out) == top {
			break
		}
	}
	return out, nil
}

// FormatContext returns hits as text for a model: each under its source, separated by blank lines.
func FormatContext(hits []Hit) string {
	var b strings.Builder
	for i, h := range hits {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("[Source: " + h.Path + "]\n" + h.Text)
	}
	return b.String()
}

// SourcePaths returns the paths of hits, each once, in the order of their first hits. The result is never nil.
func SourcePaths(hits []Hit) []string {
	paths := []string{}
	for _, h := range hits {
		if !slices.Contains(paths, h.Path) {
			paths = append(paths, h.Path)
		}
	}
	return paths
}

// ParseSources reads paths from lines, with or without a bullet before each. The result is never nil.
func ParseSources(text string) []string {
	paths := []string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line = strings.TrimSpace(strings.TrimPrefix(line, "- ")); line != "" {
			paths = append(paths, line)
		}
	}
	return paths
}
