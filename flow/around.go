package flow

import (
	"context"

	"raddle.dev/agent"
	"raddle.dev/flow/hook"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/tool"
)

// NodeCall is the work of one execution of a script node or of an agent node.
type NodeCall struct {
	Node  string // id of the node
	Kind  string // "script" or "agent"
	Input string // the state that the script gets, as JSON; the prompt of the agent
}

// NodeMiddleware wraps the work of script nodes and agent nodes. It returns what next returns, or another text or error
// without calling next: the output of the script, or the result of the agent. The context is that of the node, so that
// graph.TaskPath works. A script's output is recorded before it is used, and the middleware is not called again for it;
// for an agent node it is called each time that the node runs. It must be safe for concurrent use.
type NodeMiddleware func(ctx context.Context, c NodeCall, next func(context.Context) (string, error)) (string, error)

// doNodeWork does the work of a node, inside the middleware of the host if there is one. makeInput is called only then.
func (nr *nodeRun) doNodeWork(ctx context.Context, makeInput func() string, work func(context.Context) (string, error)) (string, error) {
	around := nr.host().Around
	if around == nil {
		return work(ctx)
	}
	return around(ctx, NodeCall{Node: nr.node.ID, Kind: nr.node.Kind(), Input: makeInput()}, work)
}

// ListHooks returns the hooks of the agent's file.
func ListHooks(a *Agent) []hook.Hook {
	if a.Config != nil {
		return a.Config.Hooks
	}
	return a.File.Hooks
}

// findHooks returns what finds the hooks around the work of the agent; nil: there are none.
func findHooks(a *Agent) agent.FindHooks {
	if a.host.Tooling.Hooks == nil {
		return nil
	}
	return a.host.Tooling.Hooks(a.Dir, ListHooks(a))
}

// runTurnStart runs the hooks at the start of a turn, and returns the prompt with what they add.
func (c *conversation) runTurnStart(ctx context.Context, said, prompt string) (string, error) {
	find := findHooks(c.agent)
	if find == nil {
		return prompt, nil
	}
	in := agent.HookInput{On: agent.HookTurnStart, Agent: c.agent.Name, Prompt: said}
	for _, h := range find(ctx, tool.Tool{}, in) {
		rec, err := agent.RunHook(ctx, h, in, "", c.agent.host.redact)
		if err != nil {
			return "", err
		}
		prompt = joinParagraphs(prompt, rec.Answer.Context)
	}
	return prompt, nil
}

// hookFindings reports hooks that do not run: those of turns in a graph, which has none.
func hookFindings(a *Agent) (found []strictyaml.Finding) {
	if a.File == nil {
		return nil
	}
	for _, h := range a.File.Hooks {
		if h.On == hook.TurnStart || h.On == hook.TurnEnd {
			found = append(found, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: "hook", Pos: h.Pos,
				Message: "a hook on " + h.On + " has no effect in a graph, which has no turns", Hint: "write a node for it"})
		}
	}
	return found
}
