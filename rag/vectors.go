package rag

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync"

	"raddle.dev/rag/keyword"
)

// mapParts divides n items among the processors, and returns the results of do for each part, in order.
func mapParts[T any](n int, do func(from, to int) T) []T {
	const worth = 1000 // items that justify one more goroutine
	parts := make([]T, min(runtime.GOMAXPROCS(0), max(1, n/worth)))
	var wait sync.WaitGroup
	for p := range parts {
		wait.Go(func() { parts[p] = do(p*n/len(parts), (p+1)*n/len(parts)) })
	}
	wait.Wait()
	return parts
}

// A block is a number of vectors as the file stores them.
type block struct {
	at   []int
	data []byte
}

const blockSize = 256 // vectors

// readVectors reads all vectors, once, and keeps their codes. One goroutine reads while the others encode.
func (v *view) readVectors(ctx context.Context, tx *sql.Tx) error {
	v.load.Lock()
	defer v.load.Unlock()
	if v.codes != nil || v.dims == 0 {
		return nil
	}
	c := newCodes(len(v.ids), v.dims)
	blocks := make(chan block)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			vector := make([]float32, v.dims)
			for b := range blocks {
				for i, at := range b.at {
					unpackVector(vector, b.data[4*v.dims*i:])
					c.setVector(at, vector)
				}
			}
		})
	}
	err := v.eachBlock(ctx, tx, func(b block) { blocks <- b })
	close(blocks)
	wait.Wait()
	if err == nil {
		v.codes = c
	}
	return err
}

// eachBlock reads the vectors of all chunks.
func (v *view) eachBlock(ctx context.Context, tx *sql.Tx, do func(block)) error {
	rows, err := tx.QueryContext(ctx, `SELECT c.id, v.data FROM chunk c JOIN vector v ON v.id = c.vector
		WHERE c.document IN (SELECT id FROM document WHERE live)`) // in any order: sorting would need all rows in memory
	if err != nil {
		return err
	}
	defer rows.Close()
	var b block
	for rows.Next() {
		var id int64
		var data sql.RawBytes
		if err := rows.Scan(&id, &data); err != nil {
			return err
		}
		at, ok := slices.BinarySearch(v.ids, id)
		if !ok || len(data) != 4*v.dims {
			continue
		}
		if b.data == nil {
			b.data = make([]byte, 0, blockSize*len(data))
		}
		b.at = append(b.at, at)
		b.data = append(b.data, data...)
		if len(b.at) == blockSize {
			do(b)
			b = block{}
		}
	}
	do(b)
	return rows.Err()
}

// rankByVector ranks the chunks by their cosine to q, which has length one. The codes select the chunks that may be the
// best, and the vectors in the file decide.
func (v *view) rankByVector(ctx context.Context, tx *sql.Tx, q []float32, top int, kept []bool) ([]keyword.Match, error) {
	read, err := tx.PrepareContext(ctx, "SELECT v.data FROM chunk c JOIN vector v ON v.id = c.vector WHERE c.id = ?")
	if err != nil {
		return nil, err
	}
	defer read.Close()
	best := keyword.NewBest(top, v.ranksBefore)
	vector := make([]float32, v.dims)
	for _, g := range v.codes.nearestVectors(q, top, kept) {
		var data []byte
		if err := read.QueryRowContext(ctx, v.ids[g.at]).Scan(&data); err != nil {
			return nil, err
		}
		if len(data) != 4*v.dims {
			return nil, errVectors
		}
		unpackVector(vector, data)
		if s := dotProduct(q, vector); s > 0 {
			best.Add(keyword.Match{Text: g.at, Score: float64(s)})
		}
	}
	return best.SortMatches(), nil
}

// errVectors is the error of a file whose vectors do not fit its chunks.
var errVectors = errors.New("the vectors are damaged: remove the knowledge base and build it again")
