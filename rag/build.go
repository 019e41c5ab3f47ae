package rag

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"raddle.dev/rag/load"
	"raddle.dev/rag/split"
)

// Progress is reported after each document of a build, and after each batch of texts that was embedded.
type Progress struct {
	Path     string // of the document; empty: a batch was embedded
	Done     int    // documents so far
	Total    int
	Chunks   int           // of this document; zero: it has not changed, or there is a problem
	Embedded int           // texts sent to the embedding model so far
	Problem  *load.Problem // why it is left out; nil: it is not
	Warning  string        // a warning about the quality of its text; empty: there is none
	Waiting  bool          // another process builds this base: the other fields are not set yet

	// When all documents are read, the extractor model is asked. Progress is then reported before the first call and
	// after each call.
	Asked  int   // chunks it was asked about so far
	ToAsk  int   // total of Asked; zero: documents are being read
	Missed error // why it found nothing in a chunk of the document; nil: it has answered
}

// A Report lists what a build has done.
type Report struct {
	Documents int            // in the base
	Chunks    int            // in the base
	Added     int            // documents that are new or have changed
	Removed   int            // documents, or versions of them, that were removed
	Embedded  int            // texts that were sent to the embedding model
	Asked     int            // chunks that the extractor model was asked about
	Missed    int            // chunks of these that it gave no usable answer for
	Entities  int            // in the base
	Relations int            // in the base
	Changed   bool           // a new state was published
	Problems  []load.Problem // documents that are missing, or that the base has in an older version
}

// Build reads the sources again with the settings of Options, and publishes the result when all of it is ready. It
// calls progress, if not nil, on the caller's goroutine. It leaves out documents with problems, and the report names
// them. After an error, or when ctx ends, the base answers as before, and the next build uses the documents that were
// prepared.
func (b *Base) Build(ctx context.Context, sources []string, progress func(Progress)) (Report, error) {
	return b.runExclusive(ctx, progress, func(w *builder) (Report, error) {
		w.settings = b.o.buildSettings(sources)
		return b.runBuild(ctx, w)
	})
}

// Refresh is a Build with the settings and the sources of the last complete build; it ignores the settings in Options.
// Documents that a build with other settings has prepared stay. The error wraps ErrNotBuilt if the base was never
// built.
func (b *Base) Refresh(ctx context.Context, progress func(Progress)) (Report, error) {
	return b.runExclusive(ctx, progress, func(w *builder) (Report, error) {
		settings, builds, err := b.publishedSettings(ctx)
		if err == nil && builds == 0 {
			err = ErrNotBuilt
		}
		if err != nil {
			return Report{}, err
		}
		w.settings = settings
		w.refresh = true
		return b.runBuild(ctx, w)
	})
}

// runExclusive calls do while no other build changes the base, in this process or another one.
func (b *Base) runExclusive(ctx context.Context, progress func(Progress), do func(*builder) (Report, error)) (r Report, err error) {
	b.building.Lock()
	defer b.building.Unlock()
	if progress == nil {
		progress = func(Progress) {}
	}
	if b.readOnly {
		return r, b.wrapError("build", ErrReadOnly)
	}
	unlock, err := b.lockBuild(ctx, func() { progress(Progress{Waiting: true}) })
	if err != nil {
		return r, b.wrapError("build", err)
	}
	r, err = do(&builder{base: b, progress: progress})
	if err = errors.Join(err, unlock()); err != nil {
		return r, b.wrapError("build", err)
	}
	return r, nil
}

// buildSettings returns the settings of a build with the options o.
func (o *Options) buildSettings(sources []string) Settings {
	return Settings{Places: true, Model: o.Model, ChunkSize: o.ChunkSize, ChunkOverlap: o.ChunkOverlap, TopK: o.TopK, RerankerModel: o.RerankerModel,
		Sources: sources, ExtractorModel: o.Extraction.Model, ExtractorPrompt: o.Extraction.Prompt, GraphHops: o.Extraction.Hops}
}

func (b *Base) runBuild(ctx context.Context, w *builder) (Report, error) {
	settings := &w.settings
	way := 1 // without places
	if settings.Places {
		way = 2
	}
	w.recipe = fmt.Sprintf("%d %d %d %s", way, settings.ChunkSize, settings.ChunkOverlap, settings.Model)
	entries, problems, err := w.listEntries(ctx)
	if err != nil {
		return w.report, err
	}
	if err := w.loadDocuments(ctx); err != nil {
		return w.report, err
	}
	w.total = len(entries)
	for _, p := range problems {
		w.reportProblem(p)
	}
	if err := w.addSources(ctx, entries); err != nil {
		return w.report, err
	}
	if err := w.storePrepared(ctx); err != nil {
		return w.report, err
	}
	if err := w.recordUnread(ctx); err != nil {
		return w.report, err
	}
	if len(w.order) == 0 {
		return w.report, noDocuments(w.report.Problems)
	}
	w.keepUnreadable()
	if err := w.extractEntities(ctx); err != nil {
		return w.report, err
	}
	if w.only == nil {
		if err := w.deleteRefusals(ctx); err != nil {
			return w.report, err
		}
	}
	return w.report, w.publishBuild(ctx)
}

// noDocuments returns ErrNoDocuments with the reasons.
func noDocuments(problems []load.Problem) error {
	err := ErrNoDocuments
	for _, p := range problems {
		err = errors.Join(err, p)
	}
	return err
}

