package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/versus"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// Record is a record of a journal.
type Record struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Path string    `json:"path,omitempty"`
	What string    `json:"what,omitempty"`
	Next []string  `json:"next,omitempty"`
	By   string    `json:"by,omitempty" doc:"name of the token with which someone answered, forked, edited or cancelled"`
}

// State is the state of a run at a point.
type State struct {
	runs.Point
	State json.RawMessage `json:"state"`
	Next  []string        `json:"next" nullable:"false" doc:"nodes that run next"`
}

// Difference is what differs between two points.
type Difference struct {
	From    runs.Point    `json:"from"`
	To      runs.Point    `json:"to"`
	Changes []runs.Change `json:"changes" nullable:"false"`
}

type historyInput struct {
	RunPath
	Paging
}

type pointInput struct {
	RunPath
	At int64 `query:"at" minimum:"0" doc:"number of a record; 0: the current state"`
}

type diffInput struct {
	RunPath
	A string `query:"a" required:"true" doc:"number of a record of the run, or RUN@N"`
	B string `query:"b" doc:"as a; absent: the current state of the run"`
}

type compareInput struct {
	RunPath
	With string `query:"with" required:"true" doc:"id of another run"`
}

type blameInput struct {
	RunPath
	At  int64  `query:"at" minimum:"0" doc:"number of a record; 0: the current state; only without key"`
	Key string `query:"key" doc:"a key of the state; absent: the last writer of every key"`
}

// Author is what wrote a key.
type Author = runs.KeyAuthor

// ForkBody says how to copy a run.
type ForkBody struct {
	At     int64          `json:"at,omitempty" minimum:"0" doc:"number of a record; absent: the current state"`
	State  map[string]any `json:"state,omitempty" doc:"values that the state of the copy gets"`
	Model  string         `json:"model,omitempty" doc:"replaces every model of the copy"`
	Prompt string         `json:"prompt,omitempty" doc:"replaces the prompt in the state of the copy of a graph"`
	Start  bool           `json:"start,omitempty" doc:"continue the copy at once"`

	Templates map[string]string `json:"templates,omitempty" maxProperties:"100" doc:"replace templates of prompts in the copy, by node of the run's graph.yaml; its file stays as it is"`
	Breaks    []graph.Break     `json:"breaks,omitempty" maxItems:"100" doc:"where the copy stops, as in set-breaks"`
}

type forkInput struct {
	RunPath
	Body ForkBody
}

// Forked is a copy of a run.
type Forked struct {
	Run     string     `json:"run"`
	From    runs.Point `json:"from"`
	Started bool       `json:"started"`
}

type editInput struct {
	RunPath
	Body struct {
		State map[string]any `json:"state" minProperties:"1" doc:"values that the state gets"`
	}
}

// Stops are the places at which a run stops.
type Stops struct {
	Breaks []server.Stop `json:"breaks" nullable:"false"`
}

// Breaks are the places at which a run is to stop.
type Breaks struct {
	Breaks []graph.Break `json:"breaks" maxItems:"100" nullable:"false" doc:"nodes of the run's graph, or of graphs that it calls (call/node); before the node, or after it with after"`
}

type breaksInput struct {
	RunPath
	Body Breaks
}

// exported is a run in one file.
type exported struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

// addTravel adds the operations on the past of runs.
func (h *handler) addTravel() {
	add(h, operation{http.MethodGet, "/runs/{id}/history", "list-history", "List the records of a run, newest first", server.ScopeRead, 0}, h.listHistory)
	h.addStates()
	add(h, operation{http.MethodGet, "/runs/{id}/export", "export-run", "Write a run to one file, as raddle runs export does", server.ScopeRead, 0}, h.exportRun)
	add(h, operation{http.MethodPost, "/runs/{id}/fork", "fork-run", "Copy a run at a record, change the copy and start it", server.ScopeStart, http.StatusCreated}, h.forkRun)
	add(h, operation{http.MethodGet, "/runs/{id}/templates", "list-templates", "List the templates of prompts in the graph of a run", server.ScopeRead, 0}, h.listTemplates)
	add(h, operation{http.MethodGet, "/runs/{id}/breaks", "list-breaks", "List the places at which a run stops when it continues", server.ScopeRead, 0}, h.listBreaks)
	add(h, operation{http.MethodPost, "/runs/{id}/breaks", "set-breaks", "Replace the places at which a run stops when it continues", server.ScopeStart, 0}, h.setBreaks)
	add(h, operation{http.MethodPost, "/runs/{id}/edit", "edit-run", "Replace values in the state of a run that is not over", server.ScopeAdmin, 0}, h.editRun)
}

