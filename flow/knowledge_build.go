package flow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/rag/load"
)

// baseOpener opens the knowledge bases of one agent, and builds them.
type baseOpener struct {
	agent string // its name
	dir   string
	own   bool // the documents are those of a config.yaml
	host  *Host
}

func newBaseOpener(a *Agent) *baseOpener {
	return &baseOpener{agent: a.Name, dir: a.Dir, own: a.Config != nil, host: a.host}
}

// openBase opens a base, and builds or updates it as the file format requires. It
// returns nil if there is no base and none is needed.
func (b *baseOpener) openBase(ctx context.Context, k knowledge) (Searcher, error) {
	r := &b.host.Retrieval
	if r.Base != nil {
		if s, ok := r.Base(b.agent, k.id); ok {
			return s, nil
		}
	}
	path := filepath.Join(b.dir, k.id+".yaml")
	text, err := plainfile.Read(path, rag.MaxFile)
	switch {
	case err == nil:
		return b.openExistingBase(ctx, k, path, text)
	case !errors.Is(err, os.ErrNotExist):
		return nil, spec.Errorf("Failed to load rag '%s' at '%s': %w", k.id, path, err)
	}
	if build, err := b.mayBuild(&k); !build {
		return nil, err
	}
	return b.buildBase(ctx, k, buildPlace{path: path, store: k.id + ".db"})
}

// openExistingBase opens a base whose file exists. If it is raddle's own and the update
// needs no network, it is updated; if the update fails, the base is used as it
// is.
func (b *baseOpener) openExistingBase(ctx context.Context, k knowledge, path string, text []byte) (Searcher, error) {
	fail := func(err error) (Searcher, error) {
		return nil, spec.Errorf("Failed to load rag '%s' at '%s': %w", k.id, path, err)
	}
	r := &b.host.Retrieval
	p, own := readPointer(text)
	switch {
	case own && r.Rebuild:
		if len(k.documents) == 0 {
			return nil, noDocuments(k)
		}
		return b.buildBase(ctx, b.resolveKnowledge(k, p), buildPlace{path: path, store: filepath.Base(p.Base)})
	case r.Rebuild:
		return fail(errors.New("another program created it: move it away to build the knowledge base again"))
	case own:
		k.options = p.withBuiltOptions(k.options)
		path = filepath.Join(b.dir, filepath.Base(p.Base))
	}
	base, err := rag.Open(path, b.ragOptions(k))
	if err != nil {
		return fail(err)
	}
	if !own {
		return base, nil
	}
	if err := b.refreshBase(ctx, base, k, p); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return base, nil
}

// refreshBase updates a base after changes of its documents.
func (b *baseOpener) refreshBase(ctx context.Context, base *rag.Base, k knowledge, p pointer) error {
	renew := b.host.Retrieval.Renew
	look := base.Refresh
	if !renew && slices.ContainsFunc(p.DocumentPaths, isRemote) {
		due, err := b.reportUnread(ctx, base, k.id)
		if err != nil || !due {
			return err
		}
		look = base.Retry
	}
	report, err := look(ctx, b.progressReporter(k.id))
	if errors.Is(err, rag.ErrNotBuilt) { // the base was removed, but not the file that points to it
		report, err = base.Build(ctx, p.DocumentPaths, b.progressReporter(k.id))
	}
	b.reportProgressEnd(k.id)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && renew:
		return spec.Errorf("rag '%s' stays as it was: %w", k.id, err)
	case err != nil:
		b.reportLine(fmt.Sprintf("⚠️ the knowledge base '%s' stays as it was: %v", k.id, err))
		return nil
	case report.Changed && report.Added == 0 && report.Removed > 0:
		b.reportLine(fmt.Sprintf("✓ Updated RAG '%s': %s gone, %d left.", k.id, wording.FormatCount(report.Removed, "document"), report.Documents))
	case report.Changed:
		b.reportLine(fmt.Sprintf("✓ Updated RAG '%s': %d of %d documents had changed.", k.id, report.Added, report.Documents))
	case renew:
		b.reportLine(fmt.Sprintf("✓ RAG '%s' is up to date: %d documents, %d chunks.", k.id, report.Documents, report.Chunks))
	}
	b.reportEntities(report)
	return b.renewPointer(ctx, base, filepath.Join(b.dir, k.id+".yaml"), p)
}

// renewPointer writes the pointer file of a base again if it differs from the base: a
// build was killed before it could write the file.
func (b *baseOpener) renewPointer(ctx context.Context, base *rag.Base, path string, p pointer) error {
	s, err := base.Settings(ctx)
	if err != nil {
		return err
	}
	if now := pointerTo(p.Base, s); !reflect.DeepEqual(now, p) {
		return now.writeFile(path)
	}
	return nil
}

// reportUnread reports what a base could not read when it was built, unless it is due to be read again, which reports
// what fails.
func (b *baseOpener) reportUnread(ctx context.Context, base *rag.Base, id string) (due bool, err error) {
	unread, err := base.Unread(ctx)
	if err != nil {
		return false, spec.Errorf("rag '%s': %w", id, err)
	}
	now := time.Now()
	if slices.ContainsFunc(unread, func(u rag.Unread) bool { return u.IsDue(now) }) {
		return true, nil
	}
	const most = 5
	for i, u := range unread {
		if i == most {
			b.reportLine(fmt.Sprintf("⚠️ and %d more: raddle rag status %s", len(unread)-most, b.agent))
			break
		}
		b.reportLine(fmt.Sprintf("⚠️ could not be read for the knowledge base '%s': %s", id, u))
	}
	return false, nil
}

