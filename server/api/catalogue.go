package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/draw"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/provider"
	"raddle.dev/server"
)

// AgentPath is the parameter of operations on an agent.
type AgentPath struct {
	Name string `path:"name" doc:"name of the agent"`
}

// AgentDetail is all that can be said of an agent without running it.
type AgentDetail struct {
	Name        string               `json:"name"`
	Kind        string               `json:"kind" enum:"graph,agent"`
	Description string               `json:"description"`
	Variables   []spec.Variable      `json:"variables" nullable:"false"`
	Starters    []string             `json:"starters" nullable:"false"`
	Findings    []strictyaml.Finding `json:"findings" nullable:"false" doc:"what raddle check finds"`
	Files       []string             `json:"files" nullable:"false" doc:"its own files, which agents/{name}/files/{path} returns"`
	Structure   any                  `json:"structure" doc:"its graph, as raddle graph --format json writes it"`
}

type pictureInput struct {
	AgentPath
	Folding
	Theme string `query:"theme" enum:"light,dark,auto" default:"auto"`
}

type fileInput struct {
	AgentPath
	Path string `path:"path" doc:"a path of files of the agent"`
}

// raw is an answer that is not JSON.
type raw struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// AgentQuery selects an agent.
type AgentQuery struct {
	Agent string `query:"agent" doc:"name of an agent"`
}

// Base is a knowledge base of an agent.
type Base struct {
	Agent     string   `json:"agent"`
	ID        string   `json:"id"`
	Documents []string `json:"documents" nullable:"false"`
	Built     bool     `json:"built"`
}

type searchInput struct {
	ID   string `path:"id" doc:"id of the knowledge base"`
	Body struct {
		Agent string `json:"agent" minLength:"1" doc:"name of the agent that has the base"`
		Query string `json:"query" minLength:"1"`
		Top   int    `json:"top,omitempty" minimum:"1" maximum:"100" doc:"at most this many parts"`
	}
}

// addCatalogue adds the operations on agents, models and knowledge bases.
func (h *handler) addCatalogue() {
	read := server.ScopeRead
	add(h, operation{http.MethodGet, "/agents", "list-agents", "List the agents of the catalogue", read, 0}, func(_ context.Context, in *Paging) (*body[Page[server.AgentInfo]], error) {
		list := h.service.ListAgents()
		return cut(*in, list, func(a *server.AgentInfo) string { return a.Name }, func(a *server.AgentInfo, key string) bool { return a.Name > key })
	})
	add(h, operation{http.MethodGet, "/agents/{name}", "show-agent", "Show an agent: variables, findings, files, structure", read, 0}, h.showAgent)
	add(h, operation{http.MethodGet, "/agents/{name}/picture.svg", "draw-agent", "Draw the graph of an agent", read, 0}, h.drawAgent)
	add(h, operation{http.MethodGet, "/agents/{name}/files/{path...}", "read-file", "Read a file of an agent", read, 0}, h.readFile)
	add(h, operation{http.MethodGet, "/models", "list-models", "List models", read, 0}, func(_ context.Context, in *Paging) (*body[Page[provider.Model]], error) {
		list := slices.Clone(h.process.Models.ListModels())
		slices.SortFunc(list, func(a, b provider.Model) int { return strings.Compare(a.ID, b.ID) })
		return cut(*in, list, func(m *provider.Model) string { return m.ID }, func(m *provider.Model, key string) bool { return m.ID > key })
	})
	add(h, operation{http.MethodGet, "/bases", "list-bases", "List the knowledge bases of an agent, or of all", read, 0}, h.listBases)
	add(h, operation{http.MethodPost, "/bases/{id}/search", "search-base", "Search a knowledge base; this may call an embedding model", server.ScopeStart, 0}, h.searchBase)
}

// checkAgent returns a problem if the catalogue has no agent with a name.
func (h *handler) checkAgent(name string) error {
	if app.IsPath(name) || slices.ContainsFunc(h.process.ListAgents(), func(p app.Place) bool { return p.Name == name }) {
		return nil
	}
	return newProblem(http.StatusNotFound, "unknown-agent", "there is no agent "+name)
}

// nameAgent replaces an error about an agent that does not exist.
func (h *handler) nameAgent(name string, err error) error {
	if unknown := h.checkAgent(name); unknown != nil {
		return unknown
	}
	return err
}

