package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"raddle.dev/rag/keyword"
)

// The words of the base are stored in segments, one for each build that added documents, so that a small change costs
// little. A segment is never changed: a reader ignores its entries for chunks that no longer exist.

const (
	segmentsKept = 12       // most segments before they are merged
	maxHeld      = 32 << 20 // bytes of a segment that are collected before it is written
)

// indexDocuments adds segments with the words of the documents in fresh: one, or several if one would not fit into
// memory.
func indexDocuments(ctx context.Context, tx *sql.Tx) error {
	if err := collectPostings(ctx, tx, maxHeld); err != nil {
		return err
	}
	var segments int
	if err := tx.QueryRowContext(ctx, "SELECT count(DISTINCT segment) FROM posting").Scan(&segments); err != nil || segments <= segmentsKept {
		return err
	}
	return mergeSegments(ctx, tx)
}

// postings are pairs of the distance to the previous chunk and the count, as variable-length numbers, with ascending
// chunks.
type postings struct {
	data []byte
	last int64
}

func (p *postings) add(chunk int64, count uint64) {
	p.data = binary.AppendUvarint(p.data, uint64(chunk-p.last))
	p.data = binary.AppendUvarint(p.data, count)
	p.last = chunk
}

// A segment collects the postings of new documents.
type segment struct {
	tokens map[string]*postings
	held   int // approximate bytes of memory
}

// addChunk records how often tokens occur in a chunk.
func (s *segment) addChunk(chunk int64, counts map[string]uint64) {
	const perToken, perChunk = 160, 4 // bytes, measured
	for t, n := range counts {        // each token has a separate list: the order does not matter
		p := s.tokens[t]
		if p == nil {
			p = &postings{}
			t = strings.Clone(t)
			s.tokens[t] = p
			s.held += perToken + len(t)
		}
		p.add(chunk, n)
		s.held += perChunk
	}
}

// writePostings appends the segment to the file, and empties it.
func (s *segment) writePostings(ctx context.Context, tx *sql.Tx) error {
	if len(s.tokens) == 0 {
		return nil
	}
	var last int
	if err := tx.QueryRowContext(ctx, "SELECT ifnull(max(segment), 0) FROM posting").Scan(&last); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO posting (token, segment, data) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, token := range slices.Sorted(maps.Keys(s.tokens)) {
		if _, err := insert.ExecContext(ctx, token, last+1, s.tokens[token].data); err != nil {
			return err
		}
	}
	s.tokens = map[string]*postings{}
	s.held = 0
	return nil
}

// collectPostings reads the words of all chunks of the documents in fresh, and writes a segment whenever most bytes are
// held.
func collectPostings(ctx context.Context, tx *sql.Tx, most int) error {
	ids, err := chunkIDs(ctx, tx, "SELECT id FROM chunk WHERE document IN (SELECT id FROM fresh) ORDER BY id")
	if err != nil || len(ids) == 0 {
		return err
	}
	find, err := tx.PrepareContext(ctx, "SELECT text FROM chunk WHERE id = ?")
	if err != nil {
		return err
	}
	defer find.Close()
	s := segment{tokens: map[string]*postings{}}
	var tokens keyword.Tokenizer
	counts := map[string]uint64{}
	for _, id := range ids {
		var text string
		if err := find.QueryRowContext(ctx, id).Scan(&text); err != nil {
			return err
		}
		clear(counts)
		for _, t := range tokens.Terms(text) {
			counts[t]++
		}
		if s.addChunk(id, counts); s.held >= most {
			if err := s.writePostings(ctx, tx); err != nil {
				return err
			}
		}
	}
	return s.writePostings(ctx, tx)
}

// mergeSegments joins all segments into one, without the entries for chunks that no longer exist. It holds the lists of
// one token in memory at a time.
func mergeSegments(ctx context.Context, tx *sql.Tx) error {
	live, err := chunkIDs(ctx, tx, "SELECT id FROM chunk WHERE document IN (SELECT id FROM document WHERE live) ORDER BY id")
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "ALTER TABLE posting RENAME TO unmerged;"+postingTable); err != nil {
		return err
	}
	if err := mergeInto(ctx, tx, live); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DROP TABLE unmerged")
	return err
}

// mergeInto writes the lists of the table unmerged to the empty table posting.
func mergeInto(ctx context.Context, tx *sql.Tx, live []int64) error {
	insert, err := tx.PrepareContext(ctx, "INSERT INTO posting (token, segment, data) VALUES (?, 1, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	rows, err := tx.QueryContext(ctx, "SELECT token, data FROM unmerged ORDER BY token, segment")
	if err != nil {
		return err
	}
	defer rows.Close()
	var token string
	var list []count
	write := func() error {
		if len(list) == 0 {
			return nil
		}
		slices.SortFunc(list, func(a, b count) int { return cmp.Compare(a.chunk, b.chunk) })
		p := &postings{}
		for _, c := range list {
			p.add(c.chunk, c.n)
		}
		list = list[:0]
		_, err := insert.ExecContext(ctx, token, p.data)
		return err
	}
	for rows.Next() {
		var next string
		var data sql.RawBytes
		if err := rows.Scan(&next, &data); err != nil {
			return err
		}
		if next != token {
			if err := write(); err != nil {
				return err
			}
			token = next
		}
		err := eachPosting(data, func(chunk int64, n uint64) {
			if _, ok := slices.BinarySearch(live, chunk); ok {
				list = append(list, count{chunk, n})
			}
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), write())
}

// A count says how often a token occurs in a chunk.
type count struct {
	chunk int64
	n     uint64
}

// errPostings is the error of a file whose index cannot be read.
var errPostings = errors.New("the index of words is damaged: remove the knowledge base and build it again")

// eachPosting reads a list.
func eachPosting(data []byte, visit func(chunk int64, n uint64)) error {
	chunk := int64(0)
	for len(data) > 0 {
		step, size := binary.Uvarint(data)
		if size <= 0 {
			return errPostings
		}
		n, more := binary.Uvarint(data[size:])
		if more <= 0 {
			return errPostings
		}
		chunk += int64(step)
		visit(chunk, n)
		data = data[size+more:]
	}
	return nil
}

// chunkIDs returns the ids that a query selects.
func chunkIDs(ctx context.Context, tx *sql.Tx, query string) (ids []int64, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