// isRemote reports whether a document is fetched over the network.
func isRemote(document string) bool { return strings.Contains(document, "://") }

func (b *baseOpener) ragOptions(k knowledge) rag.Options {
	r := &b.host.Retrieval
	o := k.options
	o.Embedder = r.Embedder
	o.Reranker = r.Reranker
	o.Load = load.Options{Dir: b.dir, Loaders: r.Loaders, Env: r.Env}
	o.Extraction.Redact = b.host.redact
	o.Extraction.Open = func(ctx context.Context, model string) (llm.Model, error) {
		if b.host.Models == nil {
			return nil, errors.New("there are no models here")
		}
		if !b.host.Models.IsKnown(b.dir, model) {
			if _, err := b.host.Models.Open(ctx, b.dir, model); err != nil {
				return nil, err
			}
			return nil, errors.New("there is no such model")
		}
		return b.host.openModel(ctx, b.dir, model)
	}
	return o
}

// buildPlace contains the paths of a base: its own file, and the file that
// points to it.
type buildPlace struct {
	path  string
	store string // in the agent's directory
}

// buildBase builds a base and writes its pointer file. An existing base can be used
// until the build is finished.
func (b *baseOpener) buildBase(ctx context.Context, k knowledge, at buildPlace) (Searcher, error) {
	base, err := rag.Open(filepath.Join(b.dir, at.store), b.ragOptions(k))
	if err != nil {
		return nil, spec.Errorf("Failed to load rag '%s' at '%s': %w", k.id, at.path, err)
	}
	if b.host.Retrieval.Rebuild {
		if err := base.ForgetRefused(ctx); err != nil {
			return nil, errors.Join(spec.Errorf("rag '%s': %w", k.id, err), base.Close())
		}
	}
	b.reportLine("⚙ Initializing RAG...")
	b.reportLine("Embedding model: " + k.options.Model)
	b.reportLine(fmt.Sprintf("Chunk size: %d", k.options.ChunkSize))
	b.reportLine(fmt.Sprintf("Chunk overlap: %d", k.options.ChunkOverlap))
	if e := k.options.Extraction; e.Model != "" {
		b.reportLine("Extractor model: " + e.Model)
	}
	if k.driver != "" && k.driver != ownDriver {
		b.reportLine(describeDriver(k.driver))
	}
	report, err := base.Build(ctx, k.documents, b.progressReporter(k.id))
	b.reportProgressEnd(k.id)
	var s rag.Settings
	if err == nil {
		b.reportEntities(report)
		s, err = base.Settings(ctx)
	}
	if err == nil {
		p := pointerTo(at.store, s)
		err = p.writeFile(at.path)
	}
	if err != nil {
		_ = base.Close()
		return nil, spec.Errorf("rag '%s': %w", k.id, err)
	}
	b.reportLine("✓ Saved RAG to '" + at.path + "'.")
	return base, nil
}

// progressReporter returns a function that reports the progress of a build.
func (b *baseOpener) progressReporter(id string) func(rag.Progress) {
	return func(p rag.Progress) {
		switch {
		case p.Waiting:
			b.reportLine("Wait for another process that builds RAG '" + id + "'...")
			return
		case p.Problem != nil:
			b.reportLine("⚠️ " + p.Problem.Error())
		case p.Warning != "":
			b.reportLine(fmt.Sprintf("⚠️ %s: %s", p.Path, p.Warning))
		case p.Missed != nil:
			b.reportLine(fmt.Sprintf("⚠️ %s: no entities from a part of it: %v", p.Path, p.Missed))
		case p.ToAsk > 0 && p.Asked == 0:
			b.reportLine(fmt.Sprintf("Extract entities from %d new parts of documents: as many calls of the extractor model", p.ToAsk))
		}
		if report := b.host.Retrieval.Progress; report != nil {
			report(BuildProgress{Base: id, Done: p.Done, Total: p.Total, Embedded: p.Embedded, Asked: p.Asked, ToAsk: p.ToAsk,
				Known: p.Path != "" && p.Chunks == 0 && p.Problem == nil && p.ToAsk == 0})
			return
		}
		if p.Chunks > 0 {
			b.reportLine(fmt.Sprintf("Load %s [%d/%d]", p.Path, p.Done, p.Total))
		}
		const steps = 10
		if p.ToAsk > 0 && p.Asked*steps/p.ToAsk > (p.Asked-1)*steps/p.ToAsk && p.Asked > 0 && p.Asked < p.ToAsk {
			b.reportLine(fmt.Sprintf("Extract [%d/%d]", p.Asked, p.ToAsk))
		}
	}
}

func (b *baseOpener) reportProgressEnd(id string) {
	if report := b.host.Retrieval.Progress; report != nil {
		report(BuildProgress{Base: id, Ended: true})
	}
}

// reportEntities reports a summary of the requests to the extractor model.
func (b *baseOpener) reportEntities(r rag.Report) {
	if r.Asked == 0 {
		return
	}
	line := fmt.Sprintf("✓ Extracted %d entities and %d relations after %d calls", r.Entities, r.Relations, r.Asked)
	if r.Missed > 0 {
		line += fmt.Sprintf("; %d of them failed", r.Missed)
	}
	b.reportLine(line + ".")
}

func (b *baseOpener) reportLine(line string) {
	if notify := b.host.Retrieval.Notify; notify != nil {
		notify(b.host.redact(line))
	}
}
