package testrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/rag"
	"raddle.dev/tool"
)

// stubs answers for what is not real in a case, and records what it was asked. It is safe for concurrent use.
type stubs struct {
	c     *testcase.Case
	names *naming
	price func(model string, u llm.Usage) (dollars float64, known bool)

	replies map[string]*script.Transcript // by node; "": of any node

	mu       sync.Mutex
	given    map[string][]any    // what was answered, by effect
	cursor   map[string]int      // how much of it this drive has used
	executed map[string][]string // executions of a node, by its name
	used     map[string]int      // results and answers that were used, by tool and question
	asked    map[string]any      // answers by the id of their question
	requests []request
	calls    []stubbedCall
	ranks    map[string]int // the order in which models have asked for calls, by frame and id
	missing  []testcase.Failure
	cost     float64
}

// stubbedCall is one call of a tool. Calls of one reply may be made at the same time: they are in the order of the
// reply.
type stubbedCall struct {
	testcase.Event
	rank int
}

// request is one request to a model.
type request struct {
	place        place
	prompt       string
	instructions string
}

func newStubs(c *testcase.Case, names *naming, price func(string, llm.Usage) (float64, bool)) *stubs {
	s := &stubs{c: c, names: names, price: price, replies: map[string]*script.Transcript{}, given: map[string][]any{}, cursor: map[string]int{},
		executed: map[string][]string{}, used: map[string]int{}, asked: map[string]any{}, ranks: map[string]int{}}
	byNode := map[string][]script.Reply{}
	for _, r := range c.Replies {
		byNode[r.Node] = append(byNode[r.Node], r.Reply)
	}
	for node, list := range byNode {
		s.replies[node] = script.New("replies", list)
	}
	return s
}

// beginDrive makes effects that are repeated get what they got before.
func (s *stubs) beginDrive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.cursor)
}

// adjustHost puts the stubs around what an agent uses. No call asks for permission: what is not real in a case has no
// effects, and what is real was named in it.
func (s *stubs) adjustHost(h *flow.Host) {
	h.Models = &stubModels{h.Models, s}
	h.Model = cmp.Or(h.Model, noModel)
	h.Around = s.aroundNode
	h.Tooling.Gate = nil
	h.Tooling.Around = append(h.Tooling.Around, s.aroundTool)
	if h.Tooling.Box != nil {
		h.Tooling.Box = &box{h.Tooling.Box, s}
	}
	h.Retrieval.Around = s.aroundSearch
	h.Retrieval.Base = s.base
	h.Retrieval.Embedder = func(id string) (rag.Embedder, error) { return nil, s.refuseEmbedding(id) }
	h.Retrieval.Reranker = func(id string) (rag.Reranker, error) { return nil, s.refuseEmbedding(id) }
}

// noModel is the model of agents that name none.
const noModel = "test:model"

func (s *stubs) refuseEmbedding(id string) error {
	return fmt.Errorf("a test calls no embedding model, and %s is one: write `searches: {NODE: [text]}`", id)
}

// remember returns what an effect was answered before in an earlier drive, or what make returns. That is kept, unless
// make has failed because its context has ended: then ok is false. The lock is not held while make runs.
func (s *stubs) remember(key string, make func() (v any, ok bool)) any {
	s.mu.Lock()
	if n := s.cursor[key]; n < len(s.given[key]) {
		s.cursor[key]++
		v := s.given[key][n]
		s.mu.Unlock()
		return v
	}
	s.mu.Unlock()
	v, ok := make()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		s.given[key] = append(s.given[key], v)
		s.cursor[key]++
	}
	return v
}