// addStates adds the operations on the states that a run had.
func (h *handler) addStates() {
	add(h, operation{http.MethodGet, "/runs/{id}/state", "read-state", "Read the state of a run at a record", server.ScopeRead, 0}, h.readState)
	add(h, operation{http.MethodGet, "/runs/{id}/diff", "compare-states", "Compare the states of two points", server.ScopeRead, 0}, h.compareStates)
	add(h, operation{http.MethodGet, "/runs/{id}/comparison", "compare-runs", "Compare two runs: where they part, what their nodes took and cost, and what the difference comes from", server.ScopeRead, 0}, h.compareRuns)
	add(h, operation{http.MethodGet, "/runs/{id}/blame", "blame-keys", "Show what wrote the keys of a state", server.ScopeRead, 0}, h.blameKeys)
}

func (h *handler) listHistory(ctx context.Context, in *historyInput) (*body[Page[Record]], error) {
	_, entries, err := h.process.Runs.ReadHistory(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var list []Record
	for _, e := range entries {
		list = append(list, Record{e.Seq, e.Time, e.Kind.String(), e.Path, e.What, e.Next, e.By})
	}
	return cut(in.Paging, list, func(r *Record) string { return strconv.FormatInt(r.Seq, 10) }, func(r *Record, key string) bool {
		last, err := strconv.ParseInt(key, 10, 64)
		return err == nil && r.Seq < last
	})
}

func (h *handler) readState(ctx context.Context, in *pointInput) (*body[State], error) {
	d, err := h.process.Runs.ReadRunDetail(ctx, nameRecord(in.ID, in.At))
	if err != nil {
		return nil, err
	}
	return &body[State]{State{runs.Point{Run: d.Run, At: max(d.At, d.Snapshot.Head)}, flow.StoredJSON(d.Snapshot.Values), append([]string{}, d.Snapshot.Next...)}}, nil
}

// nameRecord returns RUN@AT, or the run alone if at is 0.
func nameRecord(run string, at int64) string {
	if at == 0 {
		return run
	}
	return fmt.Sprintf("%s@%d", run, at)
}

func (h *handler) compareStates(ctx context.Context, in *diffInput) (*body[Difference], error) {
	name := func(text string) string {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			return nameRecord(in.ID, at)
		}
		if text == "" {
			return in.ID
		}
		return text
	}
	from, to, changes, err := h.process.Runs.DiffPoints(ctx, name(in.A), name(in.B))
	return &body[Difference]{Difference{from, to, append([]runs.Change{}, changes...)}}, err
}

// compareRuns compares two runs. A read of either costs what its journal does.
func (h *handler) compareRuns(ctx context.Context, in *compareInput) (*body[*versus.Comparison], error) {
	a, b, err := versus.ReadPair(ctx, h.process.Runs, in.ID, in.With)
	if err != nil {
		return nil, err
	}
	return &body[*versus.Comparison]{versus.CompareRuns(a, b, h.process.Models.UsageCost)}, nil
}

func (h *handler) blameKeys(ctx context.Context, in *blameInput) (*body[[]Author], error) {
	if in.Key == "" {
		list, err := h.process.Runs.BlameKeys(ctx, nameRecord(in.ID, in.At))
		return &body[[]Author]{append([]Author{}, list...)}, err
	}
	authors, err := h.process.Runs.BlameKey(ctx, in.ID, in.Key)
	list := []Author{}
	for _, a := range authors {
		list = append(list, Author{Key: in.Key, Author: a})
	}
	return &body[[]Author]{list}, err
}

// toSettings returns values of a request in the form of values of a state, sorted by their keys.
func toSettings(values map[string]any) (set []app.Setting, err error) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, err := json.Marshal(values[key])
		if err != nil {
			return nil, err
		}
		v, err := jsonvalue.Parse(text)
		if err != nil {
			return nil, newProblem(http.StatusUnprocessableEntity, "invalid-request", fmt.Sprintf("the value of %s: %v", key, err))
		}
		set = append(set, app.Setting{Key: key, Value: v})
	}
	return set, nil
}

// checkForkScope returns an error if a caller may not make a copy that differs from its original: one that rests on
// what people have answered would use their answers for something else than they have seen, so that it needs the scope
// that the answers needed.
func (h *handler) checkForkScope(ctx context.Context, in *forkInput) error {
	b := &in.Body
	if len(b.State) == 0 && b.Prompt == "" && b.Model == "" && len(b.Templates) == 0 || h.service.RequireScope(ctx, server.ScopeAnswer) == nil {
		return nil
	}
	rests, err := runs.RestsOnAnswers(ctx, h.process.Runs, nameRecord(strings.TrimSpace(in.ID), b.At))
	if err == nil && rests {
		err = h.service.RequireScope(ctx, server.ScopeAnswer)
	}
	return err
}

