package toolbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool"
)

// Trial is the outcome of a call that a person tries.
type Trial struct {
	Output string // what a model would read
	Failed bool
	Asks   *graph.Question // the call was not made: it needs this permission
}

// TryTool makes one call of a tool of the list if the rules of the user allow it, or if a person has allowed exactly
// this call: allowed is the ID of the question that an earlier trial returned. A call that a rule denies is an error,
// and so is a tool that asks something itself. It starts no server.
func (l *ToolList) TryTool(ctx context.Context, c runs.ToolCall, allowed string) (Trial, error) {
	i := slices.IndexFunc(l.tools, func(t tool.Tool) bool { return t.Name == c.Tool })
	if i < 0 {
		return Trial{}, failure.NewUsage("see: raddle tools ls", "there is no tool %q that can be tried", c.Tool)
	}
	t := l.tools[i]
	if err := agent.CheckArguments(t, c.Args); err != nil {
		return Trial{}, failure.NewUsage("see its schema: raddle tools ls --output json", "%v", err)
	}
	d, err := l.rules.Decide(ctx, t, tool.Call{ID: "call", Key: "call", Args: c.Args}, nil)
	permit := d.Permit
	switch {
	case err != nil:
		return Trial{}, err
	case d.Verdict == agent.Deny:
		return Trial{}, failure.NewUsage("change the rule, or call another tool", "the rules forbid this call of %s. %s", t.Name, d.Reason)
	case d.Verdict == agent.Ask:
		q, err := l.newTrialQuestion(t, c, d)
		if err != nil || q.ID != allowed {
			return Trial{Asks: q}, err
		}
		permit = permit.Answer(d.Grant)
	}
	text, failed, err := l.makeCall(ctx, c, permit, func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
		return nil, false, failure.NewUsage("run the agent", "%s asks something itself: %s", t.Name, open[0].Prompt)
	})
	return Trial{Output: text, Failed: failed}, err
}

// newTrialQuestion returns the question whether a call may be made. Its ID is a hash of what a person reads: another
// call, or the same one with other consequences, is another question.
func (l *ToolList) newTrialQuestion(t tool.Tool, c runs.ToolCall, d agent.Decision) (*graph.Question, error) {
	secrets := l.shared.SecretSet()
	prompt, data := d.DescribeCall(t, tool.Call{ID: "call", Args: c.Args}, secrets.Text)
	q := &graph.Question{Kind: agent.KindPermission, Prompt: prompt, Options: []string{"once", "no"}}
	var err error
	if q.Data, err = json.Marshal(data); err != nil {
		return nil, err
	}
	q.Data = secrets.Bytes(q.Data)
	hash := sha256.Sum256([]byte(t.Name + "\x00" + string(c.Args) + "\x00" + q.Prompt))
	q.ID = hex.EncodeToString(hash[:16])
	return q, nil
}
