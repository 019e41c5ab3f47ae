package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/llm"
)

// RemoteInput is what the run of a node with a queue gets: the Input of a graph.RemoteCall.
type RemoteInput struct {
	Agent   string        `json:"agent"`
	Dir     string        `json:"dir"`
	Prompt  string        `json:"prompt"`
	Model   string        `json:"model,omitempty"`   // of the agent above, for an agent that names none
	Depth   int           `json:"depth,omitempty"`   // number of agents above it
	Timeout time.Duration `json:"timeout,omitempty"` // of active time; 0: no limit
	Budget  *agent.Limits `json:"budget,omitempty"`  // what the run above has left; nil: no limit

	// Branch is set for an item of a map: only that node of the agent runs, with State.
	Branch *Branch         `json:"branch,omitempty"`
	State  json.RawMessage `json:"state,omitempty"`

	Media *llm.Message `json:"media,omitempty"` // pictures and documents that are attached to the prompt
}

// MediaParts returns the pictures and documents of the input.
func (in *RemoteInput) MediaParts() []llm.Part {
	if in.Media == nil {
		return nil
	}
	return in.Media.Parts
}

// remoteMedia returns pictures and documents as an input has them.
func remoteMedia(parts []llm.Part) *llm.Message {
	if len(parts) == 0 {
		return nil
	}
	return &llm.Message{Role: llm.RoleUser, Parts: parts}
}

// Branch names a node of a graph that runs alone, for one item of a map.
type Branch struct {
	Node   string `json:"node"`
	Output string `json:"output"` // key of the state that must have the result
}

// RemoteResult is the answer of a run of its own: the output of an agent, or the JSON of the result of a branch.
type RemoteResult struct {
	Run    string      `json:"run"`
	Output string      `json:"output"`
	Spend  agent.Spend `json:"spend,omitzero"`

	TimedOut bool `json:"timed_out,omitempty"` // with a refusal: the run has worked for the time of its node
}

// remoteQueue returns the queue whose workers run the children of the node; "": this process runs them. Members of a
// team run all of theirs in the process, because a team answers the questions of its members.
func (nr *nodeRun) remoteQueue() string {
	if !nr.host().Bounds.Remote || nr.agent.member || nr.agent.nonInteractive {
		return ""
	}
	return nr.queue
}

// callRemoteAgent waits for a run of an agent on a queue, and returns its output.
func (nr *nodeRun) callRemoteAgent(ctx context.Context, queue string, child *Agent, s Spawn, timeout time.Duration) (string, error) {
	return nr.callRemote(ctx, queue, RemoteInput{Agent: child.Name, Dir: child.Dir, Prompt: s.Prompt, Model: s.Model, Depth: s.Depth, Timeout: max(timeout, 1), Media: remoteMedia(s.Media)})
}

// callRemote waits for a run on a queue, and returns its output. What the run has spent is paid from the shared budgets
// of ctx.
func (nr *nodeRun) callRemote(ctx context.Context, queue string, in RemoteInput) (string, error) {
	res, err := graph.Remote[RemoteResult](ctx, queue, func() (any, error) {
		var err error
		task := graph.TaskInfo(ctx)
		in.Budget, err = agent.LendBudget(ctx, fmt.Sprint(task.Path, " ", task.Step), max(1, task.Tasks))
		return in, err
	})
	refused, failed := errors.AsType[*graph.RefusedError](err)
	if failed {
		res = RemoteResult{}
		_ = json.Unmarshal(refused.Value, &res) // a person may have refused the question
		if err = errors.New(refused.Reason); res.TimedOut {
			err = errNodeTimeout
		}
	}
	if err == nil || failed {
		if paid := agent.PayRemote(ctx, res.Run, res.Spend); paid != nil {
			return "", paid
		}
	}
	return res.Output, err
}

// runRemoteBranch runs the branch of a map for one item as a run of its own, and returns its result.
func (nr *nodeRun) runRemoteBranch(queue, output string) (any, error) {
	state := &jsonvalue.Object{}
	for _, name := range nr.before.Keys() {
		if value, ok := nr.before.Value(name); ok && name != branchResults.Name() && name != mediaKey.Name() {
			state.Set(name, value)
		}
	}
	encoded, err := jsonvalue.Append(nil, state)
	if err != nil {
		return nil, err
	}
	text, err := nr.callRemote(nr, queue, RemoteInput{Agent: nr.agent.Name, Dir: nr.agent.Dir, Model: nr.agent.modelID(""), Depth: nr.agentDepth(),
		Branch: &Branch{Node: nr.node.ID, Output: output}, State: encoded, Media: remoteMedia(mediaKey.Get(nr.before).Parts)})
	if err != nil {
		return nil, err
	}
	return jsonvalue.ParseStored([]byte(text))
}

// compileBranch compiles a graph of one node of an agent: a run of it ends with the JSON of the node's result.
func (b *builder) compileBranch(a *Agent, branch Branch) (*graph.Graph, error) {
	if a.File == nil || !canBeBranch(a.File.Node(branch.Node)) {
		return nil, fmt.Errorf("agent '%s' has no node '%s' that can run alone", a.Name, branch.Node)
	}
	if err := a.checkReady(); err != nil {
		return nil, err
	}
	n := a.File.Node(branch.Node)
	r := b.newRuntime(a)
	node, err := b.buildNode(r, n)
	if err != nil {
		return nil, err
	}
	node.Routes = []string{graph.End}
	node.Run = a.host.redactErrors(func(ctx context.Context, s graph.State) (graph.Update, error) {
		result, err := r.runBranch(ctx, s, n, branch.Output, "")
		if err != nil {
			return graph.Update{}, err
		}
		text, err := jsonvalue.Append(nil, result)
		return graph.Update{Halt: &graph.Halt{Value: string(text)}}, err
	})
	return graph.Compile(graph.Def{Name: a.File.Name, Version: versionOf(a.File), Keys: []graph.AnyKey{mediaKey}, Open: r.keySet.openKey, Start: []string{n.ID}, Nodes: []graph.Node{node}, MustHalt: true})
}

// runBranch runs a node for one item of a map, in this process or on a queue, and returns its result.
func (r *runtime) runBranch(ctx context.Context, s graph.State, n *spec.Node, output, queue string) (any, error) {
	nr := &nodeRun{Context: ctx, runtime: r, node: n, before: s, branch: true, outputKey: output, queue: queue}
	budgets, err := nr.shareBudgets(ctx)
	if err != nil {
		return nil, err
	}
	if queue := nr.remoteQueue(); queue != "" && needsOf(n).agent == "" {
		return nr.runRemoteBranch(queue, output)
	}
	if err := nr.readScopes(); err != nil {
		return nil, err
	}
	if err := n.Body.(nodeBody).run(nr); err != nil {
		return nil, nr.followExceeded(budgets, err)
	}
	result, ok := nr.writes.Get(output)
	switch {
	case n.OutputSchema != nil && nr.output != nil && !nr.updatesKey(output): // a property may have the name of the key
		result = *nr.output
	case ok:
	case nr.output != nil:
		result = *nr.output
	default:
		if result, ok = nr.lookupKey(output); !ok {
			return nil, errNoOutput
		}
	}
	return result, nil
}

// RemoteFailure returns the text of the failure of a run of its own, in the words that its node uses for a child in the
// process.
func RemoteFailure(in RemoteInput, reason string) string {
	if in.Branch != nil {
		return reason
	}
	return fmt.Sprintf("Graph execution failed for agent '%s': %s", in.Agent, reason)
}
