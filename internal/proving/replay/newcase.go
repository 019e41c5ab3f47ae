package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
)

// NewCase makes a test case of a run that was replayed: with the recorded replies, results and answers, and with the
// prompts, the path and the output that are expected.
func (r *Result) NewCase(rec *Recording) (*testcase.Case, error) {
	if len(rec.segments) != 1 || rec.segments[0].first.Kind != journal.KindStart {
		return nil, errors.New("a test case can be made of a run that was started, but not of a turn of a session, a fork or an edited run")
	}
	if r.Difference != nil {
		return nil, fmt.Errorf("the agent has changed since: %w", r.Difference)
	}
	b := &caseBuilder{segment: rec.segments[0], result: r, c: &testcase.Case{Name: "run " + rec.Run}}
	b.c.Prompt = rec.Record.Prompt
	for _, name := range slices.Sorted(maps.Keys(rec.Record.Variables)) {
		if value := rec.Record.Variables[name]; !strings.Contains(value, redact.Mask) {
			b.c.Variables = append(b.c.Variables, strictyaml.Pair{Key: name, Value: value})
		}
	}
	if passed := b.segment.passed; passed > 0 {
		b.c.At = "+" + (passed.Truncate(time.Second) + time.Second).String()
	}
	b.addModels()
	b.addScripts()
	b.addTools()
	b.addSearches()
	b.addAnswers()
	b.addExpectations()
	return b.c, nil
}

// A caseBuilder makes a case of a recorded run.
type caseBuilder struct {
	segment *segment
	result  *Result
	c       *testcase.Case
}

// An executed is one execution of a node: what it asked, in order.
type executed struct {
	path  string
	index int // of the item in a map, else -1
	keys  []string
}

// listExecutions returns the executions of nodes that asked models or ran scripts, by the names of the nodes. names has
// the order.
func (b *caseBuilder) listExecutions(kind string, wanted func(key string) bool) (names []string, list map[string][]*executed) {
	list = map[string][]*executed{}
	for _, key := range b.result.trace.order {
		a := b.result.trace.asks[key]
		if a.kind != kind || !wanted(key) {
			continue
		}
		name, index := b.result.names(a.path)
		if list[name] == nil {
			names = append(names, name)
		}
		at := slices.IndexFunc(list[name], func(e *executed) bool { return e.path == a.path })
		if at < 0 {
			at = len(list[name])
			list[name] = append(list[name], &executed{path: a.path, index: index})
		}
		list[name][at].keys = append(list[name][at].keys, key)
	}
	for _, l := range list {
		slices.SortStableFunc(l, func(x, y *executed) int { return cmp.Compare(x.index, y.index) })
	}
	return names, list
}

// isTalk reports whether an effect is a reply in a conversation with tools.
func (b *caseBuilder) isTalk(key string) bool {
	e := b.segment.effects[key]
	return e.isTalk()
}

// addModels adds the replies and the prompts.
func (b *caseBuilder) addModels() {
	names, list := b.listExecutions(kindModel, func(key string) bool { return !b.isTalk(key) })
	for _, name := range names {
		stub := testcase.NodeStub{Node: name}
		var prompts []string
		var faults []string
		for _, e := range list[name] {
			last := e.keys[len(e.keys)-1]
			fault := testcase.FaultNone
			output := any("")
			if b.result.trace.failed[last] {
				fault = testcase.FaultFail
			} else if reply, err := b.reply(last); err == nil {
				output = reply.Text()
			}
			faults = append(faults, fault)
			stub.Outputs = append(stub.Outputs, output)
			prompts = append(prompts, b.result.trace.asks[e.keys[0]].user)
		}
		b.c.Nodes = append(b.c.Nodes, stub)
		if slices.Contains(faults, testcase.FaultFail) {
			b.c.Faults = append(b.c.Faults, testcase.Fault{Node: name, Kinds: faults})
		}
		b.expectPrompts(name, prompts)
	}
	names, list = b.listExecutions(kindModel, b.isTalk)
	asked := map[string][]string{}
	for _, name := range names {
		for _, e := range list[name] {
			for _, key := range e.keys {
				asked[name] = append(asked[name], b.result.trace.asks[key].user)
				if reply, err := b.reply(key); err == nil {
					b.addMissingTools(reply.Message.ToolCalls())
					b.c.Replies = append(b.c.Replies, newReply(name, reply))
				}
			}
		}
		b.expectPrompts(name, slices.Compact(asked[name])[:1])
	}
}