func (h *handler) forkRun(ctx context.Context, in *forkInput) (*body[Forked], error) {
	if err := h.checkForkScope(ctx, in); err != nil {
		return nil, err
	}
	values := map[string]any{}
	maps.Copy(values, in.Body.State)
	if in.Body.Prompt != "" {
		d, err := h.process.Runs.ReadRunDetail(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(d.Snapshot.Values, func(v history.StoredValue) bool { return v.Key == spec.PromptKey }) {
			return nil, newProblem(http.StatusUnprocessableEntity, "no-prompt", "the state of run "+d.Run+" has no prompt that can be changed")
		}
		values[spec.PromptKey] = in.Body.Prompt
	}
	set, err := toSettings(values)
	if err != nil {
		return nil, err
	}
	if _, err := h.service.FindBreaks(ctx, in.ID, in.Body.Breaks); err != nil {
		return nil, err
	}
	if err := h.process.Models.CheckRequested(in.Body.Model); err != nil {
		return nil, err
	}
	if err := server.CheckRoom(ctx, h.service); err != nil {
		return nil, err
	}
	id, origin, err := h.process.ForkRun(ctx, app.Fork{From: nameRecord(strings.TrimSpace(in.ID), in.Body.At), Model: in.Body.Model, Set: set, Templates: in.Body.Templates})
	if err != nil {
		return nil, err
	}
	if err := prepareCopy(ctx, h.service, id, in.Body); err != nil {
		if _, failed := h.process.Runs.RemoveRun(ctx, id); failed != nil { // it is driven, or the store is away
			err = fmt.Errorf("the copy %s remains: %w", id, err)
		}
		return nil, err
	}
	return &body[Forked]{Forked{id, origin, in.Body.Start}}, nil
}

// prepareCopy sets the breaks of a copy, and continues it, as a request says.
func prepareCopy(ctx context.Context, s *server.Service, id string, b ForkBody) error {
	if len(b.Breaks) > 0 {
		if _, err := s.SetBreaks(ctx, id, b.Breaks); err != nil {
			return err
		}
	}
	if !b.Start {
		return nil
	}
	return s.ResumeRun(ctx, id)
}

// listTemplates lists the templates with which a run works. A conversation has none.
func (h *handler) listTemplates(ctx context.Context, in *RunPath) (*body[[]flow.PromptTemplate], error) {
	d, err := h.process.Runs.ReadRunDetail(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	list := []flow.PromptTemplate{}
	if d.Record != nil && d.Record.IsGraph() {
		list, err = flow.ListPromptTemplates(d.Record.Definition, d.Record.Templates)
	}
	return &body[[]flow.PromptTemplate]{list}, err
}

func (h *handler) listBreaks(ctx context.Context, in *RunPath) (*body[Stops], error) {
	list, err := h.service.ListBreaks(ctx, in.ID)
	return &body[Stops]{Stops{append([]server.Stop{}, list...)}}, err
}

func (h *handler) setBreaks(ctx context.Context, in *breaksInput) (*body[Stops], error) {
	set, err := h.service.SetBreaks(ctx, in.ID, in.Body.Breaks)
	return &body[Stops]{Stops{append([]server.Stop{}, set...)}}, err
}

func (h *handler) editRun(ctx context.Context, in *editInput) (*body[runs.Point], error) {
	set, err := toSettings(in.Body.State)
	if err != nil {
		return nil, err
	}
	at, err := app.RecordChange(ctx, h.process, app.RunChange{ID: in.ID, Set: set})
	return &body[runs.Point]{at}, err
}

// collectRun returns a run with all that is needed to read it, and without secrets.
func (h *handler) collectRun(ctx context.Context, id string) (*runfile.File, error) {
	p := h.process
	return runfile.Collect(ctx, runfile.Source{Archive: p.Runs, Run: id, Version: app.Version(), Secrets: p.Tools.SecretSet(), Learn: p.NewLearner()})
}

func (h *handler) exportRun(ctx context.Context, in *RunPath) (*exported, error) {
	f, err := h.collectRun(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = f.Write(&b)
	return &exported{"application/x-ndjson", fmt.Sprintf("attachment; filename=%q", f.Run.Run+".raddle"), b.Bytes()}, err
}