// addMissing records that nothing answers for something. Each text is recorded once.
func (s *stubs) addMissing(what, format string, args ...any) error {
	f := testcase.Failure{Pos: s.c.Pos, What: what, Message: fmt.Sprintf(format, args...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.missing, func(o testcase.Failure) bool { return o.Message == f.Message }) {
		s.missing = append(s.missing, f)
	}
	return errors.New(f.Message)
}

// execution returns the number of an execution of a node, from 0.
func (s *stubs) execution(p place) int {
	if p.Index >= 0 {
		return p.Index
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.executed[p.Name]
	if n := slices.Index(list, p.Exec); n >= 0 {
		return n
	}
	s.executed[p.Name] = append(list, p.Exec)
	return len(list)
}

// fault returns how an execution of a node fails; "": it does not.
func (s *stubs) fault(p place) string {
	i := slices.IndexFunc(s.c.Faults, func(f testcase.Fault) bool { return f.Node == p.Name })
	if i < 0 {
		return ""
	}
	if n := s.execution(p); n < len(s.c.Faults[i].Kinds) && s.c.Faults[i].Kinds[n] != testcase.FaultNone {
		return s.c.Faults[i].Kinds[n]
	}
	return ""
}

// Faults as errors. Nothing in the texts makes an attempt repeat what failed, except for the timeout of a provider.
var (
	errFail    = errors.New("the test makes this fail")
	errTimeout = errors.New("timed out, because the test says so")
)

// malformed is the text of a reply or script that is broken.
const malformed = `{"malformed": `

// output returns what a case says that a node returns.
func (s *stubs) output(p place) (v any, found bool, err error) {
	i := slices.IndexFunc(s.c.Nodes, func(n testcase.NodeStub) bool { return n.Node == p.Name })
	if i < 0 {
		return nil, false, nil
	}
	stub := &s.c.Nodes[i]
	n := s.execution(p)
	if n >= len(stub.Outputs) {
		err = s.addMissing("nodes", "the node %s is executed %s, and `nodes` has %s for it: write a list with one entry for each execution", p.Name, wording.FormatCount(n+1, "time"), wording.FormatCount(len(stub.Outputs), "value"))
		return nil, true, err
	}
	return stub.Outputs[n], true, nil
}

// aroundNode answers for scripts and agents.
func (s *stubs) aroundNode(ctx context.Context, c flow.NodeCall, next func(context.Context) (string, error)) (string, error) {
	p := s.names.find(graph.TaskPath(ctx))
	switch s.fault(p) {
	case testcase.FaultFail:
		return "", errFail
	case testcase.FaultTimeout:
		return "", errTimeout
	case testcase.FaultMalformed:
		return malformed, nil
	}
	v, found, err := s.output(p)
	if found {
		return testcase.Text(v), err
	}
	return next(ctx)
}

// stubModels are the models of a run.
type stubModels struct {
	flow.Models
	stubs *stubs
}

// IsKnown implements [flow.Models]. Every model is: the case answers for it.
func (m *stubModels) IsKnown(dir, id string) bool {
	return !strings.HasPrefix(id, scriptPrefix) || m.Models.IsKnown(dir, id)
}

// Open implements [flow.Models].
func (m *stubModels) Open(ctx context.Context, dir, id string) (llm.Model, error) {
	opened := &stubModel{id: id, stubs: m.stubs}
	if strings.HasPrefix(id, scriptPrefix) {
		var err error
		if opened.transcript, err = m.Models.Open(ctx, dir, id); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

const scriptPrefix = "script:"

// stubModel answers requests as a case says.
type stubModel struct {
	id         string
	stubs      *stubs
	transcript llm.Model // of a model script:FILE; else nil
}

// answered is the answer to a request.
type answered struct {
	deltas []llm.Delta
	err    error
}

// Stream implements [llm.Model].
func (m *stubModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		a := m.stubs.remember(graph.EffectKey(ctx), func() (any, bool) { return m.ask(ctx, r) }).(answered)
		for _, d := range a.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if a.err != nil {
			yield(llm.Delta{}, a.err)
		}
	}
}

// ask finds the answer to a request and records both. ok is false if the request has ended before there was an answer.
func (m *stubModel) ask(ctx context.Context, r llm.Request) (a answered, ok bool) {
	s := m.stubs
	p := m.stubs.names.find(graph.TaskPath(ctx))
	if a = m.findAnswer(ctx, p, r); a.err != nil && ctx.Err() != nil {
		return a, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request{p, userText(r), r.System})
	for i, d := range a.deltas {
		if d.Done == nil {
			continue
		}
		reply := *d.Done
		if m.transcript == nil || !strings.HasPrefix(reply.Model, scriptPrefix) {
			_, reply.Model, _ = strings.Cut(m.id, ":")
		}
		a.deltas[i].Done = &reply
		s.rankCalls(ctx, &reply)
		if dollars, known := s.price(reply.Model, reply.Usage); known {
			s.cost += dollars
		}
	}
	return a, true
}

func (m *stubModel) findAnswer(ctx context.Context, p place, r llm.Request) answered {
	s := m.stubs
	switch s.fault(p) {
	case testcase.FaultFail:
		return answered{err: errFail}
	case testcase.FaultTimeout:
		return answered{err: errTimeout}
	case testcase.FaultMalformed:
		return textAnswer(malformed)
	}
	if v, found, err := s.output(p); found {
		if err != nil {
			return answered{err: err}
		}
		return textAnswer(testcase.Text(v))
	}
	for _, node := range []string{p.Name, ""} {
		t := s.replies[node]
		if t == nil {
			continue
		}
		a := collect(t.Stream(ctx, r))
		if !errors.As(a.err, new(*script.UnmatchedError)) {
			for i := range a.deltas {
				if a.deltas[i].Done != nil {
					a.deltas[i].Done.ID, a.deltas[i].Done.Model = "", ""
				}
			}
			return a
		}
	}
	if m.transcript != nil {
		return collect(m.transcript.Stream(ctx, r))
	}
	short := wording.CutText(strings.Join(strings.Fields(userText(r)), " "), 60, "…")
	how := fmt.Sprintf("write `nodes: {%s: the reply}`", p.Name)
	if s.names.root.File == nil || s.names.findAgent(p.Name) != nil || s.replies[p.Name] != nil || s.replies[""] != nil {
		how = "add an entry to `replies`"
	}
	return answered{err: s.addMissing("model", "nothing answers for the model %s at %s (request %q): %s", m.id, p.Name, short, how)}
}

func textAnswer(text string) answered {
	return answered{deltas: []llm.Delta{{Text: text}, {Done: &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}, Stop: llm.StopEnd}}}}
}

func collect(stream iter.Seq2[llm.Delta, error]) (a answered) {
	for d, err := range stream {
		if err != nil {
			a.err = err
			return a
		}
		a.deltas = append(a.deltas, d)
	}
	return a
}

// userText returns the text of the user's messages.
func userText(r llm.Request) string {
	var texts []string
	for _, m := range r.Messages {
		if text := m.Text(); m.Role == llm.RoleUser && text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// isOwnTool reports whether a tool is part of raddle's loop: questions, agents, skills, the todo list. They are called,
// because the run answers for them.
func isOwnTool(name string) bool {
	return strings.HasPrefix(name, "user__") || strings.HasPrefix(name, "agent__") || strings.HasPrefix(name, "skill__") || strings.HasPrefix(name, "todo__") || slices.Contains(spec.SupervisorTools, name)
}

// aroundTool answers for tools.
func (s *stubs) aroundTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
		stub, isReal := s.findTool(t.Name)
		key := cmp.Or(graph.EffectKey(ctx), graph.TaskPath(ctx)) + "#" + c.ID
		if stub == nil && (isReal || isOwnTool(t.Name)) {
			s.remember(key, func() (any, bool) { s.recordCall(ctx, t.Name, c); return nil, true })
			return next(ctx, t, c)
		}
		return s.remember(key, func() (any, bool) {
			s.recordCall(ctx, t.Name, c)
			return s.toolResult(t.Name, stub, c.Args), true
		}).(tool.Result), nil
	}
}

func (s *stubs) findTool(name string) (stub *testcase.ToolStub, isReal bool) {
	if i := slices.IndexFunc(s.c.Tools, func(t testcase.ToolStub) bool { return t.Tool == name }); i >= 0 {
		return &s.c.Tools[i], false
	}
	return nil, slices.ContainsFunc(s.c.Real, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok || pattern == name
	})
}