// A builder is one build.
type builder struct {
	base     *Base
	settings Settings
	refresh  bool // the settings are those of the last complete build
	// the sources that are read again, with their pages if only these are; nil: all sources
	only     map[string][]string
	recipe   string
	progress func(Progress)
	report   Report
	done     int
	total    int

	known   map[documentVersion]storedDocument // what the file holds
	order   []storedDocument                   // what it must hold after the build
	waiting []preparedDocument
	texts   int // of waiting
	embed   embedding
	extract *extraction // of documents that the model was not asked about yet; nil: the build extracts no entities

	refused      map[documentVersion]string // why documents were refused; the keys have no recipe
	refusedAgain map[documentVersion]bool
}

// documentVersion identifies a version of a document that was cut in one way.
type documentVersion struct{ path, hash, recipe string }

// A storedDocument is a row of the documents table.
type storedDocument struct {
	documentVersion
	id     int64
	place  int
	source string
	live   bool

	extracted string // identifies the model and prompt with which all its chunks were asked about
}

// A preparedDocument is cut but not yet stored.
type preparedDocument struct {
	entry    load.Entry
	hash     string
	metadata map[string]string
	date     time.Time // zero: not known
	chunks   []placedChunk
	at       int // in order
}

// A placedChunk is a chunk with its place in the document.
type placedChunk struct {
	text  string
	place Place // zero: the base keeps no places
}

// loadDocuments reads the rows of all documents in the file.
func (w *builder) loadDocuments(ctx context.Context) error {
	if err := w.readRefused(ctx); err != nil {
		return err
	}
	w.known = map[documentVersion]storedDocument{}
	rows, err := w.base.db.QueryContext(ctx, "SELECT id, path, hash, recipe, place, source, live, extracted FROM document")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s storedDocument
		if err := rows.Scan(&s.id, &s.path, &s.hash, &s.recipe, &s.place, &s.source, &s.live, &s.extracted); err != nil {
			return err
		}
		w.known[s.documentVersion] = s
	}
	return rows.Err()
}

// reportProblem reports p, and keeps the version of the document that the base has.
func (w *builder) reportProblem(p load.Problem) {
	w.report.Problems = append(w.report.Problems, p)
	w.progress(Progress{Path: p.Path, Done: w.done, Total: w.total, Embedded: w.report.Embedded, Problem: &p})
}

// keepUnreadable keeps the published versions of documents that this build could not read.
func (w *builder) keepUnreadable() {
	kept := map[int64]bool{}
	paths := map[string]bool{}
	for _, s := range w.order {
		kept[s.id], paths[s.path] = true, true
	}
	var lost []storedDocument
	for _, s := range w.known {
		if s.live && s.recipe == w.recipe && !kept[s.id] && !paths[s.path] && hasProblem(w.report.Problems, s) {
			lost = append(lost, s)
		}
	}
	sortStored(lost)
	w.order = append(w.order, lost...)
}

func hasProblem(problems []load.Problem, s storedDocument) bool {
	for _, p := range problems {
		switch {
		case errors.Is(p.Err, load.ErrNoDocuments):
		case p.Path == s.path, p.Path == "" && p.Source == s.source, p.Path != "" && strings.HasPrefix(s.path, p.Path+"/"):
			return true
		}
	}
	return false
}

// addEntry adds one document to the build.
func (w *builder) addEntry(ctx context.Context, e load.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	chunks, warning, err := w.prepareEntry(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.done++
	if err != nil {
		w.reportProblem(load.Problem{Source: e.Source, Path: e.Path, Err: err})
		return nil
	}
	round := roundSize * maxAtOnce * w.base.o.Batch
	if w.texts >= round || len(w.waiting) >= round {
		if err := w.storePrepared(ctx); err != nil {
			return err
		}
	}
	w.progress(Progress{Path: e.Path, Done: w.done, Total: w.total, Chunks: chunks, Embedded: w.report.Embedded, Warning: warning})
	return nil
}

// prepareEntry reads a document, and cuts it unless it is known.
func (w *builder) prepareEntry(ctx context.Context, e load.Entry) (chunks int, warning string, err error) {
	file, err := e.Read(ctx)
	if err != nil {
		return 0, "", err
	}
	key := documentVersion{path: e.Path, hash: file.Hash, recipe: w.recipe}
	if s, ok := w.known[key]; ok {
		if !s.live {
			w.report.Added++
		}
		s.source = e.Source
		w.order = append(w.order, s)
		return 0, "", nil
	}
	if err := w.knownRefusal(e.Path, file.Hash); err != nil {
		return 0, "", err
	}
	doc, err := file.Text(ctx)
	if err != nil {
		return 0, "", errors.Join(err, w.recordRefusal(ctx, e.Path, file.Hash, err))
	}
	p := preparedDocument{entry: e, hash: file.Hash, metadata: doc.Metadata, date: doc.Date, at: len(w.order)}
	placer := newPlacer(doc)
	for _, c := range split.Chunks(doc.Text, split.Options{
		Size: w.settings.ChunkSize, Overlap: w.settings.ChunkOverlap, Separators: split.Separators(doc.Ext)}) {
		chunk := placedChunk{text: c.Text}
		if w.settings.Places {
			chunk.place = placer.findPlace(c)
		}
		p.chunks = append(p.chunks, chunk)
	}
	w.order = append(w.order, storedDocument{documentVersion: key, source: e.Source})
	w.waiting = append(w.waiting, p)
	w.texts += len(p.chunks)
	w.report.Added++
	return len(p.chunks), doc.Warning, nil
}
