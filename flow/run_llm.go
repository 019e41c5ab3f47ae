package flow

import (
	"context"
	"errors"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/llm"
)

// errNodeTimeout is the cause of a context that a node's own timeout ended.
var errNodeTimeout = errors.New("the node's timeout has passed")

// runLLM holds one conversation with a model. A failure is a result too:
// state_updates can read it, and it has a route.
func (v *nodeRun) runLLM(b *spec.LLMNode) error {
	answer, err := v.askWithRetry(b)
	if isWaiting(err) {
		return err
	}
	if err != nil {
		return v.llmFailed(b, "LLM node failed: ", "llm node failed: ", err)
	}
	value := any(answer)
	if b.OutputSchema != nil {
		if value, err = v.extractData(modelUse{b.Model, v.agent.retryPolicy(b.Patience, 1)}, b.OutputSchema, answer); err != nil {
			return v.llmFailed(b, "LLM node structured-extraction failed: ", "llm node structured extraction failed: ", err)
		}
	}
	v.applyResult(value)
	return v.goNext()
}

// applyResult stores a node's result in its state.
func (v *nodeRun) applyResult(value any) {
	v.output = &value
	if o, ok := value.(*jsonvalue.Object); ok {
		v.mergeObject(o)
	}
	v.applyUpdates("output", value)
}

// llmFailed follows the route of a failure: fallback, else next.
func (v *nodeRun) llmFailed(b *spec.LLMNode, result, log string, err error) error {
	if isFatal(v, err) || v.branch && b.Fallback == "" {
		return err
	}
	v.warnf("%s%v", log, err)
	text := any(v.host().redact(result + outermostText(err)))
	v.output = &text
	v.applyUpdates("output", text)
	if b.Fallback != "" {
		return v.goTo(b.Fallback)
	}
	if v.node.Next == nil {
		return newChainError(v.noNext().Error(), err)
	}
	return v.goNext()
}

// askWithRetry renders the node's texts and asks the model. It repeats the request
// after temporary errors.
func (v *nodeRun) askWithRetry(b *spec.LLMNode) (string, error) {
	req, err := v.buildRequest(b)
	if err != nil {
		return "", err
	}
	if b.MaxAttempts > 0 && b.MaxIterations == 0 {
		return "", spec.Failf("llm node ended without producing output")
	}
	ctx := context.Context(v)
	if b.Timeout != nil {
		limited, cancel := context.WithTimeoutCause(v, b.Timeout.Duration(), errNodeTimeout)
		defer cancel()
		ctx = limited
	}
	if len(b.Tools) > 0 && b.MaxAttempts > 0 {
		return v.useTools(ctx, b, req)
	}
	if b.MaxAttempts == 0 {
		return "", spec.Failf("llm node exhausted retries")
	}
	if answer, ok := v.recordedAttempt(b); ok {
		return answer, nil
	}
	v.announce = &ModelCall{Model: v.agent.modelID(b.Model), Active: b.Model == "", Tools: b.Tools}
	answer, err := v.askModel(ctx, attemptName(1), modelUse{b.Model, v.agent.retryPolicy(b.Patience, b.MaxAttempts)}, req)
	if err != nil && v.Err() == nil && context.Cause(ctx) == errNodeTimeout {
		return "", spec.Failf("llm node timed out after %ds", *b.Timeout)
	}
	return answer, err
}

// mostNamedAttempts limits the search for replies that older versions recorded.
const mostNamedAttempts = 10

// recordedAttempt returns the reply to a later attempt than the first, recorded
// by an older version in which each attempt was an effect.
func (v *nodeRun) recordedAttempt(b *spec.LLMNode) (answer string, ok bool) {
	over, cancel := context.WithCancel(v)
	cancel() // then the engine treats the error as an interrupted call, not as a failure of the effect
	for attempt := 2; attempt <= min(b.MaxAttempts, mostNamedAttempts); attempt++ {
		reply, err := graph.Do(over, attemptName(attempt), func(context.Context) (Reply, error) { return Reply{}, context.Canceled })
		if err == nil {
			return reply.Text, true
		}
	}
	return "", false
}

