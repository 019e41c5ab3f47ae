package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/wording"
	"raddle.dev/llm"
	"raddle.dev/rag"
)

// KnowledgeBase describes one knowledge base of an agent.
type KnowledgeBase struct {
	flow.BaseFile
	rag.Status
	Built bool `json:"built"`
}

// ListKnowledgeBases returns the state of the knowledge bases of an agent. It builds nothing.
func (p *Process) ListKnowledgeBases(ctx context.Context, agent string) ([]KnowledgeBase, error) {
	a, err := p.Load(LoadRequest{Agent: agent})
	if err != nil {
		return nil, err
	}
	list := []KnowledgeBase{}
	for _, f := range a.BaseFiles() {
		k := KnowledgeBase{BaseFile: f, Built: f.Store != ""}
		if k.Built {
			if k.Status, err = p.knowledgeStatus(ctx, f.Store); err != nil {
				return nil, failure.NewInvalid("remove it and build it again: raddle rag rm", "the knowledge base %s: %v", p.Dirs.ShortPath(f.Store), err)
			}
		}
		list = append(list, k)
	}
	return list, nil
}

func (p *Process) knowledgeStatus(ctx context.Context, path string) (rag.Status, error) {
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

// BuildKnowledge builds the knowledge bases of an agent that are missing, and updates
// the others. It reports to UIHooks.Notify those that it leaves with other settings than
// the agent's file has.
func (p *Process) BuildKnowledge(ctx context.Context, b KnowledgeBuild) error {
	place, err := p.FindAgent(b.Agent)
	if err != nil {
		return err
	}
	s := b.Hooks
	host, err := p.newHost(&runs.Record{Agent: place.Name, Dir: place.Dir, Model: p.Config.Model, Workspace: p.Dirs.Work}, s)
	if err != nil {
		return err
	}
	host.Retrieval.Renew, host.Retrieval.Rebuild = true, b.Rebuild
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

// SearchKnowledge sends a query to a knowledge base of an agent; if id is "", to its
// only one.
func (p *Process) SearchKnowledge(ctx context.Context, agent, id, query string, top int) ([]flow.Chunk, error) {
	f, err := p.baseFile(agent, id)
	if err != nil {
		return nil, err
	}
	if f.Store == "" {
		return nil, failure.NewUsage("build it: raddle rag build "+agent, "the knowledge base '%s' is not built", f.ID)
	}
	r := p.newRetrieval(UIHooks{})
	base, err := rag.Open(f.Store, rag.Options{Embedder: r.Embedder, Reranker: r.Reranker})
	if err != nil {
		return nil, err
	}
	defer func() { _ = base.Close() }()
	hits, err := base.Search(ctx, query, rag.SearchOptions{TopK: top})
	chunks := make([]flow.Chunk, len(hits))
	for i, h := range hits {
		chunks[i] = flow.Chunk{Source: h.Path, Index: h.Chunk, Text: h.Text, Score: h.Score}
	}
	return chunks, err
}

// RemoveKnowledge deletes a knowledge base of an agent, or all of them if id is "".
// It returns the files that defined them.
func (p *Process) RemoveKnowledge(agent, id string) (removed []string, err error) {
	a, err := p.Load(LoadRequest{Agent: agent})
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

// baseFile finds a knowledge base of an agent by its id.
func (p *Process) baseFile(agent, id string) (flow.BaseFile, error) {
	a, err := p.Load(LoadRequest{Agent: agent})
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
