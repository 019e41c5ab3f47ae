package replay

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
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/tool"
)

// A player answers for everything that a run gets from outside, as the recording says, and finds the first difference.
// It is safe for concurrent use.
type player struct {
	until    string   // the node at which the replay ends
	base     *trace   // of the recorded files; nil: this is their execution
	live     bool     // after a difference, what is asked is really done
	servers  []string // tools of servers that were called
	searches bool     // documents were searched

	mu      sync.Mutex // guards the fields below
	segment *segment
	trace   *trace
	cancel  context.CancelFunc
	diff    *Difference
	ended   string // why the replay ended before the run; empty: it has not
	used    int    // effects
	given   []answered
}

// answered is a question with its recorded answer.
type answered struct {
	question graph.Question
	answer   graph.Answer
}

// errStopped ends what works in a run whose replay has ended.
var errStopped = errors.New("the replay has stopped")

// stop ends the replay. The caller must hold mu.
func (p *player) stop(d *Difference, ended string) error {
	if !p.isOver() {
		p.diff = d
		p.ended = ended
	}
	if !p.live {
		p.cancel()
	}
	return errStopped
}

// hasStopped reports whether nothing is answered any more.
func (p *player) hasStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isOver()
}

// isOver is hasStopped for a caller that holds mu.
func (p *player) isOver() bool { return p.diff != nil || p.ended != "" }

// isUntil reports whether a path is that of the node at which the replay ends, or below it.
func (p *player) isUntil(node string) bool {
	if p.until == "" {
		return false
	}
	if node == p.until || strings.HasPrefix(node, p.until+"/") {
		return true
	}
	name, _, _ := strings.Cut(path.Base(node), "[")
	return name == p.until
}