// buildRequest returns the conversation at the start of the node.
func (v *nodeRun) buildRequest(b *spec.LLMNode) (llm.Request, error) {
	var req llm.Request
	var instructions string
	var err error
	if b.Instructions != nil {
		if instructions, err = v.renderStrict(*b.Instructions, "Failed to interpolate llm node instructions"); err != nil {
			return req, err
		}
	}
	prompt, err := v.renderStrict(b.Prompt, "Failed to interpolate llm node prompt")
	if err != nil {
		return req, err
	}
	switch {
	case b.OutputSchema == nil:
	case b.Instructions != nil:
		instructions = withSchemaHint(instructions, b.OutputSchema)
	default:
		prompt = withSchemaHint(prompt, b.OutputSchema)
	}
	f, h := v.agent.File, v.host()
	req = llm.Request{System: strings.TrimSpace(instructions), Messages: []llm.Message{llm.User(prompt)},
		Temperature: firstSet(b.Temperature, f.Temperature, h.Temperature), TopP: firstSet(b.TopP, f.TopP, h.TopP), Effort: b.ReasoningEffort}
	if req.Effort == "" {
		req.Effort = f.ReasoningEffort
	}
	return req, nil
}

func firstSet(values ...*float64) *float64 {
	for _, f := range values {
		if f != nil {
			return f
		}
	}
	return nil
}

// modelUse says which model a node calls, empty for the agent's, and how often.
type modelUse struct {
	model string
	retry agent.Retry
}

// askModel gets one reply from a model and records it before it is used.
func (v *nodeRun) askModel(ctx context.Context, name string, use modelUse, req llm.Request) (string, error) {
	id := v.agent.modelID(use.model)
	reply, err := graph.Do(ctx, name, func(ctx context.Context) (Reply, error) {
		if v.announce != nil && graph.IsEmitEnabled(v) {
			graph.Emit(v, *v.announce)
		}
		v.announce = nil
		m, err := v.models.openModel(ctx, id)
		if err != nil {
			return Reply{}, err
		}
		return v.streamReply(ctx, use.retry.WrapModel(agent.Budget{Price: v.agent.modelFacts(id).Price}.MeterModel(m), true), req)
	})
	if err == nil && reply.Flaw != "" {
		v.warnf("node '%s': the reply of %s %s", v.node.ID, orElse(reply.Model, "the model"), reply.Flaw)
	}
	return reply.Text, err
}

// streamReply collects a reply and emits its pieces.
func (v *nodeRun) streamReply(ctx context.Context, m llm.Model, req llm.Request) (Reply, error) {
	emits := graph.IsEmitEnabled(v)
	for d, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			return Reply{}, err
		case d.Done != nil:
			if emits {
				graph.Emit(v, ModelDone{Model: d.Done.Model, Usage: d.Done.Usage})
			}
			r := Reply{ID: d.Done.ID, Text: d.Done.Text(), Model: d.Done.Model, Usage: d.Done.Usage}
			r.Flaw, r.Useless = d.Done.DescribeFlaw()
			return r, nil
		case emits && d.Text != "":
			graph.Emit(v, Delta{d.Text})
		}
	}
	return Reply{}, errors.New("the model ended its stream without a reply") // a model that retries returns an error instead
}

// modelCache opens each model of an agent once.
type modelCache struct {
	host   *Host
	dir    string
	mu     sync.Mutex
	models map[string]llm.Model
}

func (c *modelCache) openModel(ctx context.Context, id string) (llm.Model, error) {
	if id == "" {
		return nil, errors.New("no model is set: set `model:` in graph.yaml, or choose one for the run")
	}
	if c.host.Models == nil || !c.host.Models.IsKnown(c.dir, id) {
		return nil, spec.Failf("Unknown model '%s' on llm node", id)
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
