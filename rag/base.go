package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"raddle.dev/rag/load"
	"raddle.dev/rag/split"
)

// The values that apply if [Options] does not set them.
const (
	DefaultChunkSize = split.DefaultSize
	DefaultTopK      = 5
	DefaultBatch     = 64
	DefaultAttempts  = 2
)

// Options say how a base is built, and which models it uses. A search uses the settings that the base keeps, so only
// the functions are needed then.
type Options struct {
	// Model is the embedding model of the next build; empty: [Keyword].
	Model string
	// ChunkSize is the most bytes of a chunk; zero: [DefaultChunkSize].
	ChunkSize int
	// ChunkOverlap is how many bytes two neighbouring chunks may share, less than ChunkSize; zero: none.
	ChunkOverlap int
	// TopK is how many chunks a search returns if [SearchOptions] do not say; zero: [DefaultTopK].
	TopK int
	// Fusion says how searches join their rankings if [SearchOptions] do not say. The base does not keep it.
	Fusion Fusion
	// Batch is how many texts are embedded at a time; zero: [DefaultBatch].
	Batch int
	// Attempts is how often a batch is tried, one second apart at first and twice as long each time; zero:
	// [DefaultAttempts].
	Attempts int
	// RerankerModel is the model that orders the hits of searches; empty: the rankings are fused instead.
	RerankerModel string
	// Embedder opens an embedding model by name. It is called when vectors are needed for the first time, and may be
	// nil for [Keyword].
	Embedder func(model string) (Embedder, error)
	// Reranker opens a reranking model by name. It may be nil if no base names one.
	Reranker func(model string) (Reranker, error)
	// Extraction says whether a build extracts entities, and how.
	Extraction Extraction
	// Load says where documents are and how to read them.
	Load load.Options
}

// Settings are the settings of a build, which the base keeps.
type Settings struct {
	Model         string   `json:"model"`
	ChunkSize     int      `json:"chunk_size"`
	ChunkOverlap  int      `json:"chunk_overlap"`
	TopK          int      `json:"top_k"`
	RerankerModel string   `json:"reranker_model,omitempty"`
	Sources       []string `json:"sources"`
	Dimensions    int      `json:"dimensions,omitempty"` // length of the vectors; zero: there are none
	Places        bool     `json:"places,omitempty"`     // where chunks stand is kept: a build of this version began it
	NameParts     bool     `json:"name_parts,omitempty"` // parts of names are indexed: a build of this version has been

	ExtractorModel  string `json:"extractor_model,omitempty"` // model that extracted entities; empty: there are none
	ExtractorPrompt string `json:"extractor_prompt,omitempty"`
	GraphHops       *int   `json:"graph_hops,omitempty"` // nil: DefaultHops
}

// Errors that callers branch on.
var (
	// ErrNotBuilt is the error of a search in a base without a completed build.
	ErrNotBuilt = errors.New("the knowledge base is not built")
	// ErrReadOnly is the error of a build of a base that was read from another program's file.
	ErrReadOnly = errors.New("a knowledge base in YAML is only read: remove the file to build it again")
	// ErrNoDocuments is the error of a build that found nothing to read.
	ErrNoDocuments = failf("No RAG files")
)

// A Base is an open knowledge base. It is safe for concurrent use, also by several processes that share one file.
// Builds wait for each other.
type Base struct {
	path     string
	db       *sql.DB
	o        Options
	readOnly bool

	building sync.Mutex

	mu        sync.Mutex
	view      *view
	embedders map[string]Embedder
	rerankers map[string]Reranker
}

// Open opens the base at path. If there is no file, it creates one that only its owner can read, and builds nothing
// yet. It reads a file in the YAML format of the Loki family into memory; such a base can only be searched. The caller
// must Close the Base.
func Open(path string, o Options) (*Base, error) {
	if err := o.setDefaults(); err != nil {
		return nil, fmt.Errorf("open knowledge base %s: %w", path, err)
	}
	b, err := openBaseAt(path, o)
	if err != nil {
		return nil, fmt.Errorf("open knowledge base %s: %w", path, err)
	}
	return b, nil
}

// fileSuffixes are the endings that, added to the name of a base, give the names of all files that belong to it.
var fileSuffixes = []string{"", "-wal", "-shm", "-journal", lockSuffix, lockSuffix + "-wal", lockSuffix + "-shm", lockSuffix + "-journal"}

