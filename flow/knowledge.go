package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/memory"
	"raddle.dev/rag"
)

// A SearchFunc searches the knowledge base that a request names.
type SearchFunc func(ctx context.Context, s SearchRequest) ([]rag.Hit, error)

// Retrieval says how knowledge bases are built and searched. The zero value
// builds those that need no answer of a person: for keyword search, or with
// complete settings.
type Retrieval struct {
	// Memory opens the store of the values that outlive runs, for {{user.key}} and {{app.key}}; nil: there are none.
	Memory func() (memory.Store, error)

	Embedder func(model string) (rag.Embedder, error) // opens an embedding model; nil: only rag.Keyword is available
	Reranker func(model string) (rag.Reranker, error) // opens a reranking model; nil: no reranking model is available
	// Base returns a knowledge base from elsewhere, by agent and node. If it is
	// nil or ok is false, the base is in the agent's directory.
	Base func(agent, node string) (s Searcher, ok bool)

	Model         string // of embedding, if no file sets one: see rag.Options
	RerankerModel string
	ChunkSize     *int
	ChunkOverlap  *int
	TopK          int
	// ExtractorModel finds entities in documents whose nodes set no other
	// model; empty: no entities are extracted. Host.Models opens it.
	ExtractorModel string
	Template       string            // text around a question and what was found; empty: a default
	Loaders        map[string]string // see load.Options
	Env            []string          // of loaders

	// Around wraps every search of an agent; nil: nothing does.
	Around func(SearchFunc) SearchFunc

	// Confirm asks whether to build a knowledge base; nil: there is no person
	// to ask.
	Confirm func(question string) (bool, error)
	// Ask asks for a value that is not set and suggests the usual one; nil: the
	// usual value is used, and a missing model is an error.
	Ask func(question, usual string) (string, error)
	// Renew also updates bases that contain web pages, and makes it an error if
	// a base cannot be updated. Without it such a base is used as it is.
	Renew bool
	// Rebuild builds existing bases from scratch, with the current settings of
	// the agents' files.
	Rebuild bool
	// Notify receives the messages of a build, one line at a time; nil: they are
	// dropped.
	Notify func(line string)
	// Progress receives the progress of a build, instead of one message for
	// each document; nil: Notify receives those messages.
	Progress func(BuildProgress)
}

// BuildProgress is the progress of building a knowledge base.
type BuildProgress struct {
	Base     string // its id
	Done     int    // number of documents that were processed
	Total    int
	Known    bool // the document that was processed last has not changed
	Embedded int  // texts that were sent to the embedding model
	Asked    int  // number of parts of documents that were sent to the extractor model
	ToAsk    int  // total number of these parts; zero: documents are still being read
	Ended    bool // this is the last report of this build
}

// Searcher answers queries: a *[rag.Base], or another index.
type Searcher interface {
	Search(ctx context.Context, query string, o rag.SearchOptions) ([]rag.Hit, error)
}

// ownBase is the name of the base of a config.yaml's documents.
const ownBase = "rag"

// knowledge is what an agent's file says about one base.
type knowledge struct {
	id        string // of the rag node, or ownBase
	documents []string
	options   rag.Options
	sized     bool // the overlap of chunks is set; it may be zero
	driver    string
}

// Prepare opens the knowledge bases of the agent and of the agents it runs, and
// builds those that do not exist or whose documents have changed. If settings
// are missing, it asks for them, or fails if there is no person to ask. If a base of a
// child cannot be opened, the nodes that run the child will fail; with
// [Retrieval.Renew], Prepare fails. Call it once before the run; it may take long. The
// caller must Close the Agent.
func (a *Agent) Prepare(ctx context.Context) error { return a.prepareBases(ctx, map[*Agent]bool{}) }