// rankCalls records the order of the calls of a reply. The caller must hold mu.
func (s *stubs) rankCalls(ctx context.Context, r *llm.Reply) {
	for _, p := range r.Message.Parts {
		if c, ok := p.(llm.ToolCall); ok {
			s.ranks[frameOf(ctx)+c.ID] = len(s.ranks)
		}
	}
}

// frameOf returns the path of the frame that a task works in.
func frameOf(ctx context.Context) string {
	task := graph.TaskPath(ctx)
	return task[:strings.LastIndexByte(task, '/')+1]
}

func (s *stubs) recordCall(ctx context.Context, name string, c tool.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rank, known := s.ranks[frameOf(ctx)+c.ID]
	if !known {
		rank = len(s.ranks)
	}
	s.calls = append(s.calls, stubbedCall{testcase.Event{Name: name, Args: parseJSON(c.Args)}, rank})
}

// listCalls returns the calls in the order in which models have asked for them. The caller must hold mu.
func (s *stubs) listCalls() (list []testcase.Event) {
	sorted := slices.Clone(s.calls)
	slices.SortStableFunc(sorted, func(a, b stubbedCall) int { return cmp.Compare(a.rank, b.rank) })
	for _, c := range sorted {
		list = append(list, c.Event)
	}
	return list
}

