package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"raddle.dev/rag/keyword"
)

// An Embedder turns texts into vectors. It must be safe for concurrent use.
type Embedder interface {
	// Model names the model: vectors of different models are not compared.
	Model() string
	// Embed returns one vector for each text, in order. query says that the texts are what is
	// searched for, not what is found.
	Embed(ctx context.Context, query bool, texts []string) ([][]float32, error)
}

// SearchOptions say how to search.
type SearchOptions struct {
	Limit    int      // most hits; 0: DefaultLimit
	Embedder Embedder // nil: by words only
}

// DefaultLimit is how many hits Search returns if its options do not say.
const DefaultLimit = 10

// maxEmbedded is how many entries without a vector a search embeds. The others are found by words.
const maxEmbedded = 256

// A Hit is an entry that a search has found, and how well it fits: only the order of scores
// means something.
type Hit struct {
	Entry
	Score float64 `json:"score"`
}

// Search returns the entries of a namespace that fit a query best, the best first. The words
// of keys and values are ranked by BM25, English words without their endings. With an Embedder,
// the entries are also ranked by the cosine of their vectors to that of the query, and the
// rankings are joined. It reads all entries of the namespace.
func Search(ctx context.Context, st Store, namespace, query string, o SearchOptions) ([]Hit, error) {
	limit := cmp.Or(o.Limit, DefaultLimit)
	entries, err := ReadEntries(ctx, st, namespace)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 || limit < 0 || strings.TrimSpace(query) == "" {
		return nil, nil
	}
	found, err := rankWords(entries, query, max(limit, maxEmbedded))
	if err != nil {
		return nil, err
	}
	if o.Embedder == nil {
		return selectHits(entries, limit, found), nil
	}
	near, err := rankVectors(ctx, entries, query, o.Embedder)
	if err != nil {
		return nil, err
	}
	return selectHits(entries, limit, found, near), nil
}

// SetVector sets the vector of an entry. Without an Embedder it removes it.
func SetVector(ctx context.Context, e *Entry, m Embedder) error {
	if e.Model, e.Vector = "", nil; m == nil {
		return nil
	}
	vectors, err := embedTexts(ctx, m, false, []string{ExtractText(*e)})
	if err != nil {
		return err
	}
	e.Model, e.Vector = m.Model(), vectors[0]
	return nil
}

// ExtractText returns what a search looks at: the key, and the texts, names and numbers of the value.
func ExtractText(e Entry) string {
	var b strings.Builder
	b.WriteString(e.Key)
	in := json.NewDecoder(bytes.NewReader(e.Value))
	in.UseNumber()
	for {
		token, err := in.Token()
		if err != nil {
			if err != io.EOF { // not JSON
				b.WriteString("\n" + string(e.Value))
			}
			return b.String()
		}
		switch v := token.(type) {
		case string:
			b.WriteString("\n" + v)
		case json.Number, bool:
			fmt.Fprintf(&b, "\n%v", v)
		}
	}
}

// rankWords returns the indexes of the entries that share words with a query, best first.
func rankWords(entries []Entry, query string, top int) ([]uint32, error) {
	var tokens keyword.Tokenizer
	corpus := keyword.Corpus{}
	wanted := map[string][]keyword.Posting{}
	words := tokens.Terms(query)
	for _, w := range words {
		word := strings.TrimPrefix(w, keyword.PartOf(""))
		wanted[word] = nil
		wanted[keyword.PartOf(word)] = nil
	}
	for i, e := range entries {
		length := uint32(0)
		counts := map[string]uint32{}
		for _, w := range tokens.Terms(ExtractText(e)) {
			if !keyword.IsPart(w) {
				length++
			}
			if _, ok := wanted[w]; ok {
				counts[w]++
			}
		}
		corpus.Lengths = append(corpus.Lengths, length)
		for w, n := range counts {
			wanted[w] = append(wanted[w], keyword.Posting{Text: uint32(i), Count: n})
		}
	}
	corpus.Postings = func(w string) ([]keyword.Posting, error) { return wanted[w], nil }
	matches, err := corpus.Rank(words, top)
	if err != nil {
		return nil, err
	}
	order := make([]uint32, len(matches))
	for i, m := range matches {
		order[i] = m.Text
	}
	return order, nil
}

// rankVectors returns the indexes of the entries whose meaning is near to that of a query, best
// first. Entries without a vector of the model are embedded, the newest first.
func rankVectors(ctx context.Context, entries []Entry, query string, m Embedder) ([]uint32, error) {
	vectors := make([][]float32, len(entries))
	var missing []int
	for i, e := range entries {
		if e.Model == m.Model() {
			vectors[i] = e.Vector
		} else {
			missing = append(missing, i)
		}
	}
	slices.SortStableFunc(missing, func(a, b int) int { return entries[b].Updated.Compare(entries[a].Updated) })
	missing = missing[:min(len(missing), maxEmbedded)]
	if len(missing) > 0 {
		texts := make([]string, len(missing))
		for i, at := range missing {
			texts[i] = ExtractText(entries[at])
		}
		made, err := embedTexts(ctx, m, false, texts)
		if err != nil {
			return nil, err
		}
		for i, at := range missing {
			vectors[at] = made[i]
		}
	}
	asked, err := embedTexts(ctx, m, true, []string{query})
	if err != nil {
		return nil, err
	}
	best := keyword.NewBest(len(entries), nil)
	for i, v := range vectors {
		if score := computeCosine(asked[0], v); score > 0 {
			best.Add(keyword.Match{Text: uint32(i), Score: score})
		}
	}
	var order []uint32
	for _, match := range best.SortMatches() {
		order = append(order, match.Text)
	}
	return order, nil
}

// embedTexts asks for vectors and checks how many there are.
func embedTexts(ctx context.Context, m Embedder, query bool, texts []string) ([][]float32, error) {
	vectors, err := m.Embed(ctx, query, texts)
	switch {
	case err != nil:
		return nil, fmt.Errorf("memory: embedding model %s: %w", m.Model(), err)
	case len(vectors) != len(texts):
		return nil, fmt.Errorf("memory: embedding model %s: %d vectors for %d texts", m.Model(), len(vectors), len(texts))
	}
	return vectors, nil
}

// computeCosine returns how near two vectors are, at most 1; 0 if they cannot be compared.
func computeCosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x := float64(a[i])
		y := float64(b[i])
		dot = dot + x*y
		aa = aa + x*x
		bb = bb + y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

// rankOffset keeps the first places of one ranking from deciding alone.
const rankOffset = 20

// selectHits joins rankings by reciprocal rank.
func selectHits(entries []Entry, limit int, rankings ...[]uint32) []Hit {
	scores := map[uint32]float64{}
	for _, order := range rankings {
		for i, at := range order {
			scores[at] += 1 / float64(rankOffset+i)
		}
	}
	best := keyword.NewBest(limit, nil)
	for at, score := range scores {
		best.Add(keyword.Match{Text: at, Score: score})
	}
	var hits []Hit
	for _, m := range best.SortMatches() {
		hits = append(hits, Hit{Entry: entries[m.Text], Score: m.Score})
	}
	return hits
}
