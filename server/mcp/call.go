package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/server"
)

// answerTool is the tool that continues a run which waits.
const answerTool = "raddle_answer"

func newAnswerTool() *sdk.Tool {
	text := func(what string) map[string]any { return map[string]any{"type": "string", "description": what} }
	return &sdk.Tool{
		Name: answerTool,
		Description: `Answers a question of a run that waits, and continues the run. Ask your user first: the answer is theirs. ` +
			`A question about permission can be answered with "once" or "no" only.`,
		InputSchema: map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{"run", "answer"},
			"properties": map[string]any{
				"run":      text("id of the run"),
				"question": text("id of the question; it may be left out if only one is open"),
				"answer":   map[string]any{"description": "one of the options, a text, or what the type of the question says"},
			},
		},
		OutputSchema: resultSchema,
	}
}

// A call is one call of a tool while it works on a run.
type call struct {
	bridge   *bridge
	req      *sdk.CallToolRequest
	run      string
	agent    string
	graph    bool
	seen     string // id of the last event that was notified
	progress *progress
}

// callAgent is the handler of the tool of an agent.
func (b *bridge) callAgent(ctx context.Context, req *sdk.CallToolRequest, t agentTool) (*sdk.CallToolResult, error) {
	ctx = withCaller(ctx, req)
	c := &call{bridge: b, req: req, agent: t.name, graph: t.graph}
	if req.Params.RequestState != "" {
		return c.continueCall(ctx)
	}
	start, err := readArguments(req.Params.Arguments, t)
	if err == nil { // the result of the call says what the run did
		err = server.RequireScopes(ctx, b.service, server.ScopeStart, server.ScopeRead)
	}
	if err != nil {
		return b.failCall("", err), nil
	}
	if c.run, err = b.service.StartRun(context.WithoutCancel(ctx), start); err != nil {
		return b.failCall("", err), nil
	}
	return c.finish(ctx, nil)
}

// readArguments returns the run that a call of an agent's tool starts.
func readArguments(text json.RawMessage, t agentTool) (start server.StartRequest, err error) {
	start = server.StartRequest{Via: "mcp", Agent: t.name, Variables: map[string]string{}}
	var given map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &given); err != nil {
			return start, fmt.Errorf("the arguments are not an object: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, ok := given[name].(string)
		variable, known := t.variables[name]
		switch {
		case name != promptArgument && !known:
			return start, fmt.Errorf("there is no argument %q", name)
		case !ok:
			return start, fmt.Errorf("the argument %q must be a text", name)
		case known:
			start.Variables[variable] = value
		default:
			start.Prompt = value
		}
	}
	if _, ok := given[promptArgument]; !ok && !t.graph {
		return start, fmt.Errorf("the argument %q is missing", promptArgument)
	}
	return start, nil
}

// callAnswer is the handler of the tool that answers a question.
func (b *bridge) callAnswer(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	ctx = withCaller(ctx, req)
	c := &call{bridge: b, req: req}
	if req.Params.RequestState != "" {
		return c.continueCall(ctx)
	}
	var args struct {
		Run, Question string
		Answer        any
	}
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return b.failCall("", fmt.Errorf("the arguments do not fit: %w", err)), nil
	}
	if args.Run == "" || args.Answer == nil {
		return b.failCall("", errors.New(`the arguments "run" and "answer" are needed`)), nil
	}
	if err := c.openRun(ctx, args.Run); err != nil {
		return b.failCall("", err), nil
	}
	if err := c.answer(ctx, []graph.Answer{{ID: args.Question, Value: args.Answer}}); err != nil {
		return b.failCall(c.run, err), nil
	}
	return c.finish(ctx, nil)
}

