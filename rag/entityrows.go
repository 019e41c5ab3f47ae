package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
)

// Each build that changes anything writes all rows of entities again, from the facts of each chunk and in the order of
// the documents. So the rows do not depend on earlier builds, and facts that only a removed document contained
// disappear.

// writeEntities writes the rows of entities and of the chunks that mention them. All data of one entity is in one row,
// because a row costs more than its contents.
func (w *builder) writeEntities(ctx context.Context, tx *sql.Tx) error {
	for _, statement := range []string{"DELETE FROM mention", "DELETE FROM entity"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if w.settings.ExtractorModel == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM extract WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.extract = extract.id)
		AND NOT (? AND recipe <> ?)`, w.refresh, recipeOf(&w.settings))
	if err != nil {
		return err
	}
	var g entityGraph
	if err := g.loadFacts(ctx, tx); err != nil {
		return err
	}
	return g.writeRows(ctx, tx)
}

// loadFacts adds the facts of all live chunks.
func (g *entityGraph) loadFacts(ctx context.Context, tx *sql.Tx) error {
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
		g.addFacts(chunk, f)
	}
	return rows.Err()
}

// writeRows writes the rows. The id of an entity is its position, counted from one.
func (g *entityGraph) writeRows(ctx context.Context, tx *sql.Tx) error {
	near, begin := g.findNeighbours()
	inChunk := map[int64][]byte{}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO entity (id, name, type, description, relations, neighbours, chunks) VALUES (?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for i, e := range g.entities {
		id := int64(i + 1)
		var chunks []byte
		for _, chunk := range g.mentions[i] {
			chunks = binary.AppendUvarint(chunks, uint64(chunk))
			inChunk[chunk] = binary.AppendUvarint(inChunk[chunk], uint64(id))
		}
		if _, err := insert.ExecContext(ctx, id, e.Name, e.Type, e.Description, begin[i], packNeighbours(near[i]), chunks); err != nil {
			return err
		}
	}
	mentions, err := tx.PrepareContext(ctx, "INSERT INTO mention (chunk, entities) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer mentions.Close()
	for _, chunk := range slices.Sorted(maps.Keys(inChunk)) {
		if _, err := mentions.ExecContext(ctx, chunk, inChunk[chunk]); err != nil {
			return err
		}
	}
	return nil
}

// findNeighbours returns, for each entity, the entities at the other ends of its relations, in ascending order and with
// the best weight, and the number of relations that begin at it.
func (g *entityGraph) findNeighbours() (near [][]neighbour, begin []int) {
	near = make([][]neighbour, len(g.entities))
	begin = make([]int, len(g.entities))
	for _, e := range g.knownEdges() {
		begin[e.from]++
		if e.from != e.to {
			near[e.from] = append(near[e.from], neighbour{int64(e.to + 1), e.weight})
			near[e.to] = append(near[e.to], neighbour{int64(e.from + 1), e.weight})
		}
	}
	for i, all := range near {
		slices.SortFunc(all, func(a, b neighbour) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(b.weight, a.weight)) })
		near[i] = slices.CompactFunc(all, func(a, b neighbour) bool { return a.id == b.id })
	}
	return near, begin
}

// packNeighbours and unpackNeighbours convert neighbours to and from variable-length ids and little-endian weights.
func packNeighbours(all []neighbour) []byte {
	data := []byte{}
	for _, n := range all {
		data = binary.AppendUvarint(data, uint64(n.id))
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(n.weight))
	}
	return data
}

func unpackNeighbours(data []byte) (all []neighbour, err error) {
	const weight = 8 // bytes
	for len(data) > 0 {
		id, size := binary.Uvarint(data)
		if size <= 0 || len(data) < size+weight {
			return nil, errEntities
		}
		all = append(all, neighbour{int64(id), math.Float64frombits(binary.LittleEndian.Uint64(data[size:]))})
		data = data[size+weight:]
	}
	return all, nil
}

// unpackIDs reads variable-length ids.
func unpackIDs(data []byte) (ids []int64, err error) {
	for len(data) > 0 {
		id, size := binary.Uvarint(data)
		if size <= 0 {
			return nil, errEntities
		}
		ids = append(ids, int64(id))
		data = data[size:]
	}
	return ids, nil
}

// errEntities is the error of a file whose entities cannot be read.
var errEntities = errors.New("the entities are damaged: remove the knowledge base and build it again")
