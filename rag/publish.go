package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
)

// publishBuild replaces the contents of the base by the prepared documents, in one transaction.
func (w *builder) publishBuild(ctx context.Context) error {
	w.countRemoved()
	dims, err := storedDimensions(ctx, w.base.db, w.settings.Model)
	if err != nil {
		return err
	}
	w.settings.Dimensions = dims
	w.settings.NameParts = true
	old, _, err := w.base.publishedSettings(ctx)
	if err != nil {
		return err
	}
	w.report.Changed = w.hasChanged(old)
	if w.report.Changed {
		if err := runTransaction(ctx, w.base.db, func(tx *sql.Tx) error { return w.writeChanges(ctx, tx) }); err != nil {
			return err
		}
	}
	return w.base.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM document WHERE live),
		(SELECT count(*) FROM chunk WHERE document IN (SELECT id FROM document WHERE live)), (SELECT count(*) FROM entity),
		(SELECT ifnull(sum(relations), 0) FROM entity)`).Scan(&w.report.Documents, &w.report.Chunks, &w.report.Entities, &w.report.Relations)
}

func (w *builder) countRemoved() {
	keep := map[int64]bool{}
	for _, s := range w.order {
		keep[s.id] = true
	}
	for _, s := range w.known {
		if s.live && !keep[s.id] {
			w.report.Removed++
		}
	}
}

// hasChanged reports whether the contents of the file differ from those that the build wants.
func (w *builder) hasChanged(old Settings) bool {
	known := 0
	for _, s := range w.known {
		if !w.isKept(s) {
			known++
		}
	}
	if w.extract.hasNewFacts() || !reflect.DeepEqual(old, w.settings) || len(w.order) != known {
		return true
	}
	for i, s := range w.order {
		if had := w.known[s.documentVersion]; !had.live || had.place != i || had.source != s.source {
			return true
		}
	}
	return false
}

// isKept reports whether a document that this build does not want stays: a refresh keeps the documents that an
// interrupted build with other settings has prepared, because that build may continue.
func (w *builder) isKept(s storedDocument) bool { return w.refresh && !s.live && s.recipe != w.recipe }

func (w *builder) writeChanges(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "CREATE TEMP TABLE IF NOT EXISTS fresh (id INTEGER PRIMARY KEY); DELETE FROM fresh"); err != nil {
		return err
	}
	// Documents that were live are marked 2 until it is clear which of them stay.
	if _, err := tx.ExecContext(ctx, "UPDATE document SET live = 2 WHERE live"); err != nil {
		return err
	}
	for i, s := range w.order {
		var was int
		err := tx.QueryRowContext(ctx, "SELECT live FROM document WHERE id = ?", s.id).Scan(&was)
		if errors.Is(err, sql.ErrNoRows) {
			return errors.New("another build has removed what this one prepared: build again")
		}
		if err == nil && was == 0 {
			_, err = tx.ExecContext(ctx, "INSERT INTO fresh VALUES (?)", s.id)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE document SET live = 1, place = ?, source = ? WHERE id = ?", i, s.source, s.id)
		}
		if err != nil {
			return err
		}
	}
	if err := w.deleteUnused(ctx, tx); err != nil {
		return err
	}
	if err := dropOldWords(ctx, tx); err != nil {
		return err
	}
	if err := indexDocuments(ctx, tx); err != nil {
		return err
	}
	if err := errors.Join(w.extract.markComplete(ctx, tx), w.writeEntities(ctx, tx)); err != nil {
		return err
	}
	text, err := json.Marshal(w.settings)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO base (one, settings, builds) VALUES (1, ?, 1)
			ON CONFLICT (one) DO UPDATE SET settings = excluded.settings, builds = builds + 1`, string(text))
	}
	return err
}

// dropOldWords empties the index of words if an earlier version has written it, without the parts of names: then all
// documents are indexed again.
func dropOldWords(ctx context.Context, tx *sql.Tx) error {
	var text string
	err := tx.QueryRowContext(ctx, "SELECT settings FROM base").Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	var was Settings
	if err == nil {
		err = json.Unmarshal([]byte(text), &was)
	}
	if err != nil || was.NameParts {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM posting; INSERT OR IGNORE INTO fresh SELECT id FROM document WHERE live")
	return err
}

// deleteUnused removes the rows that no live or kept document needs.
func (w *builder) deleteUnused(ctx context.Context, tx *sql.Tx) error {
	res, err := tx.ExecContext(ctx, "DELETE FROM document WHERE live <> 1 AND NOT (? AND live = 0 AND recipe <> ?)", w.refresh, w.recipe)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM vector WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.vector = vector.id)")
	return err
}

// sortStored sorts documents by the order they had.
func sortStored(all []storedDocument) {
	slices.SortFunc(all, func(a, b storedDocument) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.id, b.id)) })
}
