package rag

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"raddle.dev/rag/keyword"
)

// An embedding holds what a build needs to make vectors.
type embedding struct {
	model   Embedder // nil: not opened yet
	limiter *callLimiter
	dims    int               // 0: not known yet
	tokens  keyword.Tokenizer // counts tokens for the lengths of chunks
}

// storePrepared embeds and stores the prepared documents. It stores each batch of vectors as soon as it arrives.
func (w *builder) storePrepared(ctx context.Context) error {
	if len(w.waiting) == 0 {
		return nil
	}
	vectors := map[textHash]int64{}
	if w.settings.Model != Keyword {
		var err error
		if vectors, err = w.vectorRows(ctx); err != nil {
			return err
		}
	}
	err := runTransaction(ctx, w.base.db, func(tx *sql.Tx) error {
		for _, p := range w.waiting {
			id, err := w.storeDocument(ctx, tx, p, vectors)
			if err != nil {
				return err
			}
			w.order[p.at].id = id
		}
		return nil
	})
	w.waiting = w.waiting[:0]
	w.texts = 0
	return err
}

// storeDocument writes a document and its chunks.
func (w *builder) storeDocument(ctx context.Context, tx *sql.Tx, p preparedDocument, vectors map[textHash]int64) (int64, error) {
	metadata, err := json.Marshal(p.metadata)
	if err != nil {
		return 0, err
	}
	var id int64
	err = tx.QueryRowContext(ctx, "SELECT id FROM document WHERE path = ? AND hash = ? AND recipe = ?",
		p.entry.Path, p.hash, w.recipe).Scan(&id)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return id, err // another process has stored the same version
	}
	date := int64(0)
	if !p.date.IsZero() {
		date = p.date.UnixMilli()
	}
	res, err := tx.ExecContext(ctx, "INSERT INTO document (path, source, hash, recipe, metadata, date, place, live) VALUES (?, ?, ?, ?, ?, ?, 0, 0)",
		p.entry.Path, p.entry.Source, p.hash, w.recipe, string(metadata), date)
	if err != nil {
		return 0, err
	}
	if id, err = res.LastInsertId(); err != nil {
		return 0, err
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO chunk (document, place, tokens, vector, text, stands) VALUES (?, ?, ?, ?, ?, ?)")
	if err != nil {
		return 0, err
	}
	defer insert.Close()
	for i, c := range p.chunks {
		var vector any
		if v, ok := vectors[hashText(c.text)]; ok {
			vector = v
		}
		stands, err := encodePlace(c.place)
		if err != nil {
			return 0, err
		}
		if _, err := insert.ExecContext(ctx, id, i, len(w.embed.tokens.Tokens(c.text)), vector, c.text, stands); err != nil {
			return 0, err
		}
	}
	return id, nil
}

// encodePlace returns a place as the file keeps it; the zero place is an empty text.
func encodePlace(p Place) (string, error) {
	if p.IsZero() {
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// A textHash identifies a text among those that one model has embedded.
type textHash [16]byte

func hashText(text string) (h textHash) {
	sum := sha256.Sum256([]byte(text))
	copy(h[:], sum[:])
	return h
}

// vectorRows returns the rows of the vectors of all prepared documents. It sends only texts to the model that the model
// has not embedded yet.
func (w *builder) vectorRows(ctx context.Context) (map[textHash]int64, error) {
	rows := map[textHash]int64{}
	seen := map[textHash]bool{}
	var missing []string
	for _, p := range w.waiting {
		for _, c := range p.chunks {
			h := hashText(c.text)
			if seen[h] {
				continue
			}
			seen[h] = true
			var id int64
			err := w.base.db.QueryRowContext(ctx, "SELECT id FROM vector WHERE model = ? AND hash = ?", w.settings.Model, h[:]).Scan(&id)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				missing = append(missing, c.text)
			case err != nil:
				return nil, err
			default:
				rows[h] = id
			}
		}
	}
	return rows, w.embedAll(ctx, missing, rows)
}

// embedAll embeds texts and adds the rows of their vectors to rows.
func (w *builder) embedAll(ctx context.Context, texts []string, rows map[textHash]int64) error {
	if len(texts) == 0 {
		return nil
	}
	if err := w.openModel(ctx); err != nil {
		return err
	}
	batches := slices.Collect(slices.Chunk(texts, w.base.o.Batch))
	keep := func(texts []string, vectors [][]float32) error {
		w.embed.dims = len(vectors[0])
		w.report.Embedded += len(texts)
		w.progress(Progress{Done: w.done, Total: w.total, Embedded: w.report.Embedded})
		return w.storeVectors(ctx, texts, vectors, rows)
	}
	if w.embed.dims == 0 { // the first answer determines the length of all vectors
		if err := w.embedInOrder(ctx, batches[:1], keep); err != nil {
			return err
		}
		batches = batches[1:]
	}
	return w.embedInOrder(ctx, batches, keep)
}

// storeVectors stores the vectors of a batch.
func (w *builder) storeVectors(ctx context.Context, texts []string, vectors [][]float32, rows map[textHash]int64) error {
	return runTransaction(ctx, w.base.db, func(tx *sql.Tx) error {
		for i, v := range vectors {
			h := hashText(texts[i])
			var id int64
			err := tx.QueryRowContext(ctx, `INSERT INTO vector (model, hash, data) VALUES (?, ?, ?)
				ON CONFLICT (model, hash) DO UPDATE SET model = model RETURNING id`, w.settings.Model, h[:], packVector(v)).Scan(&id)
			if err != nil {
				return err
			}
			rows[h] = id
		}
		return nil
	})
}

// openModel opens the embedding model once, and reads the length of its vectors in the file.
func (w *builder) openModel(ctx context.Context) (err error) {
	if w.embed.model != nil {
		return nil
	}
	if w.embed.dims, err = storedDimensions(ctx, w.base.db, w.settings.Model); err != nil {
		return err
	}
	w.embed.limiter = newCallLimiter(maxAtOnce)
	w.embed.model, err = w.base.openEmbedder(w.settings.Model)
	return err
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// storedDimensions returns the length of a model's vectors in the file, or zero if there are none.
func storedDimensions(ctx context.Context, q querier, model string) (n int, err error) {
	err = q.QueryRowContext(ctx, "SELECT length(data) / 4 FROM vector WHERE model = ? LIMIT 1", model).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}
