package flow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/rag"
	"raddle.dev/rag/load"
)

// Retrieval is how knowledge bases are built and searched. The zero value builds
// those that need nobody's help: for keyword search, fully specified.
type Retrieval struct {
	Embedder func(model string) (rag.Embedder, error) // opens an embedding model; nil: there is none but rag.Keyword
	Reranker func(model string) (rag.Reranker, error) // opens a reranking model; nil: there is none
	// Base is a knowledge base from elsewhere, by agent and node; nil or not ok:
	// the agent's directory has it.
	Base func(agent, node string) (s Searcher, ok bool)

	Model         string // of embedding, where nobody names one: see rag.Options
	RerankerModel string
	ChunkSize     *int
	ChunkOverlap  *int
	TopK          int
	Template      string            // around a question and what was found; empty: a default
	Loaders       map[string]string // see load.Options
	Env           []string          // of loaders

	// Confirm asks whether a knowledge base is to be built; nil: nobody can be asked.
	Confirm func(question string) (bool, error)
	// Ask asks for a value that nobody has given, with the one that is usual; nil:
	// that one is taken, and a model that nobody names is an error.
	Ask func(question, usual string) (string, error)
	// Renew brings bases up to date that hold pages of the web, too, and makes it an
	// error where a base cannot be. Without it such a base answers as before.
	Renew bool
	// Told is told what a build does, a line at a time; nil: nobody.
	Told func(line string)
	// Progress is told how far a build is, in place of a line for each document; nil:
	// Told is.
	Progress func(Building)
}

// Building is how far the build of a knowledge base is.
type Building struct {
	Base     string // its id
	Done     int    // documents that were looked at
	Total    int
	Known    bool // the last of them is as it was
	Embedded int  // texts that were sent to the embedding model
	Ended    bool // nothing else is told of this build
}

// Searcher is what a question is put to: a *[rag.Base], or another index.
type Searcher interface {
	Search(ctx context.Context, query string, o rag.SearchOptions) ([]rag.Hit, error)
}

// ownBase is the name of the base of a config.yaml's documents.
const ownBase = "rag"

// knowledge is what an agent's file says of one base.
type knowledge struct {
	id        string // of the rag node, or ownBase
	documents []string
	options   rag.Options
	sized     bool // the overlap of chunks is said, which may be none
}

// Prepare opens the knowledge bases of the agent and of the agents it runs, and
// builds those that are not there or whose documents have changed. What is not
// fully specified is asked for, or an error where nobody can be asked. It must be
// called once before Graph, and may take long; the caller must Close the Agent.
func (a *Agent) Prepare(ctx context.Context) error { return a.prepare(ctx, map[*Agent]bool{}) }