// addMissingTools adds a failure for tools of servers that the run could not call.
func (b *caseBuilder) addMissingTools(calls []llm.ToolCall) {
	for _, call := range calls {
		known := slices.ContainsFunc(b.c.Tools, func(t testcase.ToolStub) bool { return t.Tool == call.Name })
		for _, e := range b.segment.effects {
			name, _ := agent.ToolOfEffect(e.name)
			known = known || name == call.Name
		}
		if !known && strings.HasPrefix(call.Name, "mcp_") {
			b.c.Tools = append(b.c.Tools, testcase.ToolStub{Tool: call.Name, Results: []testcase.ToolResult{{Text: "the server was not available", Error: true}}})
		}
	}
}

func (b *caseBuilder) reply(key string) (llm.Reply, error) {
	e := b.segment.effects[key]
	return e.reply()
}

func newReply(node string, r llm.Reply) testcase.Reply {
	calls := r.Message.ToolCalls()
	for i := range calls {
		calls[i].ID = ""
	}
	return testcase.Reply{Node: node, Reply: script.Reply{Text: r.Text(), Calls: calls, Usage: llm.Usage{Input: r.Usage.Input, Output: r.Usage.Output}}}
}

// expectPrompts expects the prompts of a node: one that all requests have, or one for each.
func (b *caseBuilder) expectPrompts(name string, prompts []string) {
	list := testcase.TextsOf{Node: name, InOrder: len(prompts) > 1}
	for _, p := range prompts {
		list.Matchers = append(list.Matchers, testcase.Matcher{Equal: new(any(p))})
	}
	b.c.Expect.Prompts = append(b.c.Expect.Prompts, list)
}

// addScripts adds the outputs of scripts.
func (b *caseBuilder) addScripts() {
	names, list := b.listExecutions(kindScript, func(string) bool { return true })
	for _, name := range names {
		stub := testcase.NodeStub{Node: name}
		var faults []string
		for _, e := range list[name] {
			key := e.keys[0]
			fault := testcase.FaultNone
			output := any("")
			if b.result.trace.failed[key] {
				fault = testcase.FaultFail
			} else {
				output = parseOutput(b.segment.effects[key].data)
			}
			faults = append(faults, fault)
			stub.Outputs = append(stub.Outputs, output)
		}
		b.c.Nodes = append(b.c.Nodes, stub)
		if slices.Contains(faults, testcase.FaultFail) {
			b.c.Faults = append(b.c.Faults, testcase.Fault{Node: name, Kinds: faults})
		}
	}
}

// parseOutput returns the output of a script as data, or as text if it is none.
func parseOutput(data []byte) any {
	v, err := jsonvalue.Parse(data)
	if _, object := v.(*jsonvalue.Object); err != nil || !object {
		return string(data)
	}
	return v
}

// addTools adds the results of calls. Results of several calls of a tool are found by the arguments if these differ.
func (b *caseBuilder) addTools() {
	var names []string
	stubs := map[string]*testcase.ToolStub{}
	for _, key := range b.result.trace.order {
		a := b.result.trace.asks[key]
		recorded, found := b.segment.effects[key]
		if a.kind != kindTool || !found || isOwnTool(a.name) {
			continue
		}
		result, _, err := agent.ReadOutcome(recorded.data)
		if err != nil || result == nil {
			continue
		}
		if stubs[a.name] == nil {
			names = append(names, a.name)
			stubs[a.name] = &testcase.ToolStub{Tool: a.name}
		}
		var args bytes.Buffer
		_ = json.Compact(&args, []byte(a.text("arguments"))) // they are valid JSON
		stubs[a.name].Results = append(stubs[a.name].Results, testcase.ToolResult{Match: args.String(), Text: result.Text(), Error: result.Error})
	}
	for _, name := range names {
		list := stubs[name].Results
		seen := map[string]bool{}
		for _, r := range list {
			seen[r.Match] = true
		}
		if len(list) == 1 || len(seen) < len(list) {
			for i := range list {
				list[i].Match = ""
			}
		}
		b.c.Tools = append(b.c.Tools, *stubs[name])
	}
}

