package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// llmNode is one conversation with a model, with tools if it lists some.
type llmNode struct {
	instructions      *spec.Template // strict; nil: no system prompt
	prompt            spec.Template  // strict
	tools             []string
	model             string // empty: the graph's
	temperature, topP *float64
	reasoningEffort   string
	parallelCalls     *bool    // nil: as the graph says
	providerTools     []string // nil: those of the graph
	fallback          string   // the node after a failure; empty: the next
	maxAttempts       int
	maxIterations     int
	timeout           *strictyaml.Seconds // nil: none
	patience          *strictyaml.Seconds // retry_patience; nil: the graph's
}

var llmKind = &kind{
	Kind: spec.Kind{
		Name:     "llm",
		Doc:      "Asks a model, which may use the listed tools.",
		Required: []string{"prompt"},
		Optional: []string{
			"instructions", "tools", "model", "temperature", "top_p", "fallback", "max_attempts",
			"max_iterations", "state_updates", "output_schema", "timeout", "reasoning_effort", "parallel_calls", "provider_tools", "retry_patience", "budget",
			"skills_enabled", "enabled_skills", "preload_skills", "inject_skill_instructions", "skill_instructions",
		},
		Scoped: "output",
		Result: spec.NewSchema("string"),
	},
	decode: func(m *spec.NodeFields) nodeBody {
		b := &llmNode{
			tools:           m.ReadTexts("tools", strictyaml.Optional),
			model:           m.ReadAlternatives("model"),
			temperature:     m.ReadFloat("temperature"),
			topP:            m.ReadFloat("top_p"),
			reasoningEffort: m.ReadText("reasoning_effort", strictyaml.Optional),
			parallelCalls:   m.ReadSwitch("parallel_calls"),
			providerTools:   m.ReadTexts("provider_tools", strictyaml.Optional),
			fallback:        m.ReadFallback(true),
			maxAttempts:     m.ReadCount("max_attempts", 1),
			maxIterations:   m.ReadCount("max_iterations", 10),
			timeout:         m.ReadOptionalSeconds("timeout"),
			patience:        m.ReadOptionalSeconds("retry_patience"),
		}
		if m.HasValue("instructions") {
			b.instructions = new(m.AddStrict("instructions", m.ReadText("instructions", strictyaml.Optional)))
		}
		b.prompt = m.AddStrict("prompt", m.ReadText("prompt", strictyaml.Required))
		return b
	},
}

// Checks returns the check of the names of tools, servers and the model.
func (b *llmNode) Checks() check.Checks { return check.Checks{check.Names: b.checkNames} }

func (b *llmNode) checkNames(c *check.Checker, n *spec.Node) {
	c.CheckTools(n, b.tools)
	for _, id := range SplitModels(b.model) {
		if !c.IsUnknownModel(id) {
			continue
		}
		found := strictyaml.Finding{Severity: strictyaml.SeverityError, Code: "unknown-model", Node: n.ID, Message: fmt.Sprintf("llm node references unknown model '%s'", id), Pos: n.At("model")}
		if c.Context.ModelHint != nil {
			found.Hint = c.Context.ModelHint(id)
		}
		c.Add(found)
	}
}

// Advise reports limits with which the model is never called.
func (b *llmNode) Advise(a *check.Adviser, n *spec.Node) {
	a.WarnZero(n, "timeout", b.timeout != nil && *b.timeout == 0, check.EndsAtOnce)
	a.WarnZero(n, "max_attempts", b.maxAttempts == 0, "the model is never called and the node fails")
	a.WarnZero(n, "max_iterations", b.maxIterations == 0, "the model is never called and the node fails")
	if b.patience != nil && b.timeout != nil && *b.patience > *b.timeout {
		a.WarnAt(n, n.At("retry_patience"), "patience-timeout", fmt.Sprintf("`retry_patience` is %d and `timeout` is %d: waits count for the timeout, which ends the node first", *b.patience, *b.timeout), "")
	}
}

func (b *llmNode) needs(n *spec.Node) nodeNeeds {
	r := &ModelRequest{Node: n.ID, Model: b.model, Prompt: b.prompt.String(), Tools: b.tools}
	if b.instructions != nil {
		r.System = b.instructions.String()
	}
	return nodeNeeds{request: r}
}

func (b *llmNode) compile(c *nodeCompiler, node *graph.Node) (err error) {
	if b.usesTools(c.agent, c.node) {
		node.Graph, err = b.compileLoop(c)
	}
	return err
}

