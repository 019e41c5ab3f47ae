package rag

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/rag/keyword"
)

// A yamlBase is a knowledge base in the format of the Loki family.
type yamlBase struct {
	EmbeddingModel string            `yaml:"embedding_model"`
	ChunkSize      int               `yaml:"chunk_size"`
	ChunkOverlap   int               `yaml:"chunk_overlap"`
	RerankerModel  string            `yaml:"reranker_model"`
	TopK           int               `yaml:"top_k"`
	Driver         string            `yaml:"driver"`
	DocumentPaths  []string          `yaml:"document_paths"`
	Files          map[int]yamlFile  `yaml:"files"`
	Vectors        map[string]string `yaml:"vectors"`
}

type yamlFile struct {
	Hash      string         `yaml:"hash"`
	Path      string         `yaml:"path"`
	Documents []yamlDocument `yaml:"documents"`
}

type yamlDocument struct {
	PageContent string         `yaml:"page_content"`
	Metadata    map[string]any `yaml:"metadata"`
}

// MaxFile is the size in bytes of the largest knowledge base in YAML that is read.
const MaxFile = 512 << 20

// isYAML reports whether the file exists and is not a database.
func isYAML(path string) (bool, error) {
	f, err := plainfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 16)
	n, err := io.ReadFull(f, head)
	if n == 0 && errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return string(head) != "SQLite format 3\x00", nil
}

// readYAML reads the whole file into a base in memory.
func (b *Base) readYAML() error {
	text, err := plainfile.Read(b.path, MaxFile)
	if err != nil {
		return err
	}
	var y yamlBase
	if err := yaml.Unmarshal(text, &y); err != nil {
		return fmt.Errorf("this is not a knowledge base: %w", err)
	}
	if err := y.validateHeader(); err != nil {
		return err
	}
	vectors, dims, err := y.decodeVectors()
	if err != nil {
		return err
	}
	if b.db, err = openFile(""); err != nil {
		return err
	}
	b.readOnly = true
	err = runTransaction(context.Background(), b.db, func(tx *sql.Tx) error { return y.storeDocuments(tx, vectors, dims) })
	if err != nil {
		err = errors.Join(err, b.db.Close())
	}
	return err
}

func (y *yamlBase) validateHeader() error {
	if y.EmbeddingModel == "" {
		return errors.New("this is not a knowledge base: it names no embedding_model")
	}
	if y.Driver != "" && y.Driver != "yaml" {
		return fmt.Errorf("its vectors are kept by the driver %s, which is not known here: remove the file to build it again", y.Driver)
	}
	var problems []error
	if y.TopK < 1 {
		problems = append(problems, fmt.Errorf("top_k is %d: it must be at least 1", y.TopK))
	}
	if y.ChunkSize < 1 {
		problems = append(problems, fmt.Errorf("chunk_size is %d: it must be at least 1", y.ChunkSize))
	}
	if y.ChunkOverlap < 0 || y.ChunkOverlap >= max(1, y.ChunkSize) {
		problems = append(problems, fmt.Errorf("chunk_overlap is %d: it must be less than chunk_size, which is %d", y.ChunkOverlap, y.ChunkSize))
	}
	return errors.Join(problems...)
}

// decodeVectors decodes all vectors, which must have one length and belong to a chunk.
func (y *yamlBase) decodeVectors() (all map[string][]float32, dims int, err error) {
	all = map[string][]float32{}
	for _, key := range slices.Sorted(maps.Keys(y.Vectors)) {
		file, chunk, ok := strings.Cut(key, "-")
		id, err1 := strconv.Atoi(file)
		at, err2 := strconv.Atoi(chunk)
		if !ok || err1 != nil || err2 != nil || at < 0 || at >= len(y.Files[id].Documents) {
			return nil, 0, failf("Invalid key '%s'", key)
		}
		data, err := base64.StdEncoding.DecodeString(y.Vectors[key])
		if dims == 0 {
			dims = len(data) / 4
		}
		v := make([]float32, dims)
		if err != nil || dims == 0 || len(data) != 4*dims {
			return nil, 0, failf("Invalid vector at '%s'", key)
		}
		unpackVector(v, data)
		if !normalizeVector(v) {
			return nil, 0, failf("Invalid vector at '%s'", key)
		}
		all[strconv.Itoa(id)+"-"+strconv.Itoa(at)] = v
	}
	return all, dims, nil
}

// storeDocuments writes the rows that a build would have written.
func (y *yamlBase) storeDocuments(tx *sql.Tx, vectors map[string][]float32, dims int) error {
	ctx := context.Background()
	if _, err := tx.ExecContext(ctx, "CREATE TEMP TABLE fresh (id INTEGER PRIMARY KEY)"); err != nil {
		return err
	}
	for place, id := range slices.Sorted(maps.Keys(y.Files)) {
		f := y.Files[id]
		_, err := tx.ExecContext(ctx, `INSERT INTO document (id, path, source, hash, recipe, metadata, place, live)
			VALUES (?, ?, '', ?, ?, ?, ?, 1)`,
			id, f.Path, f.Hash, strconv.Itoa(id), f.firstMetadata(), place)
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO fresh VALUES (?)", id)
		}
		if err != nil {
			return err
		}
		for i, d := range f.Documents {
			if err := y.storeChunk(ctx, tx, yamlChunk{document: id, place: i, text: d.PageContent,
				vector: vectors[fmt.Sprintf("%d-%d", id, i)]}); err != nil {
				return err
			}
		}
	}
	settings, err := json.Marshal(Settings{Model: y.EmbeddingModel, ChunkSize: y.ChunkSize, ChunkOverlap: y.ChunkOverlap, TopK: y.TopK,
		RerankerModel: y.RerankerModel, Sources: y.DocumentPaths, Dimensions: dims})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO base VALUES (1, ?, 1)", string(settings)); err != nil {
		return err
	}
	return indexDocuments(ctx, tx)
}

// firstMetadata returns the metadata of the first chunk: all chunks of a file have the same.
func (f yamlFile) firstMetadata() string {
	all := map[string]string{}
	if len(f.Documents) > 0 {
		for k, v := range f.Documents[0].Metadata {
			all[k] = fmt.Sprint(v)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "{}"
	}
	return string(text)
}

type yamlChunk struct {
	document, place int
	text            string
	vector          []float32
}

func (y *yamlBase) storeChunk(ctx context.Context, tx *sql.Tx, c yamlChunk) error {
	var vector any
	if c.vector != nil {
		// not the hash of the text: the same text may have two vectors here
		h := fmt.Sprintf("%d-%d", c.document, c.place)
		res, err := tx.ExecContext(ctx, "INSERT INTO vector (model, hash, data) VALUES (?, ?, ?)", y.EmbeddingModel, []byte(h), packVector(c.vector))
		if err != nil {
			return err
		}
		if vector, err = res.LastInsertId(); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO chunk (document, place, tokens, vector, text) VALUES (?, ?, ?, ?, ?)",
		c.document, c.place, len(keyword.Tokens(c.text)), vector, c.text)
	return err
}