func openBaseAt(path string, o Options) (*Base, error) {
	if path == "" {
		return nil, errors.New("the path is empty: name the file to keep it in")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	for _, suffix := range fileSuffixes {
		o.Load.Skip = append(o.Load.Skip, path+suffix)
	}
	b := &Base{path: path, o: o, embedders: map[string]Embedder{}, rerankers: map[string]Reranker{}}
	if foreign, err := isYAML(path); err != nil {
		return nil, err
	} else if foreign {
		return b, b.readYAML()
	}
	b.db, err = openFile(path)
	return b, err
}

// setDefaults sets the options that are not set to their defaults.
func (o *Options) setDefaults() error {
	var problems []error
	set := func(name string, to *int, value int) {
		if *to < 0 {
			problems = append(problems, fmt.Errorf("%s is %d: it must be at least 1", name, *to))
		}
		if *to == 0 {
			*to = value
		}
	}
	if o.Model == "" {
		o.Model = Keyword
	}
	set("chunk_size", &o.ChunkSize, DefaultChunkSize)
	set("top_k", &o.TopK, DefaultTopK)
	set("batch_size", &o.Batch, DefaultBatch)
	set("attempts", &o.Attempts, DefaultAttempts)
	if err := o.Fusion.Validate(); err != nil {
		problems = append(problems, err)
	}
	if err := o.Extraction.validateOptions(); err != nil {
		problems = append(problems, err)
	}
	o.Extraction.Calls = cmp.Or(o.Extraction.Calls, DefaultCalls)
	if o.ChunkOverlap < 0 || o.ChunkOverlap >= o.ChunkSize {
		problems = append(problems, fmt.Errorf("chunk_overlap is %d: it must be less than chunk_size, which is %d", o.ChunkOverlap, o.ChunkSize))
	}
	return errors.Join(problems...)
}

// Close closes the file. Searches and builds that are running fail.
func (b *Base) Close() error {
	if err := b.db.Close(); err != nil {
		return fmt.Errorf("close knowledge base %s: %w", b.path, err)
	}
	return nil
}

// A Status is what a base holds.
type Status struct {
	Settings
	Path      string // of the file
	Builds    int    // that were completed; zero: there is nothing to search
	Documents int
	Chunks    int
	Pending   int // documents that an interrupted build has prepared
	Entities  int
	Relations int // between entities

	Unread []Unread `json:"unread,omitempty"` // what the last build could not read
}

// Status returns what the base holds now.
func (b *Base) Status(ctx context.Context) (Status, error) {
	s := Status{Path: b.path}
	settings, builds, err := b.publishedSettings(ctx)
	if err == nil {
		s.Settings = settings
		s.Builds = builds
		err = b.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM document WHERE live), (SELECT count(*) FROM document WHERE NOT live),
			(SELECT count(*) FROM chunk WHERE document IN (SELECT id FROM document WHERE live)),
			(SELECT count(*) FROM entity), (SELECT ifnull(sum(relations), 0) FROM entity)`).Scan(&s.Documents, &s.Pending, &s.Chunks, &s.Entities, &s.Relations)
	}
	if err == nil {
		s.Unread, err = b.readUnread(ctx)
	}
	if err != nil {
		return Status{}, b.wrapError("status", err)
	}
	return s, nil
}

// Settings returns the settings of the last complete build. Before the first one the error wraps ErrNotBuilt.
func (b *Base) Settings(ctx context.Context) (Settings, error) {
	s, builds, err := b.publishedSettings(ctx)
	if err == nil && builds == 0 {
		err = ErrNotBuilt
	}
	if err != nil {
		return Settings{}, b.wrapError("settings", err)
	}
	return s, nil
}

// publishedSettings returns the settings of the last complete build, and the number of complete builds.
func (b *Base) publishedSettings(ctx context.Context) (s Settings, builds int, err error) {
	var text string
	err = b.db.QueryRowContext(ctx, "SELECT settings, builds FROM base").Scan(&text, &builds)
	if errors.Is(err, sql.ErrNoRows) {
		return s, 0, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &s)
	}
	return s, builds, err
}

func (b *Base) wrapError(operation string, err error) error {
	return fmt.Errorf("%s of knowledge base %s: %w", operation, b.path, err)
}

// openEmbedder opens an embedding model, once for each name.
func (b *Base) openEmbedder(model string) (Embedder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.embedders[model]; e != nil {
		return e, nil
	}
	if b.o.Embedder == nil {
		return nil, fmt.Errorf("the embedding model %s cannot be opened: Options.Embedder is not set", model)
	}
	e, err := b.o.Embedder(model)
	if err != nil {
		return nil, err
	}
	b.embedders[model] = e
	return e, nil
}

// openReranker opens a reranking model, once for each name.
func (b *Base) openReranker(model string) (Reranker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.rerankers[model]; r != nil {
		return r, nil
	}
	if b.o.Reranker == nil {
		return nil, fmt.Errorf("the reranker model %s cannot be opened: Options.Reranker is not set", model)
	}
	r, err := b.o.Reranker(model)
	if err != nil {
		return nil, err
	}
	b.rerankers[model] = r
	return r, nil
}

// Remove deletes the base at path and all files that belong to it. It returns nil if there is no base. No process may
// have the base open.
func Remove(path string) error {
	var problems []error
	for _, suffix := range fileSuffixes {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