// openRun makes an existing run the one of the call. What it has done so far is not notified.
func (c *call) openRun(ctx context.Context, run string) error {
	st, err := c.bridge.service.ReadState(ctx, run)
	if err != nil {
		return err
	}
	if c.agent != "" && c.agent != st.Agent {
		return fmt.Errorf("run %s is not one of %s", st.Run, c.agent)
	}
	c.run = st.Run
	c.agent = st.Agent
	if info, err := c.bridge.service.ReadAgent(st.Agent); err == nil {
		c.graph = info.IsGraph()
	}
	c.seen = st.Position()
	return nil
}

// answer records answers of the user, and continues the run.
func (c *call) answer(ctx context.Context, answers []graph.Answer) error {
	_, err := c.bridge.service.AnswerRun(context.WithoutCancel(ctx), server.AnswerRequest{Run: c.run, Answers: answers, Protocol: true})
	return err
}

// continueCall continues a call that a client repeats with the answers of its user.
func (c *call) continueCall(ctx context.Context) (*sdk.CallToolResult, error) {
	if err := c.openRun(ctx, c.req.Params.RequestState); err != nil {
		return c.bridge.failCall("", err), nil
	}
	given := map[string]*sdk.ElicitResult{}
	for id, response := range c.req.Params.InputResponses {
		if res, ok := response.(*sdk.ElicitResult); ok {
			given[id] = res
		}
	}
	return c.finish(ctx, given)
}

// maxTries is how often one call asks for other answers, after those that do not fit.
const maxTries = 10

// finish waits until the run ends or needs a person, and returns the result. given are answers of the client to
// questions of the run, by their ids.
func (c *call) finish(ctx context.Context, given map[string]*sdk.ElicitResult) (*sdk.CallToolResult, error) {
	p, end := c.bridge.newProgress(ctx, c.req, c.agent)
	defer end()
	c.progress = p
	problems := map[string]string{}
	for tries := 0; ; {
		st, err := c.follow(ctx)
		if err != nil {
			return c.stop(ctx, err)
		}
		asks := len(st.Questions) > 0 && !st.Final
		if !asks || !c.asksClient(ctx, st.Questions) {
			return c.bridge.describeRun(st, c.noteOn(st.Questions)), nil
		}
		if given == nil && c.repeatsCalls() {
			return c.requestInput(st.Questions, problems), nil
		}
		if given == nil {
			if given, err = c.elicit(ctx, st.Questions, problems); err != nil && ctx.Err() != nil {
				return c.stop(ctx, err)
			}
			if err != nil {
				return c.bridge.describeRun(st, "The client could not ask its user: "+err.Error()), nil
			}
		}
		answers, dismissed, bad := readAnswers(st.Questions, given)
		given = nil
		problems = bad
		switch {
		case dismissed && len(answers) == 0:
			return c.bridge.describeRun(st, "The user has not answered."), nil
		case len(bad) == 0 && len(answers) > 0:
			err = c.answer(ctx, answers)
			if refused, ok := errors.AsType[*graph.AnswerError](err); ok {
				problems[refused.ID] = refused.Reason
			} else if err != nil {
				return c.bridge.failCall(c.run, err), nil
			}
		}
		if len(problems) == 0 {
			tries = 0
		} else if tries++; tries == maxTries {
			return c.bridge.describeRun(st, "The answers did not fit."), nil
		}
	}
}

// readAnswers returns the answers to open questions. dismissed reports whether the person has left one of them open;
// bad says which answers cannot be read, and why.
func readAnswers(open []graph.Question, given map[string]*sdk.ElicitResult) (answers []graph.Answer, dismissed bool, bad map[string]string) {
	bad = map[string]string{}
	for i := range open {
		res := given[open[i].ID]
		if res == nil {
			continue // it was asked after the others
		}
		a, err := readElicitation(&open[i], res)
		switch {
		case errors.Is(err, errDismissed):
			dismissed = true
		case err != nil:
			bad[open[i].ID] = err.Error()
		default:
			answers = append(answers, a)
		}
	}
	return answers, dismissed, bad
}

