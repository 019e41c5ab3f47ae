package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/rag"
)

// Knowledge manages the knowledge bases of agents. Process.Knowledge returns it.
type Knowledge struct{ process *Process }

// Knowledge returns what manages the knowledge bases of agents.
func (p *Process) Knowledge() Knowledge { return Knowledge{p} }

// KnowledgeBase describes one knowledge base of an agent.
type KnowledgeBase struct {
	flow.BaseFile
	rag.Status
	Built bool `json:"built"`
}

// ListBases returns the state of the knowledge bases of an agent. It builds nothing.
func (k Knowledge) ListBases(ctx context.Context, agent string) ([]KnowledgeBase, error) {
	a, err := k.process.Load(LoadRequest{Agent: agent})
	if err != nil {
		return nil, err
	}
	list := []KnowledgeBase{}
	for _, f := range a.BaseFiles() {
		base := KnowledgeBase{BaseFile: f, Built: f.Store != ""}
		if base.Built {
			if base.Status, err = k.readStatus(ctx, f.Store); err != nil {
				return nil, failure.NewInvalid("remove it and build it again: raddle rag rm", "the knowledge base %s: %v", k.process.Dirs.ShortPath(f.Store), err)
			}
		}
		list = append(list, base)
	}
	return list, nil
}

// readStatus reads the state of the base in a file.
func (k Knowledge) readStatus(ctx context.Context, path string) (rag.Status, error) {
	base, err := rag.Open(path, rag.Options{})
	if err != nil {
		return rag.Status{}, err
	}
	defer func() { _ = base.Close() }()
	return base.Status(ctx)
}

// KnowledgeBuild says what to do with the knowledge bases of an agent.
type KnowledgeBuild struct {
	Agent   string // name or path
	Rebuild bool   // also rebuild bases that were built with other settings than the agent's file has now
	Hooks   UIHooks
}

// BuildBases builds the knowledge bases of an agent that are missing, and updates
// the others. Without KnowledgeBuild.Rebuild, a base that was built with other settings than
// the agent's file has now keeps these settings, and UIHooks.Notify says so.
func (k Knowledge) BuildBases(ctx context.Context, b KnowledgeBuild) error {
	place, err := k.process.FindAgent(b.Agent)
	if err != nil {
		return err
	}
	s := b.Hooks
	host, err := k.process.newHost(&runs.Record{
		Agent:     place.Name,
		Dir:       place.Dir,
		Model:     k.process.Config.Model,
		Workspace: k.process.Dirs.Work,
	}, s)
	if err != nil {
		return err
	}
	host.Retrieval.Renew = true
	host.Retrieval.Rebuild = b.Rebuild
	a, err := flow.Load(place.Dir, host)
	if err != nil {
		return err
	}
	if len(a.BaseFiles()) == 0 {
		return failure.NewUsage("give it a rag node, or documents", "agent '%s' has no documents", a.Name)
	}
	err = a.Prepare(ctx)
	closed := a.Close()
	var down *llm.Error
	var unfit *rag.VectorError
	switch {
	case err == nil:
		reportDifferences(a, b)
		return closed
	case errors.As(err, &down), errors.As(err, &unfit), ctx.Err() != nil:
		return err // the agent itself is valid
	}
	return &failure.Error{Kind: failure.Invalid, Err: err}
}

// reportDifferences reports the knowledge bases that were built with other settings than
// the files of their agents have.
func reportDifferences(a *flow.Agent, b KnowledgeBuild) {
	for _, each := range a.Agents() {
		for _, f := range each.BaseFiles() {
			if len(f.Differs) > 0 && b.Hooks.Notify != nil {
				b.Hooks.Notify(fmt.Sprintf("the knowledge base '%s' was built with other settings than the file has now: %s. To build it again: raddle rag build --rebuild %s",
					f.ID, strings.Join(f.Differs, "; "), b.Agent))
			}
		}
	}
}