// addSearches adds what searches have found; of several of a node, the first.
func (b *caseBuilder) addSearches() {
	for _, key := range b.result.trace.order {
		a := b.result.trace.asks[key]
		if a.kind != kindSearch {
			continue
		}
		name, _ := b.result.names(a.path)
		if a.name == "" {
			name = testcase.OwnDocuments
		}
		found, err := flow.ReadSearch(b.segment.effects[key].data)
		if err != nil || slices.ContainsFunc(b.c.Searches, func(s testcase.SearchStub) bool { return s.Node == name }) {
			continue
		}
		stub := testcase.SearchStub{Node: name}
		for _, chunk := range found.Chunks {
			stub.Hits = append(stub.Hits, testcase.Hit{
				Source: chunk.Source,
				Text:   chunk.Text,
				Place:  chunk.Place,
			})
		}
		b.c.Searches = append(b.c.Searches, stub)
	}
}

// addAnswers adds the answers in the order in which they were used.
func (b *caseBuilder) addAnswers() {
	for _, given := range b.result.answered {
		if given.answer.Refused != "" {
			continue
		}
		var name string
		var call agent.CallData
		if json.Unmarshal(given.question.Data, &call) == nil && call.Tool != "" {
			name = call.Tool
		} else {
			path, _, _ := strings.Cut(given.question.ID, "#")
			name, _ = b.result.names("0." + strings.ReplaceAll(path, "/", ".0/0.") + ".0")
		}
		at := slices.IndexFunc(b.c.Answers, func(a testcase.Answer) bool { return a.Question == name })
		if at < 0 {
			at = len(b.c.Answers)
			b.c.Answers = append(b.c.Answers, testcase.Answer{Question: name})
		}
		value := given.answer.Value
		if given.question.Kind == graph.KindEvent { // a case has the data of an event as a text
			text, err := json.Marshal(value)
			if err != nil {
				continue
			}
			value = string(text)
		}
		b.c.Answers[at].Values = append(b.c.Answers[at].Values, value)
	}
}

// addExpectations expects how the run ended, its path and its output.
func (b *caseBuilder) addExpectations() {
	e := &b.c.Expect
	switch b.segment.status {
	case graph.Done:
		e.Output = &testcase.Matcher{Equal: new(any(b.segment.output))}
	case graph.Waiting:
		e.Status = "waiting"
	default:
		e.Status = "failed"
	}
	if len(b.result.path) > 0 && b.segment.status != graph.Failed {
		e.Path = &testcase.Sequence{Exact: []testcase.Item{}}
		for _, node := range b.result.path {
			e.Path.Exact = append(e.Path.Exact, testcase.Item{Name: node})
		}
	}
}

// WriteCase replays a run and writes a test case of it to a new file in the directory of its agent. It returns the
// path, and what is not as the case expects when it runs; empty: the case passes.
func WriteCase(ctx context.Context, j Job) (path string, failures []testcase.Failure, err error) {
	res, err := Execute(ctx, j)
	if err != nil {
		return "", nil, err
	}
	if res.Directory == "" {
		return "", nil, failure.NewUsage("name its directory: raddle test --from RUN DIR", "the agent of run %s is not on this machine", res.Run)
	}
	c, err := res.NewCase(j.Recording)
	if err != nil {
		return "", nil, &failure.Error{Kind: failure.Stale, Err: err, Next: "see: raddle replay " + res.Run}
	}
	text, err := testcase.Encode([]*testcase.Case{c})
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(res.Directory, "run-"+res.Run+testcase.Suffix)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", nil, failure.NewUsage("remove it, or rename it", "the test case cannot be written: %v", err)
	}
	if _, err = out.Write(text); errors.Join(err, out.Close()) != nil {
		return "", nil, fmt.Errorf("the test case cannot be written: %w", err)
	}
	f, err := testcase.Load(path)
	if err != nil {
		return path, nil, err
	}
	runner := &testrun.Runner{Environ: j.Environ}
	done, err := runner.RunCase(ctx, f.Cases[0], testrun.Setup{})
	if err != nil {
		return path, nil, err
	}
	return path, done.Failures, nil
}
