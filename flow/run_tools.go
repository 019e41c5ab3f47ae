package flow

import (
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
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// compileLoop compiles the conversation of an llm node that lists tools: a child
// graph, so that each reply and each outcome is in the journal. A node that
// lists tools to spawn agents leads a team, which ends with the node.
func (b *builder) compileLoop(r *runtime, n *spec.Node, body *spec.LLMNode) (*graph.Graph, error) {
	a := r.agent
	tools, servers, err := a.resolveToolList(n, body)
	if err != nil {
		return nil, err
	}
	id := a.modelID(body.Model)
	c := a.baseLoopConfig(id, r.models)
	c.Name, c.Tools, c.MaxIterations = n.ID, tools, body.MaxIterations
	c.Request = llm.Request{Temperature: firstSet(body.Temperature, a.File.Temperature, a.host.Temperature),
		TopP: firstSet(body.TopP, a.File.TopP, a.host.TopP), Effort: orElse(body.ReasoningEffort, a.File.ReasoningEffort)}
	c.System = func(s graph.State) (string, error) { return systemKey.Get(s), nil }
	c.ListTools = a.serverTools(servers)
	c.Retry = a.retryPolicy(body.Patience, body.MaxAttempts)
	c.AroundModel = []agent.ModelMiddleware{announceCall(ModelCall{Model: id, Active: body.Model == "", Tools: body.Tools})}
	def, err := c.Def()
	if a.spawnSet != nil && canNodeSpawn(body) {
		def, err = b.buildNodeTeam(a, c)
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

// resolveToolList returns the tools that an llm node lists, and the servers.
func (a *Agent) resolveToolList(n *spec.Node, b *spec.LLMNode) (tools []tool.Tool, servers []string, err error) {
	offer := a.localTools()
	for _, name := range b.Tools {
		if id, ok := strings.CutPrefix(name, serverPrefix); ok {
			switch {
			case slices.Contains(a.Tools.Servers, id):
				servers = append(servers, id)
			case !check.WantsAllServers(a.File) && !slices.Contains(check.NamedServers(a.File), id):
				return nil, nil, spec.Failf("llm node references unknown MCP server '%s'. Agent '%s' has MCP servers: [%s]", name, a.Name, strings.Join(slices.Sorted(slices.Values(a.Tools.Servers)), ", "))
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
			return nil, nil, spec.Failf("llm node references unknown tool '%s'. Agent '%s' provides: [%s]", name, a.Name, strings.Join(a.Tools.toolNames(), ", "))
		}
	}
	return tools, servers, nil
}

// useTools holds the conversation and returns what the model has said in it.
func (v *nodeRun) useTools(ctx context.Context, b *spec.LLMNode, req llm.Request) (string, error) {
	done, err := graph.Call(ctx, append(agent.TurnWith(req.Messages[0]), systemKey.Set(req.System))...)
	var limit *graph.LimitError
	var budget *agent.BudgetError
	switch {
	case err == nil:
		return turnText(done.State), nil
	case isWaiting(err) || v.Err() != nil:
		return "", err
	case context.Cause(ctx) == errNodeTimeout:
		return "", spec.Failf("llm node timed out after %ds", *b.Timeout)
	case errors.As(err, &budget): // a limit other than the number of replies
	case errors.As(err, &limit) && limit.Status == graph.VisitLimit:
		return "", spec.Failf("llm node hit max_iterations (%d) before LLM concluded", b.MaxIterations)
	}
	return "", childCause(err)
}
