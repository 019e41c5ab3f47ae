package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"raddle.dev/rag/keyword"
)

// A view holds the data of one published state that searches need: its chunks, in the order of their ids, with their
// vectors.
type view struct {
	settings Settings
	builds   int
	entities bool // there are some

	ids     []int64
	lengths []uint32 // in tokens
	rank    []uint32 // the position of each chunk in the order of the documents, which decides between equal scores

	dims  int        // of the vectors; zero: there are none
	load  sync.Mutex // of codes
	codes *codes     // of the vectors; nil: not read yet
}

// currentView returns the view of the state that tx sees.
func (b *Base) currentView(ctx context.Context, tx *sql.Tx) (*view, error) {
	var text string
	var builds int
	err := tx.QueryRowContext(ctx, "SELECT settings, builds FROM base").Scan(&text, &builds)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.view != nil && b.view.builds == builds {
		return b.view, nil
	}
	v := &view{builds: builds}
	if err := json.Unmarshal([]byte(text), &v.settings); err != nil {
		return nil, err
	}
	v.dims = v.settings.Dimensions
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM entity)").Scan(&v.entities); err != nil {
		return nil, err
	}
	if err := v.readChunks(ctx, tx); err != nil {
		return nil, err
	}
	b.view = v
	return v, nil
}

func (v *view) readChunks(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT c.id, c.tokens, d.place, c.place FROM chunk c JOIN document d ON d.id = c.document
		WHERE d.live ORDER BY c.id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var places [][2]int
	for rows.Next() {
		var id int64
		var tokens uint32
		var p [2]int
		if err := rows.Scan(&id, &tokens, &p[0], &p[1]); err != nil {
			return err
		}
		v.ids = append(v.ids, id)
		v.lengths = append(v.lengths, tokens)
		places = append(places, p)
	}
	order := make([]uint32, len(v.ids))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(places[a][0], places[b][0]), cmp.Compare(places[a][1], places[b][1]))
	})
	v.rank = make([]uint32, len(v.ids))
	for place, i := range order {
		v.rank[i] = uint32(place)
	}
	return rows.Err()
}

func (v *view) ranksBefore(a, b uint32) bool { return v.rank[a] < v.rank[b] }

// rankByWords ranks the chunks by BM25.
func (v *view) rankByWords(ctx context.Context, tx *sql.Tx, l lookup, top int) ([]keyword.Match, error) {
	find, err := tx.PrepareContext(ctx, "SELECT data FROM posting WHERE token = ? ORDER BY segment")
	if err != nil {
		return nil, err
	}
	defer find.Close()
	c := keyword.Corpus{Lengths: v.lengths, Less: v.ranksBefore, Postings: func(token string) ([]keyword.Posting, error) {
		return v.readPostings(ctx, find, token)
	}}
	if l.kept != nil {
		c.Keep = func(text uint32) bool { return l.kept[text] }
	}
	var tokens keyword.Tokenizer
	return c.Rank(tokens.Terms(l.query), top)
}

func (v *view) readPostings(ctx context.Context, find *sql.Stmt, token string) (all []keyword.Posting, err error) {
	rows, err := find.QueryContext(ctx, token)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var data sql.RawBytes
		if err := rows.Scan(&data); err != nil {
			return nil, err
		}
		at := 0
		err := eachPosting(data, func(chunk int64, n uint64) {
			for at < len(v.ids) && v.ids[at] < chunk {
				at++
			}
			if at < len(v.ids) && v.ids[at] == chunk {
				all = append(all, keyword.Posting{Text: uint32(at), Count: uint32(n)})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return all, rows.Err()
}
