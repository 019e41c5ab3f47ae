package rag

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"unicode"

	"raddle.dev/rag/keyword"
)

// A search by entities begins at the entities that the query names. If it names none, the search begins at the entities
// of the chunks that the query's words find. It follows relations from there, and lists the chunks that mention the
// entities that it reaches.

const (
	leastSeed  = 0.5 // lowest score of an entity that the search begins at
	maxReached = 500 // most entities of one search
)

// A seed is an entity that a search begins at.
type seed struct {
	id    int64
	score float64
}

// graphSearch is one search by entities.
type graphSearch struct {
	tx   *sql.Tx
	v    *view
	top  int
	kept []bool // the chunks that may be returned; nil: all
}

// rankByEntities ranks chunks by the entities that they mention. matches are the chunks that the words of the query
// find.
func (v *view) rankByEntities(ctx context.Context, tx *sql.Tx, l lookup, matches []keyword.Match) ([]uint32, error) {
	s := graphSearch{tx: tx, v: v, top: l.entityDepth(), kept: l.kept}
	seeds, err := s.findNamedSeeds(ctx, l.query)
	if err == nil && len(seeds) == 0 {
		seeds, err = s.findMentionedSeeds(ctx, matches)
	}
	if err != nil || len(seeds) == 0 {
		return nil, err
	}
	hops := DefaultHops
	if v.settings.GraphHops != nil {
		hops = *v.settings.GraphHops
	}
	find, err := tx.PrepareContext(ctx, "SELECT neighbours FROM entity WHERE id = ?")
	if err != nil {
		return nil, err
	}
	defer find.Close()
	entities, err := spreadScores(seeds, hops, func(id int64) ([]neighbour, error) {
		var data []byte
		if err := find.QueryRowContext(ctx, id).Scan(&data); err != nil {
			return nil, err
		}
		return unpackNeighbours(data)
	})
	if err != nil {
		return nil, err
	}
	return s.rankChunks(ctx, entities)
}

// findNamedSeeds returns the entities that the query names: a name of one word must be a word of the query, a name of
// several words must be a part of it.
func (s *graphSearch) findNamedSeeds(ctx context.Context, query string) ([]seed, error) {
	query = strings.ToLower(strings.Join(strings.Fields(query), " "))
	words := plainWords(query)
	find, err := s.tx.PrepareContext(ctx, "SELECT id, name, description FROM entity WHERE name BETWEEN ? AND ?")
	if err != nil {
		return nil, err
	}
	defer find.Close()
	var seeds []seed
	add := func(from, to string) error {
		rows, err := find.QueryContext(ctx, from, to)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var name, description string
			if err := rows.Scan(&id, &name, &description); err != nil {
				return err
			}
			if from == to || strings.Contains(query, name) {
				seeds = append(seeds, seed{id, max(leastSeed, wordShare(words, name+" "+description))})
			}
		}
		return rows.Err()
	}
	for _, word := range nameWords(query) {
		if err := add(word, word); err != nil {
			return nil, err
		}
	}
	for _, head := range wordSuffixes(query) {
		// Names of several words begin with the end of a word of the query and the space after it.
		if err := add(head, head+"\U0010ffff"); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(seeds, func(a, b seed) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return seeds, nil
}

// plainWords returns the distinct words of a text in lower case, without the punctuation around them.
func plainWords(text string) []string {
	var words []string
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		words = append(words, word)
	}
	return sortUnique(words)
}

// sortUnique sorts words, and removes duplicates and empty words.
func sortUnique(words []string) []string {
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	slices.Sort(words)
	return slices.Compact(words)
}

// nameWords returns the forms in which the words of a query may be names: also with signs that belong to a name, as in
// c++, and without a possessive ending.
func nameWords(query string) []string {
	words := plainWords(query)
	for word := range strings.FieldsSeq(query) {
		words = append(words, strings.Trim(word, ".,:;!?\"'()[]{}<>…“”‘’«»"))
	}
	for _, word := range words {
		for _, possessive := range []string{"'s", "’s"} {
			if name, ok := strings.CutSuffix(word, possessive); ok {
				words = append(words, name)
			}
		}
	}
	return sortUnique(words)
}

// longQuery is the length in bytes above which names are searched only at the beginnings of words.
const longQuery = 2000

// wordSuffixes returns the suffixes of the words of a text, each with the space after it. The last word has no space
// after it.
func wordSuffixes(text string) (all []string) {
	words := strings.Fields(text)
	for _, word := range words[:max(0, len(words)-1)] {
		for i := range word {
			if len(word)-i <= maxName && (i == 0 || len(text) <= longQuery) {
				all = append(all, word[i:]+" ")
			}
		}
	}
	return sortUnique(all)
}

// wordShare returns the share of the query's words that occur in a text.
func wordShare(words []string, text string) float64 {
	if len(words) == 0 {
		return 0
	}
	known := plainWords(text)
	n := 0
	for _, w := range words {
		if _, ok := slices.BinarySearch(known, w); ok {
			n++
		}
	}
	return float64(n) / float64(len(words))
}

