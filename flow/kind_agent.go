package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/team"
)

// agentNode runs another agent and waits for its result.
type agentNode struct {
	agent   string
	prompt  spec.Template // strict
	timeout strictyaml.Seconds
}

var agentKind = &kind{
	Kind: spec.Kind{
		Name:     "agent",
		Doc:      "Runs another agent with a prompt and waits for its result.",
		Required: []string{"agent", "prompt"},
		Optional: []string{"state_updates", "output_schema", "timeout", "queue", "budget"},
		Scoped:   "output",
		Result:   spec.NewSchema("string"),
		Spawns:   true,
	},
	decode: func(m *spec.NodeFields) nodeBody {
		m.ReadQueue()
		return &agentNode{
			agent:   m.ReadText("agent", strictyaml.Required),
			prompt:  m.AddStrict("prompt", m.ReadText("prompt", strictyaml.Required)),
			timeout: m.ReadSeconds("timeout", 300),
		}
	},
}

// Checks returns the check that the agent exists.
func (b *agentNode) Checks() check.Checks { return check.Checks{check.Agents: b.checkAgent} }

func (b *agentNode) checkAgent(c *check.Checker, n *spec.Node) {
	switch found, defined := c.Context.FindAgent(b.agent); {
	case !found:
		c.ErrorAt(n, n.At("agent"), "agent-missing", "Agent '%s' not found (directory missing)", b.agent)
	case !defined:
		c.ErrorAt(n, n.At("agent"), "agent-undefined", "Agent '%s' has neither a config.yaml nor a graph.yaml", b.agent)
	}
}

// Advise reports a timeout of zero.
func (b *agentNode) Advise(a *check.Adviser, n *spec.Node) {
	a.WarnZero(n, "timeout", b.timeout == 0, check.EndsAtOnce)
}

func (b *agentNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{agent: b.agent} }

func (b *agentNode) compile(c *nodeCompiler, node *graph.Node) error {
	node.Graph = c.compileChild(b.agent)
	return nil
}

// run runs another agent and uses its result.
func (b *agentNode) run(nr *nodeRun) error {
	prompt, err := nr.renderStrict(b.prompt, fmt.Sprintf("Failed to interpolate prompt for agent '%s'", b.agent))
	if err != nil {
		return err
	}
	if graph.IsEmitEnabled(nr) {
		graph.Emit(nr, ChildSpawned{b.agent, prompt})
	}
	text, err := nr.runChild(b, prompt)
	if err != nil {
		return err
	}
	value := any(text)
	if nr.node.OutputSchema != nil {
		if value, err = nr.extractAgain(modelUse{retry: retryPolicy(nr.agent, nil, 1)}, nr.node.OutputSchema, text); err != nil {
			return newChainError(fmt.Sprintf("Agent '%s' output failed structured-output extraction", b.agent), err)
		}
	}
	nr.applyResult(value)
	return nr.goNext()
}

// runChild runs the child, within its timeout, and returns its text.
func (nr *nodeRun) runChild(b *agentNode, prompt string) (string, error) {
	failed := func(err error) error { return newChainError(fmt.Sprintf("Agent '%s' failed", b.agent), err) }
	depth := nr.agentDepth() + 1
	most := nr.host().maxDepth()
	if depth > most {
		return "", failed(spec.Errorf("Max agent depth exceeded (%d/%d)", depth, most))
	}
	if nr.host().Bounds.NoSpawn {
		return "", failed(spec.Errorf("Function calling support must be enabled to spawn agents."))
	}
	s := Spawn{Agent: b.agent, Prompt: prompt, Depth: depth, Model: nr.agent.modelID("")}
	if child := nr.agent.children[b.agent]; hasRunPrompt(b.prompt) && child != nil && TakesMedia(child) {
		s.Media = mediaKey.Get(nr.before).Parts
	}
	ctx, cancel := context.WithTimeoutCause(team.WithDepth(nr, depth), max(1, b.timeout.Duration()), errNodeTimeout)
	defer cancel()
	text, err := nr.doNodeWork(ctx, func() string { return prompt }, func(ctx context.Context) (string, error) {
		return nr.callChild(ctx, b, s)
	})
	switch {
	case err == nil || isWaiting(err) || nr.Err() != nil:
		return text, err
	case context.Cause(ctx) == errNodeTimeout || errors.Is(err, errNodeTimeout):
		return "", spec.Errorf("Agent '%s' timed out after %ds", b.agent, b.timeout)
	}
	return "", failed(err)
}

// agentDepth returns the number of agents above the agent of the node. It is larger
// than when the agent was loaded if the agent was spawned at a greater depth.
func (nr *nodeRun) agentDepth() int { return max(nr.host().Depth, team.Depth(nr)) }

// childText returns the error of a child's file as a plain error, with the
// position of each finding. Otherwise callers would treat it as an error in the
// parent's file.
func childText(err error) error {
	var refused *spec.ValidationError
	var model *MissingModelError
	var values *VariablesError
	switch {
	case errors.As(err, &model):
		return fmt.Errorf("%v: name one with --model, RADDLE_MODEL, or in that file", err)
	case errors.As(err, &values):
		return fmt.Errorf("%v\nSet them with --agent-variable NAME VALUE", err)
	case !errors.As(err, &refused):
		return errors.New(err.Error())
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Graph validation failed with %d error(s):", len(refused.Findings))
	for _, f := range refused.Findings {
		text.WriteString("\n  " + f.String())
	}
	return errors.New(text.String())
}

// callChild runs an agent as part of this run, or as a run of its own on a queue. An agent that was not loaded is one
// effect.
func (nr *nodeRun) callChild(ctx context.Context, b *agentNode, s Spawn) (string, error) {
	child := nr.agent.children[b.agent]
	if err := cmp.Or(nr.agent.childFault(b.agent), nr.unbuilt[b.agent]); err != nil {
		return "", childText(err)
	}
	queue := nr.remoteQueue()
	switch {
	case child != nil && queue != "":
		return nr.callRemoteAgent(ctx, queue, child, s, b.timeout.Duration())
	case child != nil:
		done, err := graph.Call(ctx, child.initialWrites(s.Prompt, s.Media)...)
		if err != nil && !isWaiting(err) {
			err = child.Explain(err)
		}
		return newOutcome(done.Value).Output, err
	case nr.host().Child == nil:
		return "", fmt.Errorf("no graph agent of that name was found, and agents of other kinds cannot run yet")
	}
	return graph.Do(ctx, "agent", func(ctx context.Context) (string, error) {
		text, err := nr.host().Child(ctx, s)
		return nr.host().redact(text), err
	})
}