// find compares what an effect asks with what it asked when it was recorded, and returns its recorded result.
func (p *player) find(ctx context.Context, key string, a *ask) (effect, error) {
	a.path, a.visit = graph.TaskPath(ctx), graph.Visit(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.beginAsk(key, a); err != nil {
		return effect{}, err
	}
	recorded, found := p.segment.effects[key]
	a.thread = p.segment.thread
	a.record = recorded.seq
	if d := p.compare(key, a, recorded); d != nil {
		return effect{}, p.stop(d, "")
	}
	switch {
	case found:
		p.used++
		return recorded, nil
	case !p.segment.isOver(a.path):
		return effect{}, p.stop(nil, "the recording ends at node "+nodeOf(a.path))
	case p.base == nil || p.base.failed[key]:
		p.trace.failed[key] = true
		return effect{}, &failedError{p.segment.failureText(a.path)}
	}
	d := p.newDifference(a)
	d.What, d.Is = "call", a.parts[0].text
	if a.kind == kindModel {
		d.Is = a.text("prompt")
	}
	d.Message = fmt.Sprintf("asks a %s that the recorded run did not ask here", a.kind)
	if a.kind == kindTool {
		d.Message = "calls the tool " + a.name + ", which the recorded run did not call here"
	}
	return effect{}, p.stop(d, "")
}

// A failedError is the failure of what failed when it was recorded.
type failedError struct{ text string }

// Error implements error.
func (e *failedError) Error() string { return e.text }

func (p *player) newDifference(a *ask) *Difference {
	return &Difference{Node: nodeOf(a.path), Visit: a.visit, Run: p.segment.run}
}

// compare returns what differs between what is asked and what the recorded files ask. The caller must hold mu.
func (p *player) compare(key string, a *ask, recorded effect) *Difference {
	if p.base == nil {
		return nil
	}
	was := p.base.asks[key]
	if was == nil {
		return nil
	}
	for i, part := range a.parts {
		before := was.text(part.name)
		if before == part.text {
			continue
		}
		d := p.newDifference(a)
		d.What, d.Was, d.Is, d.Record, d.Recorded = part.name, before, a.parts[i].text, recorded.seq, describeRecorded(recorded)
		d.Message = "the " + part.name + " of the " + a.kind + " differs"
		if a.kind == kindModel && part.name == "prompt" {
			d.Message = "the prompt differs"
		}
		return d
	}
	return nil
}

// describeRecorded returns the answer that is recorded, for people.
func describeRecorded(e effect) string {
	_, called := agent.ToolOfEffect(e.name)
	switch {
	case e.seq == 0:
		return ""
	case flow.IsReply(graph.EffectID{Name: e.name}.String()):
		if r, err := e.reply(); err == nil {
			return promptText([]llm.Message{r.Message})
		}
	case called:
		if r, _, err := agent.ReadOutcome(e.data); err == nil && r != nil {
			return r.Text()
		}
	}
	return string(e.data)
}

// adjustHost puts the recording around everything that an agent uses.
func (p *player) adjustHost(h *flow.Host) {
	h.Models = &recordedModels{h.Models, p}
	h.Model = cmp.Or(h.Model, "replay:model")
	h.Around = p.aroundNode
	h.Tooling.Gate, h.Tooling.TrustsDir, h.Tooling.OnlyReads = p.liveGate(h.Tooling.Gate), p.liveTrust(h.Tooling.TrustsDir), p.liveBound(h.Tooling.OnlyReads)
	h.Tooling.Around = append(h.Tooling.Around, p.aroundTool)
	if h.Tooling.Box != nil {
		h.Tooling.Box = &box{h.Tooling.Box, p}
	}
	h.Retrieval.Around = p.aroundSearch
	if !p.live {
		h.Retrieval.Base = func(_, node string) (flow.Searcher, bool) {
			if node == ownBase && !p.searches {
				return nil, true // it was not built
			}
			return noBase{}, true
		}
		h.Retrieval.Confirm = nil
		h.Retrieval.Ask = nil
	}
}

// liveGate returns a gate that allows what is recorded and leaves the rest to another.
func (p *player) liveGate(real agent.Gate) agent.Gate {
	if !p.live || real == nil {
		return nil
	}
	return &gate{real, p}
}

// liveTrust returns a check of directories that trusts all of them up to the difference.
func (p *player) liveTrust(real func(string) bool) func(string) bool {
	if !p.live || real == nil {
		return nil
	}
	return func(dir string) bool { return !p.hasStopped() || real(dir) }
}

// liveBound returns a bound that counts from the difference on.
func (p *player) liveBound(real func() bool) func() bool {
	if !p.live || real == nil {
		return nil
	}
	return func() bool { return p.hasStopped() && real() }
}

// gate allows calls while they are answered by the recording.
type gate struct {
	agent.Gate
	player *player
}

// Decide implements [agent.Gate].
func (g *gate) Decide(ctx context.Context, t tool.Tool, c tool.Call, granted []string) (agent.Decision, error) {
	if g.player.hasStopped() {
		return g.Gate.Decide(ctx, t, c, granted)
	}
	return agent.Decision{Verdict: agent.Allow}, nil
}

// ownBase is the name of the documents of an agent itself.
const ownBase = "rag"

// noBase is a knowledge base that is not there: its searches are recorded.
type noBase struct{}

// Search implements [flow.Searcher].
func (noBase) Search(context.Context, string, rag.SearchOptions) ([]rag.Hit, error) {
	return nil, errStopped
}

// recordedModels are the models of a run.
type recordedModels struct {
	flow.Models
	player *player
}

// IsKnown implements [flow.Models]. Every model is: the recording answers for it.
func (m *recordedModels) IsKnown(dir, id string) bool {
	return !m.player.live || m.Models.IsKnown(dir, id)
}

// Open implements [flow.Models].
func (m *recordedModels) Open(ctx context.Context, dir, id string) (llm.Model, error) {
	open := func() (llm.Model, error) { return m.Models.Open(ctx, dir, id) }
	return &recordedModel{id: id, player: m.player, open: sync.OnceValues(open)}, nil
}

// recordedModel gives recorded replies.
type recordedModel struct {
	id     string
	player *player
	open   func() (llm.Model, error) // the real model
}

// Stream implements [llm.Model].
func (m *recordedModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		e, err := m.player.find(ctx, currentKey(ctx), newModelAsk(m.id, &r))
		var failed *failedError
		switch {
		case err == errStopped && m.player.live:
			real, err := m.open()
			if err != nil {
				yield(llm.Delta{}, err)
				return
			}
			real.Stream(ctx, r)(yield)
			return
		case errors.As(err, &failed):
			err = &llm.Error{Class: llm.BadRequest, Message: failed.text}
		}
		var reply llm.Reply
		if err == nil {
			reply, err = e.reply()
		}
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		if text := reply.Text(); text == "" || yield(llm.Delta{Text: text}, nil) {
			yield(llm.Delta{Done: &reply}, nil)
		}
	}
}

