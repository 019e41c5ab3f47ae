package rag

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/rag/load"
)

// A base remembers which documents were refused, so that builds do not read the same bytes again without success.

// refusalVersion is part of each stored refusal. Increase it when raddle can read more documents.
const refusalVersion = 1

// ForgetRefused deletes the refusals, so that the next build reads the documents again that earlier builds have
// refused.
func (b *Base) ForgetRefused(ctx context.Context) error {
	if b.readOnly {
		return b.wrapError("forget refused documents", ErrReadOnly)
	}
	if _, err := b.db.ExecContext(ctx, "DELETE FROM refused"); err != nil {
		return b.wrapError("forget refused documents", err)
	}
	return nil
}

// refusalKey returns an identifier of the bytes of a document and of the reader that refused them.
func (w *builder) refusalKey(hash string) string {
	return fmt.Sprintf("%d %d %s", refusalVersion, w.base.o.Load.MaxBytes, hash)
}

// knownRefusal returns the error of a document that was refused before; nil: it was not.
func (w *builder) knownRefusal(path, hash string) error {
	v := documentVersion{path: path, hash: w.refusalKey(hash)}
	reason, ok := w.refused[v]
	if !ok {
		return nil
	}
	w.refusedAgain[v] = true
	return errors.New(reason)
}

// recordRefusal keeps the error of a document if its bytes alone are the reason.
func (w *builder) recordRefusal(ctx context.Context, path, hash string, cause error) error {
	refused := (*load.RefusedError)(nil)
	if !errors.As(cause, &refused) {
		return nil
	}
	v := documentVersion{path: path, hash: w.refusalKey(hash)}
	w.refusedAgain[v] = true
	_, err := w.base.db.ExecContext(ctx, "INSERT OR REPLACE INTO refused (path, hash, reason) VALUES (?, ?, ?)", v.path, v.hash, cause.Error())
	return err
}

// readRefused returns the refusals in the file.
func (w *builder) readRefused(ctx context.Context) error {
	w.refused = map[documentVersion]string{}
	w.refusedAgain = map[documentVersion]bool{}
	rows, err := w.base.db.QueryContext(ctx, "SELECT path, hash, reason FROM refused")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var v documentVersion
		var reason string
		if err := rows.Scan(&v.path, &v.hash, &reason); err != nil {
			return err
		}
		w.refused[v] = reason
	}
	return rows.Err()
}

// deleteRefusals removes the refusals of documents that were changed or removed.
func (w *builder) deleteRefusals(ctx context.Context) error {
	for v := range w.refused {
		if !w.refusedAgain[v] {
			if _, err := w.base.db.ExecContext(ctx, "DELETE FROM refused WHERE path = ? AND hash = ?", v.path, v.hash); err != nil {
				return err
			}
		}
	}
	return nil
}