// A KnowledgeSource names a knowledge base.
type KnowledgeSource struct {
	Base string // the name or path of an agent, or the file of a base: NAME.db
	Node string // the id of the rag node of an agent; empty: the agent has one base
	// Wrap returns what is asked in place of the embedding model; nil: the model itself.
	Wrap func(rag.Embedder) rag.Embedder
}

// An OpenKnowledge is a knowledge base that can be searched. Close it.
type OpenKnowledge struct {
	*rag.Base
	Fusion rag.Fusion // as the agent's file says
}

// OpenBase opens a knowledge base that is built.
func (k Knowledge) OpenBase(s KnowledgeSource) (*OpenKnowledge, error) {
	f := flow.BaseFile{Store: s.Base}
	if filepath.Ext(s.Base) != baseSuffix {
		var err error
		if f, err = k.findBase(s.Base, s.Node); err != nil {
			return nil, err
		}
		if f.Store == "" {
			return nil, failure.NewUsage("build it: raddle rag build "+s.Base, "the knowledge base '%s' is not built", f.ID)
		}
	} else if _, err := os.Stat(s.Base); err != nil {
		return nil, failure.NewUsage("name an agent, or the file of a knowledge base", "%v", err)
	}
	r := k.process.newRetrieval(UIHooks{})
	o := rag.Options{Embedder: r.Embedder, Reranker: r.Reranker, Fusion: f.Fusion}
	if s.Wrap != nil {
		o.Embedder = func(model string) (rag.Embedder, error) {
			e, err := r.Embedder(model)
			if err != nil {
				return nil, err
			}
			return s.Wrap(e), nil
		}
	}
	base, err := rag.Open(f.Store, o)
	if err != nil {
		return nil, err
	}
	return &OpenKnowledge{Base: base, Fusion: f.Fusion}, nil
}

// baseSuffix is the ending of the names of files that hold bases.
const baseSuffix = ".db"

// SearchBase sends a query to a knowledge base of an agent; if id is "", to its
// only one.
func (k Knowledge) SearchBase(ctx context.Context, agent, id, query string, top int) ([]flow.Chunk, error) {
	base, err := k.OpenBase(KnowledgeSource{Base: agent, Node: id})
	if err != nil {
		return nil, err
	}
	defer func() { _ = base.Close() }()
	hits, err := base.Search(ctx, query, rag.SearchOptions{TopK: top})
	return flow.NewChunks(hits), err
}

// RemoveBases deletes a knowledge base of an agent, or all of them if id is "".
// It returns the files that defined them.
func (k Knowledge) RemoveBases(agent, id string) (removed []string, err error) {
	a, err := k.process.Load(LoadRequest{Agent: agent})
	if err != nil {
		return nil, err
	}
	for _, f := range a.BaseFiles() {
		if id != "" && f.ID != id || f.Store == "" {
			continue
		}
		if f.Store != f.Path {
			if err := rag.Remove(f.Store); err != nil {
				return removed, err
			}
		}
		if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		removed = append(removed, f.Path)
	}
	return removed, nil
}

// findBase finds a knowledge base of an agent by its id.
func (k Knowledge) findBase(agent, id string) (flow.BaseFile, error) {
	a, err := k.process.Load(LoadRequest{Agent: agent})
	if err != nil {
		return flow.BaseFile{}, err
	}
	files := a.BaseFiles()
	var ids []string
	for _, f := range files {
		if f.ID == id {
			return f, nil
		}
		ids = append(ids, f.ID)
	}
	switch {
	case len(files) == 0:
		return flow.BaseFile{}, failure.NewUsage("", "agent '%s' has no documents", a.Name)
	case id == "" && len(files) == 1:
		return files[0], nil
	case id == "":
		return flow.BaseFile{}, failure.NewUsage(fmt.Sprintf("name one: --node %s", ids[0]), "agent '%s' has several knowledge bases: %v", a.Name, ids)
	}
	return flow.BaseFile{}, failure.NewUsage(wording.SuggestNearest(id, ids, ""), "agent '%s' has no knowledge base %q", a.Name, id)
}