// aroundNode answers for scripts, and lets agents run: their own effects are recorded.
func (p *player) aroundNode(ctx context.Context, c flow.NodeCall, next func(context.Context) (string, error)) (string, error) {
	if c.Kind != kindScript {
		a := &ask{kind: kindAgent, name: c.Node, path: graph.TaskPath(ctx), visit: graph.Visit(ctx), parts: []askText{{"prompt", c.Input}}}
		if err := p.pass(a.path+"/agent", a); err != nil && !p.live {
			return "", err
		}
		return next(ctx)
	}
	e, err := p.find(ctx, currentKey(ctx), &ask{kind: kindScript, name: c.Node, parts: []askText{{"input", indentJSON(c.Input)}}})
	if err == errStopped && p.live {
		return next(ctx)
	}
	return string(e.data), err
}

// pass compares what is asked of something that runs in the replay, too.
func (p *player) pass(key string, a *ask) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.beginAsk(key, a); err != nil {
		return err
	}
	if d := p.compare(key, a, p.segment.effects[key]); d != nil {
		return p.stop(d, "")
	}
	return nil
}

// beginAsk adds what is asked to the trace. It returns errStopped if the replay has ended, or ends here. The caller
// must hold mu.
func (p *player) beginAsk(key string, a *ask) error {
	if p.isOver() {
		return errStopped
	}
	if p.isUntil(nodeOf(a.path)) {
		return p.stop(nil, "stopped before node "+p.until)
	}
	p.trace.add(key, a)
	return nil
}

// isOwnTool reports whether a tool is a part of raddle's loop whose calls change the run itself.
func isOwnTool(name string) bool {
	return strings.HasPrefix(name, "user__") || strings.HasPrefix(name, "agent__")
}

// aroundTool answers for calls.
func (p *player) aroundTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
		key := currentKey(ctx)
		a := &ask{kind: kindTool, name: t.Name, parts: []askText{{"arguments", indentJSON(string(c.Args))}}}
		if isOwnTool(t.Name) {
			return p.callOwnTool(ctx, key, a, func() (tool.Result, error) { return next(ctx, t, c) })
		}
		e, err := p.find(ctx, key, a)
		if err == errStopped && p.live {
			return next(ctx, t, c)
		}
		if err != nil {
			return tool.Result{}, err
		}
		result, question, err := agent.ReadOutcome(e.data)
		switch {
		case err != nil:
			return tool.Result{}, err
		case question != nil:
			return tool.Result{}, question
		case result == nil:
			return tool.Result{}, tool.ErrCutOff
		}
		return *result, nil
	}
}

// callOwnTool calls a tool that changes the run, and returns the recorded result: that of another time may differ.
func (p *player) callOwnTool(ctx context.Context, key string, a *ask, call func() (tool.Result, error)) (tool.Result, error) {
	a.path, a.visit = graph.TaskPath(ctx), graph.Visit(ctx)
	if err := p.pass(key, a); err != nil && !p.live {
		return tool.Result{}, err
	}
	r, err := call()
	p.mu.Lock()
	defer p.mu.Unlock()
	recorded, found := p.segment.effects[key]
	if err != nil || !found || p.isOver() {
		return r, err
	}
	p.used++
	result, _, err := agent.ReadOutcome(recorded.data)
	if err != nil || result == nil {
		return r, err
	}
	return *result, nil
}

