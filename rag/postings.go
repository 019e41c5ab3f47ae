package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"raddle.dev/rag/keyword"
)

// The words of the base are kept in segments, one for each build that added documents, so that a small change costs little. A segment is
// never changed: what it says of chunks that are no more is passed over when it is read.

// segmentsKept is how many there may be before they are merged.
const segmentsKept = 12

// index adds a segment with the words of the documents in fresh.
func index(ctx context.Context, tx *sql.Tx) error {
	var segments, last int
	err := tx.QueryRowContext(ctx, "SELECT count(DISTINCT segment), ifnull(max(segment), 0) FROM posting").Scan(&segments, &last)
	if err != nil {
		return err
	}
	added, err := collect(ctx, tx)
	if err != nil || len(added) == 0 && segments < segmentsKept {
		return err
	}
	if segments >= segmentsKept {
		if err := merge(ctx, tx, added); err != nil {
			return err
		}
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO posting (token, segment, data) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, token := range slices.Sorted(maps.Keys(added)) {
		if _, err := insert.ExecContext(ctx, token, last+1, added[token].data); err != nil {
			return err
		}
	}
	return nil
}

// postings are pairs of the distance to the chunk before and the count, as variable-length numbers, with ascending chunks.
type postings struct {
	data []byte
	last int64
}

func (p *postings) add(chunk int64, count uint64) {
	p.data = binary.AppendUvarint(p.data, uint64(chunk-p.last))
	p.data = binary.AppendUvarint(p.data, count)
	p.last = chunk
}

// collect reads the words of all chunks of the documents in fresh.
func collect(ctx context.Context, tx *sql.Tx) (map[string]*postings, error) {
	rows, err := tx.QueryContext(ctx, "SELECT id, text FROM chunk WHERE document IN (SELECT id FROM fresh) ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]*postings{}
	var tokens keyword.Tokenizer
	counts := map[string]uint64{}
	for rows.Next() {
		var id int64
		var text sql.RawBytes
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		clear(counts)
		for _, t := range tokens.Tokens(string(text)) {
			counts[t]++
		}
		for t, n := range counts { // each token has its own list: the order does not matter
			p := all[t]
			if p == nil {
				p = &postings{}
				all[t] = p
			}
			p.add(id, n)
		}
	}
	return all, rows.Err()
}

// A count says how often a token occurs in a chunk.
type count struct {
	chunk int64
	n     uint64
}

// merge takes all segments out of the file and adds to added what they say of chunks that there still are.
func merge(ctx context.Context, tx *sql.Tx, added map[string]*postings) error {
	live, err := liveChunks(ctx, tx)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, "SELECT token, data FROM posting ORDER BY token, segment")
	if err != nil {
		return err
	}
	defer rows.Close()
	all := map[string][]count{}
	for rows.Next() {
		var token string
		var data sql.RawBytes
		if err := rows.Scan(&token, &data); err != nil {
			return err
		}
		list := all[token]
		err := eachPosting(data, func(chunk int64, n uint64) {
			if _, ok := slices.BinarySearch(live, chunk); ok {
				list = append(list, count{chunk, n})
			}
		})
		if err != nil {
			return err
		}
		all[token] = list
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for token, list := range all {
		if err := addTo(added, token, list); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM posting")
	return err
}

// addTo joins a token's list with what there is, in the order of chunks.
func addTo(added map[string]*postings, token string, list []count) error {
	if p := added[token]; p != nil {
		if err := eachPosting(p.data, func(chunk int64, n uint64) { list = append(list, count{chunk, n}) }); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b count) int { return cmp.Compare(a.chunk, b.chunk) })
	p := &postings{}
	for _, c := range list {
		p.add(c.chunk, c.n)
	}
	added[token] = p
	return nil
}

// errPostings is a file whose index cannot be read.
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

func liveChunks(ctx context.Context, tx *sql.Tx) (ids []int64, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT id FROM chunk WHERE document IN (SELECT id FROM document WHERE live) ORDER BY id")
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