// usesTools reports whether the node's model has tools.
func (b *llmNode) usesTools(a *Agent, n *spec.Node) bool {
	return len(b.tools) > 0 || len(nodeSkills(a, n)) > 0
}

// run holds one conversation with a model. A failure is a result too:
// state_updates can read it, and it has a route.
func (b *llmNode) run(nr *nodeRun) error {
	for {
		value, failed, err := b.askForValue(nr)
		switch {
		case err == nil:
			nr.applyResult(value)
			return nr.goNext()
		case isWaiting(err):
			return err
		case failed == failedReply:
			return b.followFailure(nr, "LLM node failed: ", "llm node failed: ", err)
		}
		if !b.endsWithFailure(nr, err) {
			return b.followFailure(nr, "LLM node structured-extraction failed: ", "llm node structured extraction failed: ", err)
		}
		again, fault := nr.asksAgain(err)
		if fault != nil {
			return fault
		}
		if !again {
			return err
		}
	}
}

// These say what of an llm node has failed.
const (
	failedReply = iota
	failedData
)

// askForValue asks the model, and returns its reply, or with a schema the data in it. With an error, failed says what has
// failed.
func (b *llmNode) askForValue(nr *nodeRun) (value any, failed int, err error) {
	answer, err := b.askWithRetry(nr)
	if err != nil || nr.node.OutputSchema == nil {
		return answer, failedReply, err
	}
	value, err = nr.extractData(modelUse{b.model, retryPolicy(nr.agent, b.patience, 1)}, nr.node.OutputSchema, answer)
	return value, failedData, err
}

// endsWithFailure reports whether the run, or the item of a map, ends with a failure of the node.
func (b *llmNode) endsWithFailure(nr *nodeRun, err error) bool {
	return isFatal(nr, err) || nr.branch && b.fallback == ""
}

// applyResult stores a node's result in its state.
func (nr *nodeRun) applyResult(value any) {
	nr.output = &value
	if o, ok := value.(*jsonvalue.Object); ok {
		nr.mergeObject(o)
	}
	nr.applyUpdates("output", value)
}

// followFailure follows the route of a failure: fallback, else next.
func (b *llmNode) followFailure(nr *nodeRun, result, log string, err error) error {
	if b.endsWithFailure(nr, err) {
		return err
	}
	if err := nr.recordFailure(outermostText(err)); err != nil {
		return err
	}
	nr.warnf("%s%v", log, err)
	text := any(nr.host().redact(result + outermostText(err)))
	nr.output = &text
	nr.applyUpdates("output", text)
	if b.fallback != "" {
		return nr.goTo(b.fallback)
	}
	if nr.node.Next == nil {
		return newChainError(nr.noNext().Error(), err)
	}
	return nr.goNext()
}

// askWithRetry renders the node's texts and asks the model. It repeats the request
// after temporary errors.
func (b *llmNode) askWithRetry(nr *nodeRun) (string, error) {
	req, err := b.buildRequest(nr)
	if err != nil {
		return "", err
	}
	if b.maxAttempts > 0 && b.maxIterations == 0 {
		return "", spec.Errorf("llm node ended without producing output")
	}
	ctx := context.Context(nr)
	if b.timeout != nil {
		limited, cancel := context.WithTimeoutCause(nr, b.timeout.Duration(), errNodeTimeout)
		defer cancel()
		ctx = limited
	}
	if b.usesTools(nr.agent, nr.node) && b.maxAttempts > 0 {
		if nr.said == nil { // a task calls its child once
			answer, err := b.useTools(ctx, nr, req)
			if err != nil {
				return "", err
			}
			nr.said = &answer
		}
		return *nr.said, nil
	}
	if b.maxAttempts == 0 {
		return "", spec.Errorf("llm node exhausted retries")
	}
	if answer, ok := b.recordedAttempt(nr); ok {
		return answer, nil
	}
	nr.announce = &ModelCall{Model: nr.agent.modelID(b.model), Active: b.model == "", Tools: b.tools}
	answer, err := nr.askModel(ctx, attemptName(1), modelUse{b.model, retryPolicy(nr.agent, b.patience, b.maxAttempts)}, req)
	if err != nil && nr.Err() == nil && context.Cause(ctx) == errNodeTimeout {
		return "", spec.Errorf("llm node timed out after %ds", *b.timeout)
	}
	return answer, err
}

// maxNamedAttempts limits the search for replies that older versions recorded.
const maxNamedAttempts = 10