// loadAgent loads an agent of the catalogue. The caller must close it.
func (h *handler) loadAgent(name string) (*server.AgentInfo, *flow.Agent, error) {
	info, a, err := h.service.LoadAgent(name)
	if err != nil {
		err = h.nameAgent(name, err)
	}
	return info, a, err
}

func (h *handler) showAgent(_ context.Context, in *AgentPath) (*body[AgentDetail], error) {
	info, a, err := h.loadAgent(in.Name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	d := AgentDetail{Name: info.Name, Kind: info.Kind, Description: info.Description, Variables: append([]spec.Variable{}, info.Variables...), Starters: append([]string{}, info.Starters...),
		Findings: append([]strictyaml.Finding{}, a.Findings...), Files: ownFiles(a)}
	var b bytes.Buffer
	if err := draw.Write(&b, "json", a.Structure(), draw.Options{}); err != nil {
		return nil, err
	}
	d.Structure = json.RawMessage(b.Bytes())
	return &body[AgentDetail]{d}, nil
}

func (h *handler) drawAgent(_ context.Context, in *pictureInput) (*raw, error) {
	_, a, err := h.loadAgent(in.Name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	var b bytes.Buffer
	o := draw.Options{Theme: draw.Theme(in.Theme)}
	s := in.foldPicture(a.Picture(), &o)
	err = draw.Write(&b, "svg", s, o)
	return &raw{"image/svg+xml", b.Bytes()}, err
}

// ownFiles returns the files in the directory of an agent that its check reads, without hidden ones.
func ownFiles(a *flow.Agent) []string {
	list := []string{}
	for _, s := range a.Sources() {
		name := filepath.ToSlash(s.Path)
		hidden := slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
		if s.Hash != "" && !hidden && filepath.IsLocal(s.Path) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// maxFile is the size of the largest file that is shown, in bytes.
const maxFile = 4 << 20

func (h *handler) readFile(_ context.Context, in *fileInput) (*raw, error) {
	_, a, err := h.loadAgent(in.Name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	unknown := newProblem(http.StatusNotFound, "unknown-file", "the agent "+in.Name+" does not read a file "+in.Path)
	if !slices.Contains(ownFiles(a), path.Clean(in.Path)) {
		return nil, unknown
	}
	// a link that leads out of it is not followed
	file, err := plainfile.OpenBeneath(a.Dir, filepath.FromSlash(path.Clean(in.Path)))
	if err != nil {
		return nil, unknown
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	return &raw{"text/plain; charset=utf-8", h.process.Tools.SecretSet().Bytes(text)}, err
}

// checkName returns a problem for a path, where only a name of the catalogue makes sense.
func (h *handler) checkName(name string) error {
	if app.IsPath(name) {
		return newProblem(http.StatusBadRequest, "usage", name+" is a path: name an agent of the catalogue")
	}
	return nil
}

type basesInput struct {
	Paging
	AgentQuery
}

func (h *handler) listBases(ctx context.Context, in *basesInput) (*body[Page[Base]], error) {
	names := []string{in.Agent}
	if err := h.checkName(in.Agent); err != nil {
		return nil, err
	}
	if in.Agent == "" {
		names = nil
		for _, p := range h.process.ListAgents() {
			names = append(names, p.Name)
		}
	} else if err := h.checkAgent(in.Agent); err != nil {
		return nil, err
	}
	var list []Base
	for _, name := range names {
		bases, err := h.process.Knowledge().ListBases(ctx, name)
		if err != nil && in.Agent != "" {
			return nil, err
		}
		for _, b := range bases { // agents that cannot be loaded have none
			list = append(list, Base{name, b.ID, append([]string{}, b.BaseFile.Documents...), b.Built})
		}
	}
	key := func(b *Base) string { return b.Agent + "/" + b.ID }
	slices.SortFunc(list, func(a, b Base) int { return strings.Compare(key(&a), key(&b)) })
	return cut(in.Paging, list, key, func(b *Base, last string) bool { return key(b) > last })
}

func (h *handler) searchBase(ctx context.Context, in *searchInput) (*body[[]flow.Chunk], error) {
	if err := h.checkName(in.Body.Agent); err != nil {
		return nil, err
	}
	if err := h.checkAgent(in.Body.Agent); err != nil {
		return nil, err
	}
	in.Body.Top = cmp.Or(in.Body.Top, 5)
	found, err := h.process.Knowledge().SearchBase(ctx, in.Body.Agent, in.ID, in.Body.Query, in.Body.Top)
	return &body[[]flow.Chunk]{append([]flow.Chunk{}, found...)}, err
}