// aroundSearch answers for searches.
func (p *player) aroundSearch(next flow.SearchFunc) flow.SearchFunc {
	return func(ctx context.Context, q flow.SearchRequest) ([]rag.Hit, error) {
		e, err := p.find(ctx, currentKey(ctx), &ask{kind: kindSearch, name: q.Node, parts: []askText{{"query", q.Query}}})
		if err == errStopped && p.live {
			return next(ctx, q)
		}
		if err != nil {
			return nil, err
		}
		s, err := flow.ReadSearch(e.data)
		return s.Hits(), err
	}
}

// box opens tools, and starts no server and no script.
type box struct {
	flow.Toolbox
	player *player
}

// Open implements [flow.Toolbox].
func (b *box) Open(n flow.ToolNeed) (*flow.Toolset, error) {
	set, err := b.Toolbox.Open(n)
	if err != nil || b.player.live {
		return set, err
	}
	if set.Serve != nil {
		set.Serve = func(context.Context, []string) (tools []tool.Tool, failed []error) {
			return recordedTools(b.player.servers), nil
		}
		set.Start = b.player.startServers
		set.Starting = b.player.startingTools
	}
	if set.Instructions != nil {
		set.Instructions = func(ctx context.Context) (string, error) {
			b.player.mu.Lock()
			defer b.player.mu.Unlock()
			return string(b.player.segment.effects[currentKey(ctx)].data), nil
		}
	}
	return set, nil
}

// startServers returns which servers were there. Runs that did not record it had all of them.
func (p *player) startServers(ctx context.Context, ids []string) (settled map[string]bool, failed []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	settled = map[string]bool{}
	if err := json.Unmarshal(p.segment.effects[currentKey(ctx)].data, &settled); err == nil {
		return settled, nil
	}
	for _, id := range ids {
		settled[id] = true
	}
	return settled, nil
}

// startingTools returns the functions for a server that was still starting, as far as they were called.
func (p *player) startingTools(id string) []tool.Tool {
	var names []string
	for _, name := range p.servers {
		if strings.HasSuffix(name, "_"+id) && !strings.HasPrefix(name, "mcp__") {
			names = append(names, name)
		}
	}
	return recordedTools(names)
}

// recordedTools returns tools whose calls are answered by the recording.
func recordedTools(names []string) (tools []tool.Tool) {
	for _, name := range names {
		tools = append(tools, tool.Tool{Name: name, Description: "recorded", Schema: []byte(`{"type":"object"}`)})
	}
	return tools
}

// answer answers open questions as they were answered.
func (p *player) answer(_ context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range open {
		was, known := p.segment.questions[q.ID]
		d := &Difference{What: "question", Node: q.Node, Run: p.segment.run, Was: questionText(&was), Is: questionText(&q), Message: "the question differs"}
		if node, _, ok := strings.Cut(q.ID, "#"); ok || d.Node == "" {
			d.Node = node
		}
		given, hasAnswer := p.segment.answers[q.ID]
		if hasAnswer {
			d.Recorded = fmt.Sprint(given.Value)
		}
		switch {
		case p.isUntil(d.Node):
			return nil, false, p.stop(nil, "stopped before node "+p.until)
		case !known && p.segment.status != graph.Done && p.segment.status != graph.Waiting:
			return nil, false, p.stop(nil, "the recording ends at node "+d.Node)
		case !known:
			d.Was = ""
			d.Message = "asks a question that the recorded run did not ask"
			return nil, false, p.stop(d, "")
		case d.Was != d.Is:
			return nil, false, p.stop(d, "")
		case hasAnswer:
			answers = append(answers, given)
			p.given = append(p.given, answered{q, given})
			p.used++
		}
	}
	return answers, false, nil
}

func questionText(q *graph.Question) string {
	return strings.Join(slices.Concat([]string{q.Prompt}, q.Options), "\n")
}