// recordedAttempt returns the reply to a later attempt than the first, recorded
// by an older version in which each attempt was an effect.
func (b *llmNode) recordedAttempt(nr *nodeRun) (answer string, ok bool) {
	over, cancel := context.WithCancel(nr)
	cancel() // then the engine treats the error as an interrupted call, not as a failure of the effect
	for attempt := 2; attempt <= min(b.maxAttempts, maxNamedAttempts); attempt++ {
		reply, err := graph.Do(over, attemptName(attempt), func(context.Context) (Reply, error) { return Reply{}, context.Canceled })
		if err == nil {
			return reply.Text, true
		}
	}
	return "", false
}

// buildRequest returns the conversation at the start of the node.
func (b *llmNode) buildRequest(nr *nodeRun) (llm.Request, error) {
	var req llm.Request
	var instructions string
	var err error
	if b.instructions != nil {
		if instructions, err = nr.renderStrict(*b.instructions, "Failed to interpolate llm node instructions"); err != nil {
			return req, err
		}
	}
	prompt, err := nr.renderStrict(b.prompt, "Failed to interpolate llm node prompt")
	if err != nil {
		return req, err
	}
	switch {
	case nr.node.OutputSchema == nil:
	case b.instructions != nil:
		instructions = withSchemaHint(instructions, nr.node.OutputSchema)
	default:
		prompt = withSchemaHint(prompt, nr.node.OutputSchema)
	}
	req = b.baseRequest(nr.agent)
	req.System = joinParagraphs(strings.TrimSpace(instructions), nodeSkillText(nr.agent, nr.node))
	req.Messages = []llm.Message{llm.User(prompt)}
	if hasRunPrompt(b.prompt) {
		req.Messages[0] = withMedia(req.Messages[0], mediaKey.Get(nr.before).Parts)
	}
	return req, nil
}

// baseRequest returns a request with the settings of the node, else those of the graph, else those of the host.
func (b *llmNode) baseRequest(a *Agent) llm.Request {
	f := a.File
	h := a.host
	serial := cmp.Or(b.parallelCalls, f.ParallelCalls)
	provided := b.providerTools
	if provided == nil {
		provided = f.ProviderTools
	}
	return llm.Request{Serial: serial != nil && !*serial, Provided: provided, Temperature: cmp.Or(b.temperature, f.Temperature, h.Temperature), TopP: cmp.Or(b.topP, f.TopP, h.TopP), Effort: cmp.Or(b.reasoningEffort, f.ReasoningEffort)}
}

// modelUse says which model a node calls, empty for the agent's, and how often.
type modelUse struct {
	model string
	retry agent.Retry
}

// askModel gets one reply from a model and records it before it is used.
func (nr *nodeRun) askModel(ctx context.Context, name string, use modelUse, req llm.Request) (string, error) {
	id := nr.agent.modelID(use.model)
	reply, err := graph.Do(ctx, name, func(ctx context.Context) (Reply, error) {
		if nr.announce != nil && graph.IsEmitEnabled(nr) {
			graph.Emit(nr, *nr.announce)
		}
		nr.announce = nil
		m, err := nr.models.openModel(ctx, id)
		if err != nil {
			return Reply{}, err
		}
		r, err := agent.AskModel(ctx, m, req, use.retry, agent.Budget{Price: nr.agent.modelFacts(id).Price})
		if err != nil {
			return Reply{}, err
		}
		return newReply(r), nil
	})
	if err == nil && reply.Flaw != "" {
		nr.warnf("node '%s': the reply of %s %s", nr.node.ID, cmp.Or(reply.Model, "the model"), reply.Flaw)
	}
	return reply.Text, err
}