func (a *Agent) prepare(ctx context.Context, seen map[*Agent]bool) error {
	if seen[a] {
		return nil
	}
	seen[a] = true
	for _, k := range a.knowledge() {
		base, err := a.base(ctx, k)
		if err != nil {
			return err
		}
		if base != nil {
			a.bases[k.id] = base
		}
	}
	for _, name := range sortedNames(a.children) {
		if err := a.children[name].prepare(ctx, seen); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the knowledge bases that Prepare has opened, and those of agents that
// were spawned.
func (a *Agent) Close() error { return errors.Join(a.close(map[*Agent]bool{})...) }

func (a *Agent) close(seen map[*Agent]bool) (failed []error) {
	if seen[a] {
		return nil
	}
	seen[a], a.started = true, false
	for _, id := range sortedNames(a.bases) {
		if b, ok := a.bases[id].(*rag.Base); ok {
			failed = append(failed, b.Close())
		}
	}
	clear(a.bases)
	for _, name := range sortedNames(a.children) {
		failed = append(failed, a.children[name].close(seen)...)
	}
	if a.crew != nil {
		for _, m := range a.crew.list() {
			failed = append(failed, m.close(seen)...)
		}
	}
	return failed
}

// knowledge lists what the agent's file says of bases, in the order of the file.
func (a *Agent) knowledge() []knowledge {
	var list []knowledge
	if a.Config != nil {
		if d := a.Config.Documents; len(d.Paths) > 0 {
			list = append(list, knowledge{id: ownBase, documents: d.Paths, options: rag.Options{
				Model: d.Model, ChunkSize: or(d.ChunkSize, 0), ChunkOverlap: or(d.ChunkOverlap, 0)}, sized: d.ChunkOverlap != nil})
		}
		return list
	}
	for _, n := range a.File.Nodes {
		if b, ok := n.Body.(*RAGNode); ok {
			list = append(list, knowledge{id: n.ID, documents: b.Documents, sized: b.ChunkOverlap != nil, options: rag.Options{
				Model: b.EmbeddingModel, ChunkSize: or(b.ChunkSize, 0), ChunkOverlap: or(b.ChunkOverlap, 0),
				TopK: or(b.TopK, 0), Batch: or(b.BatchSize, 0), RerankerModel: b.RerankerModel,
			}})
		}
	}
	return list
}

func or(n *int, other int) int {
	if n == nil {
		return other
	}
	return *n
}

// BaseFile is where an agent keeps one of its knowledge bases.
type BaseFile struct {
	ID        string   `json:"id"` // of the rag node; "rag": of a config.yaml's documents
	Documents []string `json:"documents"`
	Path      string   `json:"path"`            // of the file that says that it is built
	Store     string   `json:"store,omitempty"` // of the base itself; empty: it is not built
}

// BaseFiles lists the knowledge bases that the agent's file asks for, built or
// not, in the order of the file.
func (a *Agent) BaseFiles() []BaseFile {
	files := []BaseFile{}
	for _, k := range a.knowledge() {
		f := BaseFile{ID: k.id, Documents: k.documents, Path: filepath.Join(a.Dir, k.id+".yaml")}
		if text, err := os.ReadFile(f.Path); err == nil {
			var p pointer
			if f.Store = f.Path; yaml.Unmarshal(text, &p) == nil && p.Base != "" {
				f.Store = filepath.Join(a.Dir, filepath.Base(p.Base))
			}
		}
		files = append(files, f)
	}
	return files
}

// pointer is the file that says that a base has been built, and where it is: in
// the place where the format's reference keeps its own bases.
type pointer struct {
	Base           string   `yaml:"base"`
	EmbeddingModel string   `yaml:"embedding_model"`
	ChunkSize      int      `yaml:"chunk_size"`
	ChunkOverlap   int      `yaml:"chunk_overlap"`
	TopK           int      `yaml:"top_k"`
	RerankerModel  string   `yaml:"reranker_model,omitempty"`
	DocumentPaths  []string `yaml:"document_paths"`
}

// base opens a base as the lifecycle of the format wants it. nil: there is none,
// and none is needed.
func (a *Agent) base(ctx context.Context, k knowledge) (Searcher, error) {
	r := &a.host.Retrieval
	if r.Base != nil {
		if s, ok := r.Base(a.Name, k.id); ok {
			return s, nil
		}
	}
	path := filepath.Join(a.Dir, k.id+".yaml")
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return a.opened(ctx, k, path, text)
	case !errors.Is(err, os.ErrNotExist):
		return nil, failf("Failed to load rag '%s' at '%s': %w", k.id, path, err)
	}
	if build, err := a.mayBuild(&k); !build {
		return nil, err
	}
	return a.built(ctx, k, path)
}

// opened is a base whose file exists. One of raddle's own is brought up to date,
// where that needs no network; if it cannot be, it answers as before.
func (a *Agent) opened(ctx context.Context, k knowledge, path string, text []byte) (Searcher, error) {
	fail := func(err error) (Searcher, error) {
		return nil, failf("Failed to load rag '%s' at '%s': %w", k.id, path, err)
	}
	var p pointer
	if err := yaml.Unmarshal(text, &p); err != nil || p.Base == "" {
		base, err := rag.Open(path, a.options(k))
		if err != nil {
			return fail(err)
		}
		return base, nil
	}
	k.options.Model, k.options.ChunkSize, k.options.ChunkOverlap, k.options.TopK = p.EmbeddingModel, p.ChunkSize, p.ChunkOverlap, p.TopK
	k.options.RerankerModel = p.RerankerModel
	base, err := rag.Open(filepath.Join(a.Dir, filepath.Base(p.Base)), a.options(k))
	if err != nil {
		return fail(err)
	}
	renew := a.host.Retrieval.Renew
	if !renew && slices.ContainsFunc(p.DocumentPaths, remote) {
		return base, nil
	}
	report, err := base.Build(ctx, p.DocumentPaths, a.progress(k.id))
	a.progressEnds(k.id)
	switch {
	case ctx.Err() != nil:
		_ = base.Close()
		return nil, ctx.Err()
	case err != nil && renew:
		_ = base.Close()
		return nil, failf("rag '%s' stays as it was: %w", k.id, err)
	case err != nil:
		a.tell(fmt.Sprintf("⚠️ the knowledge base '%s' stays as it was: %v", k.id, err))
	case report.Changed:
		a.tell(fmt.Sprintf("✓ Updated RAG '%s': %d of %d documents had changed.", k.id, report.Added, report.Documents))
	case renew:
		a.tell(fmt.Sprintf("✓ RAG '%s' is up to date: %d documents, %d chunks.", k.id, report.Documents, report.Chunks))
	}
	return base, nil
}

// remote tells whether a document is fetched from somewhere.
func remote(document string) bool { return strings.Contains(document, "://") }

// mayBuild tells whether a base that is not there is to be built, and completes
// what its file leaves out.
func (a *Agent) mayBuild(k *knowledge) (bool, error) {
	r := &a.host.Retrieval
	if len(k.documents) == 0 {
		return false, failf("Cannot build RAG knowledge base '%s' with no documents", k.id)
	}
	own := a.Config != nil
	specified := k.options.Model != "" && k.options.ChunkSize > 0 && k.sized
	if own {
		specified = k.options.Model != "" || r.Model != ""
	}
	switch {
	case specified:
	case r.Confirm == nil && own:
		a.tell(fmt.Sprintf("the documents of agent '%s' are not used: no embedding model is named (set `embedding_model: keyword` to search them by words alone)", a.Name))
		return false, nil
	case r.Confirm == nil:
		return false, failf("Agent '%s' requires RAG for rag node '%s', but its knowledge base is not built and the node does not fully specify how to build it. Set `embedding_model`, `chunk_size`, and `chunk_overlap` on the node, or run the agent once interactively. (`embedding_model: keyword` needs no model: it searches by words alone.)", a.Name, k.id)
	default:
		question := "Initialize RAG knowledge base for rag node '" + k.id + "'?"
		if own {
			question = "The agent has documents attached, init RAG?"
		}
		yes, err := r.Confirm(question)
		switch {
		case err != nil:
			return false, err
		case !yes && own:
			return false, nil
		case !yes:
			return false, failf("Agent '%s' has rag node '%s' but its RAG was not initialized. RAG initialization is required for this agent.", a.Name, k.id)
		}
	}
	return true, a.complete(k, !specified)
}

// complete takes what the file leaves out from the host's settings, then from a
// person if there is one to ask.
func (a *Agent) complete(k *knowledge, ask bool) error {
	r, o := &a.host.Retrieval, &k.options
	if o.Model == "" {
		o.Model = r.Model
	}
	if o.Model == "" && ask && r.Ask != nil {
		var err error
		if o.Model, err = r.Ask("Embedding model, as CLIENT:MODEL, or keyword to search by words alone:", rag.Keyword); err != nil {
			return err
		}
	}
	if o.Model == "" {
		return failf("RAG knowledge base needs an embedding model. Set `embedding_model` on the rag node, or run the agent interactively once. (`embedding_model: keyword` needs no model: it searches by words alone.)")
	}
	if o.ChunkSize == 0 {
		size, err := a.number("Chunk size, in bytes:", r.ChunkSize, rag.DefaultChunkSize, ask)
		if err != nil {
			return err
		}
		o.ChunkSize = size
	}
	if o.ChunkOverlap == 0 && !k.sized {
		const share = 20
		overlap, err := a.number("Chunk overlap, in bytes:", r.ChunkOverlap, o.ChunkSize/share, ask)
		if err != nil {
			return err
		}
		o.ChunkOverlap = overlap
	}
	if o.RerankerModel == "" {
		o.RerankerModel = r.RerankerModel
	}
	if o.TopK == 0 {
		o.TopK = r.TopK
	}
	return nil
}

// number is what the host's settings say, else what a person does, else the usual.
func (a *Agent) number(question string, said *int, usual int, ask bool) (int, error) {
	if said != nil || !ask || a.host.Retrieval.Ask == nil {
		return or(said, usual), nil
	}
	text, err := a.host.Retrieval.Ask(question, strconv.Itoa(usual))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, failf("%s %q is no number", question, text)
	}
	return n, nil
}

