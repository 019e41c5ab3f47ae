package app

import (
	"context"
	"encoding/json"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Calls are the model calls of a run whose replies its journal holds.
type Calls struct {
	Count int
	Usage llm.Usage
	ids   []string // of the replies, where the model gave one
}

// Calls reads the model calls that a run has recorded, those of earlier drives
// included.
func (p *Process) Calls(ctx context.Context, id string) (Calls, error) {
	st, err := p.open()
	if err != nil {
		return Calls{}, err
	}
	return st.calls(ctx, id)
}

func (j *journals) calls(ctx context.Context, id string) (Calls, error) {
	var c Calls
	for r, err := range j.Read(ctx, id, graph.Range{}) {
		if err != nil {
			return c, err
		}
		if r.Kind != graph.KindEffect {
			continue
		}
		// What a model replied is the one effect that is an object with these.
		var reply struct {
			ID    string    `json:"id"`
			Text  *string   `json:"text"`
			Usage llm.Usage `json:"usage"`
		}
		if len(r.Data) == 0 || r.Data[0] != '{' || !isModelCall(r) || json.Unmarshal(r.Data, &reply) != nil || reply.Text == nil {
			continue
		}
		c.Count++
		c.Usage = c.Usage.Add(reply.Usage)
		if reply.ID != "" {
			c.ids = append(c.ids, reply.ID)
		}
	}
	return c, nil
}

// isModelCall tells by an effect's name whether it is a call of a model: scripts
// may print objects too.
func isModelCall(r graph.Record) bool {
	head := string(r.Head)
	return strings.Contains(head, "\x00model attempt ") || strings.Contains(head, "\x00extractor")
}