func (c *modelCache) openModel(ctx context.Context, id string) (llm.Model, error) {
	if id == "" {
		return nil, errors.New("no model is set: set `model:` in graph.yaml, or choose one for the run")
	}
	if c.host.Models == nil || !c.host.Models.IsKnown(c.dir, id) {
		return nil, spec.Errorf("Unknown model '%s' on llm node", id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.models[id]; m != nil {
		return m, nil
	}
	m, err := c.host.openModel(ctx, c.dir, id)
	if err != nil {
		return nil, err
	}
	if c.models == nil {
		c.models = map[string]llm.Model{}
	}
	c.models[id] = m
	return m, nil
}

// compileLoop compiles the conversation of an llm node that lists tools: a child
// graph, so that each reply and each outcome is in the journal. A node that
// lists tools to spawn agents leads a team, which ends with the node.
func (b *llmNode) compileLoop(in *nodeCompiler) (*graph.Graph, error) {
	a := in.agent
	n := in.node
	tools, servers, err := b.resolveTools(a)
	if err != nil {
		return nil, err
	}
	id := a.modelID(b.model)
	c := baseLoopConfig(a, id, in.models)
	c.Name, c.Tools, c.MaxIterations = n.ID, append(tools, skillTools(a, nodeSkills(a, n))...), b.maxIterations
	c.Request = b.baseRequest(a)
	c.System = func(s graph.State) (string, error) { return systemKey.Get(s), nil }
	c.Sources = serverSources(a, servers, false)
	c.Kits = skillKits(a, nodeSkills(a, n))
	c.Retry = retryPolicy(a, b.patience, b.maxAttempts)
	c.AroundModel = []agent.ModelMiddleware{announceCall(ModelCall{Model: id, Active: b.model == "", Tools: b.tools})}
	def, err := c.Def()
	if a.spawnSet != nil && listsSpawnTool(b.tools) {
		def, err = in.buildNodeTeam(a, c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.At("tools"), err)
	}
	def.Keys = append(def.Keys, systemKey)
	g, err := graph.Compile(def)
	if err != nil {
		return nil, fmt.Errorf("node '%s' of agent '%s': %w", n.ID, a.Name, err)
	}
	return g, nil
}

// announceCall emits the start of a conversation, when its model is called and the
// reply is not recorded.
func announceCall(call ModelCall) agent.ModelMiddleware {
	return func(next llm.Model) llm.Model {
		return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
			if len(r.Messages) == 1 && graph.IsEmitEnabled(ctx) {
				graph.Emit(ctx, call)
			}
			return next.Stream(ctx, r)
		})
	}
}

// resolveTools returns the tools that the node lists, and the servers.
func (b *llmNode) resolveTools(a *Agent) (tools []tool.Tool, servers []string, err error) {
	offer := a.localTools()
	for _, name := range b.tools {
		if id, ok := strings.CutPrefix(name, serverPrefix); ok {
			switch {
			case slices.Contains(a.Tools.Servers, id):
				servers = append(servers, id)
			case !check.WantsAllServers(a.File) && !slices.Contains(check.NamedServers(a.File), id):
				return nil, nil, spec.Errorf("llm node references unknown MCP server '%s'. Agent '%s' has MCP servers: [%s]", name, a.Name, strings.Join(slices.Sorted(slices.Values(a.Tools.Servers)), ", "))
			}
			continue
		}
		i := slices.IndexFunc(offer, func(t tool.Tool) bool {
			return t.Name == name || t.Name == spec.ToolStem(name) || spec.ToolAliases[name] == t.Name
		})
		switch {
		case i >= 0 && !slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Name == offer[i].Name }):
			tools = append(tools, offer[i])
		case i < 0 && !strings.HasPrefix(name, "mcp_"):
			return nil, nil, spec.Errorf("llm node references unknown tool '%s'. Agent '%s' provides: [%s]", name, a.Name, strings.Join(a.Tools.toolNames(), ", "))
		}
	}
	return tools, servers, nil
}

// useTools holds the conversation and returns what the model has said in it.
func (b *llmNode) useTools(ctx context.Context, nr *nodeRun, req llm.Request) (string, error) {
	fields, _ := nodeSkillFields(nr.agent.File, nr.node)
	texts, kits, err := preloadSkills(ctx, nr.agent, fields, nodeSkills(nr.agent, nr.node))
	if err != nil {
		return "", err
	}
	system := joinParagraphs(append([]string{req.System}, texts...)...)
	set := append(agent.TurnWith(req.Messages[0]), systemKey.Set(nr.host().redact(system)))
	if len(kits) > 0 {
		set = append(set, agent.InUse.Set(kits))
	}
	done, err := graph.Call(ctx, set...)
	var limit *graph.LimitError
	var budget *agent.BudgetError
	switch {
	case err == nil:
		return turnText(done.State), nil
	case isWaiting(err) || nr.Err() != nil:
		return "", err
	case context.Cause(ctx) == errNodeTimeout:
		return "", spec.Errorf("llm node timed out after %ds", *b.timeout)
	case errors.As(err, &budget): // a limit other than the number of replies
	case errors.As(err, &limit) && limit.Status == graph.VisitLimit:
		return "", spec.Errorf("llm node hit max_iterations (%d) before LLM concluded", b.maxIterations)
	}
	return "", childCause(err)
}