// follow notifies the client of what happens until the run ends or waits.
func (c *call) follow(ctx context.Context) (*server.RunState, error) {
	if c.progress != nil {
		sub, err := c.bridge.service.Subscribe(ctx, c.run, server.SubscribeOptions{After: c.seen, UntilQuestion: true})
		if err != nil {
			return nil, err
		}
		for ev, err := range sub.Events() {
			if err != nil {
				break // the context has ended, or the client reads too slowly: then it gets only the result
			}
			if ev.ID != "" {
				c.seen = ev.ID
			}
			c.progress.handleEvent(&ev)
		}
	}
	return c.bridge.service.WaitRun(ctx, c.run)
}

// stopTimeout is the time that a run has to end after a call was cancelled.
const stopTimeout = 30 * time.Second

// stop ends a call whose context has ended. If the client cancelled the call, the run is cancelled: the turn of an
// agent ends with what it has written, a graph ends permanently. If only the connection was lost, the run continues.
func (c *call) stop(ctx context.Context, err error) (*sdk.CallToolResult, error) {
	if ctx.Err() == nil {
		return c.bridge.failCall(c.run, err), nil
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		return nil, ctx.Err()
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if c.graph || c.bridge.service.InterruptRun(ending, c.run) != nil { // a run that waits has no turn to interrupt
		if _, err := c.bridge.service.ReadState(ending, c.run); err == nil {
			err = c.bridge.service.CancelRun(ending, c.run)
			c.bridge.log.Info("a call was cancelled", "run", c.run, "error", err)
		}
	}
	return nil, ctx.Err()
}

// asksClient reports whether the client can ask its user these questions.
func (c *call) asksClient(ctx context.Context, open []graph.Question) bool {
	caps := c.req.ClientCapabilities()
	if caps == nil || caps.Elicitation == nil || caps.Elicitation.Form == nil && caps.Elicitation.URL != nil || !mayAnswer(ctx, c.bridge.service) {
		return false
	}
	return !slices.ContainsFunc(open, func(q graph.Question) bool { return !canElicit(&q) })
}

// noteOn says what else there is to know about questions.
func (c *call) noteOn(open []graph.Question) string {
	if slices.ContainsFunc(open, func(q graph.Question) bool { return !canElicit(&q) }) {
		return "The user must answer it with raddle: raddle resume " + c.run
	}
	return ""
}

// firstRepeating is the first version of the protocol in which a server does not send requests of its own: a client
// repeats its call with what the server needs.
const firstRepeating = "2026-07-28"

// repeatsCalls reports whether the client repeats calls with answers.
func (c *call) repeatsCalls() bool { return c.req.ProtocolVersion() >= firstRepeating }

// requestInput asks the client to repeat its call with answers.
func (c *call) requestInput(open []graph.Question, problems map[string]string) *sdk.CallToolResult {
	requests := sdk.InputRequestMap{}
	for i := range open {
		requests[open[i].ID] = c.newElicitation(&open[i], problems)
	}
	return &sdk.CallToolResult{InputRequests: requests, RequestState: c.run}
}

func (c *call) newElicitation(q *graph.Question, problems map[string]string) *sdk.ElicitParams {
	asked := *q
	asked.Prompt, asked.Rejected = c.bridge.redact(q.Prompt), c.bridge.redact(q.Rejected)
	return newElicitation(&asked, problems[q.ID])
}

// elicit asks the user of the client questions, one after the other, until one is dismissed.
func (c *call) elicit(ctx context.Context, open []graph.Question, problems map[string]string) (map[string]*sdk.ElicitResult, error) {
	given := map[string]*sdk.ElicitResult{}
	for i := range open {
		res, err := c.req.Session.Elicit(ctx, c.newElicitation(&open[i], problems))
		if err != nil {
			return nil, err
		}
		given[open[i].ID] = res
		if res.Action != "accept" && res.Action != "decline" {
			break
		}
	}
	return given, nil
}

// isPermission reports whether a question is about permission for a call.
func isPermission(q *graph.Question) bool { return q.Kind == agent.KindPermission }