func (a *Agent) prepareBases(ctx context.Context, seen map[*Agent]bool) error {
	if seen[a] {
		return nil
	}
	seen[a] = true
	opener := newBaseOpener(a)
	for _, k := range a.knowledgeBases() {
		base, err := opener.openBase(ctx, k)
		if err != nil {
			return err
		}
		if base != nil {
			a.bases[k.id] = base
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.children)) {
		if a.childFault(name) != nil {
			continue // its node fails before it searches
		}
		err := a.children[name].prepareBases(ctx, seen)
		var unanswered *unansweredError
		switch {
		case err == nil:
		case a.host.Retrieval.Renew || errors.As(err, &unanswered) || ctx.Err() != nil:
			return err
		default:
			a.childErrors[name] = err
			opener.reportLine(fmt.Sprintf("warning: nodes that run agent '%s' will fail: %v", name, err))
		}
	}
	return nil
}

// unansweredError wraps the error of a question that the person did not answer.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string { return e.err.Error() }
func (e *unansweredError) Unwrap() error { return e.err }

// Close closes the knowledge bases that Prepare opened, and those of spawned
// agents.
func (a *Agent) Close() error { return errors.Join(closeBases(a, map[*Agent]bool{})...) }

func closeBases(a *Agent, seen map[*Agent]bool) []error {
	if seen[a] {
		return nil
	}
	seen[a] = true
	failed := closeOwnBases(a)
	for _, name := range slices.Sorted(maps.Keys(a.children)) {
		failed = append(failed, closeBases(a.children[name], seen)...)
	}
	if a.spawnSet != nil {
		for _, m := range a.spawnSet.sortedAgents() {
			failed = append(failed, closeBases(m, seen)...)
		}
	}
	return failed
}

// closeOwnBases closes only the bases of the agent itself.
func closeOwnBases(a *Agent) (failed []error) {
	for _, id := range slices.Sorted(maps.Keys(a.bases)) {
		if b, ok := a.bases[id].(*rag.Base); ok {
			failed = append(failed, b.Close())
		}
	}
	clear(a.bases)
	if a.spawnBases != nil {
		delete(a.spawnBases.done, a)
	}
	return failed
}

// knowledgeBases returns what the agent's file says about its bases, in the order of
// the file.
func (a *Agent) knowledgeBases() []knowledge {
	var list []knowledge
	if a.Config != nil {
		if d := a.Config.Documents; len(d.Paths) > 0 {
			list = append(list, knowledge{id: ownBase, documents: d.Paths, options: rag.Options{
				Model: d.Model, ChunkSize: valueOr(d.ChunkSize, 0), ChunkOverlap: valueOr(d.ChunkOverlap, 0), Fusion: fusionOf(d.Fusion)}, sized: d.ChunkOverlap != nil})
		}
		return list
	}
	for _, n := range a.File.Nodes {
		if base := needsOf(n).base; base != nil {
			list = append(list, *base)
		}
	}
	return list
}

func valueOr[T any](n *T, other T) T {
	if n == nil {
		return other
	}
	return *n
}

// mayBuild reports whether to build a base that does not exist, and completes
// the settings that its file leaves out. The host's settings count like those
// of the file.
func (b *baseOpener) mayBuild(k *knowledge) (bool, error) {
	r := &b.host.Retrieval
	if len(k.documents) == 0 {
		return false, noDocuments(*k)
	}
	own := b.own
	specified := k.options.Model != "" || r.Model != ""
	if !own {
		specified = specified && (k.options.ChunkSize > 0 || r.ChunkSize != nil) && (k.sized || r.ChunkOverlap != nil)
	}
	switch {
	case specified:
	case r.Confirm == nil && own:
		b.reportLine(fmt.Sprintf("the documents of agent '%s' are not used: no embedding model is set (set `embedding_model: keyword` to search them by words alone)", b.agent))
		return false, nil
	case r.Confirm == nil:
		return false, spec.Errorf("Agent '%s' requires RAG for rag node '%s', but its knowledge base is not built and the node does not fully specify how to build it. Set `embedding_model`, `chunk_size`, and `chunk_overlap` on the node, or run the agent once interactively. (`embedding_model: keyword` needs no model: it searches by words alone. The settings `rag_embedding_model`, `rag_chunk_size` and `rag_chunk_overlap` of the configuration count, too.)", b.agent, k.id)
	default:
		question := "Initialize RAG knowledge base for rag node '" + k.id + "'?"
		if own {
			question = "The agent has documents attached, init RAG?"
		}
		yes, err := r.Confirm(question)
		switch {
		case err != nil:
			return false, &unansweredError{err}
		case !yes && own:
			return false, nil
		case !yes:
			return false, spec.Errorf("Agent '%s' has rag node '%s' but its RAG was not initialized. RAG initialization is required for this agent.", b.agent, k.id)
		}
	}
	return true, b.completeOptions(k, !specified)
}