func (a *Agent) options(k knowledge) rag.Options {
	r, o := &a.host.Retrieval, k.options
	o.Embedder, o.Reranker = r.Embedder, r.Reranker
	o.Load = load.Options{Dir: a.Dir, Loaders: r.Loaders, Env: r.Env}
	return o
}

// built builds a base, and says in its file that it has.
func (a *Agent) built(ctx context.Context, k knowledge, path string) (Searcher, error) {
	name := k.id + ".db"
	base, err := rag.Open(filepath.Join(a.Dir, name), a.options(k))
	if err != nil {
		return nil, failf("Failed to load rag '%s' at '%s': %w", k.id, path, err)
	}
	a.tell("⚙ Initializing RAG...")
	a.tell("Embedding model: " + k.options.Model)
	a.tell(fmt.Sprintf("Chunk size: %d", k.options.ChunkSize))
	a.tell(fmt.Sprintf("Chunk overlap: %d", k.options.ChunkOverlap))
	_, err = base.Build(ctx, k.documents, a.progress(k.id))
	a.progressEnds(k.id)
	if err != nil {
		_ = base.Close()
		return nil, failf("rag '%s': %w", k.id, err)
	}
	text, err := yaml.Marshal(pointer{name, k.options.Model, k.options.ChunkSize, k.options.ChunkOverlap, k.options.TopK, k.options.RerankerModel, k.documents})
	if err == nil {
		text = append([]byte("# Made by raddle: remove this file to build the knowledge base anew.\n"), text...)
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		_ = base.Close()
		return nil, failf("rag '%s': %w", k.id, err)
	}
	a.tell("✓ Saved RAG to '" + path + "'.")
	return base, nil
}

func (a *Agent) progress(id string) func(rag.Progress) {
	return func(p rag.Progress) {
		if p.Problem != nil {
			a.tell("⚠️ " + p.Problem.Error())
		}
		switch told := a.host.Retrieval.Progress; {
		case told != nil:
			told(Building{Base: id, Done: p.Done, Total: p.Total, Embedded: p.Embedded, Known: p.Path != "" && p.Chunks == 0 && p.Problem == nil})
		case p.Chunks > 0:
			a.tell(fmt.Sprintf("Load %s [%d/%d]", p.Path, p.Done, p.Total))
		}
	}
}

func (a *Agent) progressEnds(id string) {
	if told := a.host.Retrieval.Progress; told != nil {
		told(Building{Base: id, Ended: true})
	}
}

func (a *Agent) tell(line string) {
	if told := a.host.Retrieval.Told; told != nil {
		told(a.host.redact(line))
	}
}
