package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/rag/keyword"
	"raddle.dev/rag/split"
)

// SearchOptions say how to search.
type SearchOptions struct {
	// TopK is the most chunks that are returned; zero: the setting of the base.
	TopK int
	// Fusion says how the rankings are joined; nil: as Options.Fusion says.
	Fusion *Fusion
	// Filter says in which documents to look. Words count as rare as they are in the whole base.
	Filter Filter
}

// A Hit is a chunk that was found.
type Hit struct {
	Path  string // of its document
	Text  string // of the chunk
	Chunk int    // its place in the document, from zero
	// Score is that of the ranking that decided, higher is better; it compares with the hits of the same search only.
	Score    float64
	Metadata map[string]string // of the document
	Place    Place             // in the document
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
	fusion := b.o.Fusion
	if o.Fusion != nil {
		fusion = *o.Fusion
	}
	if err := errors.Join(fusion.Validate(), o.Filter.Validate()); err != nil {
		return nil, err
	}
	l := lookup{
		query:    query,
		top:      top,
		settings: settings,
		fusion:   fusion.resolve(settings),
	}
	if l.fusion.Method == ByModel && settings.RerankerModel == "" {
		return nil, errors.New("this base has no reranker model: set one and build it again, or choose another fusion")
	}
	if l.questions, err = b.embedQuery(ctx, l); err != nil {
		return nil, err
	}
	var hits []Hit
	err = b.runReadOnly(ctx, func(tx *sql.Tx) error {
		hits, err = b.findHits(ctx, tx, l, o.Filter)
		return err
	})
	if err != nil || l.fusion.Method != ByModel || len(hits) == 0 {
		return hits, err
	}
	return b.rerankHits(ctx, settings.RerankerModel, query, hits, top)
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

// embedQuery returns the vectors of the query's pieces, or none if the base has no vectors or their
// weight is zero.
func (b *Base) embedQuery(ctx context.Context, l lookup) ([][]float32, error) {
	s := l.settings
	if s.Model == Keyword || s.Dimensions == 0 || l.fusion.Weights.Meaning == 0 {
		return nil, nil
	}
	pieces := split.Text(l.query, split.Options{Size: s.ChunkSize, Overlap: s.ChunkOverlap})
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
	fusion    Fusion // resolved
	kept      []bool // the chunks that the filter leaves; nil: all
}

// depth is how many chunks of the rankings by meaning and by words the search reads.
func (l *lookup) depth() int {
	switch l.fusion.Method {
	case ByRanks:
		return l.top
	case ByModel:
		return max(l.top, rerankDepth)
	}
	return max(l.top, fusionDepth)
}

// entityDepth is how many entities the search begins at, and how many chunks it takes from them.
func (l *lookup) entityDepth() int {
	if l.fusion.Method == ByRanks {
		return l.top
	}
	return entityDepth
}

// findHits returns the best chunks with their scores, at most l.top. For ByModel it returns all that the reranker
// orders: first those of vectors, then those of words, each once.
func (b *Base) findHits(ctx context.Context, tx *sql.Tx, l lookup, filter Filter) ([]Hit, error) {
	v, err := b.currentView(ctx, tx)
	if err != nil {
		return nil, err
	}
	if l.kept, err = v.chunksOf(ctx, tx, filter); err != nil {
		return nil, err
	}
	lists, err := v.rankChunks(ctx, tx, l)
	if err != nil {
		return nil, err
	}
	var order []uint32
	var scores []float64
	switch l.fusion.Method {
	case ByModel:
		for _, list := range lists {
			order = appendMissing(order, list.ids)
		}
		scores = make([]float64, len(order))
	case ByRanks:
		order, scores = fuseRanks(l.top, lists...)
		order = order[:min(l.top, len(order))]
	default:
		order, scores = fuseScores(lists...)
		order = order[:min(l.top, len(order))]
	}
	hits := make([]Hit, 0, len(order))
	for i, at := range order {
		h, err := readHit(ctx, tx, v.ids[at])
		if err != nil {
			return nil, err
		}
		h.Score = scores[i]
		hits = append(hits, h)
	}
	return hits, nil
}

// appendMissing appends the ids that are not in list yet.
func appendMissing(list, ids []uint32) []uint32 {
	known := map[uint32]bool{}
	for _, id := range list {
		known[id] = true
	}
	for _, id := range ids {
		if !known[id] {
			known[id] = true
			list = append(list, id)
		}
	}
	return list
}

// rankChunks returns the rankings by meaning, by words and by entities, those that the base has and the fusion wants.
func (v *view) rankChunks(ctx context.Context, tx *sql.Tx, l lookup) (lists []ranking[uint32], err error) {
	weights := l.fusion.Weights
	depth := l.depth()
	if len(l.questions) > 0 && v.settings.Model == l.settings.Model && v.dims == len(l.questions[0]) {
		if err := v.readVectors(ctx, tx); err != nil {
			return nil, err
		}
		near, err := v.rankByVectors(ctx, tx, l, depth)
		if err != nil {
			return nil, err
		}
		lists = append(lists, newRanking(weights.Meaning, near))
	}
	related := v.entities && l.fusion.Method != ByModel && weights.Entities > 0
	most := 0
	if weights.Words > 0 {
		most = depth
	}
	if related {
		most = max(most, 2*l.entityDepth()) // where the search by entities may begin
	}
	matches, err := v.rankByWords(ctx, tx, l, most)
	if err != nil {
		return nil, err
	}
	if weights.Words > 0 {
		words := newRanking(weights.Words, matches[:min(len(matches), depth)])
		words.floor = new(float64)
		lists = append(lists, words)
	}
	if related {
		ids, err := v.rankByEntities(ctx, tx, l, matches)
		if err != nil {
			return nil, err
		}
		entities := ranking[uint32]{weight: weights.Entities, ids: ids}
		for i := range ids {
			entities.scores = append(entities.scores, float64(len(ids)-i))
		}
		entities.floor = new(float64)
		lists = append(lists, entities)
	}
	return lists, nil
}

func newRanking(weight float64, matches []keyword.Match) ranking[uint32] {
	r := ranking[uint32]{weight: weight}
	for _, m := range matches {
		r.ids = append(r.ids, m.Text)
		r.scores = append(r.scores, m.Score)
	}
	return r
}

// rankByVectors ranks the chunks by the best of their cosines to the questions.
func (v *view) rankByVectors(ctx context.Context, tx *sql.Tx, l lookup, top int) ([]keyword.Match, error) {
	var ids []uint32
	scores := map[uint32]float64{}
	for _, q := range l.questions {
		matches, err := v.rankByVector(ctx, tx, q, top, l.kept)
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
	return best.SortMatches(), nil
}

func readHit(ctx context.Context, tx *sql.Tx, id int64) (h Hit, err error) {
	var metadata, stands string
	err = tx.QueryRowContext(ctx, `SELECT d.path, d.metadata, c.place, c.text, c.stands FROM chunk c JOIN document d ON d.id = c.document WHERE c.id = ?`,
		id).Scan(&h.Path, &metadata, &h.Chunk, &h.Text, &stands)
	if err == nil {
		err = json.Unmarshal([]byte(metadata), &h.Metadata)
	}
	if err == nil && stands != "" {
		err = json.Unmarshal([]byte(stands), &h.Place)
	}
	return h, err
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

// FormatContext returns hits as text for a model: each under its source and its place there, separated by blank lines.
func FormatContext(hits []Hit) string {
	var b strings.Builder
	for i, h := range hits {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("[Source: " + h.Citation() + "]\n" + h.Text)
	}
	return b.String()
}

// Citation returns the path of a hit's document and its place there, as in "handbook/leave.pdf, page 3".
func (h Hit) Citation() string {
	if place := h.FormatPlace(); place != "" {
		return h.Path + ", " + place
	}
	return h.Path
}

// proseFormats are the extensions of texts that are not cited by their lines.
var proseFormats = []string{"", ".txt", ".text", ".md", ".mkd", ".markdown", ".rst", ".adoc", ".org", ".tex"}

// FormatPlace returns the place of a hit for people and models, without the lines of prose; "": nothing is known.
func (h Hit) FormatPlace() string {
	place := h.Place
	if slices.Contains(proseFormats, strings.ToLower(filepath.Ext(h.Path))) {
		place.Line = 0
	}
	return place.String()
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