func noDocuments(k knowledge) error {
	return spec.Errorf("Cannot build RAG knowledge base '%s' with no documents", k.id)
}

// completeOptions takes missing settings from the host, then from a person if ask is
// true.
func (b *baseOpener) completeOptions(k *knowledge, ask bool) error {
	r := &b.host.Retrieval
	o := &k.options
	o.Model = cmp.Or(o.Model, r.Model)
	if o.Model == "" && ask && r.Ask != nil {
		var err error
		if o.Model, err = r.Ask("Embedding model, as CLIENT:MODEL, or keyword to search by words alone:", rag.Keyword); err != nil {
			return &unansweredError{err}
		}
	}
	if o.Model == "" {
		return spec.Errorf("RAG knowledge base needs an embedding model. Set `embedding_model` on the rag node, or run the agent interactively once. (`embedding_model: keyword` needs no model: it searches by words alone.)")
	}
	if o.ChunkSize == 0 {
		size, err := b.resolveNumber("Chunk size, in bytes:", r.ChunkSize, rag.DefaultChunkSize, ask)
		if err != nil {
			return err
		}
		o.ChunkSize = size
	}
	if o.ChunkOverlap == 0 && !k.sized {
		const share = 20
		overlap, err := b.resolveNumber("Chunk overlap, in bytes:", r.ChunkOverlap, o.ChunkSize/share, ask)
		if err != nil {
			return err
		}
		o.ChunkOverlap = overlap
	}
	o.RerankerModel = cmp.Or(o.RerankerModel, r.RerankerModel)
	if o.Extraction.Model == "" {
		o.Extraction.Model = r.ExtractorModel
	}
	o.TopK = cmp.Or(o.TopK, r.TopK)
	return nil
}

// resolveNumber returns the host's setting, else the answer of a person, else the
// usual value.
func (b *baseOpener) resolveNumber(question string, setting *int, usual int, ask bool) (int, error) {
	if setting != nil || !ask || b.host.Retrieval.Ask == nil {
		return valueOr(setting, usual), nil
	}
	text, err := b.host.Retrieval.Ask(question, strconv.Itoa(usual))
	if err != nil {
		return 0, &unansweredError{err}
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, spec.Errorf("%s %q is not a number", question, text)
	}
	return n, nil
}

// adviseDocuments warns about files and folders of documents that do not exist.
// Otherwise only the build would report them.
func adviseDocuments(a *Agent) {
	for _, k := range a.knowledgeBases() {
		at := documentsAt(a, k.id)
		for i, d := range k.documents {
			if !plainPath(d) {
				continue
			}
			path := d
			if !filepath.IsAbs(path) {
				path = filepath.Join(a.Dir, path)
			}
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				addWarning(a, strictyaml.Finding{Code: "document-missing", Message: fmt.Sprintf("documents: there is no file or folder '%s'", d), Hint: "relative paths start at the agent's directory", Pos: at(i)})
			}
		}
	}
}

// documentsAt returns a function that returns the position of a source of a
// base.
func documentsAt(a *Agent, id string) func(i int) strictyaml.Pos {
	if a.Config != nil {
		return a.Config.Source.ItemPositions("documents")
	}
	return a.File.Node(id).Source.ItemPositions("documents")
}

// plainPath reports whether a source is the path of one file or folder: not a
// pattern, an address, a source for a loader, or a source that is rejected in
// any case.
func plainPath(source string) bool {
	return source != "" && !strings.ContainsAny(source, "*?[]{}:@") && !strings.HasPrefix(source, "~") && !strings.Contains(source, "..")
}

// spawnBases records the agents that opened knowledge bases after the run
// started: spawned agents, and those below them. All agents that are loaded
// together share it.
type spawnBases struct {
	turn chan struct{} // has one place: its holder may open bases, because two agents may store the same base
	done map[*Agent]bool
}
