package flow

import "context"

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