// findMentionedSeeds returns the entities of the chunks that the query's words find, in the order of the chunks.
func (s *graphSearch) findMentionedSeeds(ctx context.Context, matches []keyword.Match) (seeds []seed, err error) {
	find, err := s.tx.PrepareContext(ctx, "SELECT entities FROM mention WHERE chunk = ?")
	if err != nil {
		return nil, err
	}
	defer find.Close()
	known := map[int64]bool{}
	for _, m := range matches {
		ids, err := readIDs(ctx, find, s.v.ids[m.Text])
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if len(seeds) == s.top {
				return seeds, nil
			}
			if !known[id] {
				known[id] = true
				seeds = append(seeds, seed{id, leastSeed})
			}
		}
	}
	return seeds, nil
}

// readIDs reads the ids of one row. It returns none if there is no row.
func readIDs(ctx context.Context, find *sql.Stmt, of int64) ([]int64, error) {
	var data []byte
	err := find.QueryRowContext(ctx, of).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return unpackIDs(data)
}

// A neighbour is an entity at the other end of a relation, in either direction.
type neighbour struct {
	id     int64
	weight float64
}

// A reachedEntity is an entity that a search has reached.
type reachedEntity struct {
	id    int64
	score float64
	hops  int // distance from the nearest seed, in relations
}

// compareReached orders the best first, and of equal ones the nearest.
func compareReached(a, b reachedEntity) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hops, b.hops), cmp.Compare(a.id, b.id))
}

// spreadScores passes the scores of seeds along relations: an entity gets the score times the weight of the relation.
// If there are several paths to an entity, the best counts. If there are more entities than allowed, it drops the
// worst.
func spreadScores(seeds []seed, hops int, neighbours func(id int64) ([]neighbour, error)) ([]reachedEntity, error) {
	at := map[int64]int{}
	var all []reachedEntity
	for _, s := range seeds[:min(len(seeds), maxReached)] {
		if _, known := at[s.id]; !known {
			at[s.id] = len(all)
			all = append(all, reachedEntity{id: s.id, score: s.score})
		}
	}
	border := slices.Clone(all)
	for hop := 1; hop <= hops && len(border) > 0; hop++ {
		gained, err := spreadHop(border, hop, neighbours)
		if err != nil {
			return nil, err
		}
		border = border[:0]
		for _, r := range gained {
			i, known := at[r.id]
			switch {
			case !known && len(all) < maxReached:
				at[r.id] = len(all)
				all = append(all, r)
			case known && r.score > all[i].score:
				all[i].score = r.score
			default:
				continue
			}
			border = append(border, r)
		}
	}
	slices.SortFunc(all, compareReached)
	return all, nil
}

// spreadHop returns the entities that the border reaches with one relation, each once, the best first.
func spreadHop(border []reachedEntity, hop int, neighbours func(id int64) ([]neighbour, error)) (gained []reachedEntity, err error) {
	at := map[int64]int{}
	for _, b := range border {
		all, err := neighbours(b.id)
		if err != nil {
			return nil, err
		}
		for _, n := range all {
			score := b.score * n.weight
			if score <= 0 {
				continue
			}
			if i, known := at[n.id]; known {
				gained[i].score = max(gained[i].score, score)
				continue
			}
			at[n.id] = len(gained)
			gained = append(gained, reachedEntity{id: n.id, score: score, hops: hop})
		}
	}
	slices.SortFunc(gained, compareReached)
	return gained, nil
}

// evidence is the score of a chunk: the best entity that it mentions, and the scores of all seeds in it.
type evidence struct {
	best  reachedEntity
	seeds float64
}

// rankChunks lists the chunks that mention the best entities. If the best entities of two chunks are equal, the chunk
// with the higher scores of seeds comes first; then the order of the documents decides.
func (s *graphSearch) rankChunks(ctx context.Context, entities []reachedEntity) ([]uint32, error) {
	find, err := s.tx.PrepareContext(ctx, "SELECT chunks FROM entity WHERE id = ?")
	if err != nil {
		return nil, err
	}
	defer find.Close()
	found := map[uint32]evidence{}
	var last reachedEntity // includes entities of the same score; the last whose chunks can be among the best
	for _, e := range entities {
		if len(found) < s.top {
			last = e
		} else if e.hops > 0 && (e.score != last.score || e.hops != last.hops) {
			continue
		}
		ids, err := readIDs(ctx, find, e.id)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			i, ok := slices.BinarySearch(s.v.ids, id)
			if !ok || s.kept != nil && !s.kept[i] {
				continue
			}
			ev, known := found[uint32(i)]
			if !known {
				ev.best = e
			}
			if e.hops == 0 {
				ev.seeds += e.score
			}
			found[uint32(i)] = ev
		}
	}
	return s.bestChunks(found), nil
}

// bestChunks returns the chunks with the best evidence.
func (s *graphSearch) bestChunks(found map[uint32]evidence) []uint32 {
	ids := make([]uint32, 0, len(found))
	for i := range found {
		ids = append(ids, i)
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		x := found[a]
		y := found[b]
		return cmp.Or(cmp.Compare(y.best.score, x.best.score), cmp.Compare(x.best.hops, y.best.hops), cmp.Compare(y.seeds, x.seeds),
			cmp.Compare(s.v.rank[a], s.v.rank[b]))
	})
	return ids[:min(s.top, len(ids))]
}
