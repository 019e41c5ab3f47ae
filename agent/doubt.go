package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/tool"
)

// doubtOptions are the answers to a question of KindDoubt.
var doubtOptions = []string{string(tool.DoubtRetry), string(tool.DoubtSkip)}

// A doubtAnswer is one of doubtOptions. Any other text opens the question
// again.
type doubtAnswer tool.Doubt

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *doubtAnswer) UnmarshalText(text []byte) error {
	if !slices.Contains(doubtOptions, string(text)) {
		return fmt.Errorf("it must be one of %s", strings.Join(doubtOptions, ", "))
	}
	*d = doubtAnswer(text)
	return nil
}

// resolveDoubt reports whether an interrupted call is made again. The caller of
// the run, the tool or the agent decides, in this order; if none of them does,
// a person decides.
func (st *actStep) resolveDoubt(ctx context.Context, t tool.Tool, c tool.Call, key string) (again bool, err error) {
	switch policy := st.act.Calls.doubtPolicy(t); {
	case policy == tool.DoubtRetry:
		return true, nil
	case policy == tool.DoubtSkip || st.act.Headless:
		return false, nil
	}
	answer, err := graph.Interrupt[doubtAnswer](ctx, graph.Ask{Name: "doubt " + key, Kind: KindDoubt, Options: doubtOptions,
		Prompt: st.act.redact(fmt.Sprintf("%s with %s was cut off before its outcome was known, and may or may not have happened. Do it again?", t.Name, c.Args)),
		Data:   CallData{ID: c.ID, Tool: t.Name, Args: c.Args}})
	if refusal := refusalOf(err); refusal != nil {
		return false, nil
	}
	return answer == doubtAnswer(tool.DoubtRetry), err
}

// doubtPolicy returns what happens to an interrupted call of a tool.
func (c *Calls) doubtPolicy(t tool.Tool) tool.Doubt {
	for _, d := range []tool.Doubt{c.InDoubtForAll, t.InDoubt, c.InDoubt} {
		if d != tool.DoubtUnset {
			return d
		}
	}
	return tool.DoubtAsk
}