// toolResult returns the result of a call that is not made.
func (s *stubs) toolResult(name string, stub *testcase.ToolStub, args json.RawMessage) tool.Result {
	if stub == nil {
		err := s.addMissing("tool", "nothing answers for the tool %s (arguments %s): write `tools: {%s: the result}`, or `real: [%s]` to call it%s", name, wording.CutText(string(args), 80, "…"), name, name, s.suggestTool(name))
		return tool.FailedResult("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ordered []int
	for i, r := range stub.Results {
		if r.Match == "" {
			ordered = append(ordered, i)
		} else if strings.Contains(string(args), r.Match) {
			return makeResult(r)
		}
	}
	n := s.used["tool "+name]
	s.used["tool "+name]++
	switch {
	case n < len(ordered):
		return makeResult(stub.Results[ordered[n]])
	case len(stub.Results) == 1 && len(ordered) == 1: // one result is that of every call
		return makeResult(stub.Results[0])
	}
	f := testcase.Failure{Pos: stub.Pos, What: "tool", Message: fmt.Sprintf("no result is left for the call of %s with %s: add an entry to `tools: {%s: [...]}`", name, wording.CutText(string(args), 80, "…"), name)}
	s.missing = append(s.missing, f)
	return tool.FailedResult("%s", f.Message)
}

func (s *stubs) suggestTool(name string) string {
	var known []string
	for _, t := range s.c.Tools {
		known = append(known, t.Tool)
	}
	if hint := wording.SuggestNearest(name, known, ""); hint != "" {
		return " (" + hint + ")"
	}
	return ""
}

func makeResult(r testcase.ToolResult) tool.Result {
	switch {
	case r.Error:
		return tool.FailedResult("%s", r.Text)
	case r.JSON:
		return tool.JSONResult(json.RawMessage(r.Text))
	}
	return tool.TextResult(r.Text)
}

// aroundSearch makes searches fail as the case says.
func (s *stubs) aroundSearch(next flow.SearchFunc) flow.SearchFunc {
	return func(ctx context.Context, q flow.SearchRequest) ([]rag.Hit, error) {
		switch s.fault(s.names.find(graph.TaskPath(ctx))) {
		case testcase.FaultFail, testcase.FaultMalformed:
			return nil, errFail
		case testcase.FaultTimeout:
			return nil, errTimeout
		}
		return next(ctx, q)
	}
}

// base returns what answers for the knowledge base of a node; ok is false if the case says nothing about it.
func (s *stubs) base(agentName, node string) (flow.Searcher, bool) {
	for i := range s.c.Searches {
		stub := &s.c.Searches[i]
		last := stub.Node[strings.LastIndexByte(stub.Node, '/')+1:]
		if last == node || stub.Node == testcase.OwnDocuments && s.names.findAgent(agentName) != nil && s.names.findAgent(agentName).File == nil {
			return hits(stub.Hits), true
		}
	}
	return nil, false
}

// hits is a knowledge base that finds the same whatever is searched.
type hits []testcase.Hit

// Search implements [flow.Searcher].
func (h hits) Search(context.Context, string, rag.SearchOptions) ([]rag.Hit, error) {
	found := make([]rag.Hit, len(h))
	for i, each := range h {
		found[i] = rag.Hit{
			Path:  each.Source,
			Text:  each.Text,
			Chunk: i,
			Score: 1,
			Place: each.Place,
		}
	}
	return found, nil
}

// box opens tools, and starts no server that the case does not name as real.
type box struct {
	flow.Toolbox
	stubs *stubs
}

// Open implements [flow.Toolbox].
func (b *box) Open(n flow.ToolNeed) (*flow.Toolset, error) {
	set, err := b.Toolbox.Open(n)
	if err != nil || set.Serve == nil || slices.ContainsFunc(b.stubs.c.Real, isServerTool) {
		return set, err
	}
	set.Serve = func(_ context.Context, ids []string) (tools []tool.Tool, _ []error) {
		var names []string
		for _, t := range b.stubs.c.Tools {
			if isServerTool(t.Tool) {
				names = append(names, t.Tool)
			}
		}
		for _, id := range ids {
			for _, function := range []string{"mcp_search_", "mcp_describe_", "mcp_invoke_"} {
				names = append(names, function+id)
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			tools = append(tools, tool.Tool{Name: name, Description: "answered by the test", Schema: json.RawMessage(`{"type":"object"}`)})
		}
		return tools, nil
	}
	set.Start = nil
	set.Starting = nil // all of them are there
	return set, nil
}

// isServerTool reports whether a name or a pattern is that of tools of MCP servers.
func isServerTool(name string) bool { return strings.HasPrefix(name, "mcp_") }
