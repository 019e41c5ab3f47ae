package rag

import (
	"context"
	"database/sql"
	"encoding/json"
)

// The rows of entities are made anew by each build that changes anything, from what was kept of each chunk and in the order of the documents:
// so they are the same however the base came to be, and what a removed document alone has said is gone.

// writeEntities makes the rows of entities, of relations and of where entities are mentioned.
func (w *builder) writeEntities(ctx context.Context, tx *sql.Tx) error {
	for _, statement := range []string{"DELETE FROM mention", "DELETE FROM relation", "DELETE FROM entity"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if w.settings.ExtractorModel == "" {
		return nil
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM extract WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.extract = extract.id)"); err != nil {
		return err
	}
	var g joined
	if err := g.read(ctx, tx); err != nil {
		return err
	}
	return g.write(ctx, tx)
}

// read adds the facts of all live chunks.
func (g *joined) read(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT c.id, x.data FROM document d JOIN chunk c ON c.document = d.id JOIN extract x ON x.id = c.extract
		WHERE d.live = 1 AND x.data IS NOT NULL ORDER BY d.place, c.place`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var chunk int64
		var data sql.RawBytes
		var f facts
		if err := rows.Scan(&chunk, &data); err != nil {
			return err
		}
		if err := json.Unmarshal(data, &f); err != nil {
			return err
		}
		g.add(chunk, f)
	}
	return rows.Err()
}

// write makes the rows. The id of an entity is its place, from one.
func (g *joined) write(ctx context.Context, tx *sql.Tx) error {
	entities, err := tx.PrepareContext(ctx, "INSERT INTO entity (id, name, type, description) VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer entities.Close()
	mentions, err := tx.PrepareContext(ctx, "INSERT INTO mention (entity, chunk) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer mentions.Close()
	for i, e := range g.entities {
		if _, err := entities.ExecContext(ctx, i+1, e.Name, e.Type, e.Description); err != nil {
			return err
		}
		for _, chunk := range g.mentions[i] {
			if _, err := mentions.ExecContext(ctx, i+1, chunk); err != nil {
				return err
			}
		}
	}
	relations, err := tx.PrepareContext(ctx, "INSERT INTO relation (source, target, type, weight) VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer relations.Close()
	for _, e := range g.edges() {
		if _, err := relations.ExecContext(ctx, e.from+1, e.to+1, e.typ, e.weight); err != nil {
			return err
		}
	}
	return nil
}
